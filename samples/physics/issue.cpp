/*
 * Owns the interleaving of several scenes' programs. Called by the run loop, once per environment step; keeps no thread
 * and waits only where a program waits for its counts.
 */
#include "program.h"
#include "runner.h"

void launch_counts::add(const launch_counts &more)
{
    kernels += more.kernels;
    copies += more.copies;
    segments += more.segments;
    sections += more.sections;
    for (int k = 0; k < 7; k++)
        ctas[k] += more.ctas[k];
}

issue::issue(std::vector<const scene *> scenes, order o, runner &r, actor a) : order_(o), runner_(r)
{
    programs_.reserve(scenes.size());
    for (const scene *s : scenes)
        programs_.emplace_back(*s, a, r.decides());
}

void issue::send(const op &o)
{
    static const uint32_t most[6] = {1, 4, 9, 19, 39, 79};
    int k = 0;

    runner_.launch(o);
    if (!o.kernel) {
        step_.copies++;
        return;
    }
    while (k < 6 && o.grid > most[k])
        k++;
    step_.ctas[k]++;
    step_.kernels++;
    step_.sections += o.section_begins && runner_.has_sections();
    step_.segments += o.segments;
}

/* @return how many ops it sent: one, or all of a section. */
size_t issue::send_turn(const std::vector<op> &ops, size_t first)
{
    size_t k = first;

    while (ops[k].section && !ops[k].section_ends)
        send(ops[k++]);
    send(ops[k]);
    return k + 1 - first;
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
    const launch_counts *const same = runner_.step_begins();

    step_ = launch_counts();
    if (same) {
        step_ = *same;
    } else {
        send_all();
        runner_.step_ends(step_);
    }
    counts.add(step_);
}

void issue::send_all()
{
    const bool footprints = runner_.footprints();

    if (order_ == ORDER_SCENE) {
        for (program &p : programs_)
            while (p.advance(runner_, footprints))
                for (const op &o : p.ready)
                    send(o);
        return;
    }
    /* One op of each scene in turn, or the ops of one section, which stay together. A scene whose portion is used up
       asks for the next one when its turn comes. */
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
                place[k] += send_turn(p.ready, place[k]);
        }
}
