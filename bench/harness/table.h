/*
 * The table that a person reads: what each runner needed, beside the bound.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <string>
#include <vector>

#include "report.h"

namespace bench {

struct table_head {
    std::string title;
    size_t ops;
    uint64_t edges; /* 0 with many ops: not looked at */
    uint32_t depth;
    bounds bound;
};

/** One line per runner: µs per op (median, least, most), of it submission, factor over the first runner, setting. */
void print_table(const table_head &head, const std::vector<outcome> &outcomes);
/** Without zeros at the end. */
std::string short_number(double x);

} // namespace bench

#endif
