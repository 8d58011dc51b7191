/*
 * Owns the workloads' contents. Called by the program before anything is measured.
 *
 * The paper says how many jobs a workload has, and in its Table 3 a ratio of large to small; which jobs were picked it
 * does not. Its Table 4 does: sums of all jobs' memory, without and with its memory manager, for which Table 5 leaves
 * two or three choices each (and W5 to W8 have twice the sums of W1 to W4). Taken here is the one that is most even. So
 * 2:1 is 10:6, and 5:1 is 14:2. The order is by chance, the same each time.
 */
#include "mix.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace bench {

namespace {

struct choice {
    unsigned m1, m2, bs, img, vec, ml, dl;
    double without, with;
};
const choice choices[] = {{2, 2, 2, 2, 2, 2, 4, 166.5, 127.8},
                          {3, 3, 2, 2, 2, 2, 2, 189.2, 143.0},
                          {3, 3, 3, 3, 1, 1, 2, 205.6, 157.1},
                          {4, 4, 3, 3, 1, 0, 1, 232.3, 173.9}};

mix make_mix(unsigned number)
{
    const choice &c = choices[number % 4];
    const unsigned times = number < 4 ? 1 : 2;
    const std::pair<const char *, unsigned> all[] = {{"m1", c.m1},   {"m2", c.m2}, {"bs", c.bs}, {"img", c.img},
                                                     {"vec", c.vec}, {"ml", c.ml}, {"dl", c.dl}};
    mix m = {"W" + std::to_string(number + 1), times * (c.m1 + c.m2 + c.bs + c.img), times * (c.vec + c.ml + c.dl), {},
             times * c.without, times * c.with};
    for (const auto &task : all)
        m.jobs.insert(m.jobs.end(), times * task.second, task.first);
    std::mt19937 random(number + 1); /* std::shuffle's order is each library's own */
    for (size_t k = m.jobs.size(); k > 1; k--)
        std::swap(m.jobs[k - 1], m.jobs[random() % k]);
    return m;
}

} // namespace

const std::vector<mix> &mixes()
{
    static const std::vector<mix> list = [] {
        std::vector<mix> made;
        for (unsigned number = 0; number < 8; number++)
            made.push_back(make_mix(number));
        return made;
    }();
    return list;
}

const std::vector<std::string> &mix_tasks()
{
    static const std::vector<std::string> names = {"m1", "m2", "bs", "img", "vec", "ml", "dl"};
    return names;
}

const workload &mix_workload(std::string_view task)
{
    const std::vector<workload> &all = workloads();
    return *std::find_if(all.begin(), all.end(), [&](const workload &w) { return w.name == task; });
}

sizes scaled_sizes(const workload &w, double scale)
{
    sizes s = sizes_of_preset(w, "paper");
    for (const char *name : {"n", "rows"})
        if (s.has(name))
            s.set(name, static_cast<uint64_t>(std::max(1.0, std::round(static_cast<double>(s[name]) * scale))));
    if (s.has("width")) { /* a multiple of 8 */
        const double eighths = static_cast<double>(s["width"]) * std::sqrt(scale) / 8;
        s.set("width", 8 * static_cast<uint64_t>(std::max(2.0, std::round(eighths))));
    }
    return s;
}

} // namespace bench
