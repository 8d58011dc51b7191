/*
 * The bytes that a footprint names: spans, rising and apart, each with what the op may do with its bytes. Pure; never
 * touches the memory itself.
 */
#ifndef ACS_CHECK_SPANS_H
#define ACS_CHECK_SPANS_H

#include "window/regions.h"

typedef struct acs_span {
    uint64_t first, end; /* the first byte, and the one behind the last */
    uint8_t access;      /* ACS_READ, ACS_WRITE, or both */
} acs_span;

typedef struct acs_spans {
    acs_span *list;
    size_t count;
    bool reads_all; /* the op may read any memory: ACS_ALL_MEMORY_IN */
} acs_spans;

/* Find the spans of the segments, which acs_launch has accepted. False: no memory. */
bool acs_spans_make(const acs_segment *segments, uint32_t count, acs_spans *spans);
void acs_spans_free(acs_spans *spans);
/*
 * What the op may do with the byte at `address`; 0: it does not name it. *end: the first byte behind it of which that
 * may not be true, at most `most`. *at: 0 at first, then as the call before left it, if addresses rise.
 */
uint8_t acs_spans_at(const acs_spans *spans, size_t *at, uint64_t address, uint64_t most,
                     uint64_t *end);

#endif
