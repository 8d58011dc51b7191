/*
 * Compute graphs with parallel parts, run by ggml's CUDA backend as it is and with ACS under it, in turns in one process.
 *   ggml-bench [--scenes a,b] [--modes a,b] [--rounds N] [--batch-ms N] [--checks N]
 *              [--json FILE] [--scratch MIB] [--cublas own|shared] [--list]
 *   ggml-bench --dry [--scenes a,b] [--forget reads|writes]      footprints alone, on the CPU
 */
#include "acs_ggml.h"
#include "scenes.h"

#include "ggml-backend-impl.h"
#include "ggml-cuda.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

enum hand { NOT_BY_HAND, JOINED, FREE };

struct mode {
    const char * name;
    bool         acs, pdl, reuse, optimised;
    uint32_t     chains;
    hand         by_hand; /* a backend with a stream for each part; joined after each run, or not */
};

/* Two are references for the others' outputs: ggml fuses by what the memory's layout allows, so graphs may differ in it. */
const mode MODES[] = {
    { "graph", false, true, true, false, 0, NOT_BY_HAND },
    { "graph_again", false, true, true, false, 0, NOT_BY_HAND },
    { "graph_own", false, true, false, false, 0, NOT_BY_HAND },
    { "graph_nopdl", false, false, true, false, 0, NOT_BY_HAND },
    { "graph_opt", false, true, true, true, 0, NOT_BY_HAND },
    { "hand", false, true, true, false, 0, JOINED },
    { "hand_free", false, true, true, false, 0, FREE },
    { "acs", true, true, false, false, 0, NOT_BY_HAND },
    { "acs_nopdl", true, false, false, false, 0, NOT_BY_HAND },
    { "acs_any", true, true, false, false, UINT32_MAX, NOT_BY_HAND },
    { "acs_reuse", true, true, true, false, 0, NOT_BY_HAND },
};

/* What one backend runs: a scene or a part of it. */
struct piece {
    ggml_backend_t       backend = nullptr;
    ggml_backend_event_t done    = nullptr; /* for joining */
    std::unique_ptr<net> n;

    piece() = default;
    piece(piece && other) noexcept { *this = std::move(other); }
    piece & operator=(piece && other) noexcept {
        std::swap(backend, other.backend);
        std::swap(done, other.done);
        std::swap(n, other.n);
        return *this;
    }

    ~piece() {
        if (backend) {
            ggml_backend_synchronize(backend);
        }
        n.reset();
        ggml_backend_event_free(done);
        ggml_backend_free(backend);
    }
};

struct measured {
    const mode *        m;
    std::vector<piece>  pieces;
    acs_ggml_report     report;
    std::vector<double> times; /* microseconds per run, one for each round */
    std::string         state;
    size_t              memory   = 0; /* of computed tensors */
    bool                captured = true;
    double              median   = 0;
};

void apply(const mode & m) {
    acs_ggml().on     = m.acs;
    acs_ggml().pdl    = m.pdl;
    acs_ggml().chains = m.chains;
}

void compute(measured & x) {
    for (piece & p : x.pieces) {
        GGML_ASSERT(ggml_backend_graph_compute_async(p.backend, p.n->graph) == GGML_STATUS_SUCCESS);
    }
    if (x.m->by_hand != JOINED) {
        return;
    }
    piece & first = x.pieces[0];
    for (size_t i = 1; i < x.pieces.size(); i++) {
        ggml_backend_event_record(x.pieces[i].done, x.pieces[i].backend);
        ggml_backend_event_wait(first.backend, x.pieces[i].done);
    }
    ggml_backend_event_record(first.done, first.backend);
    for (size_t i = 1; i < x.pieces.size(); i++) {
        ggml_backend_event_wait(x.pieces[i].backend, first.done);
    }
}

void synchronize(measured & x) {
    for (piece & p : x.pieces) {
        ggml_backend_synchronize(p.backend);
    }
}

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double batch(measured & x, int count) {
    synchronize(x);
    const double from = seconds();
    for (int i = 0; i < count; i++) {
        compute(x);
    }
    synchronize(x);
    return (seconds() - from) / count * 1e6;
}

double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.empty() ? 0 : values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/* Fill the pieces of a mode with the scene, without memory. */
void build_pieces(measured & x, const scene & s) {
    const int count   = x.m->by_hand ? s.parts : 1;
    int       weights = 0, inputs = 0;
    for (int i = 0; i < count; i++) {
        piece p;
        p.backend = ggml_backend_cuda_init(0);
        GGML_ASSERT(p.backend);
        p.done = ggml_backend_event_new(ggml_backend_get_device(p.backend));
        p.n    = std::make_unique<net>();
        if (count == 1) {
            build_all(s, *p.n);
        } else {
            s.build(*p.n, i);
        }
        p.n->weights_before = weights;
        p.n->inputs_before  = inputs;
        weights += (int) p.n->weights.size();
        inputs += (int) p.n->inputs.size();
        x.pieces.push_back(std::move(p));
    }
}

/* Build the graph for a mode and have it captured. False: the backend has no kernel for an op. */
bool prepare(measured & x, const scene & s) {
    apply(*x.m);
    const uint64_t before = acs_ggml_last().capture;
    build_pieces(x, s);
    for (piece & p : x.pieces) {
        for (int i = 0; i < p.n->graph->n_nodes; i++) {
            if (!ggml_backend_supports_op(p.backend, p.n->graph->nodes[i])) {
                printf("%s: no kernel for %s\n", s.name, ggml_op_desc(p.n->graph->nodes[i]));
                return false;
            }
        }
        if (x.m->optimised && p.backend->iface.graph_optimize) {
            p.backend->iface.graph_optimize(p.backend, p.n->graph);
        }
        place(*p.n, p.backend, x.m->reuse);
        for (ggml_backend_buffer_t buffer : computed_buffers(*p.n)) {
            x.memory += ggml_backend_buffer_get_size(buffer);
        }
    }
    for (int i = 0; i < 4; i++) { /* ggml captures in the second run */
        compute(x);
        synchronize(x);
    }
    if (x.m->acs) {
        x.report   = acs_ggml_last();
        x.captured = x.report.capture != before;
    }
    return true;
}

/* Run with an input set, after what was computed before was made void. */
std::vector<char> run_anew(measured & x, int set, uint8_t filling) {
    for (piece & p : x.pieces) {
        set_inputs(*p.n, set);
        for (ggml_backend_buffer_t buffer : computed_buffers(*p.n)) {
            ggml_backend_buffer_clear(buffer, filling);
        }
    }
    compute(x);
    synchronize(x);
    std::vector<char> all;
    for (const piece & p : x.pieces) {
        const std::vector<char> mine = outputs_of(*p.n);
        all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
}

/* Outputs of each input set, `rounds` times; how many differ from those expected goes to x.state. */
std::vector<std::vector<char>> check(measured & x, int rounds, const std::vector<std::vector<char>> * expected) {
    std::vector<std::vector<char>> results(INPUT_SETS);
    int                            wrong = 0;
    apply(*x.m);
    for (int i = 0; i < rounds * INPUT_SETS; i++) {
        const int set = i % INPUT_SETS;
        results[set]  = run_anew(x, set, i % 2 ? 0xff : 0x00);
        wrong += expected && results[set] != (*expected)[set];
    }
    for (piece & p : x.pieces) {
        set_inputs(*p.n, 0);
    }
    x.state = !x.captured ? "not captured" :
              wrong       ? std::to_string(wrong) + " of " + std::to_string(rounds * INPUT_SETS) + " runs differ" : "equal";
    return results;
}

struct options {
    std::vector<std::string> scenes, modes;
    int                      rounds   = 15;
    int                      checks   = 20;
    double                   batch_ms = 20;
    std::string              json, forget;
    bool                     dry = false, list = false;
};

const measured * find(const std::vector<measured> & all, const char * name) {
    for (const measured & x : all) {
        if (!strcmp(x.m->name, name)) {
            return &x;
        }
    }
    return nullptr;
}

double ratio(const measured * a, const measured * b) {
    return a && b && b->median > 0 ? a->median / b->median : 0;
}

bool is_finite(const std::vector<char> & bytes) {
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        float value;
        memcpy(&value, bytes.data() + i, 4);
        if (!std::isfinite(value)) {
            return false;
        }
    }
    return true;
}

struct outcome {
    bool known = true, finite = true, equal = true; /* all ops have kernels; outputs are numbers; outputs are as expected */
    bool same  = true;                              /* the references agree */
    int  count = 0;                                 /* runs in a batch */
};

std::vector<measured> chosen_modes(const scene & s, const options & o) {
    std::vector<measured> all;
    for (const mode & m : MODES) {
        const bool reference = !strcmp(m.name, "graph") || !strcmp(m.name, "graph_own");
        const bool wanted    = o.modes.empty() || std::find(o.modes.begin(), o.modes.end(), m.name) != o.modes.end();
        if (reference || (wanted && (!m.by_hand || s.parts > 1))) {
            measured x;
            x.m = &m;
            all.push_back(std::move(x));
        }
    }
    return all;
}

void check_all(std::vector<measured> & all, const options & o, outcome & result) {
    std::vector<std::vector<char>> expected[2]; /* with memory of its own; with memory given out again */
    for (measured & x : all) {
        std::vector<std::vector<char>> & mine = expected[x.m->reuse];
        std::vector<std::vector<char>>   got  = check(x, o.checks, mine.empty() ? nullptr : &mine);
        if (mine.empty()) { /* a reference: twice the same, and numbers */
            mine = check(x, o.checks, &got);
            for (const std::vector<char> & bytes : mine) {
                result.finite = result.finite && is_finite(bytes);
            }
            result.same = result.same && mine == got && (x.m->reuse || mine == expected[1]);
        }
        result.equal = result.equal && x.state == "equal";
    }
}

void time_all(std::vector<measured> & all, const options & o, outcome & result) {
    result.count = std::max(5, (int) (o.batch_ms * 1000 / batch(all[0], 20)));
    for (int round = 0; round < o.rounds; round++) {
        for (size_t i = 0; i < all.size(); i++) {
            measured & x = all[(i + round) % all.size()];
            apply(*x.m);
            (void) batch(x, 3);
            x.times.push_back(batch(x, result.count));
        }
    }
    for (measured & x : all) {
        x.median = median_of(x.times);
    }
}

/* The fastest mode that `takes` accepts. */
const measured * fastest(const std::vector<measured> & all, bool (*takes)(const mode &)) {
    const measured * best = nullptr;
    for (const measured & x : all) {
        if (takes(*x.m) && (!best || x.median < best->median)) {
            best = &x;
        }
    }
    return best;
}

void print_table(const scene & s, const std::vector<measured> & all, const outcome & result) {
    printf("\n%s: %s%s%s\n", s.name, s.what, result.finite ? "" : " (outputs are not finite)",
           result.same ? "" : " (graph_own differs from graph)");
    printf("  %-12s %10s %7s %6s %6s %6s %6s %5s %8s %8s %5s %5s  %s\n", "mode", "us", "ratio", "ops", "nodes", "edges",
           "levels", "any", "mem MiB", "scr MiB", "wraps", "early", "outputs");
    for (const measured & x : all) {
        const acs_ggml_report & r = x.report;
        printf("  %-12s %10.2f %7.3f %6d %6d %6d %6d %5d %8.1f %8.1f %5d %5d  %s\n", x.m->name, x.median, ratio(&all[0], &x),
               (int) r.ops, (int) r.nodes, (int) r.edges, (int) r.levels, (int) r.any, x.memory / 1048576.0,
               r.scratch / 1048576.0, (int) r.wraps, (int) r.programmatic, x.state.c_str());
    }
}

std::string json_of(const measured & x, double ratio) {
    const acs_ggml_report & r = x.report;
    char                    text[1024];
    snprintf(text, sizeof text,
             "    {\"mode\": \"%s\", \"us\": %.3f, \"min\": %.3f, \"max\": %.3f, \"ratio\": %.4f, "
             "\"ops\": %d, \"nodes\": %d, \"edges\": %d, \"levels\": %d, \"chains\": %d, \"any\": %d, "
             "\"memory\": %zu, \"scratch\": %llu, \"wraps\": %d, \"programmatic\": %d, \"outputs\": \"%s\"}",
             x.m->name, x.median, *std::min_element(x.times.begin(), x.times.end()),
             *std::max_element(x.times.begin(), x.times.end()), ratio, (int) r.ops, (int) r.nodes, (int) r.edges,
             (int) r.levels, (int) r.chains, (int) r.any, x.memory, (unsigned long long) r.scratch, (int) r.wraps,
             (int) r.programmatic, x.state.c_str());
    return text;
}

/* Print a scene's table, and append its row to the JSON text. */
void report(const scene & s, const std::vector<measured> & all, const outcome & result, std::string & json) {
    /* graph_again is the control; hand_free is another program, since its parts do not wait for each other */
    const measured * acs    = fastest(all, [](const mode & m) { return m.acs; });
    const measured * engine = fastest(all, [](const mode & m) {
        return !m.acs && !m.by_hand && strcmp(m.name, "graph_again") != 0;
    });
    const measured * best   = fastest(all, [](const mode & m) {
        return !m.acs && m.by_hand != FREE && strcmp(m.name, "graph_again") != 0;
    });
    const double     null_gain = ratio(&all[0], find(all, "graph_again"));
    print_table(s, all, result);
    printf("  gain %.3f (over %s), over the engine %.3f (over %s), null gain %.3f\n", ratio(best, acs), best->m->name,
           ratio(engine, acs), engine->m->name, null_gain);
    fflush(stdout);
    char text[1024];
    snprintf(text, sizeof text,
             "  {\"scene\": \"%s\", \"what\": \"%s\", \"batch\": %d, \"finite\": %s, \"references_agree\": %s,\n"
             "   \"gain\": %.4f, \"gain_over_engine\": %.4f, \"null_gain\": %.4f, \"modes\": [\n",
             s.name, s.what, result.count, result.finite ? "true" : "false", result.same ? "true" : "false",
             ratio(best, acs), ratio(engine, acs), null_gain);
    json += (json.empty() ? "" : ",\n") + std::string(text);
    for (const measured & x : all) {
        json += json_of(x, ratio(&all[0], &x)) + (&x == &all.back() ? "]}" : ",\n");
    }
}

/* Measure a scene; append its row to the JSON text. False: it has no kernels, or outputs differ. */
bool measure(const scene & s, const options & o, std::string & json) {
    std::vector<measured> all = chosen_modes(s, o);
    outcome               result;
    for (measured & x : all) {
        result.known = result.known && prepare(x, s);
    }
    if (!result.known) {
        return false;
    }
    check_all(all, o, result);
    time_all(all, o, result);
    report(s, all, result, json);
    return result.equal;
}

std::vector<std::string> split(const char * text) {
    std::vector<std::string> parts;
    std::string              part;
    for (const char * p = text;; p++) {
        if (!*p || *p == ',') {
            parts.push_back(part);
            part.clear();
            if (!*p) {
                return parts;
            }
        } else {
            part += *p;
        }
    }
}

bool parse(int argc, char ** argv, options & o) {
    for (int i = 1; i < argc; i++) {
        const std::string name  = argv[i];
        const char *      value = i + 1 < argc ? argv[i + 1] : nullptr;
        if (name == "--dry") {
            o.dry = true;
            continue;
        }
        if (name == "--list") {
            o.list = true;
            continue;
        }
        if (!value) {
            return false;
        }
        i++;
        if (name == "--scenes") {
            o.scenes = split(value);
        } else if (name == "--modes") {
            o.modes = split(value);
        } else if (name == "--rounds") {
            o.rounds = std::max(1, atoi(value));
        } else if (name == "--checks") {
            o.checks = std::max(1, atoi(value));
        } else if (name == "--batch-ms") {
            o.batch_ms = atof(value);
        } else if (name == "--json") {
            o.json = value;
        } else if (name == "--scratch") {
            acs_ggml().scratch = (size_t) atoll(value) << 20;
        } else if (name == "--cublas") {
            acs_ggml().own_cublas = strcmp(value, "shared") != 0;
        } else if (name == "--forget") {
            o.forget = value;
        } else {
            return false;
        }
    }
    return true;
}

bool write_json(const options & o, const std::string & rows) {
    if (o.json.empty()) {
        return true;
    }
    FILE * file = fopen(o.json.c_str(), "w");
    if (!file) {
        perror(o.json.c_str());
        return false;
    }
    char device[256] = "";
    ggml_backend_cuda_get_device_description(0, device, sizeof device);
    fprintf(file, "{\"device\": \"%s\", \"rows\": [\n%s\n]}\n", device, rows.c_str());
    return fclose(file) == 0;
}

} // namespace

int main(int argc, char ** argv) {
    options o;
    setenv("GGML_CUDA_GRAPH_OPT", "1", 1); /* graph_opt; other modes do not call what reads it */
    acs_ggml().scratch = 4ull << 30; /* 96 matrix products by cuBLAS, each with a workspace of 32 MiB */
    if (!parse(argc, argv, o)) {
        fprintf(stderr, "usage: see bench.cpp\n");
        return 2;
    }
    if (o.list) {
        for (const scene & s : scenes()) {
            printf("%s\n", s.name);
        }
        return 0;
    }
    std::vector<const scene *> chosen;
    for (const scene & s : scenes()) {
        if (o.scenes.empty() || std::find(o.scenes.begin(), o.scenes.end(), s.name) != o.scenes.end()) {
            chosen.push_back(&s);
        }
    }
    if (o.dry) {
        return dry_run(chosen, o.forget) ? 0 : 1;
    }
    if (ggml_backend_cuda_get_device_count() < 1) {
        fprintf(stderr, "no CUDA device; --dry needs none\n");
        return 3;
    }
    acs_ggml_open();
    std::string rows;
    bool        good = true;
    for (const scene * s : chosen) {
        good = measure(*s, o, rows) && good;
        good = write_json(o, rows) && good;
    }
    acs_ggml_close();
    return good ? 0 : 1;
}
