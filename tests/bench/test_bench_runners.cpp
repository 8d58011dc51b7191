/*
 * Every runner of one machine against the serial order, on random programs: the CPU's own runners, or, over a pretended GPU
 * that runs work as late and in as odd an order as streams, events and edges let it, those of the GPU.
 */
#include "cmocka.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "random_program.h"
#include "runners.h"

#if TEST_FAKE_GPU
#include "fake_gpu.h"
#endif

using namespace bench;

/* The pretended GPU's program is built without the registry, whose other runners it cannot run. */
#if TEST_FAKE_GPU
void bench::pin_thread(const machine &, int)
{
}
#endif

namespace {

std::vector<runner_kind> kinds()
{
    std::vector<runner_kind> all, usable;
    add_serial(all);
#if TEST_FAKE_GPU
    add_streams(all);
    add_graphs(all);
#endif
    add_acs_sw(all);
    for (const runner_kind &k : all)
        if (TEST_FAKE_GPU ? k.gpu : k.host)
            usable.push_back(k);
    return usable;
}

void begin_seed(uint64_t seed)
{
#if TEST_FAKE_GPU
    fake_gpu_seed(seed);
#else
    (void)seed;
#endif
}

random_settings settings_of(uint64_t seed)
{
    random_settings s;
    s.seed = seed;
    s.ops = 70;
    s.words = seed % 3 == 0 ? 300 : seed % 3 == 1 ? 80 : 30;
    s.read_every = seed % 2 ? 12 : 0;
    s.call_every = seed % 4 == 0 ? 6 : seed % 4 == 1 ? 2 : 0;
    return s;
}

/* What the harness does with a runner. @return what finish() says. */
std::string run_once(program &p, runner &r)
{
    p.reset();
    p.run(r);
    r.flush();
    return r.finish();
}

/* A program with its serial result. */
struct subject {
    memory m{false};
    random_program p;
    trace t;
    dag d;
    std::vector<char> right;

    explicit subject(uint64_t seed) : p(m, settings_of(seed))
    {
        p.reset();
        t = record(p);
        d = find_dag(t);
        right = p.result();
    }
};

/* graph-known leaves out programs that read nothing, and no others. */
bool leaves_out(const std::string &why, const trace &t)
{
    const auto is_read = [](const op &o) { return o.kind == OP_READ; };
    return why.find("reads nothing") != std::string::npos && std::none_of(t.ops.begin(), t.ops.end(), is_read);
}

void check_runs(runner &r, subject &s, int times)
{
    const std::string why = r.prepare(s.t, s.d);
    if (leaves_out(why, s.t))
        return;
    assert_string_equal(why.c_str(), "");
    for (int k = 0; k < times; k++) {
        assert_string_equal(run_once(s.p, r).c_str(), "");
        assert_true(s.p.result() == s.right);
    }
}

std::unique_ptr<runner> make(const runner_kind &k)
{
    const machine where = {TEST_FAKE_GPU != 0, -1};
    return k.make(where);
}

void every_setting_of_every_runner_gives_the_serial_result(void **)
{
    for (const runner_kind &kind : kinds()) {
        const std::unique_ptr<runner> r = make(kind);
        for (uint64_t seed = 1; seed <= 12; seed++) {
            subject s(seed);
            begin_seed(seed);
            for (int v = 0; v < r->variants(); v++) {
                r->choose(v);
                check_runs(*r, s, 2);
            }
        }
    }
    assert_true(random_program_places() <= 1); /* the recorder, a serial slot of its own, keeps one */
}

void one_setting_gives_the_serial_result_of_many_programs(void **)
{
    for (const runner_kind &kind : kinds()) {
        const std::unique_ptr<runner> r = make(kind);
        for (uint64_t seed = 100; seed < 140; seed++) {
            subject s(seed);
            begin_seed(seed);
            check_runs(*r, s, 1);
        }
    }
}

bool plans(const runner_kind &k)
{
    const std::string name = k.name;
    return name.find("stream") != 0 ? name.find("graph") == 0 : name == "streams";
}

/* A run that is not the planned one is reported, and the next one is as good as ever. */
void a_run_that_differs_from_the_plan_is_reported(void **)
{
    for (const runner_kind &kind : kinds()) {
        if (!plans(kind))
            continue;
        const std::unique_ptr<runner> r = make(kind);
        subject s(5);
        int kernel = 30;
        while (s.t.ops[static_cast<size_t>(kernel)].kind != OP_KERNEL)
            kernel++;
        for (int v : {0, r->variants() - 1}) {
            r->choose(v);
            check_runs(*r, s, 1);
            s.p.change = kernel;
            assert_true(run_once(s.p, *r).find("as planned") != std::string::npos);
            s.p.change = -1;
            s.p.leave_out = static_cast<int>(s.t.ops.size()) - 1;
            assert_true(run_once(s.p, *r).find(" planned ones") != std::string::npos);
            s.p.leave_out = -1;
            assert_string_equal(run_once(s.p, *r).c_str(), "");
            assert_true(s.p.result() == s.right);
        }
    }
}

void a_planner_refuses_a_run_without_dependencies(void **)
{
    for (const runner_kind &kind : kinds()) {
        if (!plans(kind))
            continue;
        const std::unique_ptr<runner> r = make(kind);
        subject s(5);
        assert_string_equal(r->prepare(s.t, dag()).c_str(), "has too many ops to plan: 70");
        assert_string_equal(run_once(s.p, *r).c_str(), "has too many ops to plan: 70");
        r->choose(0);
        assert_string_equal(run_once(s.p, *r).c_str(), "was not prepared");
    }
}

void what_a_machine_lacks_is_named(void **)
{
    static const acs_dual_kernel nothing = {ACS_KERNEL_INIT("nothing", nullptr, nullptr), {"nothing", __FILE__, __LINE__}};
    trace t;
    op o = {};
    dag d;
    o.kind = OP_KERNEL;
    o.kernel = &nothing;
    o.grid = o.block = 1;
    t.ops.push_back(o);
    d.up.resize(1);
    for (const runner_kind &kind : kinds()) {
        const std::string why = make(kind)->prepare(t, d);
        assert_string_equal(why.c_str(), TEST_FAKE_GPU ? "op 0: nothing has no __global__ function"
                                                       : "op 0: nothing has no host body");
    }
}

#if TEST_FAKE_GPU
/* Whatever call fails: finish() says so, nothing hangs, nothing stays behind, and the runner goes on. */
void a_failing_call_is_reported(void **)
{
    for (const char *function : {"cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent", "cudaMemcpyAsync",
                                 "cudaMemsetAsync", "cudaGraphLaunch", "cudaGraphExecKernelNodeSetParams",
                                 "cudaGraphAddKernelNode", "cudaGraphInstantiate", "cudaGraphCreate",
                                 "cudaGraphExecUpdate", "cudaStreamBeginCaptureToGraph", "cudaStreamEndCapture",
                                 "cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize"}) {
        int reported = 0;
        for (const runner_kind &kind : kinds()) {
            const std::unique_ptr<runner> r = make(kind);
            subject s(5);
            r->choose(r->variants() - 1);
            begin_seed(7);
            check_runs(*r, s, 1);
            const int before = fake_gpu_calls(function);
            fake_gpu_fail(function, 1);
            const std::string said = run_once(s.p, *r);
            const bool called = fake_gpu_calls(function) > before;
            /* A library call of the test's own may be what failed: it does not look. */
            if (called && std::string(function) != "cudaLaunchKernel")
                assert_true(said.find("pretended failure") != std::string::npos);
            reported += !said.empty();
            begin_seed(8);
            begin_seed(8);
            (void)r->finish(); /* as the harness waits again, should a wait have failed */
            assert_string_equal(run_once(s.p, *r).c_str(), "");
            assert_true(s.p.result() == s.right);
        }
        assert_true(reported > 0);
    }
}

int call_nothing(const acs_call_env *, void *)
{
    return 0;
}

/* Two calls that issue nothing, behind one fill and before another: the node of the first comes twice to the second. */
void calls_that_issue_nothing_end_in_what_they_follow(void **)
{
    char bytes[4] = {0};
    acs_call_params nothing = {};
    const acs_segment uses[4][3] = {{ACS_OUT(bytes, 1), ACS_OUT(bytes, 0), ACS_OUT(bytes, 0)},
                                    {ACS_IN(bytes, 1), ACS_OUT(bytes + 1, 1), ACS_OUT(bytes, 0)},
                                    {ACS_IN(bytes, 1), ACS_OUT(bytes + 2, 1), ACS_OUT(bytes, 0)},
                                    {ACS_IN(bytes + 1, 1), ACS_IN(bytes + 2, 1), ACS_OUT(bytes + 3, 1)}};
    trace t;

    nothing.function = call_nothing;
    for (int k = 0; k < 4; k++) {
        op o = {};
        o.kind = k == 1 || k == 2 ? OP_CALL : OP_FILL;
        o.to = bytes + k;
        o.value = 5 + k;
        o.bytes = 1;
        o.call = &nothing;
        o.segments = uses[k];
        o.segment_count = 3;
        t.ops.push_back(o);
    }
    for (const runner_kind &kind : kinds()) {
        const std::unique_ptr<runner> r = make(kind);
        const std::string why = r->prepare(t, find_dag(t));
        if (leaves_out(why, t))
            continue;
        assert_string_equal(why.c_str(), "");
        for (const op &o : t.ops)
            r->launch(o);
        r->flush();
        assert_string_equal(r->finish().c_str(), "");
        assert_int_equal(bytes[0] + bytes[3], 5 + 8);
        bytes[0] = bytes[3] = 0;
    }
}

void update_and_rebuild_are_counted(void **)
{
    for (const runner_kind &kind : kinds()) {
        if (std::string(kind.name) != "graph-update")
            continue;
        const std::unique_ptr<runner> r = make(kind);
        subject one(4), other(8);
        check_runs(*r, one, 1);
        assert_true(r->note().find("updates 0, rebuilds 1") != std::string::npos);
        check_runs(*r, one, 1);
        assert_true(r->note().find("updates 1, rebuilds 0") != std::string::npos);
        check_runs(*r, other, 1);
        assert_true(r->note().find("updates 0, rebuilds 1") != std::string::npos);
    }
}

void a_replay_builds_nothing(void **)
{
    for (const runner_kind &kind : kinds()) {
        const bool known = std::string(kind.name) == "graph-known"; /* one graph, though the program reads */
        if (std::string(kind.name) != "graph-replay" && !known)
            continue;
        const std::unique_ptr<runner> r = make(kind);
        subject s(5);
        check_runs(*r, s, 1);
        begin_seed(9);
        assert_string_equal(run_once(s.p, *r).c_str(), "");
        assert_true(!known || fake_gpu_calls("cudaGraphLaunch") == 1);
        assert_int_equal(fake_gpu_calls("cudaGraphAddKernelNode"), 0);
        assert_int_equal(fake_gpu_calls("cudaGraphInstantiate"), 0);
        assert_true(fake_gpu_calls("cudaGraphLaunch") > 0);
    }
}

void streams_record_and_wait_as_planned(void **)
{
    for (const runner_kind &kind : kinds()) {
        if (std::string(kind.name) != "streams")
            continue;
        const std::unique_ptr<runner> r = make(kind);
        subject s(6); /* no reads */
        check_runs(*r, s, 1);
        begin_seed(9);
        assert_string_equal(run_once(s.p, *r).c_str(), "");
        const std::string note = "events " + std::to_string(fake_gpu_calls("cudaEventRecord")) + ", waits " +
                                 std::to_string(fake_gpu_calls("cudaStreamWaitEvent"));
        assert_string_equal(r->note().c_str(), note.c_str());
    }
}

int leaves_nothing_behind(void **)
{
    return fake_gpu_live() == 0 ? 0 : -1;
}
#endif

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_of_every_runner_gives_the_serial_result),
        cmocka_unit_test(one_setting_gives_the_serial_result_of_many_programs),
        cmocka_unit_test(what_a_machine_lacks_is_named),
        cmocka_unit_test(a_run_that_differs_from_the_plan_is_reported),
        cmocka_unit_test(a_planner_refuses_a_run_without_dependencies),
#if TEST_FAKE_GPU
        cmocka_unit_test(a_failing_call_is_reported),
        cmocka_unit_test(calls_that_issue_nothing_end_in_what_they_follow),
        cmocka_unit_test(update_and_rebuild_are_counted),
        cmocka_unit_test(a_replay_builds_nothing),
        cmocka_unit_test(streams_record_and_wait_as_planned),
#endif
    };
    random_program_on_fake_gpu();
#if TEST_FAKE_GPU
    return cmocka_run_group_tests(tests, nullptr, leaves_nothing_behind);
#else
    return cmocka_run_group_tests(tests, nullptr, nullptr);
#endif
}
