/*
 * Learning of the work that a library call issues: after its run the call is captured, into a stream that executes
 * nothing, and the graph is read. Called by the thread that issues the slot's ops (submit.c). It never fails a call. A
 * call stays with its library for good if it cannot be captured, or if it reaches memory outside its footprint and
 * scratch.
 */
#include "cuda/call.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ reading a capture */

/* The state of reading a capture of one op. */
typedef struct reading {
    acs_cuda *self;
    const acs_record *op;
    acs_cuda_call *call;
    acs_call_work *capture;
    uint64_t scratch; /* address of scratch memory; 0: none */
    const char *why;  /* reason why the capture cannot be used */
} reading;

static bool refuse_call(reading *r, const char *why)
{
    r->why = why;
    return false;
}

static bool is_address(const acs_cuda *self, uint64_t word)
{
    CUmemorytype type;
    return word > UINT32_MAX && /* also saves the driver's call for small numbers */
           self->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS;
}

/*
 * Whether the footprint names the address. Ops that touch unnamed memory, such as a handle's, must not run beside each
 * other.
 */
static bool is_named(const acs_record *op, uint64_t address)
{
    if (op->any)
        return true;
    for (uint32_t i = 0; i < op->segment_count; i++) {
        const acs_segment *s = &op->segments[i];
        if (acs_segment_has_bytes(s) && address >= s->base && address < acs_segment_end(s))
            return true;
    }
    return false;
}

/* Find the bases that a word may follow. */
static bool find_bases(reading *r, uint64_t word, uint16_t *follows)
{
    const uint32_t pointers = r->capture->bases - (r->scratch != 0);
    *follows = 0;
    if (!is_address(r->self, word))
        return true;
    if (r->scratch && word - r->scratch < r->call->scratch_bytes)
        *follows = (uint16_t)(1u << pointers);
    else if (is_named(r->op, word))
        *follows = (uint16_t)((1u << pointers) - 1);
    else
        return refuse_call(r, "it uses memory that its footprint does not name");
    return true;
}

static bool add_words(reading *r, acs_call_step *step, const void *bytes, uint32_t count)
{
    acs_call_work *c = r->capture;
    if (c->words + count > ACS_CALL_WORDS)
        return refuse_call(r, "its kernels have too many arguments");
    step->first = c->words;
    step->count = count;
    memcpy(&c->word[c->words], bytes, count * sizeof c->word[0]);
    for (uint32_t i = 0; i < count; i++, c->words++)
        if (!find_bases(r, c->word[c->words], &c->follows[c->words]))
            return false;
    return true;
}

static bool read_fill(reading *r, CUgraphNode node, acs_call_step *step)
{
    CUDA_MEMSET_NODE_PARAMS_v1 p;
    if (r->self->cu.cuGraphMemsetNodeGetParams(node, &p) != CUDA_SUCCESS || p.height != 1 || p.elementSize == 2)
        return refuse_call(r, "it fills memory in a way that is not known here");
    const uint64_t what[ACS_CALL_WHAT] = {p.elementSize, p.width, p.value};
    const uint64_t to = p.dst;
    step->kind = ACS_CUDA_STEP_FILL;
    memcpy(step->what, what, sizeof what);
    return add_words(r, step, &to, 1);
}

static acs_attributes attributes_of(acs_cuda *self, CUgraphNode node)
{
    acs_attributes a = {0};
    CUkernelNodeAttrValue value;
    if (self->cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) == CUDA_SUCCESS)
        a.cluster = (acs_dim3){value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    if (self->cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS)
        a.cooperative = value.cooperative != 0;
    if (a.cluster.x * a.cluster.y * a.cluster.z <= 1)
        a.cluster = (acs_dim3){0, 0, 0};
    return a;
}

/* Fill in the kernel as an op of the program would name it, without its arguments. */
static void name_kernel(acs_record *pattern, const CUDA_KERNEL_NODE_PARAMS_v2 *p, CUfunction function,
                        const acs_attributes *attributes, const acs_site *site)
{
    pattern->kind = ACS_KIND_KERNEL;
    pattern->site = site;
    pattern->u.launch.kernel = (acs_kernel){site->name, (const void *)function, NULL, ACS_KERNEL_CUFUNCTION, 0};
    pattern->grid = (acs_dim3){p->gridDimX, p->gridDimY, p->gridDimZ};
    pattern->u.launch.block = (acs_dim3){p->blockDimX, p->blockDimY, p->blockDimZ};
    pattern->u.launch.shared_bytes = p->sharedMemBytes;
    pattern->u.launch.attributes = *attributes;
}

/* Lay out arguments at the parameters' offsets. @return the bytes of all, or 0. */
static uint32_t lay_out(acs_cuda *self, acs_record *pattern)
{
    const acs_cuda_kernel *kernel = acs_cuda_kernel_of(self, pattern);
    uint32_t end = 0;
    if (!kernel || !kernel->params_known)
        return 0;
    pattern->args = calloc(kernel->param_count + 1, sizeof *pattern->args);
    for (uint32_t i = 0; pattern->args && i < kernel->param_count; i++) {
        const uint32_t offset = kernel->param_offset[i], bytes = kernel->param_bytes[i];
        pattern->args[i] = (acs_arg_slot){.offset = (uint16_t)offset, .size = (uint16_t)bytes};
        end = offset + bytes > end ? offset + bytes : end;
    }
    pattern->arg_count = kernel->param_count;
    pattern->arg_bytes_used = end;
    pattern->arg_bytes = calloc(1, end + 1); /* zeros, which check() hashes */
    return pattern->args && pattern->arg_bytes && end <= ACS_CALL_WORDS * sizeof(uint64_t) ? end : 0;
}

static acs_record *pattern_new(void)
{
    acs_record *pattern = aligned_alloc(_Alignof(acs_record), sizeof *pattern);
    if (pattern)
        memset(pattern, 0, sizeof *pattern);
    return pattern;
}

static bool read_kernel(reading *r, CUgraphNode node, acs_call_step *step, uint32_t number)
{
    acs_cuda *self = r->self;
    CUDA_KERNEL_NODE_PARAMS_v2 p = {0};
    uint64_t words[ACS_CALL_WORDS] = {0};
    CUresult result = self->cu.cuGraphKernelNodeGetParams(node, &p);
    CUfunction function = p.func;
    if (result == CUDA_SUCCESS && !function && p.kern)
        result = self->cu.cuKernelGetFunction(&function, p.kern);
    if (result != CUDA_SUCCESS || !function || !p.kernelParams)
        return refuse_call(r, "what a kernel of it is given cannot be read");
    const acs_attributes a = attributes_of(self, node);
    const uint64_t what[ACS_CALL_WHAT] = {(uint64_t)(uintptr_t)function, p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX,
                                          p.blockDimY, p.blockDimZ, p.sharedMemBytes, a.cluster.x, a.cluster.y,
                                          a.cluster.z, a.cooperative};
    acs_record *pattern = r->call->pattern[number];
    if (!pattern && (pattern = r->call->pattern[number] = pattern_new()) == NULL)
        return refuse_call(r, "there is no memory for it");
    if (!pattern->args) {
        name_kernel(pattern, &p, function, &a, r->op->site);
        if (!lay_out(self, pattern) || acs_cuda_check(&self->base, pattern) != ACS_OK)
            return refuse_call(r, "a kernel of it cannot be launched from here");
    /* another kernel may have other arguments */
    } else if (pattern->u.launch.kernel.function != (const void *)function) {
        return refuse_call(r, "its kernels change");
    }
    for (uint32_t i = 0; i < pattern->arg_count; i++)
        memcpy((unsigned char *)words + pattern->args[i].offset, p.kernelParams[i], pattern->args[i].size);
    step->kind = ACS_CUDA_STEP_KERNEL;
    memcpy(step->what, what, sizeof what);
    return add_words(r, step, words, (pattern->arg_bytes_used + 7) / 8);
}

/* Whether node i follows node i - 1 alone: the nodes must be a chain, in the order of capture. */
static bool follows_the_last(reading *r, const CUgraphNode *nodes, size_t i)
{
    CUgraphNode behind[2];
    size_t count = 2;
    CUresult result = r->self->cu.cuGraphNodeGetDependencies(nodes[i], NULL, &count);
    if (result == CUDA_SUCCESS && count == (i > 0) && count)
        result = r->self->cu.cuGraphNodeGetDependencies(nodes[i], behind, &count);
    return (result == CUDA_SUCCESS && count == (i > 0) && (i == 0 || behind[0] == nodes[i - 1])) ||
           refuse_call(r, "its work is no chain");
}

static bool read_graph(reading *r, CUgraph graph)
{
    CUgraphNode nodes[ACS_CALL_STEPS];
    size_t count = 0;
    if (r->self->cu.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0 || count > ACS_CALL_STEPS)
        return refuse_call(r, "it issues nothing, or too much");
    if (r->self->cu.cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS)
        return refuse_call(r, "what it issues cannot be read");
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        acs_call_step *step = &r->capture->step[r->capture->steps++];
        if (r->self->cu.cuGraphNodeGetType(nodes[i], &type) != CUDA_SUCCESS ||
            (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMSET))
            return refuse_call(r, "it does more than run kernels and fill memory");
        if (!follows_the_last(r, nodes, i))
            return false;
        const bool kernel = type == CU_GRAPH_NODE_TYPE_KERNEL;
        if (!(kernel ? read_kernel(r, nodes[i], step, (uint32_t)i) : read_fill(r, nodes[i], step)))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ learn */

/* Run the call once more, into a stream that is being captured, so that none of its work executes. */
static CUresult capture(acs_cuda *self, const acs_item *item, CUgraph *graph)
{
    int native = 0;
    CUstream *stream = &self->calls->stream;
    CUresult result = *stream ? CUDA_SUCCESS : self->cu.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuStreamBeginCapture(*stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (result != CUDA_SUCCESS)
        return result;
    const acs_status status = acs_call_run(self->base.calls, &self->base, item->op, item->slot, self->device,
                                           (void *)*stream, &native);
    result = self->cu.cuStreamEndCapture(*stream, graph);
    if (result != CUDA_SUCCESS) { /* the stream's state is unknown */
        *graph = NULL;
        (void)acs_cuda_note(self, self->cu.cuStreamDestroy(*stream));
        *stream = NULL;
    }
    return result == CUDA_SUCCESS && status != ACS_OK ? CUDA_ERROR_NOT_SUPPORTED : result;
}

/*
 * The room of a call's kernels as ops. Scratch memory belongs to a slot, and ops go to any slot, so work that uses
 * scratch cannot become ops.
 */
static acs_call_room room_of(const acs_cuda_call *call, const acs_call_template *t)
{
    acs_call_room room = {.parts = t->latest.steps};
    if (room.parts > ACS_CALL_PARTS || (call->scratch_bytes && acs_call_template_uses(t, t->latest.bases - 1)))
        return (acs_call_room){0};
    for (uint32_t i = 0; i < room.parts; i++) {
        const acs_record *pattern = call->pattern[i];
        if (t->latest.step[i].kind != ACS_CUDA_STEP_KERNEL)
            return (acs_call_room){0};
        room.args = pattern->arg_count > room.args ? pattern->arg_count : room.args;
        room.bytes = pattern->arg_bytes_used > room.bytes ? pattern->arg_bytes_used : room.bytes;
    }
    return room;
}

/* Publish the next version. False: no template explains the capture. */
static bool learn_from(acs_cuda_call *call, const acs_call_work *capture)
{
    /* relaxed: written by one learning thread at a time */
    acs_cuda_call_version *before = atomic_load_explicit(&call->latest, memory_order_relaxed);
    acs_cuda_call_version *v = malloc(sizeof *v);
    if (!v)
        return false;
    v->older = before;
    if (before && !acs_call_template_refine(&before->of, capture, &v->of)) {
        free(v);
        return false;
    }
    if (!before) {
        acs_call_template_begin(&v->of, capture);
        call->room = room_of(call, &v->of);
    }
    atomic_store_explicit(&call->latest, v, memory_order_release); /* B */
    return true;
}

static void give_up(acs_cuda_call *call, const acs_record *op, const char *why)
{
    atomic_store_explicit(&call->hopeless, true, memory_order_relaxed); /* relaxed: a hint; later calls skip learning */
    acs_log(ACS_LOG_INFO, "cuda: calls like '%.60s' stay with their library: %s", acs_record_name(op), why);
}

static void read_and_learn(acs_cuda *self, const acs_item *item, CUgraph graph, acs_call_work *capture)
{
    acs_cuda_call *call = item->op->u.call.known;
    void *scratch = NULL;
    reading r = {.self = self, .op = item->op, .call = call, .capture = capture};
    capture->steps = capture->words = 0;
    capture->bases = acs_call_bases(item->op->u.call.closure, call->key.bytes, call->pointers, capture->base);
    if (acs_call_scratch(self->base.calls, &self->base, (uint32_t)item->slot, call->scratch_bytes, &scratch) != ACS_OK)
        return;
    if (scratch)
        r.scratch = capture->base[capture->bases++] = (uint64_t)(uintptr_t)scratch;
    if (!read_graph(&r, graph))
        give_up(call, item->op, r.why);
    else if (!learn_from(call, capture))
        give_up(call, item->op, "what they issue follows from more than their pointers");
}

static void learn_call(acs_cuda *self, const acs_item *item)
{
    acs_cuda_call *call = item->op->u.call.known;
    acs_call_work *read = malloc(sizeof *read);
    CUgraph graph = NULL;
    CUresult result = read ? capture(self, item, &graph) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        read_and_learn(self, item, graph, read);
    else if (!acs_cuda_note(self, result))
        give_up(call, item->op, "they cannot be captured");
    if (graph)
        (void)acs_cuda_note(self, self->cu.cuGraphDestroy(graph));
    free(read);
}

void acs_cuda_call_learn(acs_cuda *self, const acs_item *item)
{
    acs_cuda_call *call = item->op->u.call.known;
    const acs_error before = *acs_error_thread(); /* errors here are not the program's */
    if (!call || atomic_load_explicit(&call->hopeless, memory_order_relaxed) || /* relaxed: as in give_up */
        /* pairs with the clear at the end */
        atomic_flag_test_and_set_explicit(&self->calls->learning, memory_order_acquire))
        return;
    /* Look again: the thread that learned until now may have given up, with an incomplete pattern. */
    const bool hopeless = atomic_load_explicit(&call->hopeless, memory_order_relaxed); /* relaxed: the flag orders */
    if (!hopeless && call->captures++ < TUNE_CALL_CAPTURES)
        learn_call(self, item);
    else if (!hopeless)
        give_up(call, item->op, "their pointers do not show what follows from which");
    *acs_error_thread() = before;
    atomic_flag_clear_explicit(&self->calls->learning, memory_order_release);
}
