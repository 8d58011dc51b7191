/*
 * Owns the METG of a run of acs-bench. Called by main after each measurement.
 */
#include "metg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

namespace bench {

double ideal_us(bool gpu, const pattern_settings &s, double kernel_us, uint32_t ctas, size_t tasks)
{
    if (kernel_us <= 0)
        return 0;
    if (!gpu)
        return kernel_us * static_cast<double>(tasks) / std::thread::hardware_concurrency();
    /* Of two lengths the difference: what a launch itself takes falls out. */
    const int64_t cycles = static_cast<int64_t>(kernel_us * task_cycles_per_us(true) * s.steps);
    const double steps_us = task_one_grid_us(2 * cycles, s.width * ctas) - task_one_grid_us(cycles, s.width * ctas);
    return steps_us * static_cast<double>(tasks) / (static_cast<double>(s.width) * s.steps);
}

double metg_of(std::vector<curve_point> curve, bool *below)
{
    *below = false;
    std::sort(curve.begin(), curve.end(),
              [](const curve_point &a, const curve_point &b) { return a.granularity_us > b.granularity_us; });
    for (size_t k = 0; k < curve.size(); k++) {
        if (curve[k].efficiency >= 0.5)
            continue;
        if (k == 0)
            return 0;
        const curve_point a = curve[k - 1], b = curve[k];
        const double part = (a.efficiency - 0.5) / (a.efficiency - b.efficiency);
        return std::exp(std::log(a.granularity_us) + part * (std::log(b.granularity_us) - std::log(a.granularity_us)));
    }
    *below = true;
    return 0;
}

template <class T> static void add_once(std::vector<T> &list, const T &item)
{
    if (std::find(list.begin(), list.end(), item) == list.end())
        list.push_back(item);
}

void metg::add(const std::string &pattern, double kernel_us, double ideal, double workers, size_t tasks,
               const std::vector<outcome> &outcomes)
{
    if (kernel_us <= 0)
        return;
    add_once(patterns_, pattern);
    for (const outcome &o : outcomes) {
        if (o.samples.empty() || !o.wrong.empty())
            continue;
        const double total = spread_of(o.samples, &sample::total_us).median;
        add_once(runners_, std::string(o.kind->name));
        curves_[pattern][o.kind->name].push_back({total * workers / static_cast<double>(tasks), ideal / total});
    }
}

void metg::print() const
{
    printf("\nMETG(50 %%), us\n  %-20s", "");
    for (const std::string &r : runners_)
        printf(" %13s", r.c_str());
    printf("\n");
    for (const std::string &p : patterns_) {
        printf("  %-20s", p.c_str());
        for (const std::string &r : runners_) {
            const auto curve = curves_.at(p).find(r);
            bool below = false;
            const double at = curve == curves_.at(p).end() ? 0 : metg_of(curve->second, &below);
            if (at > 0)
                printf(" %13.2f", at);
            else
                printf(" %13s", curve == curves_.at(p).end() ? "-" : (below ? "below all" : "above all"));
        }
        printf("\n");
    }
}

} // namespace bench
