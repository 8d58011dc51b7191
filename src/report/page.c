/* The page of ACS_REPORT, until page/ is there. */
#include "report/writing.h"

const char *const acs_page_head[] = {
    "<!doctype html><meta charset=\"utf-8\"><script type=\"application/json\" id=\"acs\">", NULL};
const char *const acs_page_tail[] = {"</script>", NULL};
