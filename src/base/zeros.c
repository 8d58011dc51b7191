/*
 * Large arrays that begin as zeros: pages of their own, of which only those that are used take memory and time. calloc gives
 * such pages to a program's first context alone; a later one gets memory that was used before, and clears it.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* In front of the array. */
typedef struct head {
    _Alignas(ACS_CACHE_LINE) size_t bytes; /* of both */
} head;

#ifdef __SANITIZE_ADDRESS__
#define WATCHES_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHES_HEAP
#endif
#endif

/* Where a sanitizer watches the ends of blocks, the heap gives them out. */
static void *map(size_t bytes)
{
#ifdef WATCHES_HEAP
    void *pages = aligned_alloc(ACS_CACHE_LINE, (bytes + ACS_CACHE_LINE - 1) / ACS_CACHE_LINE * ACS_CACHE_LINE);
    return pages ? memset(pages, 0, bytes) : NULL;
#else
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
#endif
}

void *acs_zeros(size_t count, size_t bytes)
{
    if (count && bytes > (SIZE_MAX - sizeof(head)) / count)
        return NULL;
    const size_t all = sizeof(head) + count * bytes;
    head *first = map(all);
    if (!first)
        return NULL;
    first->bytes = all;
    return first + 1;
}

void acs_zeros_free(void *array)
{
    head *first = array ? (head *)array - 1 : NULL;
#ifdef WATCHES_HEAP
    free(first);
#else
    if (first)
        (void)munmap(first, first->bytes);
#endif
}
