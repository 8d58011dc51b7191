/*
 * The GPU's part of the random programs where there is no CUDA compiler. Called by runner.c.
 */
#include "program.h"

const void *gpu_kernel(int signature)
{
    (void)signature;
    return NULL;
}

int gpu_call(void *stream, const mix_head *head, const mix_piece *pieces)
{
    (void)stream;
    (void)head;
    (void)pieces;
    return -1;
}

int gpu_fill(void *memory, int value, size_t bytes)
{
    (void)memory;
    (void)value;
    (void)bytes;
    return -1;
}

void gpu_begin(const random_config *config)
{
    (void)config;
}

acs_status gpu_opened(acs_context *context)
{
    (void)context;
    return ACS_OK;
}

void gpu_end(verdict *v)
{
    (void)v;
}

void gpu_faults(uint32_t per_mille)
{
    (void)per_mille;
}
