/*
 * What acs-jobs rests on: the ring of buffers, the works and their oracles, what the paper says. On the CPU; nothing is
 * timed.
 */
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "cmocka.hpp"

#include "buffer_ring.h"
#include "job_report.h"
#include "plain_sink.h"

using namespace bench;

namespace {

/* Hands out blocks until it has handed out `most`, and knows which are out. */
struct shop {
    size_t most = 1000, taken = 0;
    std::set<void *> out;

    bool fill(buffer_ring &ring, const std::vector<size_t> &bytes, size_t sets)
    {
        return ring.fill(
            bytes, sets, [this](size_t size) { return take(size); }, [this](void *p) { give(p); });
    }
    void *take(size_t size)
    {
        if (taken == most)
            return nullptr;
        taken++;
        return *out.insert(malloc(size)).first;
    }
    void give(void *p)
    {
        assert_int_equal(out.erase(p), 1);
        free(p);
    }
};

void ring_goes_round_and_sets_share_nothing(void **)
{
    shop s;
    buffer_ring ring;
    std::set<void *> all;

    assert_true(s.fill(ring, {8, 16}, 3));
    for (size_t job = 0; job < 3; job++)
        all.insert(ring.of(job).begin(), ring.of(job).end());
    assert_int_equal(all.size(), 6);
    assert_true(ring.of(3) == ring.of(0) && ring.of(301) == ring.of(1));
    assert_int_equal(ring.bytes(), 72);
}

void ring_gives_back_at_refill_and_end(void **)
{
    shop s;
    {
        buffer_ring ring;
        assert_true(s.fill(ring, {8, 16}, 3));
        assert_true(s.fill(ring, {8}, 2));
        assert_int_equal(s.out.size(), 2);
        assert_int_equal(ring.sets(), 2);
    }
    assert_true(s.out.empty());
}

void ring_that_is_refused_a_buffer_keeps_none(void **)
{
    shop s;
    buffer_ring ring;

    s.most = 5;
    assert_false(s.fill(ring, {8, 16}, 3));
    assert_true(s.out.empty());
    assert_int_equal(ring.sets(), 0);
    assert_int_equal(ring.bytes(), 0);
}

/* A work of size tiny with the memory of one job; ops run at once. */
struct bench_top {
    memory m{false};
    failure f;
    plain_sink cpu{nullptr, false, f};
    std::unique_ptr<work> w;
    std::vector<char> in, out;
    buffer_set device;

    explicit bench_top(const work_kind &k) : w(k.make(m, "tiny")), in(w->in_bytes()), out(w->out_bytes())
    {
        for (size_t bytes : w->buffers()) {
            device.push_back(m.allocate(bytes));
            m.fill(device.back(), 0xff, bytes);
        }
    }
    std::string run(uint64_t job)
    {
        w->fill(job, in.data());
        w->issue(cpu, device, in.data(), out.data());
        return w->check(in.data(), out.data());
    }
};

void oracles_find_jobs_right_one_after_another(void **)
{
    for (const work_kind &k : work_kinds()) {
        bench_top top(k);
        for (uint64_t job : {0, 1, 2, 77, 65535})
            assert_string_equal(top.run(job).c_str(), "");
    }
}

void oracles_find_a_result_of_another_job_wrong(void **)
{
    for (const work_kind &k : work_kinds()) {
        bench_top top(k);
        assert_string_equal(top.run(5).c_str(), "");
        top.w->fill(6, top.in.data());
        assert_string_not_equal(top.w->check(top.in.data(), top.out.data()).c_str(), "");
    }
}

void oracles_find_one_wrong_element_anywhere(void **)
{
    for (const work_kind &k : work_kinds()) {
        bench_top top(k);
        assert_string_equal(top.run(3).c_str(), "");
        for (size_t place : {size_t(0), top.out.size() / 2 / 4 * 4, top.out.size() - 4}) {
            const std::vector<char> right = top.out;
            for (size_t n = 0; n < 4; n++)
                top.out[place + n] = static_cast<char>(top.out[place + n] ^ 0x7f);
            assert_string_not_equal(top.w->check(top.in.data(), top.out.data()).c_str(), "");
            top.out = right;
        }
    }
}

/* Looks whether the first op that touches a buffer writes all of it, in one segment. */
class footprint_sink : public job_sink {
public:
    footprint_sink(const bench_top &top) : top_(top) {}

    void copy(void *to, const void *from, size_t bytes) override
    {
        ops++;
        touch(reinterpret_cast<uint64_t>(from), bytes, ACS_READ);
        touch(reinterpret_cast<uint64_t>(to), bytes, ACS_WRITE);
    }

    void launch(const job_launch &l) override
    {
        ops++;
        for (size_t k = 0; k < l.segment_count; k++)
            touch(l.segments[k].base, l.segments[k].row_bytes * l.segments[k].rows, l.segments[k].access);
        for (size_t k = 0; k < l.arg_count; k++)
            if (l.args[k].type == ACS_ARG_POINTER)
                pointers.insert(*static_cast<void *const *>(l.args[k].value));
    }

    unsigned ops = 0;
    std::set<void *> touched, pointers;

private:
    void touch(uint64_t base, uint64_t bytes, int access)
    {
        for (size_t k = 0; k < top_.device.size(); k++) {
            const uint64_t begin = reinterpret_cast<uint64_t>(top_.device[k]), size = top_.w->buffers()[k];
            if (base >= begin + size || base + bytes <= begin)
                continue;
            assert_true(base >= begin && base + bytes <= begin + size);
            if (touched.insert(top_.device[k]).second)
                assert_true(access == ACS_WRITE && base == begin && bytes == size);
        }
    }

    const bench_top &top_;
};

void jobs_write_whole_buffers_before_they_read_them(void **)
{
    for (const work_kind &k : work_kinds()) {
        bench_top top(k);
        footprint_sink sink(top);
        top.w->issue(sink, top.device, top.in.data(), top.out.data());
        assert_int_equal(sink.ops, top.w->ops());
        assert_int_equal(sink.touched.size(), top.device.size());
        for (void *p : top.device) /* at their beginnings: where a pointer can be told to be the buffer's */
            assert_int_equal(sink.pointers.count(p), 1);
    }
}

void paper_has_a_row_for_every_work(void **)
{
    for (const work_kind &k : work_kinds())
        assert_non_null(paper_row_of(k.name));
    assert_null(paper_row_of("sssp"));
    assert_string_equal(paper_text(paper_row_of("sobel"), 0).c_str(), "2.99 / 1.86");
    assert_string_equal(paper_text(paper_row_of("hotspot"), 3).c_str(), "1.38 / 1.81");
    assert_string_equal(paper_text(nullptr, 0).c_str(), "");
}

void runner_of_another_machine_is_left_out_and_the_others_run(void **)
{
    bench_top top(work_kinds()[2]);
    job_settings s;
    std::vector<const job_runner_kind *> kinds;

    s.jobs = 7;
    s.repetitions = 2;
    s.sets = {1, 2, 16};
    s.check = true;
    for (const job_runner_kind &k : job_runner_kinds())
        kinds.push_back(&k);
    const job_results done = measure_jobs(*top.w, kinds, s);
    assert_string_equal(done.wrong.c_str(), "");
    for (const job_outcome &o : done.outcomes) {
        assert_string_equal(o.wrong.c_str(), "");
        assert_int_equal(o.total_us.size(), o.kind->host ? 2 : 0);
        assert_int_equal(o.left_out.empty(), o.kind->host);
        assert_int_equal(o.device_bytes > 0, o.kind->host);
        assert_int_equal(o.sets > 0, o.kind->host && *o.kind->sets);
    }
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_goes_round_and_sets_share_nothing),
        cmocka_unit_test(ring_gives_back_at_refill_and_end),
        cmocka_unit_test(ring_that_is_refused_a_buffer_keeps_none),
        cmocka_unit_test(oracles_find_jobs_right_one_after_another),
        cmocka_unit_test(oracles_find_a_result_of_another_job_wrong),
        cmocka_unit_test(oracles_find_one_wrong_element_anywhere),
        cmocka_unit_test(jobs_write_whole_buffers_before_they_read_them),
        cmocka_unit_test(paper_has_a_row_for_every_work),
        cmocka_unit_test(runner_of_another_machine_is_left_out_and_the_others_run),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
