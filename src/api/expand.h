/*
 * Expansion of footprints: declared footprints, footprint functions and whole allocations become a plain list of
 * segments, before anything else looks at an op's footprint. So the rest of the library knows lists alone. Defined in
 * expand.c.
 */
#ifndef ACS_EXPAND_H
#define ACS_EXPAND_H

#include "api/draft.h"

/* A list of segments on the stack of a call; a longer one is allocated. Freed by acs_expansion_fini. */
typedef struct acs_expansion {
    acs_segment few[TUNE_FOOTPRINT_SEGMENTS];
    acs_segment *list; /* `few`, or allocated */
    size_t count, room;
} acs_expansion;

/* The allocation in which an address lies, for segments with ACS_WHOLE. Defined in whole.c. */
typedef enum acs_whole {
    ACS_WHOLE_FOUND,
    ACS_WHOLE_FREED,  /* it was a block of acs_malloc, or is pool memory in no block */
    ACS_WHOLE_UNKNOWN
} acs_whole;

/*
 * Find the allocation. FOUND: *block has its address and bytes. FREED: *block is what was there, with 0 bytes if that is
 * not remembered. UNKNOWN: *reason says why, in static storage. May ask the device's driver.
 */
acs_whole acs_whole_find(acs_context *context, uint64_t address, acs_block *block, const char **reason);

/* Find a live block, or registered memory. Does not ask the driver. */
bool acs_whole_find_known(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes);

/* More segments than an op may have; a list of so many is refused before it is read. */
#define ACS_SEGMENTS_MOST (UINT32_MAX / (2 * sizeof(acs_segment)))

/* Whether a segment says itself which bytes it is, and that its op does with them nothing but to read and write them. */
static inline bool acs_segment_is_plain(const acs_segment *s)
{
    return !(s->row_bytes >> 63 | (uint64_t)(s->access >> 3));
}

/* Whether a function has a part in the footprint. */
static inline bool acs_uses_are_computed(const acs_uses *uses)
{
    return (uses->footprint != NULL) | (uses->any == ACS_LOOK_UP);
}

/* Whether the footprint is a list of plain segments. */
static inline bool acs_uses_are_plain(const acs_uses *uses)
{
    bool plain = !acs_uses_are_computed(uses);
    if (ACS_UNLIKELY(!uses->segments || uses->count > ACS_SEGMENTS_MOST))
        return plain;
    for (const acs_segment *s = uses->segments, *end = s + uses->count; s < end; s++)
        plain &= acs_segment_is_plain(s);
    return plain;
}

/*
 * Make *plain the plain list that `uses` stands for. It lives as long as the expansion, which the caller finishes also on
 * failure. `launch`: the launch whose footprint it is; NULL: another op, or no launch. `input`: for a footprint function.
 * If the function is left by an exception the draft is taken back. On failure the caller drops the draft.
 */
acs_status acs_expand(acs_expansion *expansion, acs_draft *draft, const acs_uses *uses, const acs_launch_params *launch,
                      const acs_footprint_input *input, acs_uses *plain);
/* The same for a launch, whose arguments its footprint function gets. */
acs_status acs_expand_launch(acs_expansion *expansion, acs_draft *draft, const acs_launch_params *params, acs_uses *plain);
void acs_expansion_fini(acs_expansion *expansion);
/* As a declaration: with a cleanup that also runs if the program's code is left by an exception. */
#define ACS_EXPANSION(name) __attribute__((cleanup(acs_expansion_fini))) acs_expansion name; (name).list = (name).few

/* acs_draft_uses for the footprint that the program gave an op that is no launch. */
acs_status acs_draft_expand(acs_draft *draft, const acs_uses *uses, uint32_t args, uint32_t arg_bytes);

/* acs_launch of a launch whose footprint is not plain: calls `go` with the launch as it is after expansion. */
acs_op acs_launch_expanded(acs_context *context, const acs_launch_params *params,
                           acs_op (*go)(acs_context *context, const acs_launch_params *params));

#endif
