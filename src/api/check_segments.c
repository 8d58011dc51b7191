/*
 * Checks of an op's segments: their shapes are valid; they lie inside live blocks, where that is known; with ACS_CHECK
 * they are not in the memory of another context. Called by launch.c before an op is queued. Changes only this thread's
 * error.
 */
#include "api/expand.h"

static acs_status check_end(const acs_draft *draft, const acs_segment *s, uint32_t i, const acs_block *block,
                            acs_status status)
{
    uint64_t last = acs_segment_end(s);
    uint64_t base = (uint64_t)(uintptr_t)block->ptr;
    if (last <= base + block->bytes)
        return ACS_OK;
    return ACS_FAIL(status, 0, "'%s': segment %u ends %llu bytes behind its allocation of %llu bytes at %#llx",
                    acs_draft_name(draft), i, (unsigned long long)(last - base - block->bytes),
                    (unsigned long long)block->bytes, (unsigned long long)base);
}

/* Refuse a segment that begins in no live block. `block`: the freed one that was there; NULL: not remembered. */
static acs_status refuse_freed(const acs_draft *draft, const acs_segment *s, uint32_t i, const acs_block *block,
                               acs_status status)
{
    if (!block)
        return ACS_FAIL(status, 0, "'%s': segment %u at %#llx names memory of a pool that is in no block",
                        acs_draft_name(draft), i, (unsigned long long)s->base);
    return ACS_FAIL(status, 0, "'%s': segment %u at %#llx names memory freed by op %llu, of acs_malloc at %s:%d",
                    acs_draft_name(draft), i, (unsigned long long)s->base, (unsigned long long)block->behind,
                    block->site && block->site->file ? block->site->file : "?", block->site ? block->site->line : 0);
}

acs_status acs_draft_refuse_freed(const acs_draft *draft, const acs_segment *s, uint32_t i, const acs_block *block)
{
    const bool check = draft->context->options.check >= ACS_CHECK_OVERLAP;
    return refuse_freed(draft, s, i, block->bytes ? block : NULL, check ? ACS_ERR_CHECK : ACS_ERR_ARGUMENT);
}

/* Refuse a segment that begins in no block and reaches into memory of acs_malloc, which begins at `base`. */
static acs_status refuse_before(const acs_draft *draft, const acs_segment *s, uint32_t i, uint64_t base, acs_status status)
{
    return ACS_FAIL(status, 0, "'%s': segment %u at %#llx begins in no block, and reaches %llu bytes into memory of "
                    "acs_malloc's at %#llx", acs_draft_name(draft), i, (unsigned long long)s->base,
                    (unsigned long long)(acs_segment_end(s) - base), (unsigned long long)base);
}

static acs_status check_before(const acs_draft *draft, const acs_segment *s, uint32_t i, acs_memory *memory,
                               acs_status status)
{
    const uint64_t base = memory ? acs_memory_chunk_behind(memory, s->base) : UINT64_MAX;
    return base < acs_segment_end(s) ? refuse_before(draft, s, i, base, status) : ACS_OK;
}

/*
 * With pools. The driver would not refuse a bad copy: a pool still has the memory of freed blocks, and another block
 * lies behind the end of each. So copies and fills are always checked, other ops with ACS_CHECK.
 */
static acs_status check_pooled(const acs_draft *draft, const acs_segment *s, uint32_t i, acs_status status)
{
    acs_block block;
    switch (acs_memory_find(draft->context->memory, s->base, &block)) {
    case ACS_PLACE_BLOCK: return check_end(draft, s, i, &block, status);
    case ACS_PLACE_FREED: return refuse_freed(draft, s, i, &block, status);
    case ACS_PLACE_IDLE: return refuse_freed(draft, s, i, NULL, status);
    case ACS_PLACE_FOREIGN: break;
    }
    acs_memory *addresses = acs_context_addresses(draft->context);
    if (addresses && acs_memory_find(addresses, s->base, &block) != ACS_PLACE_FOREIGN)
        return ACS_OK; /* residency/lazy.c checks lazy blocks */
    ACS_TRY(check_before(draft, s, i, draft->context->memory, status));
    return check_before(draft, s, i, addresses, status);
}

/*
 * Without pools. The memory of a block is the context's until its state is FREED. After that the allocator may have
 * given the address to the program itself, so nothing is known of it.
 */
static acs_status check_apart(const acs_draft *draft, const acs_segment *s, uint32_t i)
{
    acs_allocation allocation;
    acs_allocations *table = draft->context->allocations;
    if (!acs_allocations_find(table, s->base, &allocation) || allocation.state == ACS_ALLOCATION_FREED)
        return acs_allocations_meet(table, s->base, acs_segment_end(s) - s->base, &allocation)
                   ? refuse_before(draft, s, i, allocation.base, ACS_ERR_CHECK) : ACS_OK;
    acs_block block = acs_allocation_block(&allocation);
    block.behind = allocation.freed_by;
    return allocation.state == ACS_ALLOCATION_LIVE ? check_end(draft, s, i, &block, ACS_ERR_CHECK)
                                                   : refuse_freed(draft, s, i, &block, ACS_ERR_CHECK);
}

/* Reserved fields are 0, and rows do not overlap, as they would with a pitch in elements instead of bytes. */
static bool is_meant(const acs_segment *s)
{
    const bool apart = s->rows <= 1 || s->extent != ACS_EXTENT_BYTES || s->pitch_bytes >= s->row_bytes;
    return apart && !s->device && !s->version;
}

static acs_status refuse_meaning(const acs_draft *draft, const acs_segment *s, uint32_t i)
{
    if (s->device || s->version)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u: the reserved fields device and version are %u and %u, not 0",
                        acs_draft_name(draft), i, s->device, s->version);
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u at %#llx: pitch_bytes is %llu, less than row_bytes, %llu: the "
                    "%llu rows overlap (both count bytes)", acs_draft_name(draft), i, (unsigned long long)s->base,
                    (unsigned long long)s->pitch_bytes, (unsigned long long)s->row_bytes, (unsigned long long)s->rows);
}

/*
 * An op must not use memory of another context: contexts are not ordered among each other, and acs_close frees a
 * context's memory without waiting for ops of others.
 */
static acs_status check_other_contexts(const acs_draft *draft, const acs_segment *s, uint32_t i)
{
    acs_block block;
    const acs_context *other = acs_context_other(draft->context, s->base, &block);
    if (!other)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_CHECK, 0, "'%s': segment %u at %#llx, of an op on context %p, names memory of context %p: %zu "
                    "bytes at %p, of acs_malloc at %s:%d", acs_draft_name(draft), i, (unsigned long long)s->base,
                    (const void *)draft->context, (const void *)other, block.bytes, block.ptr,
                    block.site && block.site->file ? block.site->file : "?", block.site ? block.site->line : 0);
}

/* Check the memory that a segment names. Without ACS_CHECK (`check` false) a bad copy is an ACS_ERR_ARGUMENT. */
static acs_status check_place(const acs_draft *draft, const acs_segment *s, uint32_t i, bool check)
{
    ACS_TRY(draft->context->pooled ? check_pooled(draft, s, i, check ? ACS_ERR_CHECK : ACS_ERR_ARGUMENT)
                                   : check_apart(draft, s, i));
    return check ? check_other_contexts(draft, s, i) : ACS_OK;
}

/*
 * Whether a launch was given a segment that is no plain one (expand.h). The plain path does not look for one before:
 * those that are found here are none of acs_segment_is_run, so to find them costs nothing.
 */
static bool is_to_expand(const acs_record *record, const acs_segment *s)
{
    return record->kind == ACS_KIND_KERNEL && !acs_segment_is_plain(s);
}

acs_status acs_draft_check_segments(const acs_draft *draft)
{
    const acs_record *record = draft->record;
    bool check = draft->context->options.check >= ACS_CHECK_OVERLAP;
    bool copies = draft->context->pooled && (record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET);
    for (uint32_t i = 0; i < record->segment_count; i++) {
        const acs_segment *s = &record->segments[i];
        acs_shape shape;
        if (ACS_UNLIKELY(!is_meant(s)))
            return refuse_meaning(draft, s, i);
        const bool run = acs_segment_is_run(s);
        if (ACS_UNLIKELY(!run) && is_to_expand(record, s))
            return ACS_NOT_READY;
        acs_status status = run ? ACS_OK : acs_shape_of(s, &shape);
        if (ACS_UNLIKELY(status != ACS_OK && status != ACS_NOT_READY))
            return status;
        if (ACS_UNLIKELY(check || copies) && status == ACS_OK && s->extent == ACS_EXTENT_BYTES)
            ACS_TRY(check_place(draft, s, i, check));
    }
    return ACS_OK;
}
