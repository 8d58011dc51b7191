/*
 * The twin's engine: the queues of work behind the streams, what may run next, and when its end is seen. Called by the
 * other twin*.c files with the lock held. Work runs here and nowhere else, on whatever thread makes a call, with the lock
 * held, so kernels and host functions must not call the driver (CUDA forbids it to host functions too).
 *
 * Waits name a place in another stream's order that exists already, so there is no cycle: what is needed can always run.
 */
#include "twin_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LATE_MOST = 3 /* looks in a row that may hide a completion */ };

/*
 * A graph's nodes while it runs; handles rise in the order in which nodes were added. A kernel begins when those before it
 * have run, or have begun where the edge is programmatic: its blocks may trigger at once. Its work is done in one step,
 * when it has begun and, unless it never waits, what programmatic edges lead from has run.
 */
typedef struct twin_run_state {
    const twin_op **nodes, **live; /* as they were launched; as the device has them now */
    uint32_t *pending;  /* edges because of which it may not begin */
    uint32_t *awaited;  /* programmatic edges because of which it may not go on once it has begun */
    bool *begun;
    uint32_t *followers, *first; /* the edges to each node's followers */
    bool *programmatic;          /* of each of them */
    uint32_t *ready, count, ready_count;
} twin_run_state;

static void run_free(twin_run_state *run)
{
    if (!run)
        return;
    free(run->nodes);
    free(run->pending);
    free(run->begun);
    free(run);
}

void twin_op_free(twin_op *op)
{
    run_free(op->run);
    twin_nodes_free(op->launched);
    free(op->waits);
    free(op->args);
    free(op->staged);
    free(op->ranges);
    free(op->behind.list);
    free(op->behind.programmatic);
    free(op);
}

void twin_nodes_free(twin_op *nodes)
{
    while (nodes) {
        twin_op *next = nodes->next;
        twin_op_free(nodes);
        nodes = next;
    }
}

twin_op *twin_node_find(twin_op *nodes, uintptr_t handle)
{
    while (nodes && nodes->node != handle)
        nodes = nodes->next;
    return nodes;
}

/* Room at the end of an array. */
static void *grown(void *array, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 16;
    void *larger = realloc(array, *capacity * bytes);
    if (!larger)
        abort();
    return larger;
}

bool twin_idle_locked(const twin_stream *stream)
{
    return stream->head == NULL;
}

/* ------------------------------------------------------------------------------------------------------------- running */

/* Events and waits are done by being passed. */
static void perform(const twin_op *op)
{
    switch (op->kind) {
    case OP_LAUNCH:
        if (op->kernel->own) {
            op->kernel->spec.body(op->args);
            break;
        }
        if (g_twin.lose_kernels && --g_twin.lose_kernels == 0) {
            twin_lose_locked(g_twin.lose_result);
            return;
        }
        g_twin.kernels_run++;
        g_twin.running = op;
        if (op->replaced != op->kernel->replaced)
            twin_breach_locked("a kernel runs whose module was unloaded");
        if (op->kernel->spec.body)
            op->kernel->spec.body(op->args);
        break;
    case OP_COPY:
        memmove((void *)(uintptr_t)op->dst, op->staged ? op->staged : (const void *)(uintptr_t)op->src, op->bytes);
        break;
    case OP_FILL:
        memset((void *)(uintptr_t)op->dst, op->value, op->bytes);
        break;
    case OP_HOST:
        op->host(op->argument);
        break;
    default:
        break;
    }
}

static uint32_t index_of(const twin_run_state *run, uintptr_t handle)
{
    uint32_t low = 0, high = run->count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (run->nodes[middle]->node <= handle)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The node has begun: it may run, and so may those begin to which its programmatic edges lead. */
static void begin_node(twin_run_state *run, uint32_t at)
{
    run->begun[at] = true;
    if (run->awaited[at] == 0)
        run->ready[run->ready_count++] = at;
    for (uint32_t f = run->first[at]; f < run->first[at + 1]; f++)
        if (run->programmatic[f] && --run->pending[run->followers[f]] == 0)
            begin_node(run, run->followers[f]);
}

static void node_has_run(twin_run_state *run, uint32_t at)
{
    for (uint32_t f = run->first[at]; f < run->first[at + 1]; f++) {
        const uint32_t to = run->followers[f];
        if (!run->programmatic[f]) {
            if (--run->pending[to] == 0)
                begin_node(run, to);
        } else if (run->awaited[to] && --run->awaited[to] == 0 && run->begun[to]) {
            run->ready[run->ready_count++] = to;
        }
    }
}

static void add_followers(twin_run_state *run)
{
    for (uint32_t i = run->count; i-- > 0;) {
        const twin_op *node = run->nodes[i];
        for (size_t e = 0; e < node->behind.count; e++) {
            const uint32_t of = index_of(run, node->behind.list[e]), at = run->first[of] + run->pending[of]++;
            run->followers[at] = i;
            run->programmatic[at] = node->behind.programmatic[e];
            run->awaited[i] += node->behind.programmatic[e] && !node->kernel->spec.never_waits;
        }
    }
}

static void run_prepare(twin_run_state *run, const twin_op *launch)
{
    uint32_t edges = 0, i = 0;
    for (const twin_op *node = launch->launched; node; node = node->next, run->count++)
        edges += (uint32_t)node->behind.count;
    run->nodes = twin_memory((2 * (size_t)run->count + 1) * sizeof *run->nodes);
    run->live = run->nodes + run->count;
    run->pending = twin_memory((4 * (size_t)run->count + 2 + edges) * sizeof *run->pending);
    run->awaited = run->pending + run->count;
    run->ready = run->awaited + run->count;
    run->first = run->ready + run->count;
    run->followers = run->first + run->count + 1;
    run->begun = twin_memory((size_t)run->count + edges + 1);
    run->programmatic = run->begun + run->count;
    const twin_op *live = launch->exec->nodes;
    for (const twin_op *node = launch->launched; node; node = node->next, live = live->next) {
        run->nodes[i] = node;
        run->live[i++] = live;
    }
    for (i = 0; i < run->count; i++)
        for (size_t e = 0; e < run->nodes[i]->behind.count; e++)
            run->first[index_of(run, run->nodes[i]->behind.list[e]) + 1]++;
    for (i = 0; i < run->count; i++)
        run->first[i + 1] += run->first[i];
    add_followers(run);
    for (i = 0; i < run->count; i++)
        run->pending[i] = (uint32_t)run->nodes[i]->behind.count;
    for (i = 0; i < run->count; i++)
        if (run->nodes[i]->behind.count == 0)
            begin_node(run, i);
}

/*
 * In any order that the edges allow: each time one of those that may run, by the seed. Behind a node of the library's own
 * the graph may pause, since the host may be told then how far it is. True: it is over.
 */
static bool run_nodes(twin_op *launch)
{
    twin_run_state *run = launch->run;
    bool pauses = false;
    if (!run) {
        run = launch->run = twin_memory(sizeof *run);
        run_prepare(run, launch);
    }
    while (run->ready_count && g_twin.lost == CUDA_SUCCESS && !pauses) {
        uint32_t at = (uint32_t)twin_random_locked(run->ready_count), picked = run->ready[at];
        const twin_op *node = run->nodes[picked]->updatable ? run->live[picked] : run->nodes[picked];
        run->ready[at] = run->ready[--run->ready_count];
        if (!node->off)
            perform(node);
        node_has_run(run, picked);
        pauses = node->kind == OP_LAUNCH && node->kernel->own && node->args && twin_random_locked(2);
    }
    launch->exec->in_flight -= !run->ready_count;
    return !run->ready_count;
}

static bool may_run(const twin_stream *stream)
{
    const twin_op *op = stream->head;
    for (uint32_t i = 0; op && i < op->wait_count; i++)
        if (op->waits[i].stream->done < op->waits[i].position)
            return false;
    return op != NULL;
}

/* Remember what the op was behind: who sees its end may see the end of that too. */
static void keep_implied(twin_stream *stream, const twin_op *op)
{
    for (uint32_t i = 0; i < op->wait_count; i++) {
        stream->behind = grown(stream->behind, stream->behind_count, &stream->behind_capacity, sizeof *stream->behind);
        stream->behind[stream->behind_count++] = (twin_seen){op->position, op->waits[i]};
    }
}

static void run_head(twin_stream *stream)
{
    twin_op *op = stream->head;
    if (op->kind == OP_GRAPH && !run_nodes(op))
        return; /* the rest another time */
    perform(op);
    if (g_twin.lost != CUDA_SUCCESS)
        return; /* nobody can say whether it ran */
    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    stream->done = op->position;
    keep_implied(stream, op);
    twin_op_free(op);
}

void twin_need_locked(twin_stream *stream, uint64_t position)
{
    while (stream->done < position && g_twin.lost == CUDA_SUCCESS) {
        const twin_op *op = stream->head;
        for (uint32_t i = 0; i < op->wait_count; i++)
            twin_need_locked(op->waits[i].stream, op->waits[i].position);
        if (g_twin.lost == CUDA_SUCCESS)
            run_head(stream);
    }
}

static bool better(const twin_stream *a, const twin_stream *b, uint32_t *ties)
{
    if (g_twin.strategy == TWIN_NEWEST)
        return a->stamp > b->stamp;
    if (g_twin.strategy == TWIN_STARVE && b->base.number == g_twin.victim)
        return true;
    if (g_twin.strategy == TWIN_STARVE && a->base.number == g_twin.victim)
        return false;
    return twin_random_locked(++*ties) == 0; /* each with the same chance */
}

static twin_stream *pick(void)
{
    twin_stream *picked = NULL;
    uint32_t ties = 1;
    for (uint32_t i = 0; i < g_twin.stream_count; i++)
        if (may_run(g_twin.streams[i]) && (!picked || better(g_twin.streams[i], picked, &ties)))
            picked = g_twin.streams[i];
    /* When nothing but the victim could go, it went; then another one's turn comes to starve. */
    if (picked && g_twin.strategy == TWIN_STARVE && picked->base.number == g_twin.victim)
        g_twin.victim = (uint32_t)twin_random_locked(g_twin.made[TWIN_STREAM]);
    return picked;
}

void twin_progress_locked(uint64_t most)
{
    if (g_twin.strategy == TWIN_HELD)
        return;
    uint64_t steps = g_twin.strategy == TWIN_EAGER ? UINT64_MAX : twin_random_locked(most + 1);
    for (; steps && g_twin.lost == CUDA_SUCCESS; steps--) {
        twin_stream *stream = pick();
        if (!stream)
            return;
        run_head(stream);
    }
}

/* ------------------------------------------------------------------------------------------------------------- seeing */

static void see(twin_stream *stream, uint64_t position)
{
    if (position <= stream->visible)
        return;
    stream->visible = position;
    uint32_t kept = 0;
    /* By index: what is implied may lead back to this stream, at earlier places, which are visible already. */
    for (uint32_t i = 0; i < stream->behind_count; i++) {
        if (stream->behind[i].position <= position)
            see(stream->behind[i].implied.stream, stream->behind[i].implied.position);
        else
            stream->behind[kept++] = stream->behind[i];
    }
    stream->behind_count = kept;
}

/* Show some of what is done; all of it when it was hidden too often. */
void twin_show_locked(twin_stream *stream, bool all)
{
    uint64_t shown = stream->done;
    if (!all && g_twin.strategy < TWIN_EAGER && stream->late < LATE_MOST)
        shown = stream->visible + twin_random_locked(stream->done - stream->visible + 1);
    stream->late = shown < stream->done ? stream->late + 1 : 0;
    see(stream, shown);
}

/* ------------------------------------------------------------------------------------------------------------- pushing */

static void wait_for_tail(twin_op *op, twin_stream *other)
{
    op->waits = realloc(op->waits, (op->wait_count + 1) * sizeof *op->waits);
    if (!op->waits)
        abort();
    op->waits[op->wait_count++] = (twin_point){other, other->issued};
}

/* Work of the legacy stream is behind that of all blocking streams of its context, and theirs behind its own. */
static void order_with_legacy(const twin_stream *stream, twin_op *op)
{
    twin_stream *legacy = g_twin.legacy[stream->base.device];
    if (stream != legacy) {
        if (stream->blocking && legacy && !twin_idle_locked(legacy))
            wait_for_tail(op, legacy);
        return;
    }
    for (uint32_t i = 0; i < g_twin.stream_count; i++) {
        twin_stream *s = g_twin.streams[i];
        if (s != legacy && s->blocking && s->base.device == stream->base.device && !twin_idle_locked(s))
            wait_for_tail(op, s);
    }
}

void twin_push_locked(twin_stream *stream, twin_op *op)
{
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (op->kind == OP_RECORD || op->kind == OP_WAIT) {
            twin_op_free(op); /* edges, no nodes: none of another stream comes in here */
            return;
        }
        (void)twin_node_add_locked(stream->captured, op, stream->ends.list, stream->ends.count);
        stream->ends.list[0] = op->node; /* has room for one at least */
        stream->ends.count = 1;
        return;
    }
    order_with_legacy(stream, op);
    op->green = stream->green;
    op->position = ++stream->issued;
    *(stream->tail ? &stream->tail->next : &stream->head) = op;
    stream->tail = op;
    stream->stamp = ++g_twin.stamp;
    twin_progress_locked(1);
}

static bool overlaps(const twin_op *op, uint64_t base, uint64_t bytes)
{
    for (size_t i = 0; i < op->range_count; i++)
        if (op->ranges[i].base < base + bytes && base < op->ranges[i].base + op->ranges[i].bytes)
            return true;
    return false;
}

bool twin_range_busy_locked(uint64_t base, uint64_t bytes)
{
    for (uint32_t i = 0; i < g_twin.stream_count; i++)
        for (const twin_op *op = g_twin.streams[i]->head; op; op = op->next) {
            const twin_op *node = op->kind == OP_GRAPH ? op->launched : op; /* what the device will set is not known */
            for (; node; node = op->kind == OP_GRAPH ? node->next : NULL)
                if (!node->updatable && overlaps(node, base, bytes))
                    return true;
        }
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- control */

void twin_run(CUstream handle, uint64_t count)
{
    pthread_mutex_lock(&g_twin.lock);
    g_twin.call = "twin_run";
    twin_stream *stream = twin_find_locked(handle, TWIN_STREAM);
    if (stream) {
        uint64_t left = stream->issued - stream->done;
        twin_need_locked(stream, stream->done + (count < left ? count : left));
        twin_show_locked(stream, true);
    }
    pthread_mutex_unlock(&g_twin.lock);
}

void twin_run_all(void)
{
    pthread_mutex_lock(&g_twin.lock);
    for (uint32_t i = 0; i < g_twin.stream_count; i++) {
        twin_need_locked(g_twin.streams[i], g_twin.streams[i]->issued);
        twin_show_locked(g_twin.streams[i], true);
    }
    pthread_mutex_unlock(&g_twin.lock);
}
