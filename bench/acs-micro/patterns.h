/* Footprints for the group "insert": the segments of the n-th op of a program, the same at every call. */
#ifndef ACS_MICRO_PATTERNS_H
#define ACS_MICRO_PATTERNS_H

#include "base/base.h"

enum { SEGMENTS = 6 };

typedef struct pattern {
    const char *name;
    uint32_t segments; /* that an op has; the others touch nothing that another op writes */
    /* `period`: after how many ops the program names the same bytes again, where the pattern recurs. */
    void (*make)(uint64_t op, uint32_t period, acs_segment segments[SEGMENTS]);
} pattern;

extern const pattern micro_patterns[];
extern const uint32_t micro_pattern_count;

#endif
