/*
 * Versions of a kernel among which an op is still open (acs_variants): they travel with the op's record until it is
 * issued. The call fills them in, each checked by the backend; the step picks one as it forms a batch. The record then
 * looks as if the program had launched that version.
 */
#ifndef ACS_VERSIONS_H
#define ACS_VERSIONS_H

#include "window/record.h"

#include <stdatomic.h>

/* Shares of a device that versions are compared at: 10 %, 20 % ... 100 %. */
enum { ACS_SHARE_STEPS = 10, ACS_SHARE_STEP_PERCENT = 100 / ACS_SHARE_STEPS };

/* A version as the op would run it: the part of a record that differs. */
typedef struct acs_version {
    acs_kernel kernel;
    acs_dim3 grid, block;
    uint64_t shared_bytes;
    void *resolved;
    uint64_t content;
    uint32_t type;
    uint32_t number; /* among all versions of the kernel */
} acs_version;

typedef struct acs_versions {
    uint8_t at[ACS_SHARE_STEPS]; /* index of the version for each share, into `list` */
    uint32_t count;
    _Atomic(uint64_t) *picked;   /* counts launches, by the number of the version; lives as long as the context */
    acs_version list[];
} acs_versions;

static inline size_t acs_versions_bytes(uint32_t count)
{
    return sizeof(acs_versions) + count * sizeof(acs_version);
}

/* Copy a version out of a record that the backend has checked; and into one. */
static inline void acs_version_take(acs_version *version, const acs_record *record)
{
    version->kernel = record->u.launch.kernel;
    version->grid = record->grid;
    version->block = record->u.launch.block;
    version->shared_bytes = record->u.launch.shared_bytes;
    version->resolved = record->u.launch.resolved;
    version->content = record->content;
    version->type = record->type;
}

static inline void acs_version_put(acs_record *record, const acs_version *version)
{
    record->u.launch.kernel = version->kernel;
    record->grid = version->grid;
    record->u.launch.block = version->block;
    record->u.launch.shared_bytes = version->shared_bytes;
    record->u.launch.resolved = version->resolved;
    record->content = version->content;
    record->type = version->type;
}

/* The step of a share in percent, rounded: an index of acs_versions.at. */
static inline uint32_t acs_share_step(uint32_t percent)
{
    const uint32_t steps = (percent + ACS_SHARE_STEP_PERCENT / 2) / ACS_SHARE_STEP_PERCENT;
    return steps < 1 ? 0 : steps > ACS_SHARE_STEPS ? ACS_SHARE_STEPS - 1 : steps - 1;
}

/* The share that an op has if so many ops run side by side. */
static inline uint32_t acs_share_among(uint32_t ops)
{
    return ops > 1 ? 100 / ops : 100;
}

/* Make the record the version for this share. The op is then no longer open. */
static inline void acs_versions_pick(acs_record *record, uint32_t percent)
{
    acs_versions *versions = record->u.launch.versions;
    const acs_version *version = &versions->list[versions->at[acs_share_step(percent)]];
    acs_version_put(record, version);
    record->flags &= (uint16_t)~ACS_RECORD_VERSIONS & ACS_RECORD_FLAGS;
    atomic_fetch_add_explicit(&versions->picked[version->number], 1, memory_order_relaxed); /* a counter */
}

#endif
