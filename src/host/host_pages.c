/*
 * Pages of device memory for the CPU backends (pool/pages.h): addresses are reserved without access, and get memory
 * when a piece is mapped. Called by the pools. Contents do not move with a piece: free memory has no promised contents.
 */
#include "host/host_kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 2 << 20 }; /* as a GPU has them */

static acs_status page_failed(const char *what, size_t bytes)
{
    return ACS_FAIL(ACS_ERR_MEMORY, errno, "%s of %zu bytes: %s", what, bytes, strerror(errno));
}

static acs_status reserve_addresses(void *user, size_t bytes, uint64_t *base)
{
    (void)user;
    char *at = mmap(NULL, bytes + PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return page_failed("reserving addresses", bytes);
    const size_t before = (size_t)(-(uintptr_t)at % PAGE_BYTES); /* mmap need not align to PAGE_BYTES */
    if (before)
        (void)munmap(at, before); /* a failure only leaves addresses unused */
    (void)munmap(at + before + bytes, PAGE_BYTES - before);
    *base = (uint64_t)(uintptr_t)(at + before);
    return ACS_OK;
}

static acs_status unreserve_addresses(void *user, uint64_t base, size_t bytes)
{
    (void)user;
    return munmap((void *)(uintptr_t)base, bytes) == 0 ? ACS_OK : page_failed("giving back addresses", bytes);
}

/* A piece is only a name: the mapping itself brings memory. */
acs_status acs_host_page_create(void *user, size_t bytes, uint64_t *piece)
{
    (void)user, (void)bytes;
    *piece = 0;
    return ACS_OK;
}

static acs_status destroy(void *user, uint64_t piece, size_t bytes)
{
    (void)user, (void)piece, (void)bytes;
    return ACS_OK;
}

/* mprotect, not a new mapping over the old one: if that failed, another mapping could take the addresses. */
static acs_status map(void *user, uint64_t base, size_t bytes, uint64_t piece)
{
    (void)user, (void)piece;
    void *const at = (void *)(uintptr_t)base;
    return mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0 ? ACS_OK : page_failed("mapping", bytes);
}

static acs_status unmap(void *user, uint64_t base, size_t bytes)
{
    (void)user;
    void *const at = (void *)(uintptr_t)base;
    bool done = madvise(at, bytes, MADV_DONTNEED) == 0 && mprotect(at, bytes, PROT_NONE) == 0;
    return done ? ACS_OK : page_failed("unmapping", bytes);
}

const acs_page_ops acs_host_pages = {
    .page = PAGE_BYTES,
    .span = (size_t)4 << 30,
    .reserve = reserve_addresses,
    .unreserve = unreserve_addresses,
    .create = acs_host_page_create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
};
