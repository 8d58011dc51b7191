/*
 * What copies of an image tell about a launch, and about a trial: the same launch once more, from bytes some of which
 * were scrambled. Pure.
 */
#ifndef ACS_CHECK_COMPARE_H
#define ACS_CHECK_COMPARE_H

#include "checks/image.h"

/* Bytes of one range. */
typedef struct acs_found_bytes {
    const acs_memory_range *range;
    uint64_t first, end;    /* addresses of the first one, and behind the last one */
    uint64_t bytes, pieces; /* how many there are, in how many pieces */
} acs_found_bytes;

/* Called for each range with such bytes. */
typedef void (*acs_found)(void *user, const acs_found_bytes *bytes);

/* Which bytes are sought. */
typedef enum acs_sought {
    ACS_SOUGHT_CHANGED,  /* that changed, though the op does not name them as written */
    ACS_SOUGHT_WRITTEN,  /* these, and those that it wrote in the trial, with the values that they had */
    ACS_SOUGHT_KEPT,     /* of out segments, as they were before the launch */
    ACS_SOUGHT_UNWRITTEN /* of out segments, scrambled, and written by neither launch nor trial */
} acs_sought;
void acs_compare_find(const acs_image *image, const acs_spans *spans, acs_sought what, acs_found found, void *user);
/* Whether there are such bytes. */
bool acs_compare_has(const acs_image *image, const acs_spans *spans, acs_sought what);
/* Whether the trial wrote other bytes than the launch. Bytes that neither wrote are the same. */
bool acs_compare_differs(const acs_image *image, const acs_spans *spans);

/* What launch and trial did to a segment that was scrambled. */
typedef struct acs_use {
    bool scrambled; /* a byte was, so the rest is known */
    bool all_scrambled; /* each byte was */
    bool written;   /* one of them wrote a byte */
    bool kept;      /* a byte was written by neither */
    bool changed;   /* the launch changed a byte */
} acs_use;
acs_use acs_compare_use(const acs_image *image, const acs_segment *segment);

#endif
