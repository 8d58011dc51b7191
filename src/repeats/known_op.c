/*
 * Known ops (known_op.h): comparing and copying. Called for each launch in a repeat, so a difference should be found
 * early. Segments are compared byte by byte: ops count as equal only if they touch the same bytes in the same way.
 */
#include "repeats/known_op.h"

#include "api/draft.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static size_t aligned(size_t bytes, size_t to)
{
    return (bytes + to - 1) & ~(to - 1);
}

static void fill_head(acs_known *known)
{
    const acs_record *op = known->op;
    const acs_kernel *kernel = &op->u.launch.kernel;
    known->function = kernel->function;
    known->unloads = atomic_load_explicit(&acs_backend_unloads, memory_order_relaxed);
    known->host = kernel->host;
    known->kind = kernel->kind;
    known->site = op->site;
    known->block = op->u.launch.block;
    known->grid_y = op->grid.y;
    known->grid_z = op->grid.z;
    known->width = op->grid.x;
    known->shared_bytes = (uint32_t)op->u.launch.shared_bytes; /* an op with a type has less than 4 GiB */
    known->segment_count = (uint16_t)op->segment_count;
    known->arg_count = (uint16_t)op->arg_count;
    known->segments = op->segments;
    known->args = op->args;
    known->arg_bytes = op->arg_bytes;
    known->launch = op->asked == ACS_KIND_KERNEL;
    known->tag = acs_known_op_tag(op);
}

acs_known *acs_known_op_create(const acs_record *op)
{
    const size_t head = aligned(sizeof(acs_known), ACS_CACHE_LINE), segments = op->segment_count * sizeof *op->segments;
    const size_t args = aligned(segments + op->arg_count * sizeof *op->args, 16);
    const size_t bytes = aligned(args + op->arg_bytes_used, ACS_CACHE_LINE);
    bool fits = op->segment_count <= UINT16_MAX && op->arg_count <= UINT16_MAX;
    for (uint32_t i = 0; i < op->segment_count && fits; i++) /* strands compare the addresses behind ranges */
        fits = !acs_segment_has_bytes(&op->segments[i]) || acs_segment_end(&op->segments[i]) != 0;
    if (!fits)
        return NULL;
    unsigned char *block = aligned_alloc(ACS_CACHE_LINE, head + bytes + aligned(sizeof *op, ACS_CACHE_LINE));
    if (!block)
        return NULL;
    acs_known *known = memset(block, 0, head);
    acs_record *copy = known->op = (acs_record *)(void *)(block + head + bytes);
    *copy = *op;
    copy->block = NULL;
    copy->reuses = NULL;
    copy->flags &= ACS_RECORD_DECISION;
    copy->segments = memcpy(block + head, op->segments, segments);
    copy->args = memcpy(block + head + segments, op->args, op->arg_count * sizeof *op->args);
    copy->arg_bytes = memcpy(block + head + args, op->arg_bytes, op->arg_bytes_used);
    fill_head(known);
    return known;
}

static uint32_t tag_of(const acs_kernel *kernel, const acs_segment *segments, size_t count)
{
    uint64_t tag = (uint64_t)(uintptr_t)kernel->function;
    for (size_t i = 0; i < count; i++)
        tag = (tag ^ segments[i].base ^ segments[i].row_bytes << 48) * 0x9e3779b97f4a7c15u;
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

static uint64_t hash_words(uint64_t hash, const void *words, size_t bytes)
{
    for (size_t at = 0; at + sizeof hash <= bytes; at += sizeof hash) {
        uint64_t word;
        memcpy(&word, (const unsigned char *)words + at, sizeof word);
        hash = (hash ^ hash >> 29 ^ word) * 0x9e3779b97f4a7c15u;
    }
    return hash;
}

uint64_t acs_known_op_hash(const acs_record *op)
{
    const acs_kernel *kernel = &op->u.launch.kernel;
    const uint64_t head[] = {(uint64_t)(uintptr_t)kernel->function, (uint64_t)(uintptr_t)op->site, (uint64_t)op->type,
                             (uint64_t)op->grid.y << 32 | op->grid.z,
                             (uint64_t)op->arg_bytes_used << 32 | (uint64_t)op->kind << 8 | op->asked};
    _Static_assert(sizeof *op->segments % sizeof(uint64_t) == 0 && sizeof *op->args % sizeof(uint64_t) == 0, "words");
    uint64_t hash = hash_words(0, head, sizeof head);
    hash = hash_words(hash, op->segments, op->segment_count * sizeof *op->segments);
    return acs_hash64(hash_words(hash, op->args, op->arg_count * sizeof *op->args));
}

static bool same_dim(const acs_dim3 *a, const acs_dim3 *b)
{
    return a->x == b->x && a->y == b->y && a->z == b->z;
}

static bool same_kernel(const acs_known *known, const acs_kernel *kernel)
{
    return known->function == kernel->function && known->host == kernel->host && known->kind == kernel->kind;
}

static bool same_segments(const acs_known *known, const acs_segment *segments, size_t count)
{
    return known->segment_count == count &&
           (count == 0 || memcmp(known->segments, segments, count * sizeof *segments) == 0);
}

bool acs_known_op_equals(const acs_known *known, const acs_record *op)
{
    if (op->any || known->op->type != op->type || known->site != op->site || known->op->asked != op->asked ||
        known->arg_count != op->arg_count || known->op->arg_bytes_used != op->arg_bytes_used)
        return false;
    return same_kernel(known, &op->u.launch.kernel) && known->grid_y == op->grid.y && known->grid_z == op->grid.z &&
           same_segments(known, op->segments, op->segment_count) &&
           (op->arg_count == 0 || memcmp(known->args, op->args, op->arg_count * sizeof *op->args) == 0);
}

static bool same_args(const acs_known *known, const acs_args *args)
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

bool acs_known_op_matches(const acs_known *known, const acs_launch_params *p)
{
    static const acs_attributes plain, whole = {.share = 100};
    const acs_uses *uses = &p->uses;
    const acs_attributes *none = p->attributes.share == whole.share ? &whole : &plain;
    if (known->function != p->kernel->function || known->site != (p->site ? p->site : &acs_unknown_site) ||
        !known->launch || uses->any)
        return false;
    if (known->kind != ACS_KERNEL_FUNCTION && /* relaxed: as in kernel_find of the cuda backend */
        known->unloads != atomic_load_explicit(&acs_backend_unloads, memory_order_relaxed))
        return false;
    if (!same_segments(known, uses->segments, uses->count) || !same_kernel(known, p->kernel))
        return false;
    return same_dim(&known->block, &p->block) && known->shared_bytes == p->shared_bytes && p->grid.x > 0 &&
           p->grid.x <= INT32_MAX && known->grid_y == p->grid.y && known->grid_z == p->grid.z &&
           memcmp(&p->attributes, none, sizeof *none) == 0 && same_args(known, &p->args);
}

static bool same_bytes(const unsigned char *a, const unsigned char *b, uint32_t bytes)
{
    uint64_t left, right;
    if (bytes != sizeof left)
        return memcmp(a, b, bytes) == 0;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left == right;
}

bool acs_known_op_has_values_of(const acs_known *known, const acs_launch_params *p)
{
    if (known->width != p->grid.x)
        return false;
    for (uint32_t i = 0; i < known->arg_count; i++)
        if (!same_bytes(known->arg_bytes + known->args[i].offset, p->args.list[i].value, known->args[i].size))
            return false;
    return true;
}

bool acs_known_op_has_values(const acs_known *known, const acs_record *op)
{
    return known->width == op->grid.x && memcmp(known->arg_bytes, op->arg_bytes, op->arg_bytes_used) == 0;
}

void acs_known_op_copy_args(const acs_known *known, const acs_launch_params *p, unsigned char *arg_bytes)
{
    for (uint32_t i = 0; i < known->arg_count; i++)
        memcpy(arg_bytes + known->args[i].offset, p->args.list[i].value, known->args[i].size);
}

void acs_known_op_take_values(acs_known *known, const acs_record *op)
{
    ACS_ASSERT(known->refs == 0);
    known->width = known->op->grid.x = op->grid.x;
    memcpy(known->arg_bytes, op->arg_bytes, op->arg_bytes_used);
}
