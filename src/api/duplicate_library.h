/*
 * A check that this copy of the library is alone in the process. acs_open calls it before it makes anything.
 */
#ifndef ACS_DUPLICATE_LIBRARY_H
#define ACS_DUPLICATE_LIBRARY_H

#include "base/base.h"

/* ACS_ERR_STATE: more than one loaded program or shared object holds a copy of ACS. The error names two files. */
acs_status acs_copies_check(void);

#endif
