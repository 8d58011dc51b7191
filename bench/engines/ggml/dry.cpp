/*
 * Footprints without a GPU: each scene's nodes run on the CPU, one by one, in random orders that the footprints allow.
 */
#include "acs_ggml.h"
#include "scenes.h"

#include "ggml-cpu.h"

#include <algorithm>
#include <cstdio>
#include <random>

namespace {

uint64_t end_of(const acs_ggml_range & r) {
    return r.base + (r.rows - 1) * r.pitch + r.row_bytes;
}

bool overlap(const acs_ggml_range & a, const acs_ggml_range & b) {
    if (a.base >= end_of(b) || b.base >= end_of(a)) {
        return false;
    }
    const acs_ggml_range & few = a.rows < b.rows ? a : b, & many = a.rows < b.rows ? b : a;
    for (uint64_t row = 0; row < few.rows; row++) {
        const uint64_t from = few.base + row * few.pitch, to = from + few.row_bytes;
        if (to <= many.base || from >= end_of(many)) {
            continue;
        }
        if (many.rows == 1) {
            return true;
        }
        const uint64_t first = from < many.base + many.row_bytes ? 0 : (from - many.base - many.row_bytes) / many.pitch + 1;
        if (first < many.rows && many.base + first * many.pitch < to) {
            return true;
        }
    }
    return false;
}

struct dry_op {
    int                         node;
    bool                        any = false;
    std::vector<acs_ggml_range> ranges;
    std::vector<int>            behind; /* ops that come before it */
    int                         level = 1;
};

bool conflict(const dry_op & a, const dry_op & b) {
    if (a.any || b.any) {
        return true;
    }
    for (const acs_ggml_range & x : a.ranges) {
        for (const acs_ggml_range & y : b.ranges) {
            if ((x.writes || y.writes) && overlap(x, y)) {
                return true;
            }
        }
    }
    return false;
}

std::vector<dry_op> dry_ops(const net & n, const std::string & forget) {
    std::vector<dry_op> ops;
    for (int i = 0; i < n.graph->n_nodes; i++) {
        dry_op op;
        op.node = i;
        op.any  = !acs_ggml_footprint(n.graph, i, 1, op.ranges);
        if (!op.any && op.ranges.empty()) {
            continue; /* a view */
        }
        if (!forget.empty()) {
            const bool writes = forget == "writes";
            op.ranges.erase(std::remove_if(op.ranges.begin(), op.ranges.end(),
                                           [&](const acs_ggml_range & r) { return r.writes == writes; }), op.ranges.end());
        }
        for (size_t k = 0; k < ops.size(); k++) {
            if (conflict(ops[k], op)) {
                op.behind.push_back((int) k);
                op.level = std::max(op.level, ops[k].level + 1);
            }
        }
        ops.push_back(op);
    }
    return ops;
}

/* Run the nodes in a random order that the footprints allow. */
void run_in_some_order(const net & n, ggml_backend_t cpu, const std::vector<dry_op> & ops, std::mt19937 & random) {
    std::vector<int>              waits(ops.size());
    std::vector<std::vector<int>> next(ops.size());
    std::vector<int>              ready;
    for (size_t i = 0; i < ops.size(); i++) {
        waits[i] = (int) ops[i].behind.size();
        for (int k : ops[i].behind) {
            next[k].push_back((int) i);
        }
        if (!waits[i]) {
            ready.push_back((int) i);
        }
    }
    while (!ready.empty()) {
        std::swap(ready[random() % ready.size()], ready.back());
        const int op = ready.back();
        ready.pop_back();
        ggml_cgraph one = ggml_graph_view(n.graph, ops[op].node, ops[op].node + 1);
        GGML_ASSERT(ggml_backend_graph_compute(cpu, &one) == GGML_STATUS_SUCCESS);
        for (int k : next[op]) {
            if (!--waits[k]) {
                ready.push_back(k);
            }
        }
    }
}

/* Whether the range holds all bytes of the tensor's elements; *bytes: how many the range has. */
bool holds(const acs_ggml_range & r, const ggml_tensor * t, uint64_t * bytes) {
    *bytes = r.rows * r.row_bytes;
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        const int64_t  a = i % t->ne[0], b = i / t->ne[0] % t->ne[1], c = i / t->ne[0] / t->ne[1] % t->ne[2],
                       d = i / t->ne[0] / t->ne[1] / t->ne[2];
        const uint64_t at = (uint64_t) (uintptr_t) t->data + a * t->nb[0] + b * t->nb[1] + c * t->nb[2] + d * t->nb[3];
        if (at < r.base || at >= end_of(r)) {
            return false;
        }
        if (r.rows > 1 && (at - r.base) % r.pitch + ggml_type_size(t->type) > r.row_bytes) {
            return false;
        }
    }
    return true;
}

/* Footprints of random views of a tensor of four dimensions. */
bool dry_views(ggml_backend_t cpu) {
    std::mt19937 random(5);
    int          tiles = 0, exact = 0, wrong = 0, total = 2000;
    for (int i = 0; i < total; i++) {
        net           n;
        ggml_tensor * x = n.weight(GGML_TYPE_F32, 7, 5, 4, 3);
        const int64_t a = 1 + random() % 7, b = 1 + random() % 5, c = 1 + random() % 4, d = 1 + random() % 3;
        const size_t  offset = (7 - a) * x->nb[0] + (5 - b) * x->nb[1] + (4 - c) * x->nb[2] + (3 - d) * x->nb[3];
        ggml_tensor * y = ggml_view_4d(n.computed, x, a, b, c, d, x->nb[1], x->nb[2], x->nb[3], offset);
        int           axes[] = { 0, 1, 2, 3 };
        std::shuffle(axes, axes + 4, random);
        y = ggml_permute(n.computed, y, axes[0], axes[1], axes[2], axes[3]);
        n.output(ggml_cont(n.computed, y));
        place(n, cpu, false);
        std::vector<acs_ggml_range> ranges;
        uint64_t                    bytes = 0;
        /* the last node copies the view: its own bytes first, then those that it reads */
        const bool good = acs_ggml_footprint(n.graph, n.graph->n_nodes - 1, 1, ranges) && ranges.size() == 2 &&
                          holds(ranges[1], y, &bytes);
        wrong += !good;
        tiles += good && ranges[1].rows > 1;
        exact += good && bytes == (uint64_t) ggml_nelements(y) * 4;
    }
    printf("views: %d of %d wrong; %d are tiles, %d have no byte too many\n", wrong, total, tiles, exact);
    return !wrong;
}

bool dry_scene(const scene & s, ggml_backend_t cpu, bool reuse, const std::string & forget) {
    net n;
    build_all(s, n);
    place(n, cpu, reuse);
    const std::vector<dry_op> ops = dry_ops(n, forget);
    int                       any = 0, levels = 0, wrong = 0;
    size_t                    edges = 0;
    for (const dry_op & op : ops) {
        any += op.any;
        levels = std::max(levels, op.level);
        edges += op.behind.size();
    }
    std::mt19937 random(7);
    for (int set = 0; set < INPUT_SETS; set++) {
        set_inputs(n, set);
        GGML_ASSERT(ggml_backend_graph_compute(cpu, n.graph) == GGML_STATUS_SUCCESS);
        const std::vector<char> expected = outputs_of(n);
        for (ggml_backend_buffer_t buffer : computed_buffers(n)) {
            ggml_backend_buffer_clear(buffer, 0xff);
        }
        run_in_some_order(n, cpu, ops, random);
        wrong += outputs_of(n) != expected;
    }
    printf("%-15s %-6s %5zu ops %4d any %7zu conflicts %4d levels  %s\n", s.name, reuse ? "reuse" : "own", ops.size(), any,
           edges, levels, wrong ? "DIFFERENT" : "equal");
    fflush(stdout);
    return !wrong;
}

} // namespace

bool dry_run(const std::vector<const scene *> & chosen, const std::string & forget) {
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 2);
    bool good = dry_views(cpu);
    for (const scene * s : chosen) {
        good = dry_scene(*s, cpu, false, forget) && good;
        good = dry_scene(*s, cpu, true, forget) && good;
    }
    ggml_backend_free(cpu);
    return good;
}
