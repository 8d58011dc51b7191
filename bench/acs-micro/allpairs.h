/* The dependency check as the ACS paper has it: each segment of a new op with each one in the window. */
#ifndef ACS_MICRO_ALLPAIRS_H
#define ACS_MICRO_ALLPAIRS_H

#include "patterns.h"

typedef struct allpairs allpairs;

allpairs *allpairs_create(uint32_t window);
void allpairs_destroy(allpairs *scan);
/* Insert an op, in a window that is not full: how many ops in it have a conflict with it. */
uint32_t allpairs_insert(allpairs *scan, const acs_segment segments[SEGMENTS]);
/* The oldest op leaves. */
void allpairs_retire(allpairs *scan);
uint32_t allpairs_live(const allpairs *scan);

#endif
