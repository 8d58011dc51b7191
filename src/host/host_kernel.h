/*
 * Running ops on a CPU, for the host and the sim backend. A kernel is its host body, of which one call runs the grid.
 */
#ifndef ACS_HOST_KERNEL_H
#define ACS_HOST_KERNEL_H

#include "scheduler/backend.h"

enum { ACS_HOST_SHARED_MAX = 227 * 1024 };

/* Memory for one op at a time, large enough for any, so that running one cannot fail. One per thread that runs ops. */
typedef struct acs_host_scratch {
    void *shared; /* ACS_HOST_SHARED_MAX bytes */
    void **args;  /* ACS_ARG_BYTES_MAX pointers */
} acs_host_scratch;

acs_status acs_host_scratch_init(acs_host_scratch *scratch);
void acs_host_scratch_fini(acs_host_scratch *scratch);

/* Whether CPU backends issue this kind of op to a slot. */
bool acs_host_runs(const acs_record *op);
/* Run a KERNEL, MEMCPY, MEMSET or STREAM_WAIT op to its end on this thread. */
void acs_host_run(const acs_record *op, acs_host_scratch *scratch);

/* What is the same in the acs_backend_ops of all backends of the CPU; these may do more in `check` and `memory_alloc`. */
#define ACS_HOST_OPS                                                                                                   \
    .host_calls = true,                                                                                                \
    .thread_enter = acs_host_thread_enter,                                                                             \
    .stream_record = acs_host_stream_record,                                                                           \
    .event_release = acs_host_event_release,                                                                           \
    .memory_free = acs_host_memory_free,                                                                               \
    .memory_state = acs_host_memory_state,                                                                             \
    .links = acs_host_links,                                                                                           \
    .capacity = acs_host_capacity
void acs_host_thread_enter(acs_backend *backend);
acs_status acs_host_check(acs_backend *backend, acs_record *op);
acs_status acs_host_stream_record(acs_backend *backend, void *stream, void **event);
void acs_host_event_release(acs_backend *backend, void *event);
acs_status acs_host_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr);
acs_status acs_host_memory_free(acs_backend *backend, int memory, void *ptr);
acs_status acs_host_memory_state(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left);
acs_status acs_host_links(acs_backend *backend, acs_topology *topology);
acs_status acs_host_capacity(acs_backend *backend, uint32_t device, acs_capacity *capacity);
/* host_pages.c */
extern const acs_page_ops acs_host_pages;
acs_status acs_host_page_create(void *user, size_t bytes, uint64_t *piece);

#endif
