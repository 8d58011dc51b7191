/*
 * Known ops (known_op.h): comparing and copying. Called for each launch in a repeat, so a difference should be found
 * early. Segments are compared byte by byte: ops count as equal only if they touch the same bytes in the same way.
 */
#include "repeats/known_op.h"

#include "api/draft.h"

#include <stdlib.h>
#include <string.h>

static size_t aligned(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

acs_record *acs_known_op_copy(const acs_record *op)
{
    const size_t rows = aligned(op->arg_count * sizeof *op->args), bytes = aligned(op->arg_bytes_used);
    const size_t all = sizeof *op + rows + bytes + op->segment_count * sizeof *op->segments;
    acs_record *copy = aligned_alloc(ACS_CACHE_LINE, (all + ACS_CACHE_LINE - 1) & ~(size_t)(ACS_CACHE_LINE - 1));
    if (!copy)
        return NULL;
    unsigned char *behind = (unsigned char *)(copy + 1);
    *copy = *op;
    copy->block = NULL;
    copy->reuses = NULL;
    copy->flags = 0;
    copy->args = memcpy(behind, op->args, op->arg_count * sizeof *op->args);
    copy->arg_bytes = memcpy(behind + rows, op->arg_bytes, op->arg_bytes_used);
    copy->segments = memcpy(behind + rows + bytes, op->segments, op->segment_count * sizeof *op->segments);
    return copy;
}

void acs_known_op_free(acs_record *op)
{
    free(op);
}

static uint32_t tag_of(const acs_kernel *kernel, const acs_segment *segments, size_t count)
{
    uint64_t tag = (uint64_t)(uintptr_t)kernel->function ^ (uint64_t)count << 56;
    if (count)
        tag ^= segments[0].base * 3 ^ segments[0].row_bytes << 20;
    return (uint32_t)(acs_hash64(tag) >> 32);
}

uint32_t acs_known_op_tag(const acs_record *op)
{
    return tag_of(&op->u.launch.kernel, op->segments, op->segment_count);
}

uint32_t acs_known_op_tag_of_launch(const acs_launch_params *p)
{
    return tag_of(p->kernel, p->uses.segments, p->uses.count);
}

static bool same_dim(const acs_dim3 *a, const acs_dim3 *b)
{
    return a->x == b->x && a->y == b->y && a->z == b->z;
}

static bool same_kernel(const acs_kernel *a, const acs_kernel *b)
{
    return a->function == b->function && a->host == b->host && a->kind == b->kind;
}

static bool same_segments(const acs_record *known, const acs_segment *segments, size_t count)
{
    return known->segment_count == count &&
           (count == 0 || memcmp(known->segments, segments, count * sizeof *segments) == 0);
}

bool acs_known_op_equals(const acs_record *known, const acs_record *op)
{
    if (known->type != op->type || known->segment_count != op->segment_count || known->site != op->site ||
        known->asked != op->asked ||
        known->arg_count != op->arg_count || known->arg_bytes_used != op->arg_bytes_used)
        return false;
    return same_kernel(&known->u.launch.kernel, &op->u.launch.kernel) && known->grid.y == op->grid.y &&
           known->grid.z == op->grid.z && same_segments(known, op->segments, op->segment_count) &&
           (op->arg_count == 0 || memcmp(known->args, op->args, op->arg_count * sizeof *op->args) == 0);
}

static bool same_args(const acs_record *known, const acs_args *args)
{
    if (known->arg_count != args->count)
        return false;
    for (size_t i = 0; i < args->count; i++) {
        const acs_arg *arg = &args->list[i];
        const acs_arg_slot *slot = &known->args[i];
        if (slot->size != arg->size || slot->type != (arg->type & 3u) || slot->words != arg->type >> 2 || !arg->value)
            return false;
    }
    return true;
}

bool acs_known_op_matches(const acs_record *known, const acs_launch_params *p)
{
    static const acs_attributes plain;
    const acs_uses *uses = &p->uses;
    if (known->u.launch.kernel.function != p->kernel->function || known->segment_count != uses->count ||
        known->site != (p->site ? p->site : &acs_unknown_site) || known->asked != ACS_KIND_KERNEL)
        return false;
    if (!same_segments(known, uses->segments, uses->count) || uses->footprint || uses->any)
        return false;
    return same_kernel(&known->u.launch.kernel, p->kernel) && same_dim(&known->u.launch.block, &p->block) &&
           known->u.launch.shared_bytes == p->shared_bytes && p->grid.x > 0 && p->grid.x <= INT32_MAX &&
           known->grid.y == p->grid.y && known->grid.z == p->grid.z &&
           memcmp(&p->attributes, &plain, sizeof plain) == 0 && same_args(known, &p->args);
}

/* Copy bytes. Returns whether they were the same before. */
static bool copy_bytes(unsigned char *to, const void *from, size_t bytes)
{
    const bool same = memcmp(to, from, bytes) == 0;
    if (!same)
        memcpy(to, from, bytes);
    return same;
}

static bool set_width(acs_record *record, uint32_t width)
{
    const bool same = record->grid.x == width;
    record->grid.x = width;
    return same;
}

bool acs_known_op_fill(acs_record *record, const acs_launch_params *p)
{
    bool same = set_width(record, p->grid.x);
    for (uint32_t i = 0; i < record->arg_count; i++)
        same &= copy_bytes(record->arg_bytes + record->args[i].offset, p->args.list[i].value, record->args[i].size);
    return same;
}

bool acs_known_op_take(acs_record *record, const acs_record *op)
{
    const bool same = set_width(record, op->grid.x);
    return copy_bytes(record->arg_bytes, op->arg_bytes, op->arg_bytes_used) && same;
}
