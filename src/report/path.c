/*
 * Walks the path back (path.h), from the op that ended last to the first call. Called by causes.c. Reads the analysis
 * alone, and owns the list of parts until acs_path_free.
 */
#include "report/path.h"

#include <stdlib.h>

typedef struct walk {
    const acs_analysis *a;
    acs_path *path;
    uint64_t now;      /* the path is known from here on */
    uint32_t op, next; /* the op that ran until now, and the one that it held up */
    uint8_t reason;
    uint32_t waits; /* waits that ended before `now`, about: they were recorded as they ended */
    bool full;      /* no memory */
} walk;

static void add_part(walk *w, uint64_t from, uint32_t op, uint8_t reason)
{
    acs_path *p = w->path;
    if (from < w->a->first_ns)
        from = w->a->first_ns;
    if (from >= w->now)
        return;
    if (!ACS_GROW(p->parts, p->room, p->count + 1)) {
        w->full = true;
        return;
    }
    p->parts[p->count++] = (acs_path_part){from, w->now, op, w->next, reason};
    p->ns[reason] += w->now - from;
    w->now = from;
}

/* Go on with an op that ended at `ended`, or before: what lies between was the host's. */
static void go_on(walk *w, uint32_t op, uint8_t reason, uint32_t late)
{
    add_part(w, w->a->ops[op].ended, late, ACS_PATH_ISSUE);
    w->next = late;
    w->op = op;
    w->reason = reason;
}

/* The op that ended last at `at` or before, of those up to `most`; ACS_PLACE_NONE: none. Looks at REACH ops. */
static uint32_t ended_before(const walk *w, uint32_t most, uint64_t at)
{
    enum { REACH = 4096 };
    uint32_t found = ACS_PLACE_NONE;
    for (uint32_t back = 0; back < REACH && back <= most; back++) {
        const acs_analysed_op *op = &w->a->ops[most - back];
        if (op->ended <= at && (found == ACS_PLACE_NONE || op->ended > w->a->ops[found].ended))
            found = most - back;
    }
    return found;
}

/* The wait of the thread that ended last, at `at` or before; NULL: none. `at` falls from call to call. */
static const acs_recorded_wait *wait_before(walk *w, uint32_t thread, uint64_t at)
{
    const acs_recorded_wait *waits = w->a->recording->waits;
    while (w->waits && waits[w->waits - 1].ended > at)
        w->waits--;
    for (uint32_t i = w->waits; i-- > 0;)
        if (waits[i].thread == thread)
            return &waits[i];
    return NULL;
}

/* The op whose end the wait was for, of those before `op`; ACS_PLACE_NONE: none had ended. The path goes back in time. */
static uint32_t waited_for(const walk *w, const acs_recorded_wait *wait, uint32_t op)
{
    const uint32_t up = wait->type == ACS_RECORDED_WAIT_OP ? acs_analysis_op_before(w->a, wait->op) : ACS_PLACE_NONE;
    if (up != ACS_PLACE_NONE && up < op && w->a->ops[up].ended <= w->now)
        return up;
    return op ? ended_before(w, op - 1, w->now) : ACS_PLACE_NONE;
}

/*
 * The op was queued late. Go back over the calls of its thread to the last one that waited for an op, and on with that.
 * A call that waited though none had ended waited for the library's threads to take ops. False: the path begins here.
 */
static bool follow_caller(walk *w, uint32_t op)
{
    const uint32_t thread = acs_analysis_recorded(w->a, op)->thread;
    const acs_recorded_wait *wait;
    uint64_t at = w->a->ops[op].entered;
    while ((wait = wait_before(w, thread, at)) != NULL) {
        add_part(w, wait->ended, op, ACS_PATH_CALLER);
        const uint32_t up = waited_for(w, wait, op);
        if (up != ACS_PLACE_NONE) {
            go_on(w, up, wait->type == ACS_RECORDED_WAIT_ROOM ? ACS_PATH_WINDOW : ACS_PATH_WAIT, op);
            return true;
        }
        add_part(w, wait->began, op, ACS_PATH_ISSUE);
        w->waits = (uint32_t)(wait - w->a->recording->waits);
        at = wait->began;
    }
    return false;
}

static const uint8_t g_reasons[ACS_CONFLICT_COUNT] = {
    [ACS_CONFLICT_NONE] = ACS_PATH_RESULT,   [ACS_CONFLICT_RAW] = ACS_PATH_RESULT,
    [ACS_CONFLICT_WAR] = ACS_PATH_OVERWRITE, [ACS_CONFLICT_WAW] = ACS_PATH_OVERWRITE,
    [ACS_CONFLICT_ALL] = ACS_PATH_ANY,       [ACS_CONFLICT_ORDER] = ACS_PATH_MEMORY};

/* One op back. False: the path begins here. */
static bool step_back(walk *w)
{
    const uint32_t number = w->op;
    const acs_analysed_op *op = &w->a->ops[number];
    const acs_recorded_op *from = acs_analysis_recorded(w->a, number);
    const uint64_t dependence = op->waited_for == ACS_PLACE_NONE ? 0 : w->a->ops[op->waited_for].ended;
    const uint64_t stream = op->behind == ACS_PLACE_NONE ? 0 : w->a->ops[op->behind].ended;
    add_part(w, op->began, number, w->reason);
    w->next = number;
    add_part(w, acs_max(from->issued, acs_max(dependence, stream)), number, ACS_PATH_START);
    if (acs_max(dependence, stream) >= from->inserted && acs_max(dependence, stream) > op->entered) {
        go_on(w, dependence >= stream ? op->waited_for : op->behind,
              dependence >= stream ? g_reasons[op->conflict] : ACS_PATH_STREAM, number);
        return true;
    }
    if (op->held_ns[ACS_HOLD_WINDOW] && number > 0) {
        add_part(w, from->inserted, number, ACS_PATH_ISSUE);
        const uint32_t up = ended_before(w, number - 1, from->inserted);
        if (up != ACS_PLACE_NONE) {
            go_on(w, up, ACS_PATH_WINDOW, number);
            return true;
        }
    }
    add_part(w, op->entered, number, ACS_PATH_ISSUE);
    return follow_caller(w, number);
}

acs_status acs_path_make(const acs_analysis *a, acs_path *path)
{
    walk w = {.a = a, .path = path, .next = ACS_PLACE_NONE, .waits = a->recording->wait_count, .reason = ACS_PATH_RUN};
    *path = (acs_path){0};
    for (uint32_t i = 0; i < a->op_count; i++)
        if (a->ops[i].ended > w.now) {
            w.now = a->ops[i].ended;
            w.op = i;
        }
    for (uint32_t steps = 0; steps < a->op_count && step_back(&w) && !w.full; steps++)
        continue;
    add_part(&w, a->first_ns, w.op, ACS_PATH_CALLER); /* before the first call that is known to have waited */
    if (!w.full)
        return ACS_OK;
    acs_path_free(path);
    return ACS_ERR_MEMORY;
}

void acs_path_free(acs_path *path)
{
    free(path->parts);
    *path = (acs_path){0};
}
