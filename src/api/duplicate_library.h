/*
 * Whether this copy of the library is alone in the process: asked by acs_open before it makes anything.
 */
#ifndef ACS_RUNTIME_COPIES_H
#define ACS_RUNTIME_COPIES_H

#include "base/base.h"

/* ACS_ERR_STATE, naming two files, where more than one loaded program or shared object holds a copy of ACS. */
acs_status acs_copies_check(void);

#endif
