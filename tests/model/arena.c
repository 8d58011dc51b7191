/*
 * The memory of scenarios: one region for their blocks and the stacks of their threads. What setup allocates is kept and
 * copied back before each execution, at the same addresses, so that an execution can be repeated exactly. Blocks are
 * never used twice in one execution: the machine can tell a use after free. Knows nothing of threads or orders.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ARENA = 4 << 20, HEADER = 16 };

static struct {
    char *base;
    size_t used, kept;
    char *copy;
} g_arena;

void arena_init(void)
{
    size_t bytes = ARENA + (size_t)MODEL_THREADS * MODEL_STACK;
    g_arena.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_arena.copy = malloc(ARENA);
    if (g_arena.base == MAP_FAILED || !g_arena.copy) {
        fprintf(stderr, "model: no memory for the arena\n");
        exit(2);
    }
}

void arena_clear(void)
{
    memset(g_arena.base, 0, g_arena.used);
    g_arena.used = g_arena.kept = 0;
}

void arena_keep(void)
{
    g_arena.kept = g_arena.used;
    memcpy(g_arena.copy, g_arena.base, g_arena.kept);
}

void arena_restore(void)
{
    memcpy(g_arena.base, g_arena.copy, g_arena.kept);
    memset(g_arena.base + g_arena.kept, 0, g_arena.used - g_arena.kept);
    g_arena.used = g_arena.kept;
}

char *arena_stack(int thread)
{
    return g_arena.base + ARENA + (size_t)thread * MODEL_STACK;
}

uint64_t arena_hash(void)
{
    uint64_t hash = 0;
    for (size_t i = 0; i + 8 <= g_arena.kept; i += 8) {
        uint64_t word;
        memcpy(&word, g_arena.base + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

size_t arena_granule(const void *at)
{
    size_t offset = (size_t)((const char *)at - g_arena.base);
    return offset < ARENA + (size_t)MODEL_THREADS * MODEL_STACK ? offset / 8 : SIZE_MAX;
}

size_t arena_granules(void)
{
    return (ARENA + (size_t)MODEL_THREADS * MODEL_STACK) / 8;
}

/* The size of a block stands before it, for model_free. */
void *model_alloc(size_t bytes, size_t align)
{
    size_t at = g_arena.used + HEADER;
    at = (at + align - 1) / align * align;
    if (at + bytes > ARENA) {
        fprintf(stderr, "model: a scenario wants more than %d bytes\n", ARENA);
        exit(2);
    }
    memcpy(g_arena.base + at - sizeof bytes, &bytes, sizeof bytes);
    g_arena.used = (at + bytes + 7) & ~(size_t)7;
    return g_arena.base + at;
}

/* Fresh blocks are zero already. */
void *model_calloc(size_t count, size_t bytes)
{
    return model_alloc(count * bytes, 64);
}

void model_free(void *block)
{
    size_t bytes;
    if (!block)
        return;
    memcpy(&bytes, (char *)block - sizeof bytes, sizeof bytes);
    machine_freed(block, bytes);
}
