/*
 * Declared footprints in C++17: by lambdas, by the types of parameters, by parameters that say what a kernel does. Contexts
 * are simulated, and functions stand for kernels of a GPU; which bytes an op touches is told by failures that spread.
 */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

#include "acs.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

enum { BYTES = 1024 };

void nothing(const acs_grid *, void *const *)
{
}

} // namespace

/* Functions have no body for the simulated GPU: each launch gets one here. */
extern "C" acs_op __real_acs_launch(acs_context *context, const acs_launch_params *params);
extern "C" acs_op __wrap_acs_launch(acs_context *context, const acs_launch_params *params)
{
    acs_kernel kernel = *params->kernel;
    acs_launch_params with = *params;
    if (!kernel.host)
        kernel.host = nothing;
    with.kernel = &kernel;
    return __real_acs_launch(context, &with);
}

namespace {

acs_context *g_context;
char *g_x, *g_y, *g_z;

/* Kernels: the simulated GPU runs none of their code. */
void saxpy(int, float, const float *, float *) {}
template <class T> void scale(int, const T *, T *) {}
void named(acs::in<float>, acs::inout<double>, acs::out<int>, const char *) {}
void plain(const float *, float *, unsigned) {}
void unnamed(float *) {}

struct pair {
    const float *x;
    float *y;
    static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0) | ACS_POINTER_AT(1);
};
struct numbers {
    int a, b;
};
void of_structs(pair, numbers) {}

} // namespace

template <> inline constexpr bool acs::no_pointers<numbers> = true;

namespace {

ACS_KERNEL_USES(saxpy, [](int n, float, const float *x, float *y) {
    return acs::uses(ACS_IN(x, n * sizeof *x), ACS_INOUT(y, n * sizeof *y));
});
ACS_KERNEL_USES(scale<double>, [](int, const double *x, double *y) { return acs::uses(ACS_IN(x, 8), ACS_OUT(y, 8)); });

static_assert(std::is_trivially_copyable_v<acs::in<int>> && sizeof(acs::in<int>) == sizeof(void *));
static_assert(std::is_trivially_copyable_v<acs::out<int>> && std::is_trivially_copyable_v<acs::inout<int>>);

int refuse(void *)
{
    return 1;
}

/* How an op that `launch` queues touches a byte: 'r', 'w', or '-'. */
template <class F> char touches(const void *byte, F launch)
{
    bool skipped[2];
    for (int i = 0; i < 2; i++) {
        const acs_segment segment[] = {i ? ACS_IN(byte, 1) : ACS_INOUT(byte, 1)};
        assert_true(acs_host(g_context, refuse, nullptr, 0, ACS_USES_LIST(segment, 1)) > 0);
        const acs_op op = launch();
        assert_true(op > 0);
        skipped[i] = acs_wait(g_context, op) == ACS_ERR_SKIPPED;
        assert_int_equal(acs_clear(g_context), ACS_OK);
    }
    return skipped[1] ? 'w' : skipped[0] ? 'r' : '-';
}

/* The same of the first and last bytes of the three blocks. */
template <class F> std::string touched(F launch)
{
    std::string all;
    for (char *block : {g_x, g_y, g_z})
        for (int at : {0, BYTES - 1})
            all += touches(block + at, launch);
    return all;
}

template <class T> T *as(char *block)
{
    return reinterpret_cast<T *>(block);
}

uint64_t undeclared()
{
    acs_statistics s{};
    s.size = sizeof s;
    assert_int_equal(acs_stats(g_context, &s), ACS_OK);
    return s.undeclared + s.unknown_memory;
}

void lambdas_at_namespace_scope(void **)
{
    float *x = as<float>(g_x), *y = as<float>(g_y);
    assert_string_equal(touched([&] { return ACS_LAUNCH_ON(g_context, saxpy, 1, 1, 0, ACS_ARGS(2, 1.0, x, y)); }).c_str(),
                        "r-w---");
    const acs_dim3 one = {1, 1, 1};
    assert_string_equal(
        touched([&] { return ACS_LAUNCH_WITH(g_context, ACS_ON(0), saxpy, one, 1, 0, ACS_ARGS(256, 1, x, y)); }).c_str(),
        "rrww--");
    double *a = as<double>(g_y), *b = as<double>(g_z);
    assert_string_equal(touched([&] { return ACS_LAUNCH_ON(g_context, scale<double>, 1, 1, 0, ACS_ARGS(1, a, b)); }).c_str(),
                        "--r-w-");
    assert_int_equal(undeclared(), 0);
    assert_true(ACS_LAUNCH_ON(g_context, scale<float>, 1, 1, 0, ACS_ARGS(1, x, y)) > 0); /* another kernel */
    assert_int_equal(undeclared(), 1);
}

void lambdas_with_state_and_vectors(void **)
{
    const std::vector<acs_segment> list = {ACS_IN(g_x, 1), ACS_OUT(g_z + BYTES - 1, 1)};
    float *y = as<float>(g_y);
    assert_int_equal(acs::declare(unnamed, [list](float *) { return list; }), ACS_OK);
    const auto launch = [&] { return ACS_LAUNCH_ON(g_context, unnamed, 1, 1, 0, ACS_ARGS(y)); };
    assert_string_equal(touched(launch).c_str(), "r----w");
    assert_int_equal(acs::declare(unnamed, [](float *p) { return acs::uses(ACS_INOUT(p, ACS_WHOLE)); }), ACS_OK);
    assert_string_equal(touched(launch).c_str(), "--ww--");

    /* A kernel object: the lambda names the types. */
    const acs_kernel kernel = ACS_KERNEL_HOST_INIT("object", [](const acs_grid *, void *const *) {});
    assert_int_equal(acs::declare(kernel, [](char *p, int n) { return acs::uses(ACS_IN(p, n)); }), ACS_OK);
    const auto launch_four = [&] { return ACS_LAUNCH_ON(g_context, kernel, 1, 1, 0, ACS_ARGS(g_y, ACS_VAL(int, 4))); };
    assert_string_equal(touched(launch_four).c_str(), "--r---");
    assert_int_equal(ACS_LAUNCH_ON(g_context, kernel, 1, 1, 0, ACS_ARGS(g_y, ACS_VAL(double, 4))), 0);
    acs_error e{};
    e.size = sizeof e;
    assert_int_equal(acs_last_error(&e), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(e.text, "argument 1 (from 0) is 8 bytes"));
    assert_int_equal(acs_clear(g_context), ACS_OK);
}

void types_say_it(void **)
{
    float *x = as<float>(g_x), *y = as<float>(g_y);
    assert_int_equal(acs::declare_by_type(plain), ACS_OK);
    assert_int_equal(acs::declare_by_type(of_structs), ACS_OK);
    assert_string_equal(touched([&] { return ACS_LAUNCH_ON(g_context, plain, 1, 1, 0, ACS_ARGS(x + 7, y + 9, 1)); }).c_str(),
                        "rrww--");
    assert_string_equal(touched([&] {
                            return ACS_LAUNCH_ON(g_context, of_structs, 1, 1, 0, ACS_ARGS(pair{x + 1, nullptr}, numbers{}));
                        }).c_str(), "ww----");
    assert_int_equal(undeclared(), 0);
}

void parameters_say_it(void **)
{
    float *x = as<float>(g_x);
    double *y = as<double>(g_y);
    int *z = as<int>(g_z);
    assert_string_equal(
        touched([&] { return ACS_LAUNCH_ON(g_context, named, 1, 1, 0, ACS_ARGS(x + 5, y + 5, nullptr, nullptr)); }).c_str(),
        "rrww--");
    assert_string_equal(touched([&] {
                            return ACS_LAUNCH_ON(g_context, named, 1, 1, 0, ACS_ARGS(acs::in<float>(nullptr), y, z, g_x));
                        }).c_str(), "rrwwww");
    assert_int_equal(undeclared(), 0);
    /* What was declared or is given has precedence. */
    assert_string_equal(touched([&] {
                            return ACS_LAUNCH_ON(g_context, named, 1, 1, 0, ACS_ARGS(x, y, z, g_x), ACS_USES(ACS_IN(z, 4)));
                        }).c_str(), "----r-");
    assert_int_equal(acs::declare(named, [](acs::in<float> p, acs::inout<double>, acs::out<int>, const char *) {
                         return acs::uses(ACS_INOUT(p.pointer, 4));
                     }), ACS_OK);
    assert_string_equal(touched([&] { return ACS_LAUNCH_ON(g_context, named, 1, 1, 0, ACS_ARGS(x, y, z, g_x)); }).c_str(),
                        "w-----");
}

size_t in_cxx(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (int, n), (const char *, x), (char *, y));
    return ACS_SEGMENTS(out, capacity, ACS_IN(x, n), ACS_OUT(y, n));
}

void footprint_functions_in_cxx(void **)
{
    const acs_kernel kernel = ACS_KERNEL_HOST_INIT("in_cxx", [](const acs_grid *, void *const *) {});
    assert_int_equal(acs_declare(&kernel, in_cxx, nullptr), ACS_OK);
    const int two = 2;
    assert_string_equal(touched([&] { return ACS_LAUNCH_ON(g_context, kernel, 1, 1, 0, ACS_ARGS(two, g_x, g_y)); }).c_str(),
                        "r-w---");
}

/* A lambda may throw: nothing is queued, and memory of the expansion is freed, as a leak checker sees. */
void exceptions_leave_lambdas(void **)
{
    float *y = as<float>(g_y);
    assert_int_equal(acs::declare(unnamed, [](float *) -> std::vector<acs_segment> { throw std::runtime_error("no"); }),
                     ACS_OK);
    const std::vector<acs_segment> many(1000, ACS_IN(g_x, 1));
    acs_uses uses = ACS_USES_DECLARED;
    uses.segments = many.data();
    uses.count = many.size();
    for (int i = 0; i < 2; i++) {
        bool thrown = false;
        try {
            (void)ACS_LAUNCH_ON(g_context, unnamed, 1, 1, 0, ACS_ARGS(y), uses);
        } catch (const std::runtime_error &) {
            thrown = true;
        }
        assert_true(thrown);
    }
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_true(acs_host(g_context, refuse, nullptr, 0, ACS_USES_NONE) > 0); /* calls are allowed again */
}

int setup(void **)
{
    acs_options options;
    void *block[3];
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    assert_int_equal(acs_open(&options, &g_context), ACS_OK);
    for (void *&b : block)
        assert_int_equal(acs_malloc(g_context, BYTES, ACS_MEMORY_DEVICE, &b), ACS_OK);
    g_x = static_cast<char *>(block[0]);
    g_y = static_cast<char *>(block[1]);
    g_z = static_cast<char *>(block[2]);
    return 0;
}

int teardown(void **)
{
    (void)acs_close(g_context);
    return 0;
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lambdas_at_namespace_scope, setup, teardown),
        cmocka_unit_test_setup_teardown(lambdas_with_state_and_vectors, setup, teardown),
        cmocka_unit_test_setup_teardown(types_say_it, setup, teardown),
        cmocka_unit_test_setup_teardown(parameters_say_it, setup, teardown),
        cmocka_unit_test_setup_teardown(footprint_functions_in_cxx, setup, teardown),
        cmocka_unit_test_setup_teardown(exceptions_leave_lambdas, setup, teardown),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
