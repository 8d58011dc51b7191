/*
 * Watches a CUDA program from inside, as a library named by LD_PRELOAD: the program must have the CUDA runtime as a shared
 * library. Called by `suite`. At the end it appends lines to the file named by WATCH_FILE:
 *
 *   time <us>                  from the return of the first allocation to the end of the program
 *   memory <n> <bytes> <hash>  with WATCH_MEMORY=1: what the n-th allocation of the GPU's memory had when it was freed,
 *                              or at the end; memory begins as zeros then, so that what nobody writes is equal
 *
 * Memory of cudaMalloc, cudaMallocManaged and cudaMallocPitch is seen, and no other.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 1 << 24, FROM_DEVICE = 4 /* cudaMemcpyDefault */ };

typedef struct block {
    struct block *older;
    void *at;
    size_t bytes;
    unsigned long number;
} block;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static block *g_blocks;
static unsigned long g_count;
static int g_memory;
static struct timespec g_first;
static FILE *g_file;

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "watch: the program has no %s: link the CUDA runtime as a shared library\n", name);
        _Exit(125);
    }
    return found;
}

/* Call the runtime's function of this name. */
#define CUDA(name, types, ...) (((int (*) types)(intptr_t)next(#name))(__VA_ARGS__))

static void tell_memory(const block *b)
{
    static unsigned char piece[PIECE];
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t from = 0; from < b->bytes; from += PIECE) {
        const size_t bytes = b->bytes - from < PIECE ? b->bytes - from : PIECE;
        if (CUDA(cudaMemcpy, (void *, const void *, size_t, int), piece, (char *)b->at + from, bytes, FROM_DEVICE) != 0) {
            fprintf(g_file, "memory %lu %zu unreadable\n", b->number, b->bytes);
            return;
        }
        for (size_t i = 0; i < bytes; i++)
            hash = (hash ^ piece[i]) * 0x100000001b3u;
    }
    fprintf(g_file, "memory %lu %zu %016llx\n", b->number, b->bytes, (unsigned long long)hash);
}

static void forget_all(void)
{
    if (g_blocks)
        (void)CUDA(cudaDeviceSynchronize, (void));
    while (g_blocks) {
        block *b = g_blocks;
        g_blocks = b->older;
        tell_memory(b);
        free(b);
    }
}

static void end(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&g_lock);
    if (g_file) {
        fprintf(g_file, "time %.1f\n",
                (double)(now.tv_sec - g_first.tv_sec) * 1e6 + (double)(now.tv_nsec - g_first.tv_nsec) / 1e3);
        forget_all();
        fclose(g_file);
        g_file = NULL;
    }
    pthread_mutex_unlock(&g_lock);
}

/* The clock starts behind the first allocation, which has made the device's context. */
static void begin(void)
{
    const char *path = getenv("WATCH_FILE"), *memory = getenv("WATCH_MEMORY");
    if (g_file || !path)
        return;
    g_file = fopen(path, "a");
    g_memory = memory && strcmp(memory, "1") == 0;
    clock_gettime(CLOCK_MONOTONIC, &g_first);
    atexit(end);
}

static int allocated(int result, void *at, size_t bytes)
{
    pthread_mutex_lock(&g_lock);
    begin();
    block *b = result == 0 && g_memory && bytes ? malloc(sizeof *b) : NULL;
    if (b && CUDA(cudaMemset, (void *, int, size_t), at, 0, bytes) == 0) {
        *b = (block){g_blocks, at, bytes, ++g_count};
        g_blocks = b;
        (void)CUDA(cudaDeviceSynchronize, (void));
    }
    pthread_mutex_unlock(&g_lock);
    return result;
}

__attribute__((visibility("default"))) int cudaMalloc(void **at, size_t bytes)
{
    const int result = CUDA(cudaMalloc, (void **, size_t), at, bytes);
    return allocated(result, result == 0 ? *at : NULL, bytes);
}

__attribute__((visibility("default"))) int cudaMallocManaged(void **at, size_t bytes, unsigned flags)
{
    const int result = CUDA(cudaMallocManaged, (void **, size_t, unsigned), at, bytes, flags);
    return allocated(result, result == 0 ? *at : NULL, bytes);
}

__attribute__((visibility("default"))) int cudaMallocPitch(void **at, size_t *pitch, size_t width, size_t height)
{
    const int result = CUDA(cudaMallocPitch, (void **, size_t *, size_t, size_t), at, pitch, width, height);
    return allocated(result, result == 0 ? *at : NULL, result == 0 ? *pitch * height : 0);
}

__attribute__((visibility("default"))) int cudaFree(void *at)
{
    pthread_mutex_lock(&g_lock);
    for (block **b = &g_blocks; at && *b; b = &(*b)->older) {
        if ((*b)->at != at)
            continue;
        block *freed = *b;
        *b = freed->older;
        (void)CUDA(cudaDeviceSynchronize, (void));
        tell_memory(freed);
        free(freed);
        break;
    }
    pthread_mutex_unlock(&g_lock);
    return CUDA(cudaFree, (void *), at);
}

__attribute__((visibility("default"))) int cudaDeviceReset(void)
{
    pthread_mutex_lock(&g_lock);
    forget_all();
    pthread_mutex_unlock(&g_lock);
    return CUDA(cudaDeviceReset, (void));
}
