/*
 * Owns the interleaving of several scenes' programs. Called by the run loop, once per environment step; keeps no thread
 * and waits only where a program waits for its counts.
 */
#include "program.h"
#include "runner.h"

issue::issue(std::vector<const scene *> scenes, order o, runner &r, actor a) : order_(o), runner_(r)
{
    programs_.reserve(scenes.size());
    for (const scene *s : scenes)
        programs_.emplace_back(*s, a);
}

void issue::send(const op &o)
{
    static const uint32_t most[6] = {1, 4, 9, 19, 39, 79};
    int k = 0;

    runner_.launch(o);
    if (!o.kernel) {
        counts.copies++;
        return;
    }
    while (k < 6 && o.grid > most[k])
        k++;
    counts.ctas[k]++;
    counts.kernels++;
    counts.segments += o.segments;
}

void issue::prime()
{
    for (program &p : programs_) {
        p.prime(runner_.footprints());
        for (const op &o : p.ready)
            runner_.launch(o);
    }
}

void issue::step()
{
    const bool footprints = runner_.footprints();

    if (order_ == ORDER_SCENE) {
        for (program &p : programs_)
            while (p.advance(runner_, footprints))
                for (const op &o : p.ready)
                    send(o);
        return;
    }
    /* One op of each scene in turn; a scene whose portion is used up asks for the next one when its turn comes. */
    std::vector<size_t> place(programs_.size(), 0);
    std::vector<bool> over(programs_.size(), false);
    for (program &p : programs_)
        p.ready.clear();
    for (size_t left = programs_.size(); left > 0;)
        for (size_t k = 0; k < programs_.size(); k++) {
            program &p = programs_[k];
            while (!over[k] && place[k] == p.ready.size()) {
                place[k] = 0;
                over[k] = !p.advance(runner_, footprints);
                left -= over[k];
            }
            if (!over[k])
                send(p.ready[place[k]++]);
        }
}
