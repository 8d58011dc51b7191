/*
 * Names and texts of statuses, generated from ACS_STATUS_TABLE in acs.h. Called by programs and by functions that write
 * error texts. Never allocates; the strings are static.
 */
#include "base/base.h"

const char *acs_status_name(acs_status status)
{
    switch (status) {
#define ACS_STATUS_NAME_(name, value, text)                                                                            \
    case name:                                                                                                         \
        return #name;
        ACS_STATUS_TABLE(ACS_STATUS_NAME_)
#undef ACS_STATUS_NAME_
    }
    return "unknown status";
}

const char *acs_status_text(acs_status status)
{
    switch (status) {
#define ACS_STATUS_TEXT_(name, value, text)                                                                            \
    case name:                                                                                                         \
        return text;
        ACS_STATUS_TABLE(ACS_STATUS_TEXT_)
#undef ACS_STATUS_TEXT_
    }
    return "unknown status";
}
