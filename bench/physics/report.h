/*
 * The figures as tables for people, and as JSON.
 */
#ifndef PHYSICS_BENCH_REPORT_H
#define PHYSICS_BENCH_REPORT_H

#include "measure.h"

/** What a list of times comes to. */
struct spread {
    double p50, p99, mean, min, max;
};
spread spread_of(std::vector<double> times);

void report_table(const bench_settings &s, const bench_table &t);

/** What a stranger needs to know about the machine; on one line each, empty where unknown. */
struct machine_facts {
    std::string gpu, driver, cuda_driver, cuda_runtime, cpu, date, commit;
    long cpus;
    std::vector<std::string> options; /* ACS_NAME=value */
};
machine_facts machine_describe(bool gpu);

/** @return false if the file cannot be written; the reason is on standard error. */
bool report_json(const bench_settings &s, const std::vector<bench_table> &tables, int argc, char **argv);

#endif
