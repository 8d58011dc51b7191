/*
 * Replays of the CUDA backend: one launch of the cached graph that has all ops of the replay's shape; those that are
 * left out are switched off. Called by submit.c in a scope. Where no graph can be had, the ops are launched one after
 * another in the slot's stream. It never waits for the GPU.
 */
#include "cuda/graphs/graphs.h"

#include "window/replay.h"

/* Number of ops that are on, among the first `places`. */
static uint32_t ops_before(const acs_replay *r, uint32_t places)
{
    uint32_t ops = 0;
    for (uint32_t at = 0; at < places; at++)
        ops += acs_replay_has(r, at);
    return ops;
}

static uint64_t place_node(const void *exec, uint32_t at)
{
    return acs_cuda_exec_node(exec, at);
}

/* Find which of its decided ops obey which decisions. */
static void link_decisions(acs_replay *r, acs_cuda_links *links)
{
    bool begun = false;
    for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++)
        for (uint64_t left = r->on[word] & r->shape->decisions[word]; left; left &= left - 1) {
            const uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(left);
            if (!begun)
                acs_cuda_links_begin(links);
            begun = true;
            acs_cuda_links_add(links, at, r->shape->op[at], acs_replay_args(r, at));
        }
}

/*
 * Fill a word of the replay's ops into the graph. Those that are on in both, with the shape's own contents, stay as
 * they are.
 */
static CUresult fill(acs_cuda *self, acs_cuda_exec *exec, const acs_replay *r, const acs_cuda_links *links, uint32_t word)
{
    const uint64_t same = r->on[word] & ~r->differs[word] & exec->on[word] & exec->shapes_own[word] &
                          ~r->shape->decisions[word];
    CUresult result = CUDA_SUCCESS;
    acs_cuda_exec_keep(exec, word, same);
    for (uint64_t left = r->on[word] & ~same; left && result == CUDA_SUCCESS; left &= left - 1) {
        const uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(left);
        const acs_record *op = r->shape->op[at];
        acs_decision room;
        acs_cuda_contents contents = {.grid = {acs_replay_width(r, at), op->grid.y, op->grid.z},
                                            .bytes = acs_replay_args(r, at),
                                            .args = op->args};
        if (r->shape->decisions[word] >> at % 64 & 1)
            acs_cuda_links_apply(links, at, op, place_node, exec, &room, &contents);
        result = acs_cuda_exec_set(self, exec, at, &contents);
    }
    exec->shapes_own[word] = (exec->shapes_own[word] & ~r->on[word]) | (r->on[word] & ~r->differs[word]);
    return result;
}

static unsigned watch(acs_cuda *self, const acs_item *item, const acs_cuda_exec *exec)
{
    const acs_replay *r = item->op->u.replay.replay;
    for (uint32_t at = 0; at < r->shape->ops && self->times == ACS_CUPTI_KERNELS; at++)
        if (acs_replay_has(r, at))
            acs_cupti_node(self->serial, item->op->seq, exec->nodes[at], acs_replay_number(r, at));
    return acs_cuda_watch_replay(self, item);
}

static acs_cuda_wanted wanted(acs_replay *r, int slot)
{
    const uint64_t id = r->shape->id << 16;
    return (acs_cuda_wanted){.key = acs_hash64(~(id | (r->version & 0xffff))),
                             .older = acs_hash64(~(id | ((r->version - 1) & 0xffff))), /* the host sets what varies since */
                             .nodes = r->shape->ops + r->shape->ops / TUNE_GRAPH_PUBLISH_OPS + 1,
                             .slot = slot,
                             .sightings = 1,
                             .replay = r};
}

/* Issue by the graph. ACS_NOT_READY: there is none, and nothing was issued. */
static acs_status by_graph(acs_cuda *self, const acs_item *item)
{
    acs_replay *r = item->op->u.replay.replay;
    const uint32_t places = r->shape->ops;
    const acs_cuda_wanted want = wanted(r, item->slot);
    acs_cuda_exec *exec = acs_cuda_has_code(self) ? acs_cuda_exec_get(self, &want) : NULL;
    if (!exec)
        return ACS_NOT_READY;
    CUresult result = CUDA_SUCCESS;
    acs_cuda_links links;
    link_decisions(r, &links);
    const unsigned watched = acs_cuda_watched(self) ? watch(self, item, exec) : 0;
    acs_cuda_exec_begin(exec);
    for (uint32_t word = 0; word * 64 < places && result == CUDA_SUCCESS; word++)
        result = fill(self, exec, r, &links, word);
    const uint64_t before = item->value - ops_before(r, places);
    for (uint32_t at = TUNE_GRAPH_PUBLISH_OPS, p = 0; at < places; at += TUNE_GRAPH_PUBLISH_OPS)
        exec->publish[p++] = before + ops_before(r, at);
    const acs_status status = acs_cuda_exec_issue(self, exec, item->slot, item->value, result);
    acs_cuda_graph_earn(self, places);
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
    return status;
}

typedef struct launching {
    acs_cuda *self;
    const acs_item *item;
} launching;

static acs_status launch_one(void *user, acs_record *op, int *native, const char **text)
{
    const launching *to = user;
    const unsigned watched = acs_cuda_watched(to->self) ? acs_cuda_watch_op(to->self, op, to->item->slot) : 0;
    const CUresult result = op->flags & ACS_RECORD_DECISION
                                ? acs_cuda_launch_decided(to->self, op, to->item->slot, to->item->value)
                                : acs_cuda_launch(to->self, op, to->self->streams[to->item->slot]);
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
    if (ACS_LIKELY(result == CUDA_SUCCESS))
        return ACS_OK;
    *native = (int)result;
    *text = acs_cuda_text((int)result);
    return acs_cuda_note(to->self, result) ? ACS_ERR_DEVICE : ACS_ERR_LAUNCH;
}

acs_status acs_cuda_replay_issue(acs_cuda *self, const acs_item *item)
{
    acs_replay *r = item->op->u.replay.replay;
    launching to = {self, item};
    /* nodes of ops that did not come take longer than a few launches */
    const bool few = r->count * TUNE_REPLAY_FEW_PART < r->shape->ops;
    const acs_status status = few ? ACS_NOT_READY : by_graph(self, item);
    if (status != ACS_NOT_READY)
        return status;
    r->one_by_one = true;
    return acs_cuda_fault(self) ? ACS_ERR_DEVICE : acs_replay_one_by_one(r, launch_one, &to);
}

bool acs_cuda_replay_ready(acs_backend *backend, acs_replay *replay, uint32_t *asked)
{
    acs_cuda *self = (acs_cuda *)backend;
    if (!acs_cuda_has_code(self)) {
        acs_cuda_code_ask(self);
        return false;
    }
    const acs_cuda_wanted want = wanted(replay, 0);
    return acs_cuda_exec_comes(self, &want, ++*asked);
}
