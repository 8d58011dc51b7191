/*
 * acs-micro: command line, pinning, and the groups one after another. See micro.h for what is measured.
 *
 *   acs-micro [--json FILE] [--bursts N] [--cpu N] [--only GROUP] [--quick]
 */
#include "micro.h"

#include "progress.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char g_usage[] =
    "usage: acs-micro [--json FILE] [--bursts N] [--cpu N] [--only parts|caller|insert|life] [--quick]\n"
    "  --json FILE   also write figures, ratios and the machine to FILE, such as acs-micro.json\n"
    "  --bursts N    bursts per figure, of which the median is taken (default 1000)\n"
    "  --cpu N       stay on one CPU (the figures beside a worker need two)\n"
    "  --only GROUP  one group\n"
    "  --quick       few bursts, small windows: does it run?\n";

static int stay_on_cpu(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

/* Nonzero: bad usage. */
static int parse(int argc, char **argv, micro_options *options, const char **json)
{
    static const struct option rows[] = {
        {"json", required_argument, NULL, 'j'}, {"bursts", required_argument, NULL, 'b'},
        {"cpu", required_argument, NULL, 'c'},  {"only", required_argument, NULL, 'o'},
        {"quick", no_argument, NULL, 'q'},      {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "", rows, NULL)) != -1) {
        if (c == 'j')
            *json = optarg;
        else if (c == 'b')
            options->bursts = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'c' && stay_on_cpu(atoi(optarg)))
            return fprintf(stderr, "acs-micro: cannot stay on CPU %s\n", optarg);
        else if (c == 'o')
            options->only = optarg;
        else if (c == 'q')
            options->quick = true;
        else if (c == '?')
            return 1;
    }
    if (options->quick)
        options->bursts = 20;
    return optind < argc || options->bursts == 0 || options->bursts > MICRO_SAMPLES_MAX;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const micro_options *);
        int figures, quick; /* that it has, and with --quick */
    } groups[] = {{"parts", micro_parts, 3, 3}, {"caller", micro_caller, 8, 8}, {"insert", micro_insert, 60, 36},
                {"life", micro_life, 90, 90}};
    micro_options options = {.bursts = 1000};
    const char *json = NULL;

    if (parse(argc, argv, &options, &json)) {
        fputs(g_usage, stderr);
        return 2;
    }
    /* For the default context of ACS_LAUNCH, before any thread exists. */
    if (setenv("ACS_BACKEND", "host", 0) || setenv("ACS_WORKERS", "0", 0))
        return 1;
    micro_print_machine();
    int figures = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (!options.only || !strcmp(options.only, groups[i].name))
            figures += options.quick ? groups[i].quick : groups[i].figures;
    bench_interrupts_catch();
    bench_progress_begin("acs-micro", figures);
    for (size_t i = 0; i < sizeof groups / sizeof *groups && !bench_interrupted(); i++)
        if ((!options.only || !strcmp(options.only, groups[i].name)) && groups[i].run(&options))
            return 1;
    bench_progress_hide();
    int error = json ? micro_write_json(json, argc, argv) : 0;
    if (error)
        fprintf(stderr, "acs-micro: %s: %s\n", json, strerror(error));
    if (bench_interrupted())
        fputs("acs-micro: interrupted; the figures above are complete, the others can be had by --only GROUP\n", stderr);
    return error ? 1 : bench_interrupted() ? BENCH_INTERRUPTED : 0;
}
