/*
 * ACS under ggml's CUDA backend (see acs_ggml.h). Three things make ggml's captured ops independent of each other:
 * footprints from the tensors, scratch memory from a ring in which each op has its own bytes, and a cuBLAS workspace
 * from the same ring. Scratch is part of the footprint, so a ring that begins again costs edges, never correctness.
 * Compiled by nvcc as CUDA source, since ggml's header is.
 */
#include "acs_ggml.h"

#include "common.cuh"

#include "acs.h"

#include <algorithm>
#include <map>

namespace {

/* ---------------------------------------------------------------------------------------------------------- footprints */

/* Ops whose CUDA code was read: they write `dst` and their scratch memory alone, but for writes_source. */
bool is_known(ggml_op op) {
    switch (op) {
        case GGML_OP_DUP: case GGML_OP_ADD: case GGML_OP_ADD_ID: case GGML_OP_ADD1: case GGML_OP_ACC: case GGML_OP_SUB:
        case GGML_OP_MUL: case GGML_OP_DIV: case GGML_OP_SQR: case GGML_OP_SQRT: case GGML_OP_LOG: case GGML_OP_SIN:
        case GGML_OP_COS: case GGML_OP_SUM: case GGML_OP_SUM_ROWS: case GGML_OP_CUMSUM: case GGML_OP_MEAN:
        case GGML_OP_ARGMAX: case GGML_OP_COUNT_EQUAL: case GGML_OP_REPEAT: case GGML_OP_REPEAT_BACK:
        case GGML_OP_CONCAT: case GGML_OP_SILU_BACK: case GGML_OP_NORM: case GGML_OP_RMS_NORM:
        case GGML_OP_RMS_NORM_BACK: case GGML_OP_GROUP_NORM: case GGML_OP_L2_NORM: case GGML_OP_MUL_MAT:
        case GGML_OP_MUL_MAT_ID: case GGML_OP_OUT_PROD: case GGML_OP_SCALE: case GGML_OP_SET: case GGML_OP_CPY:
        case GGML_OP_CONT: case GGML_OP_GET_ROWS: case GGML_OP_GET_ROWS_BACK: case GGML_OP_SET_ROWS: case GGML_OP_DIAG:
        case GGML_OP_DIAG_MASK_INF: case GGML_OP_SOFT_MAX: case GGML_OP_SOFT_MAX_BACK: case GGML_OP_ROPE:
        case GGML_OP_ROPE_BACK: case GGML_OP_CLAMP: case GGML_OP_CONV_TRANSPOSE_1D: case GGML_OP_IM2COL:
        case GGML_OP_IM2COL_3D: case GGML_OP_CONV_2D: case GGML_OP_CONV_2D_DW: case GGML_OP_CONV_TRANSPOSE_2D:
        case GGML_OP_POOL_2D: case GGML_OP_UPSCALE: case GGML_OP_PAD: case GGML_OP_PAD_REFLECT_1D: case GGML_OP_ROLL:
        case GGML_OP_ARANGE: case GGML_OP_TIMESTEP_EMBEDDING: case GGML_OP_ARGSORT: case GGML_OP_TOP_K:
        case GGML_OP_LEAKY_RELU: case GGML_OP_TRI: case GGML_OP_FILL: case GGML_OP_UNARY: case GGML_OP_GLU:
        case GGML_OP_CROSS_ENTROPY_LOSS: case GGML_OP_CROSS_ENTROPY_LOSS_BACK: case GGML_OP_OPT_STEP_ADAMW:
        case GGML_OP_OPT_STEP_SGD:
            return true;
        default:
            return false;
    }
}

/* Views are no work: the ops that use them name their bytes. */
bool is_view(ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

ggml_backend_buffer * buffer_of(const ggml_tensor * t) {
    return t->view_src ? t->view_src->buffer : t->buffer;
}

/* Whether the node also writes its source `i`. */
bool writes_source(const ggml_tensor * node, int i) {
    const ggml_tensor * source = node->src[i];
    if (node->op == GGML_OP_OPT_STEP_ADAMW) {
        return i == 0 || i == 2 || i == 3; /* weights, first and second moment */
    }
    if ((node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID) && i == 0 && ggml_is_quantized(source->type)) {
        return ggml_backend_buffer_get_usage(buffer_of(source)) == GGML_BACKEND_BUFFER_USAGE_COMPUTE; /* padding */
    }
    return false;
}

/*
 * The bytes of a view: dimensions in order of their strides are merged to runs of bytes while they leave no gap. Of the
 * dimensions with gaps the widest makes the rows of a tile, and those within it count as if they had none.
 */
acs_ggml_range range_of_view(const ggml_tensor * t, bool writes) {
    enum : uint64_t { ROWS_MOST = 65536 };
    struct dimension { uint64_t count, stride; } dims[GGML_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        const uint64_t count = i ? t->ne[i] : t->ne[0] / ggml_blck_size(t->type);
        if (count > 1) {
            dims[n++] = { count, t->nb[i] };
        }
    }
    for (int sorted = 1; sorted < n; sorted++) {
        for (int k = sorted; k > 0 && dims[k].stride < dims[k - 1].stride; k--) {
            std::swap(dims[k], dims[k - 1]);
        }
    }
    uint64_t run = ggml_type_size(t->type);
    int      i   = 0;
    for (; i < n && dims[i].stride <= run; i++) {
        run += (dims[i].count - 1) * dims[i].stride;
    }
    for (; i < n - 1; i++) {
        run += (dims[i].count - 1) * dims[i].stride;
    }
    const uint64_t base = (uint64_t) (uintptr_t) t->data;
    if (i < n && dims[i].stride > run && dims[i].count <= ROWS_MOST) {
        return { base, run, dims[i].count, dims[i].stride, writes };
    }
    if (i < n) {
        run += (dims[i].count - 1) * dims[i].stride;
    }
    return { base, run, 1, run, writes };
}

/* False: the tensor's bytes are not known. */
bool add_tensor(const ggml_tensor * t, bool writes, std::vector<acs_ggml_range> & ranges) {
    if (ggml_is_empty(t)) {
        return true;
    }
    ggml_backend_buffer * buffer = buffer_of(t);
    if (!t->data || !buffer || t->extra) {
        return false; /* of several devices, or not placed yet */
    }
    if (t->view_src) {
        ranges.push_back(range_of_view(t, writes));
        return true;
    }
    const uint64_t bytes = ggml_backend_buft_get_alloc_size(ggml_backend_buffer_get_type(buffer), t); /* with padding */
    ranges.push_back({ (uint64_t) (uintptr_t) t->data, bytes, 1, bytes, writes });
    return true;
}

/* -------------------------------------------------------------------------------------------------------- the capture */

/* A ring of scratch memory, of one stream. Positions only grow; position modulo `bytes` is the place. */
struct ring {
    char *   base  = nullptr; /* from first use on */
    size_t   bytes = 0;
    uint64_t at    = 0;
};

struct borrowed_handle {
    cublasHandle_t handle;
    void *         workspace; /* ggml's own, given back at the end */
    size_t         bytes;
};

struct capture {
    acs_graph *                  graph  = nullptr;
    cudaStream_t                 stream = nullptr;
    ring *                       scratch = nullptr;
    uint64_t                     op_from = 0; /* the ring's position when the op began */
    std::vector<acs_segment>     op_uses;     /* scratch memory and tokens of the op */
    std::vector<cublasHandle_t>  op_handles;  /* handles that the op has used */
    std::vector<borrowed_handle> handles;
    std::vector<acs_ggml_range>  ranges;
    acs_ggml_report              report;
};

thread_local std::unique_ptr<capture> current;
thread_local acs_ggml_report          last;

std::mutex                                    rings_lock;
std::map<cudaStream_t, std::unique_ptr<ring>> rings; /* under rings_lock; a ring is used by its stream's captures */

[[noreturn]] void fail(const char * call) {
    acs_error error = {};
    error.size      = sizeof error;
    acs_last_error(&error);
    GGML_ABORT("%s: %s: %s", call, acs_status_name(error.status), error.text);
}

std::mutex    opened_lock;
acs_context * opened; /* under opened_lock */

acs_context * context() {
    std::lock_guard<std::mutex> lock(opened_lock);
    if (!opened) {
        acs_options options;
        if (acs_options_init(&options, sizeof options) != ACS_OK) {
            fail("acs_options_init");
        }
        options.backend = ACS_BACKEND_CUDA;
        if (acs_open(&options, &opened) != ACS_OK) {
            fail("acs_open");
        }
    }
    return opened;
}

ring * ring_of(cudaStream_t stream) {
    std::lock_guard<std::mutex> lock(rings_lock);
    std::unique_ptr<ring> &     found = rings[stream];
    if (!found) {
        found        = std::make_unique<ring>();
        found->bytes = std::max<size_t>(acs_ggml().scratch / 256 * 256, 256);
    }
    return found.get();
}

void ring_free(const ring * gone) {
    std::lock_guard<std::mutex> lock(rings_lock);
    for (auto i = rings.begin(); i != rings.end(); ++i) {
        if (i->second.get() == gone) {
            (void) cudaFree(gone->base);
            rings.erase(i);
            return;
        }
    }
}

bool is_in(const ring * r, const void * ptr) {
    return r->base && (const char *) ptr >= r->base && (const char *) ptr < r->base + r->bytes;
}

/* The op gets these bytes into its footprint. */
void use_scratch(void * bytes, size_t size) {
    const uint64_t base = (uint64_t) (uintptr_t) bytes;
    current->op_uses.push_back(acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, base, size, 1, 0));
}

/* Bytes of the op's own. NULL: the op has more scratch memory than the ring. */
void * take(size_t size, size_t * actual) {
    ring *         r      = current->scratch;
    const uint64_t wanted = std::max<uint64_t>((size + 255) / 256 * 256, 256);
    uint64_t       at     = r->at;
    if (at % r->bytes + wanted > r->bytes) {
        at = (at / r->bytes + 1) * r->bytes;
    }
    if (at + wanted - current->op_from > r->bytes) {
        return nullptr;
    }
    if (!r->base) {
        CUDA_CHECK(cudaMalloc((void **) &r->base, r->bytes));
    }
    r->at        = at + wanted;
    *actual      = wanted;
    void * bytes = r->base + at % r->bytes;
    use_scratch(bytes, wanted);
    current->report.scratch += wanted;
    return bytes;
}

struct scratch_pool : ggml_cuda_pool {
    std::unique_ptr<ggml_cuda_pool> inner; /* ggml's */
    const ring *                    own = nullptr;

    explicit scratch_pool(std::unique_ptr<ggml_cuda_pool> pool) : inner(std::move(pool)) {}

    ~scratch_pool() override {
        if (own) {
            ring_free(own);
        }
    }

    void * alloc(size_t size, size_t * actual) override {
        if (!current) {
            return inner->alloc(size, actual);
        }
        own = current->scratch;
        if (void * bytes = take(size, actual)) {
            return bytes;
        }
        void * bytes = inner->alloc(size, actual);
        use_scratch(bytes, *actual);
        return bytes;
    }

    void free(void * ptr, size_t size) override {
        if (!own || !is_in(own, ptr)) {
            inner->free(ptr, size);
        }
    }
};

} // namespace

acs_ggml_settings & acs_ggml() {
    static acs_ggml_settings settings = [] {
        acs_ggml_settings s;
        const char *      on = getenv("ACS_GGML");
        s.on                 = on && atoi(on);
        return s;
    }();
    return settings;
}

acs_ggml_report acs_ggml_last() {
    return last;
}

void acs_ggml_open() {
    (void) context();
}

void acs_ggml_close() {
    std::lock_guard<std::mutex> lock(opened_lock);
    if (acs_close(opened) != ACS_OK) {
        fail("acs_close");
    }
    opened = nullptr;
}

bool acs_ggml_footprint(const ggml_cgraph * cgraph, int first, int count, std::vector<acs_ggml_range> & ranges) {
    for (int k = first; k < first + count; k++) {
        const ggml_tensor * node = cgraph->nodes[k];
        if (ggml_is_empty(node) || is_view(node->op)) {
            continue;
        }
        if (!is_known(node->op) || !add_tensor(node, true, ranges)) {
            return false;
        }
        for (int i = 0; i < GGML_MAX_SRC; i++) {
            if (node->src[i] && (!buffer_of(node->src[i]) ||
                                 !add_tensor(node->src[i], writes_source(node, i), ranges))) {
                return false;
            }
        }
    }
    return true;
}

std::unique_ptr<ggml_cuda_pool> acs_ggml_pool(std::unique_ptr<ggml_cuda_pool> pool) {
    return std::make_unique<scratch_pool>(std::move(pool));
}

bool acs_ggml_allows_pdl() {
    return acs_ggml().pdl;
}

cublasContext * acs_ggml_cublas(cublasContext * handle, void * workspace, size_t bytes) {
    if (!current) {
        return handle;
    }
    std::vector<cublasHandle_t> & used = current->op_handles;
    if (std::find(used.begin(), used.end(), handle) != used.end()) {
        return handle;
    }
    used.push_back(handle);
    size_t actual = 0;
    void * own    = acs_ggml().own_cublas ? take(bytes, &actual) : nullptr;
    if (!own) {
        own = workspace; /* ggml's one workspace: ops that use it follow each other */
        const uint64_t key = (uint64_t) (uintptr_t) handle;
        current->op_uses.push_back(acs_make_segment(ACS_EXTENT_TOKEN, ACS_UPDATE, key, 0, 0, 0));
    }
    current->handles.push_back({ handle, workspace, bytes });
    CUBLAS_CHECK(cublasSetWorkspace(handle, own, bytes));
    return handle;
}

void acs_ggml_begin(CUstream_st * stream) {
    if (!acs_ggml().on) {
        return;
    }
    GGML_ASSERT(!current);
    auto made     = std::make_unique<capture>();
    made->stream  = stream;
    made->scratch = ring_of(stream);
    /* Graphs of one stream run one after the other, so each may have the whole ring. */
    made->scratch->at = 0;
    if (acs_graph_begin(context(), stream, &made->graph) != ACS_OK) {
        fail("acs_graph_begin");
    }
    current = std::move(made);
}

void acs_ggml_op(CUstream_st * stream, const ggml_cgraph * cgraph, int first, int count) {
    static const std::vector<acs_site> sites = [] {
        std::vector<acs_site> made;
        for (int op = 0; op < GGML_OP_COUNT; op++) {
            made.push_back({ ggml_op_name((ggml_op) op), __FILE__, __LINE__ });
        }
        return made;
    }();
    if (!current) {
        return;
    }
    GGML_ASSERT(stream == current->stream && "unset GGML_CUDA_GRAPH_OPT: ACS makes the branches itself");
    current->ranges.clear();
    acs_uses uses = {};
    uses.any      = !acs_ggml_footprint(cgraph, first, count, current->ranges);
    for (const acs_ggml_range & r : current->ranges) {
        current->op_uses.push_back(acs_make_segment(ACS_EXTENT_BYTES, r.writes ? ACS_UPDATE : ACS_READ, r.base,
                                                    r.row_bytes, r.rows, r.rows == 1 ? r.row_bytes : r.pitch));
    }
    if (!uses.any) {
        uses.segments = current->op_uses.data();
        uses.count    = current->op_uses.size();
    }
    const uint64_t number = acs_graph_op(current->graph, stream, uses, &sites[cgraph->nodes[first]->op]);
    if (!number) {
        fail("acs_graph_op");
    }
    current->report.any += number != ACS_GRAPH_NO_OP && uses.any;
    current->op_uses.clear();
    current->op_handles.clear();
    current->op_from = current->scratch->at; /* the next op's scratch begins here */
}

void acs_ggml_end(CUstream_st * stream) {
    if (!current) {
        return;
    }
    for (const borrowed_handle & h : current->handles) {
        CUBLAS_CHECK(cublasSetWorkspace(h.handle, h.workspace, h.bytes));
    }
    acs_graph_params params = {};
    params.size             = sizeof params;
    params.chains           = acs_ggml().chains;
    acs_graph_report report = {};
    report.size             = sizeof report;
    const acs_status status = acs_graph_end(current->graph, stream, &params, &report);
    current->report.capture = last.capture + 1;
    last                    = current->report;
    last.ops                = report.ops;
    last.nodes              = report.nodes;
    last.edges              = report.edges;
    last.levels             = report.levels;
    last.chains             = report.chains;
    last.programmatic       = report.programmatic;
    last.wraps              = current->scratch->at / current->scratch->bytes;
    current.reset();
    if (status != ACS_OK) {
        fail("acs_graph_end");
    }
}
