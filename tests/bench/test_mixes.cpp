/*
 * What acs-mixes rests on: workloads as the paper's tables tell them, sizes to scale, jobs of one task beside each other. On
 * the CPU; nothing is timed.
 */
#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "cmocka.hpp"

#include "lane.h"
#include "mix.h"

using namespace bench;

namespace {

/* "HuntKTm", Table 5: gigabytes without and with its memory manager. */
const std::map<std::string, std::pair<double, double>> table_5 = {
    {"vec", {4.80, 4.80}}, {"bs", {12.8, 12.8}}, {"ml", {3.12, 3.08}}, {"img", {11.6, 9.20}},
    {"dl", {7.06, 4.70}},  {"m1", {19.2, 13.4}}, {"m2", {17.6, 11.2}}};

void mixes_have_the_jobs_and_the_memory_of_the_paper(void **)
{
    assert_int_equal(mixes().size(), 8);
    for (const mix &m : mixes()) {
        double without = 0, with = 0;
        for (const std::string &name : m.jobs) {
            without += table_5.at(name).first;
            with += table_5.at(name).second;
        }
        assert_int_equal(m.jobs.size(), m.name < "W5" ? 16 : 32);
        assert_int_equal(m.jobs.size(), m.large + m.small);
        assert_true(std::fabs(without - m.without) < 0.11 && std::fabs(with - m.with) < 0.11);
    }
}

void later_mixes_have_more_of_the_large_jobs(void **)
{
    for (size_t k = 1; k < 4; k++)
        assert_true(mixes()[k].large > mixes()[k - 1].large);
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(mixes()[k + 4].large, 2 * mixes()[k].large);
}

void jobs_come_in_no_order(void **)
{
    for (const mix &m : mixes())
        assert_false(std::is_sorted(m.jobs.begin(), m.jobs.end()));
}

double bytes_of(const workload &w, double scale)
{
    memory m(false);
    double bytes = 0;
    for (const program::buffer_facts &b : w.make(m, scaled_sizes(w, scale))->buffers())
        bytes += static_cast<double>(b.bytes);
    return bytes;
}

/* The arrays are the paper's but for a small one or two. */
void bytes_follow_the_scale(void **)
{
    for (const std::string &name : mix_tasks()) {
        const workload &w = mix_workload(name);
        const double small = bytes_of(w, 0.0002), larger = bytes_of(w, 0.0008);
        assert_true(larger > 3.8 * small && larger < 4.2 * small);
        assert_true(std::fabs(larger / (0.0008 * table_5.at(name).first * 1e9) - 1) < 0.2);
    }
}

void jobs_of_one_task_run_beside_each_other(void **)
{
    const workload &w = mix_workload("img");
    const task t(w, scaled_sizes(w, 0.0001), false, true, false);
    job a(t), b(t);
    device_memory memory(false, 0, device_memory::POOL);
    lane first(false, memory), second(false, memory);
    failure f;
    bool room[2] = {false, false};

    a.reset();
    b.reset();
    assert_true(t.wrong().empty() && !a.is_right() && !b.is_right());
    std::thread other([&] { room[1] = second.run(b, f); });
    room[0] = first.run(a, f);
    other.join();

    assert_true(room[0] && room[1] && f.take().empty());
    assert_true(a.is_right() && b.is_right());
    a.reset();
    assert_true(!a.is_right() && b.is_right());
    assert_true(memory.peak_bytes() >= t.bytes() && memory.peak_bytes() <= 2 * t.bytes());
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(mixes_have_the_jobs_and_the_memory_of_the_paper),
        cmocka_unit_test(later_mixes_have_more_of_the_large_jobs),
        cmocka_unit_test(jobs_come_in_no_order),
        cmocka_unit_test(bytes_follow_the_scale),
        cmocka_unit_test(jobs_of_one_task_run_beside_each_other),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
