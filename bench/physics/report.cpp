/*
 * Owns the wording of results: the table of one number of worlds with its bounds and the line that names the winner, and
 * the JSON file. Called by main when the figures are there; measures nothing.
 */
#include "report.h"

#include "../harness/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

/* Measured on an H200: what its front end takes for a kernel of a graph, and for a hop along an edge. */
#define FRONT_END_US 0.19
#define HOP_US 0.57

spread spread_of(std::vector<double> times)
{
    const size_t n = times.size();
    double sum = 0;

    if (n == 0)
        return {0, 0, 0, 0, 0};
    std::sort(times.begin(), times.end());
    for (const double t : times)
        sum += t;
    const auto rank = [&](double share) {
        const size_t k = static_cast<size_t>(std::ceil(share * static_cast<double>(n)));
        return times[k > 0 ? k - 1 : 0];
    };
    return {rank(0.5), rank(0.99), sum / static_cast<double>(n), times.front(), times.back()};
}

static double per_step(const bench_row &row, uint64_t count)
{
    return row.counted ? static_cast<double>(count) / static_cast<double>(row.counted) : 0;
}

static const char *check_text(const bench_settings &s, const bench_row &row)
{
    return row.left_out ? "left out" : row.differs ? "differs" : s.check ? "same" : "not checked";
}

/* ------------------------------------------------------------------------------------------------------------ table */

/* One figure of a row: a name and how to get it; smaller is better. */
struct figure {
    const char *name;
    double (*of)(const bench_row &);
};

static const figure g_figures[] = {
    {"step p50", [](const bench_row &r) { return spread_of(r.step_us).p50; }},
    {"step p99", [](const bench_row &r) { return spread_of(r.step_us).p99; }},
    {"back to back", [](const bench_row &r) { return spread_of(r.back_us).p50; }},
};

/* The row with the smallest figure among those of ACS, or among its rivals. */
static const bench_row *best(const bench_table &t, const figure &f, bool acs)
{
    const bench_row *found = nullptr;
    for (const bench_row &row : t.rows)
        if (!row.left_out && !row.differs && row.v->is_acs == acs && (!found || f.of(row) < f.of(*found)))
            found = &row;
    return found;
}

static void print_winners(const bench_table &t)
{
    for (const figure &f : g_figures) {
        const bench_row *const rival = best(t, f, false), *const acs = best(t, f, true);
        if (!rival || !acs)
            return;
        const bool loses = f.of(*acs) > f.of(*rival);
        printf("%-13s %s wins: best of ACS is %s, %.1f us; best rival is %s, %.1f us; best rival / ACS %.2f%s\n", f.name,
               loses ? rival->v->name : acs->v->name, acs->v->name, f.of(*acs), rival->v->name, f.of(*rival),
               f.of(*rival) / f.of(*acs), loses ? ": ACS LOSES" : "");
    }
}

static void print_row(const bench_settings &s, const bench_row &row, const bench_row *rival)
{
    const spread step = spread_of(row.step_us);
    const double best_rival = rival ? spread_of(rival->step_us).p50 : 0;

    if (row.left_out) {
        printf("%-20s left out: no GPU\n", row.v->name);
        return;
    }
    if (row.differs) {
        printf("%-20s WRONG: the final state is not that of one stream\n", row.v->name);
        return;
    }
    printf("%-20s %7.0f %9.1f %9.1f %9.1f %9.1f %9.1f %10.1f %10.1f ", row.v->name, per_step(row, row.counts.kernels),
           step.p50, step.p99, step.mean, step.min, step.max, spread_of(row.submit_us).p50, spread_of(row.back_us).p50);
    if (best_rival > 0)
        printf("%8.2f", best_rival / step.p50);
    else
        printf("%8s", "-");
    printf("  %s\n", check_text(s, row));
    if (row.counts.decisions > 0)
        printf("%-20s %.1f decisions a step", "", per_step(row, row.counts.decisions));
    if (row.counts.not_run > 0)
        printf(", %.1f of the kernels switched off", per_step(row, row.counts.not_run));
    if (row.counts.decisions > 0)
        printf("\n");
    if (row.counts.graphs > 0)
        printf("%-20s %.1f graphs a step, %.2f instantiated, %.1f updated\n", "", per_step(row, row.counts.graphs),
               per_step(row, row.counts.instantiated), per_step(row, row.counts.updated));
}

void report_table(const bench_settings &s, const bench_table &t)
{
    const bench_bound &b = t.bound;

    printf("\nphysics       %d scenes of %d worlds, issued %s; backend %s; %d steps after %d, %d repetitions\n", s.scenes,
           t.worlds, s.issue_order == ORDER_SCENE ? "scene after scene" : "interleaved", t.backend, s.steps, s.warm_up,
           s.reps);
    printf("reference     %llu kernels, %llu edges; longest path %d (%s), so %.1f side by side at most; front end %.0f us "
           "(%.2f a kernel), path %.0f us (%.1f a hop)\n",
           static_cast<unsigned long long>(b.kernels), static_cast<unsigned long long>(b.edges), b.depth, b.deepest,
           static_cast<double>(b.kernels) / b.depth, static_cast<double>(b.kernels) * FRONT_END_US, FRONT_END_US,
           b.depth * HOP_US, HOP_US);
    printf("last step     %.1f us one kernel after another without a wait; ", b.chain_us);
    if (b.graph_us > 0)
        printf("%.1f us as one graph with its counts known beforehand\n", b.graph_us);
    else
        printf("as one graph: left out: no GPU\n");
    printf("%-20s %7s %9s %9s %9s %9s %9s %10s %10s %8s  %s\n", "us per step", "kernels", "p50", "p99", "mean", "min",
           "max", "submit p50", "unwaited", "x best", "state");
    const bench_row *const rival = best(t, g_figures[0], false);
    for (const bench_row &row : t.rows)
        print_row(s, row, rival);
    print_winners(t);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void put_text(FILE *f, const std::string &text)
{
    fputc('"', f);
    for (const char c : text)
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (static_cast<unsigned char>(c) < 0x20)
            fprintf(f, "\\u%04x", static_cast<unsigned>(c));
        else
            fputc(c, f);
    fputc('"', f);
}

static void put_machine(FILE *f, bool gpu)
{
    const machine_facts m = machine_describe(gpu);
    const struct {
        const char *name;
        const std::string &text;
    } texts[] = {{"gpu", m.gpu},         {"driver", m.driver}, {"cuda_driver", m.cuda_driver},
                 {"cuda_runtime", m.cuda_runtime}, {"cpu", m.cpu},       {"date", m.date},
                 {"commit", m.commit}};

    fprintf(f, " \"machine\": {");
    for (const auto &t : texts) {
        fprintf(f, "\"%s\": ", t.name);
        put_text(f, t.text);
        fprintf(f, ", ");
    }
    fprintf(f, "\"cpus\": %ld, \"options\": [", m.cpus);
    for (size_t k = 0; k < m.options.size(); k++) {
        fputs(k ? ", " : "", f);
        put_text(f, m.options[k]);
    }
    fprintf(f, "]},\n");
}

static void put_row(FILE *f, const bench_settings &s, const bench_table &t, const bench_row &row)
{
    const spread step = spread_of(row.step_us), submit = spread_of(row.submit_us), back = spread_of(row.back_us);

    fprintf(f, "  {\"worlds\": %d, \"scenes\": %d, \"order\": \"%s\", \"backend\": \"%s\", \"runner\": \"%s\", ", t.worlds,
            s.scenes, s.issue_order == ORDER_SCENE ? "scene" : "interleaved", t.backend, row.v->name);
    fprintf(f, "\"check\": \"%s\", \"bound\": {\"kernels\": %llu, \"edges\": %llu, \"depth\": %d, \"front_end_us\": %.2f, "
            "\"path_us\": %.2f, \"chain_us\": %.3f, \"graph_us\": %.3f}",
            check_text(s, row), static_cast<unsigned long long>(t.bound.kernels),
            static_cast<unsigned long long>(t.bound.edges), t.bound.depth,
            static_cast<double>(t.bound.kernels) * FRONT_END_US, t.bound.depth * HOP_US, t.bound.chain_us,
            t.bound.graph_us);
    if (!row.left_out)
        fprintf(f,
                ", \"kernels_per_step\": %.2f,\n   \"step_us\": {\"p50\": %.3f, \"p99\": %.3f, \"mean\": %.3f, \"min\": "
                "%.3f, \"max\": %.3f}, \"submit_us\": {\"p50\": %.3f, \"p99\": %.3f}, \"back_to_back_us\": %.3f, "
                "\"back_to_back\": {\"min\": %.3f, \"max\": %.3f}, \"steps\": %zu, \"graphs\": %.2f, \"instantiated\": "
                "%.3f, \"updated\": %.3f, \"decisions\": %.2f, \"not_run\": %.2f",
                per_step(row, row.counts.kernels), step.p50, step.p99, step.mean, step.min, step.max, submit.p50,
                submit.p99, back.p50, back.min, back.max, row.step_us.size(), per_step(row, row.counts.graphs),
                per_step(row, row.counts.instantiated), per_step(row, row.counts.updated),
                per_step(row, row.counts.decisions), per_step(row, row.counts.not_run));
    fprintf(f, "}");
}

bool report_json(const bench_settings &s, const std::vector<bench_table> &tables, int argc, char **argv)
{
    FILE *f = fopen(s.json, "w");
    bool first = true;
    std::string command;

    if (!f) {
        perror(s.json);
        return false;
    }
    for (int k = 0; k < argc; k++)
        command += std::string(k ? " " : "") + argv[k];
    fprintf(f, "{\"program\": \"physics-bench\",\n");
    put_machine(f, !tables.empty() && strcmp(tables.front().backend, "cuda") == 0);
    fprintf(f, " \"command\": ");
    put_text(f, command);
    fprintf(f, ",\n \"rows\": [\n");
    for (const bench_table &t : tables)
        for (const bench_row &row : t.rows) {
            fputs(first ? "" : ",\n", f);
            put_row(f, s, t, row);
            first = false;
        }
    fprintf(f, "\n ], \"complete\": %s}\n", tables.size() == s.worlds.size() && !bench_interrupted() ? "true" : "false");
    const bool written = !ferror(f);
    if (fclose(f) != 0 || !written) {
        perror(s.json);
        return false;
    }
    return true;
}
