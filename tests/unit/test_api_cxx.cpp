/*
 * The C++17 call-site macros: arguments converted to the parameter types of functions and left alone for acs_kernel
 * objects, template arguments with commas, temporaries, use in namespaces, templates and classes. Contexts are simulated.
 */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

#include "acs.h"

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct pair {
    float a;
    int b;
};

enum class color : int { red = 3, blue = 5 };

struct dim3_like {
    unsigned x, y, z;
};

acs_context *g_context;

/* Bytes of the arguments of the last launch, as the library took them: noted by a footprint function. */
std::vector<std::vector<unsigned char>> g_noted;
acs_grid g_noted_grid;
const std::vector<size_t> *g_sizes;

size_t note(const acs_footprint_input *in, acs_segment *, size_t)
{
    g_noted.clear();
    for (size_t i = 0; i < in->arg_count && i < g_sizes->size(); i++) {
        const unsigned char *bytes = static_cast<const unsigned char *>(in->args[i]);
        g_noted.emplace_back(bytes, bytes + (*g_sizes)[i]);
    }
    return 0;
}

template <class T> T noted(size_t i)
{
    T value;
    assert_int_equal(g_noted.at(i).size(), sizeof value);
    std::memcpy(&value, g_noted[i].data(), sizeof value);
    return value;
}

void nothing_body(const acs_grid *grid, void *const *)
{
    g_noted_grid = *grid;
}

const acs_kernel g_kernel = ACS_KERNEL_HOST_INIT("kernel", nothing_body);

void scale_body(const acs_grid *, void *const *args)
{
    float factor;
    float *x = *static_cast<float *const *>(args[1]);
    std::memcpy(&factor, args[0], sizeof factor);
    for (int i = 0; i < 4; i++)
        x[i] *= factor;
}

const acs_kernel g_scale = ACS_KERNEL_HOST_INIT("scale", scale_body);

int setup(void **)
{
    acs_options options;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_SIM;
    return acs_open(&options, &g_context) == ACS_OK ? 0 : -1;
}

int teardown(void **)
{
    acs_close(g_context);
    return 0;
}

/* What a launch of a function would hand over, without a GPU: its arguments as converted. */
template <class... P, class... A>
std::tuple<std::remove_cv_t<P>...> converted(void (*)(P...), acs::detail::arg_refs<A...> args)
{
    return std::tuple<std::remove_cv_t<P>...>(std::move(args.refs));
}

template <class T, int N> void typed(T, const T *, long, float)
{
}

/* ---------------------------------------------------------------------------------------------------- the arguments */

void arguments_of_a_function_get_its_parameter_types(void **)
{
    float x[2] = {};
    auto values = converted(typed<float, 4>, ACS_ARGS(2.0, x, 7, 1));
    static_assert(std::is_same_v<decltype(values), std::tuple<float, const float *, long, float>>);
    assert_true(std::get<0>(values) == 2.0f);
    assert_ptr_equal(std::get<1>(values), x);
    assert_int_equal(std::get<2>(values), 7);
    assert_true(std::get<3>(values) == 1.0f);
    auto null = converted(typed<double, 1>, ACS_ARGS(1, nullptr, color::red == color::red, 0));
    assert_null(std::get<1>(null));
}

void function_without_host_body_is_refused_on_the_cpu_and_named(void **)
{
    acs_error e{};
    e.size = sizeof e;
    float x[2] = {};
    acs_op op = ACS_LAUNCH_ON(g_context, typed<float, 4>, 1, 32, 0, ACS_ARGS(2.0, x, 7, 1), ACS_USES_NONE);
    assert_int_equal(op, 0);
    assert_int_not_equal(acs_last_error(&e), ACS_OK);
    assert_non_null(std::strstr(e.text, "typed<float, 4>"));
    assert_string_equal(e.site.name, "typed<float, 4>");
    assert_int_equal(e.site.line, __LINE__ - 5);
    op = ACS_LAUNCH_ON(g_context, &typed<float, 2>, 1, 32, 0, ACS_ARGS(2.0, x, 7, 1), ACS_USES_NONE);
    assert_int_equal(op, 0);
    assert_int_not_equal(acs_last_error(&e), ACS_OK);
    assert_string_equal(e.site.name, "typed<float, 2>");
}

void a_kernel_object_is_named_by_its_own_name(void **)
{
    acs_error e{};
    e.size = sizeof e;
    for (const acs_kernel *kernel : {&g_scale, &g_kernel}) {
        assert_int_equal(ACS_LAUNCH_ON(g_context, kernel, 0, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
        assert_int_not_equal(acs_last_error(&e), ACS_OK);
        assert_string_equal(e.site.name, kernel->name);
    }
}

void arguments_of_a_kernel_object_keep_their_own_types(void **)
{
    const std::vector<size_t> sizes = {sizeof(double), sizeof(int),    sizeof(pair),
                                       sizeof(color),  sizeof(void *), sizeof(char)};
    int array[3] = {1, 2, 3};
    const int &reference = array[1];
    const double two = 2;
    g_sizes = &sizes;
    acs_op op = ACS_LAUNCH_ON(g_context, g_kernel, 1, 1, 0,
                              ACS_ARGS(two, reference, pair{1.5f, 9}, color::blue, array, ACS_VAL(char, 'c')),
                              ACS_USES_FN(note, nullptr));
    assert_int_not_equal(op, 0);
    assert_true(noted<double>(0) == 2.0);
    assert_int_equal(noted<int>(1), 2);
    assert_int_equal(noted<pair>(2).b, 9);
    assert_int_equal(noted<color>(3), color::blue);
    assert_ptr_equal(noted<int *>(4), array);
    assert_int_equal(noted<char>(5), 'c');
}

void value_of_a_named_type_is_of_that_type(void **)
{
    float x[4] = {1, 2, 3, 4};
    acs_op op = ACS_LAUNCH_ON(g_context, &g_scale, 1, 1, 0, ACS_ARGS(ACS_VAL(float, 2.0), &x[0]),
                              ACS_USES(ACS_INOUT(x, sizeof x)));
    assert_int_equal(acs_wait(g_context, op), ACS_OK);
    assert_true(x[0] == 2 && x[3] == 8);
}

void arguments_of_a_typed_kernel_object_become_its_parameters_types(void **)
{
    static const acs::kernel<float, acs::inout<float>> named = ACS_KERNEL_HOST_INIT("scale", scale_body);
    static const acs::kernel by_function{"scale", static_cast<void (*)(float, float *)>(nullptr), scale_body};
    const acs::kernel<float, float *> of_an_object{g_scale};
    float x[4] = {1, 2, 3, 4};
    int two = 2;
    (void)ACS_LAUNCH_ON(g_context, named, 1, 1, 0, ACS_ARGS(2, x), ACS_USES(ACS_INOUT(x, sizeof x)));
    (void)ACS_LAUNCH_ON(g_context, &named, 1, 1, 0, ACS_ARGS(2.0, x));
    (void)ACS_LAUNCH_ON(g_context, by_function, 1, 1, 0, ACS_ARGS(two, x), ACS_USES(ACS_INOUT(x, sizeof x)));
    acs_op op = ACS_LAUNCH_ON(g_context, of_an_object, 1, 1, 0, ACS_ARGS(ACS_VAL(char, 2), x),
                              ACS_USES(ACS_INOUT(x, sizeof x)));
    assert_int_equal(acs_wait(g_context, op), ACS_OK);
    assert_true(x[0] == 16 && x[3] == 64);
}

std::array<float, 3> make_array(float first)
{
    return {first, first + 1, first + 2};
}

acs_segment segment_of(const std::vector<float> &v)
{
    return ACS_INOUT(v.data(), v.size() * sizeof(float));
}

void temporaries_live_until_they_were_copied(void **)
{
    const std::vector<size_t> sizes = {sizeof(std::array<float, 3>), sizeof(char), sizeof(long)};
    std::vector<float> v(4, 1.0f);
    g_sizes = &sizes;
    acs_op op = ACS_LAUNCH_ON(g_context, g_kernel, 1, 1, 0,
                              ACS_ARGS(make_array(5), std::string("a text too long to be kept inside the object").at(2),
                                       long{1} << 40),
                              ACS_USES_FN(note, nullptr));
    assert_int_not_equal(op, 0);
    assert_true((noted<std::array<float, 3>>(0)[2]) == 7.0f);
    assert_int_equal(noted<char>(1), 't');
    assert_true(noted<long>(2) == 1L << 40);
    op = ACS_LAUNCH_ON(g_context, g_scale, 1, 1, 0, ACS_ARGS(make_array(3)[0], v.data()),
                       ACS_USES(segment_of(v), ACS_TOKEN(std::string("key").size())));
    assert_int_equal(acs_wait(g_context, op), ACS_OK);
    assert_true(v[3] == 3.0f);
}

/* --------------------------------------------------------------------------------------------------- the call sites */

namespace inner {
namespace acs_like {
/* Names that the macros must not pick up by accident. */
struct detail {
};

template <class T, int N> struct filter {
    T values[N] = {};

    acs_op run(acs_context *context, T factor)
    {
        return ACS_LAUNCH_ON(context, g_scale, N, (std::array<int, 2>{1, 1}[0]), 0, ACS_ARGS(factor, &values[0]),
                             ACS_USES(ACS_INOUT(values, sizeof values)));
    }
};
} // namespace acs_like

template <class T, int N> acs_op run_twice(acs_context *context, acs_like::filter<T, N> &filter)
{
    filter.run(context, T(2));
    return filter.run(context, T(3));
}
} // namespace inner

void launch_from_templates_in_namespaces_works(void **)
{
    inner::acs_like::filter<float, 4> filter;
    for (float &value : filter.values)
        value = 1;
    assert_int_equal(acs_wait(g_context, inner::run_twice<float, 4>(g_context, filter)), ACS_OK);
    assert_true(filter.values[0] == 6 && filter.values[3] == 6);
}

void grid_may_be_anything_with_x_y_z(void **)
{
    const dim3_like grid = {3, 4, 5};
    const short block = 64;
    acs_op op = ACS_LAUNCH_ON(g_context, g_kernel, grid, block, 16, ACS_NO_ARGS, ACS_USES_NONE);
    assert_int_equal(acs_wait(g_context, op), ACS_OK);
    assert_int_equal(g_noted_grid.grid.z, 5);
    assert_int_equal(g_noted_grid.block.x, 64);
    assert_int_equal(g_noted_grid.block.y, 1);
    assert_int_equal(g_noted_grid.shared_bytes, 16);
}

void negative_grid_is_refused(void **)
{
    assert_int_equal(ACS_LAUNCH_ON(g_context, g_kernel, -1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE), 0);
    assert_int_equal(acs_last_error(nullptr), ACS_ERR_ARGUMENT);
}

int add_one(void *closure)
{
    **static_cast<int **>(closure) += 1;
    return 0;
}

/* Copied by the call: the list may go before the op runs. */
void segments_may_be_a_list_made_at_run_time(void **)
{
    int x[3] = {1, 2, 3};
    int *first = x;
    std::vector<acs_segment> list;
    for (int &element : x)
        list.push_back(ACS_INOUT(&element, sizeof element));
    acs_statistics stats{};
    stats.size = sizeof stats;
    for (int &element : x)
        assert_int_not_equal(acs_memset(g_context, &element, 0, sizeof element), 0);
    const int count = static_cast<int>(list.size());
    assert_int_not_equal(acs_host(g_context, add_one, &first, sizeof first, ACS_USES_LIST(list.data(), count)), 0);
    const acs_op op = ACS_LAUNCH_ON(g_context, g_kernel, 1, 1, 0, ACS_NO_ARGS, ACS_USES_LIST(list.data(), list.size()));
    list.clear();
    assert_int_equal(acs_wait(g_context, op), ACS_OK);
    assert_int_equal(x[0], 1);
    assert_int_equal(acs_stats(g_context, &stats), ACS_OK);
    assert_true(stats.levels >= 3); /* fill, host function, kernel: all by the list */
}

void other_ops_work_from_cxx(void **)
{
    int x = 1, y = 0, *pointer = &y;
    assert_int_not_equal(acs_memcpy(g_context, &y, &x, sizeof x), 0);
    assert_int_not_equal(acs_host(g_context, add_one, &pointer, sizeof pointer, ACS_USES(ACS_INOUT(&y, sizeof y))), 0);
    assert_int_not_equal(acs_memset(g_context, &x, 0, sizeof x), 0);
    assert_int_equal(acs_sync(g_context), ACS_OK);
    assert_int_equal(y, 2);
    assert_int_equal(x, 0);
}

struct silent {
    unsigned char *to;
    uint64_t value;
};

struct telling {
    uint64_t value;
    unsigned char *to;
    static constexpr uint32_t acs_pointers = ACS_POINTER_AT(1);
};

void telling_body(const acs_grid *, void *const *args)
{
    const auto *a = static_cast<const telling *>(args[0]);
    *a->to = static_cast<unsigned char>(a->value);
}

/* A lazy block has no memory at its address: the pointer in the struct has to be changed. */
void struct_that_tells_its_pointers_reaches_lazy_blocks(void **)
{
    const acs_kernel kernel = ACS_KERNEL_HOST_INIT("telling", telling_body);
    void *block = nullptr;
    unsigned char seen = 0;
    acs_options options{};
    acs_context *context = nullptr;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.workers = 0;
    options.pool = ACS_POOL_ON;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_equal(acs_malloc(context, 100, ACS_MEMORY_DEVICE | ACS_LAZY, &block), ACS_OK);
    auto *to = static_cast<unsigned char *>(block);
    assert_int_equal(ACS_LAUNCH_ON(context, kernel, 1, 1, 0, ACS_ARGS(silent{to, 7}), ACS_USES(ACS_OUT(to, 1))), 0);
    assert_int_equal(acs_last_error(nullptr), ACS_ERR_UNSUPPORTED);
    assert_true(ACS_LAUNCH_ON(context, kernel, 1, 1, 0, ACS_ARGS(telling{7, to}), ACS_USES(ACS_OUT(to, 1))) > 0);
    assert_true(acs_memcpy(context, &seen, to, 1) > 0);
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(seen, 7);
    assert_int_equal(acs_close(context), ACS_OK);
}

size_t throwing_footprint(const acs_footprint_input *, acs_segment *, size_t)
{
    throw std::runtime_error("no table");
}

/* More launches than there are records: each record goes back. */
void exception_out_of_a_footprint_function_queues_nothing(void **)
{
    acs_uses uses = {};
    uses.footprint = throwing_footprint;
    const acs_op before = acs_memset(g_context, &uses, 0, 0);
    for (int i = 0; i < 20000; i++) {
        bool caught = false;
        try {
            acs_launch_params launch = {};
            launch.size = sizeof launch;
            launch.kernel = &g_kernel;
            launch.grid = launch.block = {1, 1, 1};
            launch.uses = uses;
            acs_launch(g_context, &launch);
        } catch (const std::runtime_error &) {
            caught = true;
        }
        assert_true(caught);
    }
    assert_int_equal(acs_memset(g_context, &uses, 0, 0), before + 1);
    assert_int_equal(acs_sync(g_context), ACS_OK);
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arguments_of_a_function_get_its_parameter_types, setup, teardown),
        cmocka_unit_test_setup_teardown(function_without_host_body_is_refused_on_the_cpu_and_named, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_of_a_kernel_object_keep_their_own_types, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_of_a_typed_kernel_object_become_its_parameters_types, setup, teardown),
        cmocka_unit_test_setup_teardown(value_of_a_named_type_is_of_that_type, setup, teardown),
        cmocka_unit_test_setup_teardown(temporaries_live_until_they_were_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(launch_from_templates_in_namespaces_works, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_object_is_named_by_its_own_name, setup, teardown),
        cmocka_unit_test_setup_teardown(grid_may_be_anything_with_x_y_z, setup, teardown),
        cmocka_unit_test_setup_teardown(negative_grid_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(segments_may_be_a_list_made_at_run_time, setup, teardown),
        cmocka_unit_test_setup_teardown(other_ops_work_from_cxx, setup, teardown),
        cmocka_unit_test(struct_that_tells_its_pointers_reaches_lazy_blocks),
        cmocka_unit_test_setup_teardown(exception_out_of_a_footprint_function_queues_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
