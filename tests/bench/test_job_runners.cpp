/*
 * The runners of acs-jobs that are the CUDA runtime's, over a pretended one (fake_gpu.h), which runs whatever nothing orders
 * in a random order: the results are the serial program's, everything goes back, every failure is told. Times nothing.
 */
#include "cmocka.hpp"

#include "fake_gpu.h"
#include "job_measure.h"
#include "streams_cuda.h"

using namespace bench;

void bench::pin_thread(const machine &, int)
{
}

namespace bench {

/* twice(x -> y) */
struct test_twice {
    enum { BLOCK = 32 };
    static void thread(unsigned i, unsigned count, const int *x, int *y)
    {
        if (i < count)
            y[i] = 2 * x[i];
    }
};

/* sum(x, y -> z) */
struct test_sum {
    enum { BLOCK = 32 };
    static void thread(unsigned i, unsigned count, const int *x, const int *y, int *z)
    {
        if (i < count)
            z[i] = x[i] + y[i];
    }
};

} // namespace bench

namespace {

auto twice = BENCH_PLAIN_KERNEL(test_twice);
auto sum = BENCH_PLAIN_KERNEL(test_sum);

/* The pretended GPU's functions are host bodies. */
template <class... P> void put_on_pretended_gpu(plain_kernel<P...> &k)
{
    k.dual.code.function = reinterpret_cast<const void *>(k.dual.code.host);
    fake_gpu_kernel(k.dual.code.function, std::vector<size_t>{sizeof(P)...});
}

/* Three times the input, by two kernels. */
class threefold : public work {
public:
    enum { COUNT = 40 };

    std::vector<size_t> buffers() const override { return {in_bytes(), in_bytes(), in_bytes()}; }
    size_t in_bytes() const override { return COUNT * sizeof(int); }
    size_t out_bytes() const override { return in_bytes(); }
    unsigned ops() const override { return 4; }

    void fill(uint64_t job, void *in) const override
    {
        for (int i = 0; i < COUNT; i++)
            as<int>(in)[i] = static_cast<int>(job) * 1000 + i;
    }

    void issue(job_sink &s, const buffer_set &d, const void *in, void *out) const override
    {
        int *const x = as<int>(d[0]), *const y = as<int>(d[1]), *const z = as<int>(d[2]);
        s.copy(x, in, in_bytes());
        s.run(twice, COUNT, {ACS_IN(x, in_bytes()), ACS_OUT(y, in_bytes())}, COUNT, x, y);
        s.run(sum, COUNT, {ACS_IN(x, in_bytes()), ACS_IN(y, in_bytes()), ACS_OUT(z, in_bytes())}, COUNT, x, y, z);
        s.copy(out, z, out_bytes());
    }

    std::string check(const void *in, const void *out) const override
    {
        for (int i = 0; i < COUNT; i++)
            if (as<int>(out)[i] != 3 * as<int>(in)[i])
                return "element " + std::to_string(i);
        return "";
    }
};

/* Streams that forgot to have buffers of their own: the results must be found wrong. */
class careless : public stream_sets {
public:
    using stream_sets::stream_sets;

    std::string prepare(const job_list &jobs, size_t sets) override
    {
        const std::string lacking = stream_sets::prepare(jobs, sets);
        return lacking.empty() ? fill_ring(one_, jobs.what(), 1, true) : lacking;
    }

    void run() override
    {
        for (size_t job = 0; job < jobs_->count(); job++) {
            plain_sink sink(stream(job % streams()), true, failure_);
            jobs_->issue(sink, job, one_.of(0));
        }
    }

private:
    buffer_ring one_;
};

const std::vector<job_runner_kind> &kinds()
{
    static const std::vector<job_runner_kind> all = {
        {"stream", "", true, true, "", make_serial},
        {"graph", "", true, false, "", make_job_graph},
        {"batch", "", true, false, "streams", make_job_batch},
        {"queue", "", true, false, "threads", make_job_queue},
        {"buffers", "", true, false, "streams", make_job_buffers},
        {"careless", "", true, false, "streams",
         [](const machine &m) { return std::unique_ptr<job_runner>(new careless(m)); }},
    };
    return all;
}

job_settings settings()
{
    job_settings s;
    s.where.gpu = true;
    s.repetitions = 2;
    s.jobs = 23;
    s.sets = {1, 3, 5};
    s.check = true;
    return s;
}

/* By the first `count` runners of the list. */
std::vector<job_outcome> measure(const job_settings &s, size_t count)
{
    std::vector<const job_runner_kind *> who;
    for (size_t k = 0; k < count; k++)
        who.push_back(&kinds()[k]);
    const job_results done = measure_jobs(threefold(), who, s);
    assert_string_equal(done.wrong.c_str(), "");
    return done.outcomes;
}

void results_are_the_serial_programs_and_everything_goes_back(void **)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fake_gpu_seed(seed);
        for (const job_outcome &o : measure(settings(), 5)) {
            assert_string_equal((o.left_out + o.wrong).c_str(), "");
            assert_int_equal(o.total_us.size(), 2);
            const size_t sets = *o.kind->sets ? o.sets : 1;
            assert_int_equal(o.device_bytes, sets * 3 * threefold::COUNT * sizeof(int));
        }
        assert_int_equal(fake_gpu_live(), 0);
    }
}

void buffers_that_streams_share_are_found_out(void **)
{
    job_settings s = settings();
    s.sets = {5};
    fake_gpu_seed(3);
    assert_string_equal(measure(s, 6).back().wrong.c_str(),
                        "the results are not those of the serial program, bit for bit");
}

void failure_of_a_call_is_told_and_the_others_go_on(void **)
{
    for (const char *function : {"cudaGraphInstantiate", "cudaGraphExecMemcpyNodeSetParams1D", "cudaGraphLaunch"}) {
        fake_gpu_seed(1);
        fake_gpu_fail(function, std::string(function) == "cudaGraphInstantiate" ? 1 : 30);
        for (const job_outcome &o : measure(settings(), 5)) {
            const bool failed = o.wrong + o.left_out == std::string(function) + ": pretended failure";
            assert_int_equal(failed, std::string(o.kind->name) == "graph");
            assert_int_equal(o.ran(), !failed);
        }
        assert_int_equal(fake_gpu_live(), 0);
    }
}

void sets_that_find_no_memory_are_not_chosen(void **)
{
    job_settings s = settings();
    s.sets = {2, 4};
    fake_gpu_seed(1);
    fake_gpu_fail("cudaMalloc", 3 + 3 + 2 * 3 + 2); /* the reference, stream, two sets, and the first of four sets */
    std::vector<const job_runner_kind *> who = {&kinds()[0], &kinds()[4]};
    const job_results done = measure_jobs(threefold(), who, s);
    assert_string_equal((done.wrong + done.outcomes[1].wrong + done.outcomes[1].left_out).c_str(), "");
    assert_int_equal(done.outcomes[1].sets, 2);
    assert_int_equal(fake_gpu_live(), 0);
}

void threads_that_cannot_be_pinned_are_left_out(void **)
{
    job_settings s = settings();
    s.where.first_cpu = 0;
    s.sets = {100000};
    const job_outcome queue = measure(s, 4).back();
    assert_string_equal(queue.left_out.c_str(), "there are not CPUs enough to pin 100000 threads");
    assert_int_equal(fake_gpu_live(), 0);
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_serial_programs_and_everything_goes_back),
        cmocka_unit_test(buffers_that_streams_share_are_found_out),
        cmocka_unit_test(failure_of_a_call_is_told_and_the_others_go_on),
        cmocka_unit_test(sets_that_find_no_memory_are_not_chosen),
        cmocka_unit_test(threads_that_cannot_be_pinned_are_left_out),
    };
    put_on_pretended_gpu(twice);
    put_on_pretended_gpu(sum);
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
