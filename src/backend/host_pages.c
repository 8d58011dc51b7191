/*
 * Pages of device memory where that is the CPU's (see pool/pages.h): addresses that nobody may touch, until they are filled.
 * Called by the pools. Contents do not move with a piece: nobody is promised what is in memory that was free.
 */
#include "backend/host_kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 2 << 20 }; /* as a GPU has them */

static acs_status failed(const char *what, size_t bytes)
{
    return ACS_FAIL(ACS_ERR_MEMORY, errno, "%s of %zu bytes: %s", what, bytes, strerror(errno));
}

static acs_status reserve(void *user, size_t bytes, uint64_t *base)
{
    (void)user;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return failed("reserving addresses", bytes);
    *base = (uint64_t)(uintptr_t)at;
    return ACS_OK;
}

static acs_status unreserve(void *user, uint64_t base, size_t bytes)
{
    (void)user;
    return munmap((void *)(uintptr_t)base, bytes) == 0 ? ACS_OK : failed("giving back addresses", bytes);
}

/* Memory comes with the addresses that it is mapped to. */
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

static acs_status replace(uint64_t base, size_t bytes, int access, int flags)
{
    void *at = mmap((void *)(uintptr_t)base, bytes, access, flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return at != MAP_FAILED ? ACS_OK : failed("mapping", bytes);
}

static acs_status map(void *user, uint64_t base, size_t bytes, uint64_t piece)
{
    (void)user, (void)piece;
    return replace(base, bytes, PROT_READ | PROT_WRITE, 0);
}

static acs_status unmap(void *user, uint64_t base, size_t bytes)
{
    (void)user;
    return replace(base, bytes, PROT_NONE, MAP_NORESERVE);
}

const acs_page_ops acs_host_pages = {
    .page = PAGE_BYTES,
    .span = (size_t)4 << 30,
    .reserve = reserve,
    .unreserve = unreserve,
    .create = acs_host_page_create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
};
