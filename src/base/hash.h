/* uthash, included once in one way: a failed allocation is reported, never an exit. */
#ifndef ACS_HASH_H
#define ACS_HASH_H

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hash_failed = 1)
#include <uthash.h>

#endif
