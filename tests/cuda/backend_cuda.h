/*
 * What the tests of the CUDA backend share: a backend over the twin, ops and batches made by hand, and the audit at the
 * end of each test. Included by test_backend_cuda*.c, which use all of it.
 */
#ifndef BACKEND_CUDA_H
#define BACKEND_CUDA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/backend.h"
#include "twin.h"

enum { SLOTS = 3, MARKS = 64 };

extern acs_backend *g_backend;
extern acs_batch g_batch;
extern acs_record g_records[16];
extern uint32_t g_records_used;
extern CUkernel g_kernel;      /* two parameters of 8 and 4 bytes, blocks of 512 threads, 1 KiB of static shared memory */
extern const char g_symbol;    /* what stands for its __global__ function */
extern unsigned char *g_block; /* 4 KiB of device memory */

/* A new twin with g_kernel, and no backend. */
void backend_reset(void);
acs_status backend_open(acs_backend **backend);
/* For cmocka: reset, open; then let all work end, close, and find nothing left, no breach, the thread as it was. */
int backend_setup(void **state);
int backend_teardown(void **state);

acs_record *record_new(acs_op_kind kind);
/* A launch of a kernel, by its handle of that kind. */
acs_record *kernel_new(uint32_t kind, const void *function);
/* g_kernel, checked. */
acs_record *checked_kernel(void);
CUkernel kernel_add(void);

acs_item *item_new(acs_record *op, int slot);
void item_mark_before(acs_item *item, uint16_t slot, uint16_t index);
void item_wait(acs_item *item, uint16_t slot, uint16_t index);
void item_edge(acs_item *item, uint16_t upstream);
void item_mark_after(acs_item *item, uint16_t index);
void batch_clear(void);
void submit(void);

/* A stream of the program's own, on a device, and its end. */
CUstream foreign_stream(int device);
void foreign_stream_end(CUstream stream, int device);

void assert_error(acs_status is, acs_status status, const char *words);

#endif
