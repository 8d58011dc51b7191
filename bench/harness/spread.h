/*
 * Which CPU a thread of a benchmark is kept on: the program's own on the first, the others far from each other, since
 * neighbouring CPUs may share a core though a virtual machine does not say so. The same for every runner.
 */
#ifndef BENCH_SPREAD_H
#define BENCH_SPREAD_H

#include <string>

namespace bench {

/** The CPU of thread `index` out of [first, count): first, then every fourth one, then those between. */
inline int spread_cpu(int first, int count, int index)
{
    const int step = 4, room = count - first;
    if (room < 2 * step)
        return first + index;
    for (int offset = 0; offset < step; offset++) {
        const int here = (room - offset + step - 1) / step;
        if (index < here)
            return first + offset + index * step;
        index -= here;
    }
    return first + index; /* more threads than CPUs */
}

/** ACS_CPUS for a program that is kept on `first`: others, sixteen at most, in the order in which rivals get them. */
inline std::string spread_list(int first, int count)
{
    std::string list;
    for (int index = 1; index < count - first && index <= 16; index++)
        list += (index > 1 ? "," : "") + std::to_string(spread_cpu(first, count, index));
    return list;
}

} // namespace bench

#endif
