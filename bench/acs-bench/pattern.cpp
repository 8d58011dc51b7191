/*
 * Owns the patterns: who reads what, and nothing of how it runs. Called by acs-bench; the counts of tasks and
 * dependencies are held against the published ones by a test.
 */
#include "pattern.h"

#include <algorithm>
#include <cstdlib>

namespace bench {

namespace {

/* Points of a step that have a task. */
struct row {
    int64_t first, count;
    bool holds(int64_t p) const { return p >= first && p < first + count; }
};

row row_all(const pattern_settings &s, int64_t)
{
    return {0, s.width};
}

row row_dom(const pattern_settings &s, int64_t t)
{
    const int64_t w = s.width, steps = s.steps;
    return {std::max<int64_t>(0, t + w - steps), std::min({w, t + 1, steps - t})};
}

row row_tree(const pattern_settings &s, int64_t t)
{
    return {0, t < 31 ? std::min<int64_t>(s.width, int64_t(1) << t) : int64_t(s.width)};
}

typedef std::vector<int64_t> points;

points reads_none(const pattern_settings &, int64_t, int64_t)
{
    return {};
}

points reads_self(const pattern_settings &, int64_t, int64_t p)
{
    return {p};
}

points reads_stencil(const pattern_settings &, int64_t, int64_t p)
{
    return {p - 1, p, p + 1};
}

points reads_periodic(const pattern_settings &s, int64_t, int64_t p)
{
    const int64_t w = s.width;
    return {(p + w - 1) % w, p, (p + 1) % w};
}

points reads_dom(const pattern_settings &, int64_t, int64_t p)
{
    return {std::max<int64_t>(0, p - 1), p};
}

points reads_tree(const pattern_settings &, int64_t, int64_t p)
{
    return {p / 2};
}

points reads_fft(const pattern_settings &s, int64_t t, int64_t p)
{
    int64_t n = 0;
    while ((int64_t(1) << n) < s.width)
        n++;
    const int64_t step = int64_t(1) << (n > 0 ? (t + n - 1) % n : 0);
    return {p - step, p, p + step};
}

points reads_nearest(const pattern_settings &s, int64_t, int64_t p)
{
    const int64_t r = s.radix;
    points list;
    for (int64_t d = p - r / 2; d <= p + (r - 1) / 2; d++)
        list.push_back(d);
    return list;
}

points reads_spread(const pattern_settings &s, int64_t t, int64_t p)
{
    const int64_t w = s.width, r = s.radix;
    points list;
    for (int64_t i = 0; i < r; i++)
        list.push_back((p + i * w / r + (i > 0 ? t % s.period : 0)) % w);
    return list;
}

points reads_all(const pattern_settings &s, int64_t, int64_t)
{
    points list;
    for (int64_t d = 0; d < s.width; d++)
        list.push_back(d);
    return list;
}

struct task_bench {
    const char *name;
    row (*points_of)(const pattern_settings &, int64_t t);
    points (*reads)(const pattern_settings &, int64_t t, int64_t p);
};

const task_bench grids[] = {
    {"trivial", row_all, reads_none},
    {"no_comm", row_all, reads_self},
    {"stencil_1d", row_all, reads_stencil},
    {"stencil_1d_periodic", row_all, reads_periodic},
    {"dom", row_dom, reads_dom},
    {"tree", row_tree, reads_tree},
    {"fft", row_all, reads_fft},
    {"nearest", row_all, reads_nearest},
    {"spread", row_all, reads_spread},
    {"all_to_all", row_all, reads_all},
};

std::vector<task_access> grid_tasks(const task_bench &g, const pattern_settings &s, uint32_t *cells)
{
    const uint32_t fields = s.fields ? s.fields : s.steps;
    std::vector<task_access> list;

    *cells = fields * s.width;
    for (int64_t t = 0; t < s.steps; t++) {
        const row now = g.points_of(s, t);
        const row past = t > 0 ? g.points_of(s, t - 1) : row{0, 0};
        for (int64_t p = now.first; p < now.first + now.count; p++) {
            task_access a = {static_cast<uint32_t>(t % fields * s.width + p), false, false, {}};
            points from = g.reads(s, t, p);
            std::sort(from.begin(), from.end());
            from.erase(std::unique(from.begin(), from.end()), from.end());
            for (int64_t d : from)
                if (past.holds(d))
                    a.reads.push_back(static_cast<uint32_t>((t - 1) % fields * s.width + d));
            list.push_back(a);
        }
    }
    return list;
}

/* Below `most`, from seed and place. */
uint32_t draw(uint64_t seed, uint64_t place, uint32_t most)
{
    return static_cast<uint32_t>(random_unit(seed, place) * most);
}

/* Three different cells: one written, two read. */
task_access random_task(uint64_t seed, uint64_t k, uint32_t cells)
{
    const uint32_t out = draw(seed, 3 * k, cells);
    uint32_t a = draw(seed, 3 * k + 1, cells - 1), b = draw(seed, 3 * k + 2, cells - 2);

    a += a >= out;
    b += b >= std::min(a, out);
    b += b >= std::max(a, out);
    return {out, false, false, {a, b}};
}

/* "name:N": the N, at least `least`; 0 if it is not that. */
uint32_t number_after(const std::string &text, const char *name, uint32_t least)
{
    const std::string head = std::string(name) + ":";
    char *end = nullptr;
    if (text.compare(0, head.size(), head) != 0)
        return 0;
    const unsigned long n = strtoul(text.c_str() + head.size(), &end, 10);
    return *end || n < least || n > 1000000 ? 0 : static_cast<uint32_t>(n);
}

std::vector<task_access> other_tasks(const pattern_settings &s, uint32_t *cells)
{
    const uint32_t n = s.width * s.steps;
    const uint32_t chains = number_after(s.name, "chains", 1), buffers = number_after(s.name, "buffers", 1);
    const uint32_t random = std::max(number_after(s.name, "random", 3), number_after(s.name, "fresh", 3));
    std::vector<task_access> list;

    *cells = s.name == "independent" ? n : std::max({chains, buffers, random});
    for (uint32_t k = 0; k < n && *cells > 0; k++)
        if (random)
            list.push_back(random_task(s.seed, k, random));
        else if (*cells == n && !chains && !buffers)
            list.push_back({k, false, true, {}});
        else
            list.push_back({chains ? k % chains : draw(s.seed, k, buffers), true, false, {}});
    return list;
}

} // namespace

std::vector<task_access> pattern_tasks(const pattern_settings &s, uint32_t *cells)
{
    for (const task_bench &g : grids)
        if (s.name == g.name)
            return grid_tasks(g, s, cells);
    return other_tasks(s, cells);
}

const char *pattern_help()
{
    return "patterns: trivial, no_comm, stencil_1d, stencil_1d_periodic, dom, tree, fft, nearest, spread, all_to_all (Task\n"
           "  Bench); independent (no footprint at all); chains:K (K chains, in turn); buffers:K (each task updates one\n"
           "  of K at random); random:D (2 reads, 1 write of D buffers); fresh:D (the same, another one each repetition)\n";
}

bool pattern_varies(const std::string &name)
{
    return name.compare(0, 6, "fresh:") == 0;
}

} // namespace bench
