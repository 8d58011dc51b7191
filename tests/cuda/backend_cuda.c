/*
 * What the tests of the CUDA backend share, see backend_cuda.h. Called by test_backend_cuda*.c.
 */
#include "backend_cuda.h"

#include <string.h>

acs_backend *g_backend;
acs_batch g_batch;
acs_record g_records[16];
uint32_t g_records_used;
CUkernel g_kernel;
const char g_symbol;
unsigned char *g_block;

CUkernel kernel_add(void)
{
    static const uint32_t bytes[] = {8, 4};
    const twin_kernel_spec spec = {.name = "kernel", .symbol = g_kernel ? NULL : &g_symbol, .param_count = 2,
                                   .param_bytes = bytes, .block_threads = 512, .static_shared = 1024};
    return twin_kernel(&spec);
}

void backend_reset(void)
{
    twin_reset();
    g_kernel = NULL;
    g_kernel = kernel_add();
    batch_clear();
    g_records_used = 0;
}

acs_status backend_open(acs_backend **backend)
{
    static acs_options options;
    options.graph_nodes = 16384;
    acs_backend_config config = {.devices = 1, .options = &options, .slots = SLOTS, .mark_capacity = MARKS};
    const acs_status status = acs_backend_cuda.open(&config, backend);
    if (status == ACS_OK)
        (void)acs_backend_cuda.decider(*backend); /* its device code is there from the first op on */
    return status;
}

int backend_setup(void **state)
{
    void *block = NULL;
    (void)state;
    backend_reset();
    if (backend_open(&g_backend) != ACS_OK || g_backend->ops->memory_alloc(g_backend, ACS_MEMORY_DEVICE, 4096, &block))
        return -1;
    g_block = block;
    return 0;
}

int backend_teardown(void **state)
{
    (void)state;
    twin_fail(NULL, CUDA_SUCCESS, 0, 0);
    twin_fail_also(NULL, CUDA_SUCCESS, 0, 0);
    twin_run_all();
    (void)g_backend->ops->memory_free(g_backend, ACS_MEMORY_DEVICE, g_block); /* fails where the device was lost */
    g_backend->ops->close(g_backend);
    twin_audit();
    if (twin_breach())
        fail_msg("%s", twin_breach());
    assert_int_equal(twin_thread_depth(), 0);
    assert_int_equal(twin_thread_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    return 0;
}

acs_record *record_new(acs_op_kind kind)
{
    static const acs_site site = {"op", "file.c", 1};
    acs_record *op = &g_records[g_records_used++];
    memset(op, 0, sizeof *op);
    op->kind = (uint8_t)kind;
    op->site = &site;
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    return op;
}

acs_record *kernel_new(uint32_t kind, const void *function)
{
    acs_record *op = record_new(ACS_KIND_KERNEL);
    op->u.launch.kernel = (acs_kernel){"kernel", function, NULL, kind, 0};
    op->grid = op->u.launch.block = (acs_dim3){1, 1, 1};
    op->arg_count = 2;
    op->args[0] = (acs_arg_slot){.offset = 0, .size = 8};
    op->args[1] = (acs_arg_slot){.offset = 8, .size = 4};
    return op;
}

acs_record *checked_kernel(void)
{
    acs_record *op = kernel_new(ACS_KERNEL_CUFUNCTION, twin_function(g_kernel, 0));
    assert_int_equal(g_backend->ops->check(g_backend, op), ACS_OK);
    return op;
}

acs_item *item_new(acs_record *op, int slot)
{
    acs_item *item = &g_batch.items[g_batch.items_used++];
    item->op = op;
    item->slot = (int16_t)slot;
    item->first_mark = (uint16_t)g_batch.marks_used;
    item->first_wait = (uint16_t)g_batch.waits_used;
    item->first_edge = (uint16_t)g_batch.edges_used;
    return item;
}

void item_mark_before(acs_item *item, uint16_t slot, uint16_t index)
{
    g_batch.marks[g_batch.marks_used++] = (acs_mark){.slot = slot, .index = index};
    item->mark_count++;
}

void item_wait(acs_item *item, uint16_t slot, uint16_t index)
{
    g_batch.waits[g_batch.waits_used++] = (acs_mark){.slot = slot, .index = index};
    item->wait_count++;
}

void item_edge(acs_item *item, uint16_t upstream)
{
    g_batch.edges[g_batch.edges_used++] = upstream;
    item->edge_count++;
}

void item_mark_after(acs_item *item, uint16_t index)
{
    item->mark_after = true;
    item->after = (acs_mark){.slot = (uint16_t)item->slot, .index = index};
}

void batch_clear(void)
{
    memset(&g_batch, 0, sizeof g_batch);
}

void submit(void)
{
    twin_log_clear();
    g_backend->ops->submit(g_backend, &g_batch);
}

CUstream foreign_stream(int device)
{
    CUstream stream = NULL;
    CUcontext popped;
    assert_int_equal(TWIN_GET(cuCtxPushCurrent, 4000)(twin_context(device)), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuStreamCreate, 2000)(&stream, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuCtxPopCurrent, 4000)(&popped), CUDA_SUCCESS);
    return stream;
}

void foreign_stream_end(CUstream stream, int device)
{
    CUcontext popped;
    assert_int_equal(TWIN_GET(cuCtxPushCurrent, 4000)(twin_context(device)), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuStreamSynchronize, 2000)(stream), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuStreamDestroy, 4000)(stream), CUDA_SUCCESS);
    assert_int_equal(TWIN_GET(cuCtxPopCurrent, 4000)(&popped), CUDA_SUCCESS);
}

void assert_error(acs_status is, acs_status status, const char *words)
{
    assert_int_equal(is, status);
    assert_int_equal(acs_error_thread()->status, status);
    if (!strstr(acs_error_thread()->text, words))
        fail_msg("\"%s\" lacks \"%s\"", acs_error_thread()->text, words);
}
