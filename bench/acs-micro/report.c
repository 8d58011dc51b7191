/*
 * Samples, figures and ratios of acs-micro, as text and as JSON. Called by the groups and by main, from one thread; it
 * measures nothing itself but the cost of the clock.
 */
#include "micro.h"

#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { FIGURES_MAX = 256, TEXT_BYTES = 256 };

typedef struct figure {
    char name[MICRO_NAME_BYTES];
    double median, p10, p90, edges;
    uint32_t samples;
} figure;

typedef struct ratio {
    char name[MICRO_NAME_BYTES];
    double value;
} ratio;

static figure g_figures[FIGURES_MAX];
static ratio g_ratios[FIGURES_MAX];
static uint32_t g_figure_count, g_ratio_count;

/* Nanoseconds between two readings of the clock with nothing between them: the least of many. */
static uint64_t clock_cost(void)
{
    static uint64_t least = UINT64_MAX;
    static bool known;
    for (int i = 0; !known && i < 1000; i++) {
        uint64_t start = acs_clock_ns(), cost = acs_clock_ns() - start;
        least = cost < least ? cost : least;
    }
    known = true;
    return least;
}

void micro_samples_clear(micro_samples *samples)
{
    (void)clock_cost();
    samples->count = 0;
}

void micro_samples_add(micro_samples *samples, uint64_t ns, uint32_t ops)
{
    uint64_t cost = clock_cost();
    if (samples->count < MICRO_SAMPLES_MAX && ops)
        samples->ns[samples->count++] = (double)(ns > cost ? ns - cost : 0) / ops;
}

bool micro_samples_full(const micro_samples *samples, const micro_options *options)
{
    return bench_interrupted() || samples->count >= options->bursts || samples->count >= MICRO_SAMPLES_MAX;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const micro_samples *sorted, double q)
{
    return sorted->count ? sorted->ns[(uint32_t)(q * (sorted->count - 1) + 0.5)] : 0;
}

double micro_figure(const char *group, const char *name, micro_samples *samples, double edges)
{
    qsort(samples->ns, samples->count, sizeof *samples->ns, by_value);
    figure f = {.median = quantile(samples, 0.5), .p10 = quantile(samples, 0.1), .p90 = quantile(samples, 0.9),
                .edges = edges, .samples = samples->count};
    snprintf(f.name, sizeof f.name, "%s/%s", group, name);
    if (bench_interrupted()) /* of bursts there are too few */
        return 0;
    bench_progress_hide();
    printf("%-58s %10.1f ns  (%.1f .. %.1f)", f.name, f.median, f.p10, f.p90);
    if (edges >= 0)
        printf("  %.2f edges/op", edges);
    printf("\n");
    fflush(stdout);
    if (g_figure_count < FIGURES_MAX)
        g_figures[g_figure_count++] = f;
    bench_progress_step(f.name);
    return f.median;
}

void micro_ratio(const char *name, double upper, double lower)
{
    ratio r = {.value = lower > 0 ? upper / lower : 0};
    if (bench_interrupted())
        return;
    bench_progress_hide();
    snprintf(r.name, sizeof r.name, "%s", name);
    printf("%-58s %10.2f x\n", r.name, r.value);
    if (g_ratio_count < FIGURES_MAX)
        g_ratios[g_ratio_count++] = r;
}

/* ---------------------------------------------------------------------------------------------------------- machine */

static const char *compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

static const char *build(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return "sanitized: times mean nothing";
#elif defined(__OPTIMIZE__) && defined(NDEBUG)
    return "optimised";
#else
    return "not a release build: times mean little";
#endif
}

static void cpu_model(char *text, size_t bytes)
{
    char line[TEXT_BYTES];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(text, bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(text, bytes, "%s", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void date_utc(char *text, size_t bytes)
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, bytes, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

void micro_print_machine(void)
{
    char cpu[TEXT_BYTES];
    cpu_model(cpu, sizeof cpu);
    printf("%s, %ld CPUs; %s; %s; clock %llu ns\n\n", cpu, sysconf(_SC_NPROCESSORS_ONLN), compiler(), build(),
           (unsigned long long)clock_cost());
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void put_string(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            fputc('\\', file);
        if ((unsigned char)*value >= ' ')
            fputc(*value, file);
    }
    fputc('"', file);
}

static void put_head(FILE *file, int argc, char **argv)
{
    char text[TEXT_BYTES];
    struct utsname os;

    fputs("{\n  ", file);
    put_string(file, "program", "acs-micro " ACS_VERSION_STRING);
    fputs(",\n  ", file);
    date_utc(text, sizeof text);
    put_string(file, "date", text);
    fputs(",\n  \"command\": [", file);
    for (int i = 1; i < argc; i++) {
        fputs(i > 1 ? ", {" : "{", file);
        put_string(file, "argument", argv[i]);
        fputc('}', file);
    }
    fputs("],\n  ", file);
    cpu_model(text, sizeof text);
    put_string(file, "cpu", text);
    fprintf(file, ",\n  \"cpus\": %ld,\n  ", sysconf(_SC_NPROCESSORS_ONLN));
    put_string(file, "system", uname(&os) ? "unknown" : os.release);
    fputs(",\n  ", file);
    put_string(file, "compiler", compiler());
    fputs(",\n  ", file);
    put_string(file, "build", build());
    fprintf(file, ",\n  \"clock_ns\": %llu,\n", (unsigned long long)clock_cost());
}

static void put_figures(FILE *file)
{
    fputs("  \"figures\": [\n", file);
    for (uint32_t i = 0; i < g_figure_count; i++) {
        const figure *f = &g_figures[i];
        fputs("    {", file);
        put_string(file, "name", f->name);
        fprintf(file, ", \"unit\": \"ns per op\", \"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, \"bursts\": %u",
                f->median, f->p10, f->p90, f->samples);
        if (f->edges >= 0)
            fprintf(file, ", \"edges_per_op\": %.3f", f->edges);
        fputs(i + 1 < g_figure_count ? "},\n" : "}\n", file);
    }
    fputs("  ],\n", file);
}

static void put_ratios(FILE *file)
{
    fputs("  \"ratios\": [\n", file);
    for (uint32_t i = 0; i < g_ratio_count; i++) {
        fputs("    {", file);
        put_string(file, "name", g_ratios[i].name);
        fprintf(file, ", \"value\": %.3f%s\n", g_ratios[i].value, i + 1 < g_ratio_count ? "}," : "}");
    }
    fprintf(file, "  ],\n  \"complete\": %s\n}\n", bench_interrupted() ? "false" : "true");
}

int micro_write_json(const char *path, int argc, char **argv)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return errno;
    put_head(file, argc, argv);
    put_figures(file);
    put_ratios(file);
    bool bad = ferror(file);
    return fclose(file) || bad ? EIO : 0;
}
