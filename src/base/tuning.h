/*
 * The tuning constants of tuning.def as enumerators; that file says what each means. Device code includes this header,
 * too, so it includes nothing but tuning.def beside it.
 */
#ifndef ACS_TUNING_H
#define ACS_TUNING_H

enum {
#define ACS_TUNE_GROUP(title)
#define ACS_TUNE(name, value, unit, effect, origin) name = (value),
#include "tuning.def"
#undef ACS_TUNE_GROUP
#undef ACS_TUNE
};

#endif
