/*
 * Pages of the CUDA backend over the twin: that memory which came in pieces is one block, and what a device that is full, or
 * has no virtual memory, makes of it. What becomes of calls that fail is test_backend_cuda_errors'.
 */
#include "backend_cuda.h"

#include "acs.h"

#include <string.h>

static void pieces_side_by_side_are_one_block_to_copies(void **state)
{
    (void)state;
    const acs_page_ops *pages = &g_backend->pages;
    const size_t page = pages->page;
    uint64_t base = 0, piece[2];
    assert_int_equal(pages->reserve(g_backend, pages->span, &base), ACS_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pages->create(g_backend, page, &piece[i]), ACS_OK);
        assert_int_equal(pages->map(g_backend, base + (4 + i) * page, page, piece[i]), ACS_OK);
    }
    acs_record *op = record_new(ACS_KIND_MEMSET);
    unsigned char *at = (unsigned char *)(uintptr_t)(base + 4 * page);
    op->u.copy.dst = at + page - 8;
    op->u.copy.bytes = 16;
    op->u.copy.rows = 1;
    op->u.copy.value = 7;
    item_new(op, 0);
    submit();
    assert_int_equal(g_batch.items[0].status, ACS_OK);
    twin_run_all();
    assert_int_equal(at[page - 8], 7);
    assert_int_equal(at[page + 7], 7);
    assert_int_not_equal(at[page + 8], 7);
    assert_int_equal(pages->unmap(g_backend, base + 4 * page, 2 * page), ACS_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pages->destroy(g_backend, piece[i], page), ACS_OK);
    twin_fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    assert_error(pages->create(g_backend, page, &piece[0]), ACS_ERR_MEMORY, "2097152 bytes");
    assert_int_equal(pages->unreserve(g_backend, base, pages->span), ACS_OK);
}

/* Pools then grow by whole allocations. */
static void a_driver_without_virtual_memory_gives_chunks(void **state)
{
    (void)state;
    acs_options options;
    acs_context *context = NULL;
    void *block = NULL;
    backend_reset();
    twin_set_strategy(TWIN_EAGER);
    twin_without("cuMemMap");
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = 0;
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, 3 << 20, ACS_MEMORY_DEVICE, &block), ACS_OK);
    assert_int_equal(twin_count("cuMemAddressReserve"), 0);
    assert_true(acs_memset(context, block, 1, 3 << 20) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    twin_audit();
    assert_null(twin_breach());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_side_by_side_are_one_block_to_copies, backend_setup, backend_teardown),
        cmocka_unit_test(a_driver_without_virtual_memory_gives_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
