/*
 * Owns the wording of results. Called by main once all runs are over; measures nothing itself.
 */
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

static const char *const cta_range[7] = {"1", "2-4", "5-9", "10-19", "20-39", "40-79", "80+"};

double measured::median() const
{
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    return n == 0 ? 0 : n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static const measured *find(const std::vector<measured> &runs, const char *name)
{
    for (const measured &r : runs)
        if (strcmp(r.name, name) == 0)
            return &r;
    return nullptr;
}

/* How many times faster `a` is than `b`; 0 if one of them did not run. */
static double speed_up(const measured *a, const measured *b)
{
    return a && b && a->median() > 0 ? b->median() / a->median() : 0;
}

/* Kernels as the program launches them. Decisions are kernels of the library's own, and counted apart. */
static void print_kernels(const settings &s, const measured &r)
{
    const launch_counts &c = r.counts;

    printf("kernels     %llu, %.1f per step of all scenes (%s); %llu copies of counts",
           static_cast<unsigned long long>(c.kernels), static_cast<double>(c.kernels) / s.steps, r.name,
           static_cast<unsigned long long>(c.copies));
    if (c.sections > 0)
        printf("; %llu sections decided on the device", static_cast<unsigned long long>(c.sections));
    if (r.not_run > 0) /* a captured graph does not count them */
        printf(", %llu kernels switched off", static_cast<unsigned long long>(r.not_run));
    printf("\n");
}

void report_print(const settings &s, const char *backend, const std::vector<measured> &runs)
{
    const launch_counts &c = runs.front().counts;
    const double environment_steps = static_cast<double>(s.scenes) * s.worlds * s.steps;

    printf("physics     %d scenes of %d worlds, %d steps, issued %s; backend %s; median of %d\n", s.scenes, s.worlds,
           s.steps, s.issue_order == ORDER_SCENE ? "scene after scene" : "interleaved", backend, s.repeat);
    for (size_t k = 0; k < runs.size(); k++)
        if (k == 0 || runs[k].counts.kernels != runs[k - 1].counts.kernels)
            print_kernels(s, runs[k]);
    printf("CTAs        ");
    for (int k = 0; k < 7; k++)
        printf("%s: %.0f %%%s", cta_range[k], 100.0 * static_cast<double>(c.ctas[k]) / static_cast<double>(c.kernels),
               k < 6 ? ", " : "\n");
    for (const measured &r : runs) {
        const double t = r.median();
        printf("%-11s %8.2f ms per step, %10.0f environment steps/s, %8.0f kernels/s\n", r.name, t * 1e3 / s.steps,
               environment_steps / t, static_cast<double>(r.counts.kernels) / t);
    }
    const measured *const acs = find(runs, "acs");
    if (acs && runs.size() > 1 && strcmp(backend, "cuda") != 0)
        printf("speed-up    none is told: a run on CPU threads checks results, not speed\n");
    else if (acs && runs.size() > 1)
        printf("speed-up    of acs over one stream %.2f, over hand-written streams %.2f\n",
               speed_up(acs, find(runs, "stream")), speed_up(acs, find(runs, "streams")));
    if (acs && acs->counts.kernels)
        printf("footprints  %.1f segments per kernel\n",
               static_cast<double>(acs->counts.segments) / static_cast<double>(acs->counts.kernels));
}

bool report_json(const settings &s, const char *backend, const std::vector<measured> &runs, uint64_t hash, bool passed)
{
    FILE *f = fopen(s.json, "w");
    if (!f) {
        perror(s.json);
        return false;
    }
    fprintf(f,
            "{\"scenes\": %d, \"worlds\": %d, \"steps\": %d, \"order\": \"%s\", \"backend\": \"%s\", \"seed\": %llu,\n",
            s.scenes, s.worlds, s.steps, s.issue_order == ORDER_SCENE ? "scene" : "interleaved", backend,
            static_cast<unsigned long long>(s.seed));
    fprintf(f, " \"state\": \"%016llx\", \"checked\": %s, \"passed\": %s,\n", static_cast<unsigned long long>(hash),
            s.check ? "true" : "false", passed ? "true" : "false");
    fprintf(f, " \"kernels\": %llu, \"copies\": %llu, \"ctas\": {",
            static_cast<unsigned long long>(runs.front().counts.kernels),
            static_cast<unsigned long long>(runs.front().counts.copies));
    for (int k = 0; k < 7; k++)
        fprintf(f, "\"%s\": %llu%s", cta_range[k], static_cast<unsigned long long>(runs.front().counts.ctas[k]),
                k < 6 ? ", " : "},\n");
    fprintf(f, " \"runs\": {");
    for (size_t k = 0; k < runs.size(); k++) {
        fprintf(f, "%s\"%s\": {\"median_s\": %.9f, \"seconds\": [", k ? ",\n  " : "", runs[k].name, runs[k].median());
        for (size_t i = 0; i < runs[k].seconds.size(); i++)
            fprintf(f, "%s%.9f", i ? ", " : "", runs[k].seconds[i]);
        fprintf(f, "], \"kernels\": %llu, \"sections\": %llu, \"not_run\": %llu}",
                static_cast<unsigned long long>(runs[k].counts.kernels),
                static_cast<unsigned long long>(runs[k].counts.sections),
                static_cast<unsigned long long>(runs[k].not_run));
    }
    const measured *const acs = find(runs, "acs");
    fprintf(f, "},\n \"speedup_stream\": %.4f, \"speedup_streams\": %.4f}\n", speed_up(acs, find(runs, "stream")),
            speed_up(acs, find(runs, "streams")));
    return fclose(f) == 0;
}
