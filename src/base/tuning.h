/*
 * The constants of judgement, as numbers (tuning.def has what they mean). Included by whoever uses one; device code does,
 * too, so this header includes nothing else and its rows stand beside it.
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
