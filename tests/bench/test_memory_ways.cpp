/*
 * The ways of acs-memory that are the CUDA runtime's, over a pretended one (fake_gpu.h): everything goes back, the pool is
 * left as it was found, every failure is told. Times nothing.
 */
#include "cmocka.hpp"

#include "fake_gpu.h"
#include "passes.h"

using namespace bench;

namespace {

const way_kind *kind_of(const char *name)
{
    static const way_kind async = {"async", "", true, false, 0, make_async_way, lacking_for_async};
    static const way_kind cuda = {"cuda", "", true, false, 20, make_cuda_way};
    return std::string(name) == "async" ? &async : &cuda;
}

std::vector<way_outcome> play_all(const allocation_trace &t, bool use)
{
    pass_settings s;
    s.where.gpu = true;
    s.repetitions = 2;
    s.use = use;
    return play(t, {kind_of("async"), kind_of("cuda")}, s);
}

allocation_trace small_trace(const synthetic_kind &k)
{
    synthetic_settings s;
    s.pairs = 48;
    s.live = 8;
    return k.make(s);
}

void traces_are_played_and_everything_goes_back(void **)
{
    for (const synthetic_kind &k : synthetic_kinds())
        for (bool use : {false, true}) {
            fake_gpu_seed(k.name[0]);
            const allocation_trace t = small_trace(k);
            for (const way_outcome &o : play_all(t, use)) {
                assert_string_equal((o.left_out + o.wrong).c_str(), "");
                assert_int_equal(o.calls_us.size(), 2);
                assert_int_equal(fake_gpu_calls("cudaMemsetAsync") > 0, use);
            }
            assert_int_equal(fake_gpu_live(), 0);
            assert_int_equal(fake_gpu_pool_reserved(), 0);
        }
}

void reserved_memory_is_that_of_the_own_trace(void **)
{
    const allocation_trace large = small_trace(synthetic_kinds()[3]), same = small_trace(synthetic_kinds()[0]);

    const way_outcome first = play_all(large, false)[0], second = play_all(same, false)[0];
    assert_true(first.reserved_bytes >= first.live_bytes);
    assert_true(second.reserved_bytes >= second.live_bytes && second.reserved_bytes < first.live_bytes);
}

void way_of_the_driver_plays_the_first_pairs(void **)
{
    const std::vector<way_outcome> done = play_all(small_trace(synthetic_kinds()[2]), false);
    assert_int_equal(done[0].pairs, 48);
    assert_int_equal(done[1].pairs, 20);
    assert_int_equal(done[1].reserved_bytes, 0);
    assert_true(done[0].note.empty() && !done[1].note.empty());
}

void failure_of_a_call_is_told_and_the_others_go_on(void **)
{
    for (const char *function : {"cudaMallocAsync", "cudaFreeAsync", "cudaMemsetAsync", "cudaMalloc", "cudaFree"}) {
        fake_gpu_seed(1);
        fake_gpu_fail(function, 5);
        size_t wrong = 0;
        for (const way_outcome &o : play_all(small_trace(synthetic_kinds()[2]), true)) {
            wrong += !o.wrong.empty();
            assert_true(o.wrong.empty() ? o.ran() : o.wrong == std::string(function) + ": pretended failure");
        }
        assert_int_equal(wrong, 1);
        assert_int_equal(fake_gpu_free_lost(), std::string(function).compare(0, 8, "cudaFree") == 0);
    }
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_are_played_and_everything_goes_back),
        cmocka_unit_test(reserved_memory_is_that_of_the_own_trace),
        cmocka_unit_test(way_of_the_driver_plays_the_first_pairs),
        cmocka_unit_test(failure_of_a_call_is_told_and_the_others_go_on),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
