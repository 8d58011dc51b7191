/*
 * The traces of acs-memory: made from a seed, cut short, written and read back; logs that are wrong, by line; what passes
 * notice. Runs on the CPU; times nothing.
 */
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <unistd.h>

#include "cmocka.hpp"

#include "allocation_trace.h"
#include "passes.h"

using namespace bench;

namespace {

const char HEADER[] = "event,block,bytes,memory,op,file,line\n";

/* A file of this text, gone with the object. */
class scratch {
public:
    explicit scratch(const std::string &text)
    {
        char name[] = "/tmp/acs-memory-test-XXXXXX";
        const int file = mkstemp(name);
        assert_true(file >= 0);
        close(file);
        path = name;
        std::ofstream(path) << text;
    }
    ~scratch() { unlink(path.c_str()); }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    std::string path;
};

bool equal(const allocation_trace &a, const allocation_trace &b)
{
    return a.bytes == b.bytes && a.events.size() == b.events.size() &&
           std::equal(a.events.begin(), a.events.end(), b.events.begin(),
                      [](const allocation_event &x, const allocation_event &y) {
                          return x.is_malloc == y.is_malloc && x.block == y.block;
                      });
}

/* Every block is one malloc, then one free, and blocks have their numbers in the order of their mallocs. */
bool paired(const allocation_trace &t)
{
    std::vector<int> state(t.pairs());
    uint32_t next = 0;
    for (const allocation_event &e : t.events) {
        if (e.block >= t.pairs() || state[e.block] != (e.is_malloc ? 0 : 1) || (e.is_malloc && e.block != next++))
            return false;
        state[e.block]++;
    }
    return std::all_of(state.begin(), state.end(), [](int s) { return s == 2; });
}

size_t most_live(const allocation_trace &t)
{
    size_t live = 0, most = 0;
    for (const allocation_event &e : t.events) {
        live += e.is_malloc ? 1 : static_cast<size_t>(-1);
        most = std::max(most, live);
    }
    return most;
}

synthetic_settings settings_of(uint64_t seed, uint32_t pairs)
{
    synthetic_settings s;
    s.seed = seed;
    s.pairs = pairs;
    s.live = 16;
    return s;
}

const synthetic_kind &kind_of(const std::string &name)
{
    for (const synthetic_kind &k : synthetic_kinds())
        if (name == k.name)
            return k;
    fail_msg("there is no trace %s", name.c_str());
    return synthetic_kinds().front();
}

void same_seed_gives_the_same_trace_and_another_seed_another(void **)
{
    for (const synthetic_kind &k : synthetic_kinds()) {
        assert_true(equal(k.make(settings_of(7, 300)), k.make(settings_of(7, 300))));
        if (std::string(k.name) != "same")
            assert_false(equal(k.make(settings_of(7, 300)), k.make(settings_of(8, 300))));
    }
}

void every_malloc_of_a_trace_has_its_free_behind_it(void **)
{
    for (const synthetic_kind &k : synthetic_kinds())
        for (uint32_t pairs : {1u, 2u, 3u, 64u, 1000u}) {
            const allocation_trace t = k.make(settings_of(pairs, pairs));
            assert_true(paired(t));
            assert_true(t.pairs() >= (std::string(k.name) == "large" ? (pairs + 7) / 8 : pairs));
        }
}

void sizes_and_live_blocks_are_as_said(void **)
{
    const struct {
        const char *name;
        uint64_t least, most;
        size_t live;
    } said[] = {{"same", 64 << 10, 64 << 10, 1}, {"cycle", 256, 1 << 20, 4}, {"random", 256, 1 << 20, 16},
                {"large", 1 << 20, 64 << 20, 4}, {"layers", 4 << 10, 8 << 20, 18}, {"jobs", 4 << 10, 4 << 20, 3}};
    for (const auto &s : said) {
        const allocation_trace t = kind_of(s.name).make(settings_of(3, 2000));
        const auto ends = std::minmax_element(t.bytes.begin(), t.bytes.end());
        assert_in_range(*ends.first, s.least, s.most);
        assert_in_range(*ends.second, s.least, s.most);
        assert_int_equal(most_live(t), s.live);
    }
}

void peak_is_of_blocks_that_are_live_at_once(void **)
{
    allocation_trace t;
    const uint32_t a = t.add_malloc(100), b = t.add_malloc(50);
    t.add_free(a);
    t.add_free(t.add_malloc(70));
    t.add_free(b);
    assert_int_equal(peak_live_bytes(t), 150);
}

void trace_cut_short_frees_what_is_live(void **)
{
    for (const synthetic_kind &k : synthetic_kinds()) {
        const allocation_trace t = k.make(settings_of(2, 400));
        for (size_t pairs : {size_t{1}, size_t{17}, t.pairs() - 1, t.pairs(), t.pairs() + 5}) {
            const allocation_trace part = shortened(t, pairs);
            assert_true(paired(part));
            assert_int_equal(part.pairs(), std::min(pairs, t.pairs()));
            assert_true(std::equal(part.bytes.begin(), part.bytes.end(), t.bytes.begin()));
        }
    }
}

void what_is_written_is_read_back(void **)
{
    for (const synthetic_kind &k : synthetic_kinds()) {
        const scratch file("");
        const allocation_trace written = k.make(settings_of(5, 200));
        allocation_trace read;
        assert_string_equal(write_trace(file.path, written).c_str(), "");
        assert_string_equal(read_trace(file.path, &read).c_str(), "");
        assert_true(equal(read, written));
        assert_string_equal(read.note.c_str(), "");
    }
}

void number_may_come_again_after_its_free(void **)
{
    const scratch file(std::string(HEADER) + "malloc,140000,64,device,1,a.c,3\nfree,140000,64,device,2,a.c,4\n"
                                             "malloc,140000,32,device,3,a.c,3\nfree,140000,0,device,4,a.c,4\n");
    allocation_trace t;
    assert_string_equal(read_trace(file.path, &t).c_str(), "");
    assert_int_equal(t.pairs(), 2);
    assert_int_equal(t.bytes[1], 32);
    assert_true(paired(t));
}

void host_blocks_and_blocks_without_a_free_are_noted(void **)
{
    const scratch file(std::string(HEADER) + "malloc,1,64,device,1,\"a, b.cu\",3\r\nmalloc,2,64,host,2,a.c,3\r\n"
                                             "malloc,3,8,device,3,a.c,3\r\nfree,1,64,device,4,a.c,4");
    allocation_trace t;
    assert_string_equal(read_trace(file.path, &t).c_str(), "");
    assert_int_equal(t.pairs(), 2);
    assert_true(paired(t));
    assert_string_equal(t.note.c_str(), "never freed in the log, so freed at the end: 1; "
                                        "of host memory, so left out: 1");
}

void bad_log_is_refused_with_its_line(void **)
{
    const std::string good = "malloc,1,64,device,1,a.c,3\n";
    const struct {
        std::string text;
        const char *line, *why;
    } bad[] = {
        {"", ":1:", "is empty"},
        {good, ":1:", "'malloc,1,64,device,1,a.c,3' is not the header"},
        {HEADER + good + "malloc,2,64,device\n", ":3:", "has 4 fields"},
        {HEADER + good + "\n", ":3:", "has 1 fields"},
        {HEADER + good + "realloc,2,64,device,1,a.c,3\n", ":3:", "'realloc' is not an event"},
        {HEADER + good + "malloc,x2,64,device,1,a.c,3\n", ":3:", "'x2' is not the number of a block"},
        {HEADER + good + "malloc,-2,64,device,1,a.c,3\n", ":3:", "'-2' is not the number of a block"},
        {HEADER + good + "malloc,99999999999999999999,64,device,1,a.c,3\n", ":3:", "is not the number of a block"},
        {HEADER + good + "malloc,2,64k,device,1,a.c,3\n", ":3:", "'64k' is not a number of bytes"},
        {HEADER + good + "malloc,2,281474976710657,device,1,a.c,3\n", ":3:", "is not a number of bytes"},
        {HEADER + good + "malloc,2,0,device,1,a.c,3\n", ":3:", "block 2 has 0 bytes"},
        {HEADER + good + "malloc,2,64,gpu,1,a.c,3\n", ":3:", "'gpu' is not a kind of memory"},
        {HEADER + good + good, ":3:", "block 1 is there already"},
        {HEADER + good + "free,2,64,device,1,a.c,3\n", ":3:", "block 2 is freed, and is not there"},
        {HEADER + good + "free,1,64,host,1,a.c,3\n", ":3:", "block 1 is not of host memory"},
        {HEADER + good + "free,1,64,device,1,a.c,3\nfree,1,64,device,1,a.c,3\n", ":4:", "is not there"},
        {HEADER, ":1:", "without a block of device memory"},
    };
    for (const auto &b : bad) {
        const scratch file(b.text);
        allocation_trace t;
        t.name = "before";
        const std::string wrong = read_trace(file.path, &t);
        assert_true(wrong.find(file.path + b.line) == 0);
        if (wrong.find(b.why) == std::string::npos)
            fail_msg("'%s' does not say '%s'", wrong.c_str(), b.why);
        assert_string_equal(t.name.c_str(), "before");
    }
}

void file_that_is_not_there_is_said(void **)
{
    allocation_trace t;
    assert_true(read_trace("/nowhere/log.csv", &t).find("/nowhere/log.csv: cannot be read") == 0);
    assert_true(write_trace("/nowhere/log.csv", t).find("/nowhere/log.csv: cannot be written") == 0);
}

/* A bad allocator over one array: gives the same block twice, or none from some call on. */
class bad_way : public way {
public:
    explicit bad_way(int most) : most_(most) {}
    ~bad_way() override { left = taken_; }
    void *take(size_t) override { return taken_ < most_ ? &room_[64 * taken_++ / 2] : nullptr; }
    void give(void *) override { taken_--; }
    void use(void *, size_t) override {}
    std::string finish() override { return ""; }
    uint64_t reserved_bytes() override { return 0; }
    static int left; /* blocks that the latest object was not given back */

private:
    char room_[4096];
    int taken_ = 0, most_;
};
int bad_way::left = 0;

way_outcome play_bad(const allocation_trace &t, int most)
{
    const way_kind kind = {"bad", "", true, true, 0,
                           [most](const machine &) { return std::unique_ptr<way>(new bad_way(most)); }};
    pass_settings s;
    s.repetitions = 3;
    return play(t, {&kind}, s)[0];
}

allocation_trace two_blocks_of_64()
{
    allocation_trace t;
    t.add_malloc(64);
    t.add_malloc(64);
    t.add_free(0);
    t.add_free(1);
    return t;
}

void blocks_that_overlap_are_wrong(void **)
{
    assert_string_equal(play_bad(two_blocks_of_64(), 2).wrong.c_str(), "a block lies in one that has not been freed");
}

void refused_block_is_wrong_and_the_others_go_back(void **)
{
    const way_outcome o = play_bad(two_blocks_of_64(), 1);
    assert_string_equal(o.wrong.c_str(), "block 1 of 64 bytes was refused");
    assert_true(o.calls_us.empty() && !o.ran());
    assert_int_equal(bad_way::left, 0);
}

void way_of_another_machine_is_left_out(void **)
{
    for (const way_kind &k : way_kinds()) {
        if (!k.lacking) /* would ask the GPU */
            assert_int_equal(why_left_out(k, true).empty(), k.gpu);
        assert_int_equal(why_left_out(k, false).empty(), k.host);
    }
}

void quantiles_and_medians_are_of_sorted_values(void **)
{
    std::vector<double> values;
    for (int k = 0; k < 100; k++)
        values.push_back((k * 37) % 100);
    assert_true(quantile_of(values, 0.99) > 98.5);
    assert_true(median_of({3, 1, 2}) > 1.5 && median_of({3, 1, 2}) < 2.5);
}

} // namespace

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_trace_and_another_seed_another),
        cmocka_unit_test(every_malloc_of_a_trace_has_its_free_behind_it),
        cmocka_unit_test(sizes_and_live_blocks_are_as_said),
        cmocka_unit_test(peak_is_of_blocks_that_are_live_at_once),
        cmocka_unit_test(trace_cut_short_frees_what_is_live),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(number_may_come_again_after_its_free),
        cmocka_unit_test(host_blocks_and_blocks_without_a_free_are_noted),
        cmocka_unit_test(bad_log_is_refused_with_its_line),
        cmocka_unit_test(file_that_is_not_there_is_said),
        cmocka_unit_test(blocks_that_overlap_are_wrong),
        cmocka_unit_test(refused_block_is_wrong_and_the_others_go_back),
        cmocka_unit_test(way_of_another_machine_is_left_out),
        cmocka_unit_test(quantiles_and_medians_are_of_sorted_values),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
