/*
 * A CUDA driver made of counters, for the CUDA backend's paths that no GPU takes on demand: calls that fail, events that
 * complete when told. One device, any number of streams and events; nothing runs. One thread, but for kernels' functions.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_EVENTS = 4096, FAKE_PARAMS = 16 };

typedef struct fake_event {
    bool alive, recorded, complete;
} fake_event;

typedef struct fake_driver {
    cudaError_t device_error; /* of cudaGetDevice */
    const char *missing;      /* a driver function that is not there */
    const char *failing;      /* the next call of this one fails, and `fail_count` - 1 after it */
    CUresult failure;
    int fail_count;
    uint32_t param_bytes[FAKE_PARAMS]; /* of every kernel; 0 ends */
    CUstreamCaptureStatus capture;     /* of every stream */
    CUcontext stream_context;          /* of every stream */

    char log[8192];       /* what was sent to streams: "launch 0;record 0 e1;wait 1 e1;" */
    atomic_int calls;     /* of any driver function */
    int last_errors_read; /* cudaGetLastError */
    int contexts;         /* retained and not released */
    int streams, events_alive, events_made, blocks;
    atomic_int opt_ins;
    bool pageable;      /* every address is host memory that the driver does not know; else device memory */
    unsigned char *memory; /* the one block, by malloc */
    fake_event events[FAKE_EVENTS];
} fake_driver;

/* What the driver keeps per thread. */
typedef struct fake_thread {
    int pushed;         /* depth of the context stack */
    CUcontext current;  /* by cuCtxSetCurrent */
    CUstreamCaptureMode mode;
} fake_thread;

extern fake_driver g_fake;
extern _Thread_local fake_thread tl_fake;

/* All counters at zero, nothing fails. */
void fake_reset(void);
/* `function`'s next `count` calls return `result`. */
void fake_fail(const char *function, CUresult result, int count);
/* The first `count` events that were recorded are complete. */
void fake_complete(int count);
CUcontext fake_context(void);

#endif
