/*
 * What all wrappers share: handles that no two running ops have in common, libraries that are missing, codes and errors.
 * Functions inside acs_wrap are called directly.
 */
#include "host_call.h"

#include "common/wrap.h"

static int g_live, g_made, g_fail_with;

static int create(void **handle)
{
    if (g_fail_with)
        return g_fail_with;
    g_live++;
    *handle = (void *)(uintptr_t)++g_made;
    return 0;
}

static void destroy(void *handle)
{
    assert_non_null(handle);
    g_live--;
}

static const acs_wrap_handle_type g_type = {create, destroy};

static void *handle_of(void **place, int slot, int device, void *scratch)
{
    const acs_call_env env = {.slot = slot, .device = device, .scratch = scratch, .place = place};
    void *handle = NULL;
    assert_int_equal(acs_wrap_handle(&env, &g_type, &handle), 0);
    return handle;
}

/* A slot's scratch memory may move: its handle stays. Captured calls with another block get another handle. */
static void a_slot_has_one_handle_and_a_block_has_one(void **state)
{
    (void)state;
    char block[2];
    void *slot = NULL, *captured = NULL;
    void *const mine = handle_of(&slot, 3, 0, &block[0]);
    assert_ptr_equal(handle_of(&slot, 3, 0, &block[1]), mine);
    void *const first = handle_of(&captured, -1, 0, &block[0]), *const second = handle_of(&captured, -1, 0, &block[1]);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(handle_of(&captured, -1, 0, &block[0]), first);
    assert_ptr_not_equal(handle_of(&captured, -1, 1, &block[0]), first); /* another device's */
    assert_int_equal(g_live, 4);
    acs_wrap_handles_destroy(slot);
    acs_wrap_handles_destroy(captured);
    assert_int_equal(g_live, 0);
}

static void a_handle_that_cannot_be_made_is_tried_again(void **state)
{
    (void)state;
    void *place = NULL, *handle = NULL;
    const acs_call_env env = {.place = &place};
    g_fail_with = 1234;
    assert_int_equal(acs_wrap_handle(&env, &g_type, &handle), 1234);
    assert_null(handle);
    g_fail_with = 0;
    assert_int_equal(acs_wrap_handle(&env, &g_type, &handle), 0);
    acs_wrap_handles_destroy(place);
    assert_int_equal(g_live, 0);
}

/* ----------------------------------------------------------------------------------------------------------- libraries */

static void (*g_function)(void);
static const acs_wrap_function g_missing_function[] = {{"acs_no_function", &g_function}};
static const acs_wrap_library g_no_library = {"libacs-no-library.so.1", NULL, 0};
static const acs_wrap_library g_no_function = {"libc.so.6", g_missing_function, 1};
static acs_wrap_loader g_loaders[] = {{&g_no_library, 1, 0, ""}, {&g_no_function, 1, 0, ""}};

static bool load_none(const char **why)
{
    return acs_wrap_load(&g_loaders[0], why);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const acs_site site = {"acs_test_load", NULL, 0};
    acs_error error = {.size = sizeof error};
    const char *why = NULL;
    for (int i = 0; i < 2; i++) /* it is looked for once */
        assert_int_equal(acs_wrap_load_status(load_none, &site), ACS_ERR_UNSUPPORTED);
    assert_int_equal(acs_wrap_last_error(&error), ACS_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "acs_test_load: libacs-no-library.so.1"));
    assert_false(acs_wrap_load(&g_loaders[1], &why));
    assert_string_equal(why, "libc.so.6 has no function acs_no_function");
}

static void codes_have_texts(void **state)
{
    (void)state;
    static const char *const own[] = {"the first of its own", NULL};
    const acs_wrap_codes codes = {"cuTest", "cutestStatus_t", load_none, NULL, own};
    const struct {
        int code;
        const char *text;
    } wanted[] = {{ACS_WRAP_CODE_MEMORY, "no host memory is left"},
                  {ACS_WRAP_CODE_SCRATCH, "cuTest asks for more memory than the op's scratch_bytes"},
                  {ACS_WRAP_CODE_OTHER, "the first of its own"},
                  {ACS_WRAP_CODE_OTHER + 1, "5 is no code of this wrapper"},
                  {ACS_WRAP_CODE_BASE + 7, "cuTest returned cutestStatus_t 7"}};
    char text[160];
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(acs_wrap_code_text(&codes, wanted[i].code, text, sizeof text), strlen(wanted[i].text));
        assert_string_equal(text, wanted[i].text);
    }
    (void)acs_wrap_code_text(&codes, ACS_WRAP_CODE_LIBRARY, text, sizeof text);
    assert_non_null(strstr(text, "libacs-no-library.so.1"));
}

/* On the host backends there is no library to ask. */
static int never(const acs_call_env *env, void *closure)
{
    (void)env;
    (void)closure;
    fail();
    return 0;
}

static void nobody_is_asked_without_a_gpu(void **state)
{
    (void)state;
    static const acs_site site = {"acs_test_ask", NULL, 0};
    acs_context *const context = host_open();
    int answer = 17;
    assert_int_equal(acs_wrap_ask(context, &site, never, &answer, sizeof answer, load_none), ACS_OK);
    assert_int_equal(answer, 17);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(acs_wrap_ask(context, &site, never, &answer, sizeof answer, load_none), ACS_ERR_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_has_one_handle_and_a_block_has_one),
        cmocka_unit_test(a_handle_that_cannot_be_made_is_tried_again),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(codes_have_texts),
        cmocka_unit_test(nobody_is_asked_without_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
