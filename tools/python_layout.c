/*
 * Writes python/acs/_layout.py to standard output: what the Python module needs to know of include/acs.h, as the compiler
 * sees it. Run by hand after a change of the header; a test compares the committed file with what this writes.
 */
#include "acs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define NUMBER(field, env, def, lo, hi, unit, help)                                                                     \
    printf("    \"%s\": (\"number\", %zu, 8, None),\n", #field, offsetof(acs_options, field));
#define CHOICE(field, env, def, names, help)                                                                           \
    printf("    \"%s\": (\"choice\", %zu, 4, \"%s\"),\n", #field, offsetof(acs_options, field), names);
#define TEXT(field, env, def, form, help)                                                                              \
    printf("    \"%s\": (\"text\", %zu, %d, None),\n", #field, offsetof(acs_options, field), ACS_OPTION_TEXT_BYTES);

static void print_options(void)
{
    printf("OPTIONS_BYTES = %zu\n", sizeof(acs_options));
    printf("OPTIONS: dict[str, tuple[str, int, int, str | None]] = {\n");
#define ACS_OPT_NUMBER NUMBER
#define ACS_OPT_CHOICE CHOICE
#define ACS_OPT_TEXT TEXT
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_CHOICE
#undef ACS_OPT_TEXT
    printf("}\n\n");
}

static void print_statuses(void)
{
#define STATUS(name, value, text) printf("%s = %d\n", #name, value);
    ACS_STATUS_TABLE(STATUS)
#undef STATUS
    printf("\n");
}

#define SIZE(type) printf("    \"%s\": %zu,\n", #type, sizeof(type));

static void print_sizes(void)
{
    printf("SIZES: dict[str, int] = {\n");
    SIZE(acs_dim3)
    SIZE(acs_grid)
    SIZE(acs_site)
    SIZE(acs_error)
    SIZE(acs_kernel)
    SIZE(acs_arg)
    SIZE(acs_attributes)
    SIZE(acs_uses)
    SIZE(acs_segment)
    SIZE(acs_launch_params)
    SIZE(acs_op_params)
    SIZE(acs_group_params)
    SIZE(acs_group_report)
    SIZE(acs_footprint_input)
    SIZE(acs_variant)
    SIZE(acs_launch_shape)
    SIZE(acs_share_info)
    SIZE(acs_measure_params)
    SIZE(acs_measured)
    printf("}\n\n");
}

#define COUNTER(field) {#field, offsetof(acs_statistics, field), sizeof(((acs_statistics *)0)->field) / 8}

/* False: a counter is missing here. */
static bool print_statistics(void)
{
    static const struct {
        const char *name;
        size_t offset, count;
    } counters[] = {
        COUNTER(queued), COUNTER(retired), COUNTER(failed), COUNTER(skipped), COUNTER(kernels), COUNTER(copies),
        COUNTER(fills), COUNTER(host_functions), COUNTER(calls), COUNTER(edges), COUNTER(joins), COUNTER(same_slot),
        COUNTER(waits_sent), COUNTER(waits_implied), COUNTER(waits_complete), COUNTER(marks), COUNTER(submissions),
        COUNTER(caller_waits), COUNTER(barriers), COUNTER(window_high), COUNTER(running_high), COUNTER(levels),
        COUNTER(slots_used), COUNTER(issued_by), COUNTER(bundles), COUNTER(bundles_refused), COUNTER(launched_unfit),
        COUNTER(launched_few), COUNTER(launched_refused), COUNTER(captured), COUNTER(copies_as_kernels),
        COUNTER(nodes_built), COUNTER(memory_live), COUNTER(memory_reserved), COUNTER(memory_peak),
        COUNTER(memory_obtained), COUNTER(memory_resting), COUNTER(memory_versions), COUNTER(memory_homed),
        COUNTER(memory_early), COUNTER(memory_spilled), COUNTER(memory_returned), COUNTER(memory_moved),
        COUNTER(transfers), COUNTER(transfer_bytes), COUNTER(calls_as_kernels), COUNTER(ran_high), COUNTER(ran_ns),
        COUNTER(span_ns), COUNTER(idle_ns), COUNTER(replays), COUNTER(replayed), COUNTER(unmatched),
        COUNTER(not_run), COUNTER(undeclared), COUNTER(unknown_memory), COUNTER(shares), COUNTER(shares_ignored),
        COUNTER(variants), COUNTER(trials)};
    size_t bytes = sizeof(size_t);
    printf("STATISTICS_BYTES = %zu\n", sizeof(acs_statistics));
    printf("STATISTICS: tuple[tuple[str, int, int], ...] = (\n");
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        printf("    (\"%s\", %zu, %zu),\n", counters[i].name, counters[i].offset, counters[i].count);
        bytes += 8 * counters[i].count;
    }
    printf(")\n");
    return bytes == sizeof(acs_statistics);
}

int main(void)
{
    printf("\"\"\"What include/acs.h says: numbers and places of fields. Made by tools/python_layout.c.\"\"\"\n\n");
    printf("VERSION = \"%s\"\n\n", ACS_VERSION_STRING);
    print_statuses();
    print_options();
    print_sizes();
    const bool complete = print_statistics();
    if (!complete)
        fprintf(stderr, "python_layout: a counter of acs_statistics is missing\n");
    return !complete || fflush(stdout) != 0;
}
