/*
 * Arguments of kernels as bytes: their hash, and how they differ from the contents of a cached graph's node. Hashed on
 * the caller's thread at the launch, compared when a bundle is issued. Makes no CUDA call.
 */
#include "cuda/graphs/graphs.h"

#include <string.h>

static uint64_t load(const unsigned char *from, uint32_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, from, bytes);
    return word;
}

static uint64_t turn(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

/* The hash has two lanes: the latency of one multiplication covers three independent ones. */
uint64_t acs_cuda_args_hash(const acs_record *op)
{
    const uint64_t one = 0x9e3779b185ebca87u, two = 0xc2b2ae3d27d4eb4fu;
    const unsigned char *bytes = op->arg_bytes;
    uint32_t left = op->arg_bytes_used;
    uint64_t a = op->grid.x ^ (uint64_t)op->grid.y << 32, b = op->grid.z;
    for (; left >= 16; left -= 16, bytes += 16) {
        a = turn(a + load(bytes, 8) * two, 31) * one;
        b = turn(b + load(bytes + 8, 8) * two, 31) * one;
    }
    a = turn(a + load(bytes, left < 8 ? left : 8) * two, 31) * one;
    if (left > 8)
        b = turn(b + load(bytes + 8, left - 8) * two, 31) * one;
    return acs_hash64(a ^ turn(b, 17));
}

bool acs_cuda_args_packed(const acs_cuda_kernel *kernel, const acs_record *op)
{
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (op->args[i].offset != kernel->param_offset[i])
            return false;
    return true;
}

/* Compare and copy whole words of arguments that lie at the parameters' offsets. */
static void update_run(const unsigned char *now, unsigned char *held, uint32_t bytes, uint32_t *from, uint32_t *end)
{
    uint32_t first = 0, last = (bytes - 1) / 8 * 8;
    while (first + 8 <= bytes && load(now + first, 8) == load(held + first, 8))
        first += 8;
    if (first >= bytes || (first + 8 > bytes && memcmp(now + first, held + first, bytes - first) == 0))
        return;
    while (last > first && memcmp(now + last, held + last, bytes - last < 8 ? bytes - last : 8) == 0)
        last -= 8;
    *from = first;
    *end = last + 8 < bytes ? last + 8 : bytes;
    memcpy(held + first, now + first, *end - first);
}

void acs_cuda_args_update(const acs_cuda_type *type, const acs_cuda_contents *now, unsigned char *held, uint32_t *from,
                          uint32_t *end)
{
    *from = type->arg_bytes;
    *end = 0;
    if (type->packed && type->arg_bytes) {
        update_run(now->bytes, held, type->arg_bytes, from, end);
        return;
    }
    for (uint32_t i = 0; i < type->kernel->param_count; i++) {
        const unsigned char *value = now->bytes + now->args[i].offset;
        uint32_t at = type->kernel->param_offset[i], bytes = type->kernel->param_bytes[i];
        if (memcmp(held + at, value, bytes) == 0)
            continue;
        memcpy(held + at, value, bytes);
        *from = at < *from ? at : *from;
        *end = at + bytes > *end ? at + bytes : *end;
    }
}
