/*
 * The window against a model that knows nothing but which bytes and tokens each op touches: after every step of long
 * random sequences an op is ready exactly when all that it conflicts with lets it go, its needs put it behind all of
 * them, and it is skipped exactly when it conflicts with a failed or skipped one. Quadratic, and no index in it.
 */
#include "window_fixture.h"

/* Everything is within 64 bytes and 8 tokens, so that what an op reads and writes are two pairs of bit sets. */
typedef struct touched {
    uint64_t read, written;
    uint8_t tokens_read, tokens_written;
} touched;

typedef struct model_op {
    touched what;
    bool on_host, observer, poisoned, checked;
    int slot;                      /* -1: not issued */
    uint64_t value;
    uint64_t behind[SCENE_SLOTS];  /* what the needs, and the needs of those, put in front of it */
} model_op;

typedef struct model {
    scene *s;
    acs_random random;
    model_op ops[SCENE_OPS];
    acs_op first_live;  /* all before it were collected */
    touched failed;     /* by ops that failed or were skipped, since the last clear, in blocks not given out anew */
    bool forgets;       /* memory is given out anew now and then; no op touches all memory, or parts of a block */
    acs_op issued[SCENE_SLOTS][SCENE_OPS]; /* by slot and value */
    uint32_t segments_max;
    bool parts;         /* writes of single bytes and reads of wholes: many joins */
    bool spread;        /* ranges of any length, many to an op: those of one op overlap each other */
    bool crowds;        /* op after op reads the same many blocks: joins of writers, and of readers, that are shared */
    uint32_t crowd;     /* which: bits */
} model;

enum { MODEL_BYTES = 64, MODEL_SEGMENTS = 30 };

static uint64_t g_base; /* of the bytes */

static uint32_t below(model *m, uint32_t n)
{
    return acs_random_below(&m->random, n);
}

static void touch(touched *what, const acs_segment *segment)
{
    uint64_t bytes = 0;
    uint8_t tokens = 0;
    if (segment->extent == ACS_EXTENT_ALL) {
        bytes = UINT64_MAX;
        tokens = UINT8_MAX;
    } else if (segment->extent == ACS_EXTENT_TOKEN) {
        tokens = (uint8_t)(1u << segment->base);
    } else {
        for (uint64_t row = 0; row < segment->rows; row++)
            for (uint64_t i = 0; i < segment->row_bytes; i++)
                bytes |= 1ull << (segment->base - g_base + row * segment->pitch_bytes + i);
    }
    if (segment->access & ACS_READ) {
        what->read |= bytes;
        what->tokens_read |= tokens;
    }
    if (segment->access & ACS_WRITE) {
        what->written |= bytes;
        what->tokens_written |= tokens;
    }
}

static bool conflict(const touched *a, const touched *b)
{
    return (a->written & (b->read | b->written)) || (a->read & b->written) ||
           (a->tokens_written & (b->tokens_read | b->tokens_written)) || (a->tokens_read & b->tokens_written);
}

static acs_segment model_segment(model *m)
{
    acs_access access = (acs_access)(1 + below(m, 3));
    if (m->parts && below(m, 20))
        return below(m, 4) ? ACS_OUT(g_base + below(m, MODEL_BYTES), 1)
                           : ACS_IN(g_base + 32 * below(m, 2), 32);
    if (below(m, 100) == 0)
        return acs_make_segment(ACS_EXTENT_ALL, access, 0, 0, 0, 0);
    if (below(m, 12) == 0)
        return acs_make_segment(ACS_EXTENT_TOKEN, access, below(m, 8), 0, 0, 0);
    if (below(m, 3) == 0) { /* a tile of an 8 by 8 or a 4 by 16 matrix; may be empty */
        uint32_t pitch = below(m, 3) ? 8 : 16, rows = below(m, MODEL_BYTES / pitch + 1), columns = below(m, pitch);
        uint32_t row = below(m, MODEL_BYTES / pitch - rows + 1), column = below(m, pitch - columns);
        return acs_make_segment(ACS_EXTENT_BYTES, access, g_base + row * pitch + column, columns, rows, pitch);
    }
    const bool any_length = m->spread || below(m, 8) == 0;
    uint32_t bytes = any_length ? below(m, MODEL_BYTES + 1) : below(m, 7), base = below(m, MODEL_BYTES - bytes + 1);
    return acs_make_segment(ACS_EXTENT_BYTES, access, g_base + base, bytes, 1, 0);
}

/*
 * Reads of the blocks of 4 bytes that ops read at present, at times but one, and a write or two; now and then of
 * others.
 */
static uint32_t model_crowd(model *m, acs_segment *segments)
{
    uint32_t count = 0, but = below(m, 60);
    if (m->crowd == 0 || below(m, 40) == 0)
        m->crowd = 1 + below(m, 0xffff);
    for (uint32_t block = 0; block < 16; block++)
        if (m->crowd >> block & 1 && block != but)
            segments[count++] = ACS_IN(g_base + 4 * block, 4);
    for (uint32_t i = below(m, 3); i > 0; i--)
        segments[count++] = below(m, 3) ? ACS_OUT(g_base + 4 * below(m, 16), 4)
                                        : ACS_INOUT(g_base + 4 * below(m, 16), 4);
    return count;
}

static void model_insert(model *m)
{
    scene *s = m->s;
    acs_segment segments[MODEL_SEGMENTS];
    bool crowd = m->crowds && (m->forgets || below(m, 50));
    uint32_t count = crowd ? model_crowd(m, segments) : below(m, m->segments_max + 1);
    acs_entry_traits traits = {.on_host = below(m, 8) == 0};
    uint8_t kind = traits.on_host ? ACS_KIND_HOST : ACS_KIND_KERNEL;
    if (below(m, 15) == 0) {
        kind = ACS_KIND_OBSERVE;
        traits.observer = traits.on_host = true;
    }
    if (s->last + 2 >= SCENE_OPS)
        return;
    for (uint32_t i = 0; i < count && !crowd; i++)
        segments[i] = model_segment(m);
    acs_record *op = scene_record(s, kind, segments, count);
    op->any = !m->forgets && below(m, 100) == 0;
    if (!acs_window_has_room(&s->w, op)) {
        free(op);
        s->records[s->last--] = NULL;
        return;
    }
    model_op *mine = &m->ops[op->seq];
    acs_segment all = ACS_ALL_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        touch(&mine->what, &segments[i]);
    if (op->any)
        touch(&mine->what, &all);
    mine->slot = -1;
    mine->on_host = traits.on_host;
    mine->observer = traits.observer;
    mine->poisoned = conflict(&m->failed, &mine->what);
    acs_window_insert(&s->w, op, &traits);
    scene_collect(s);
}

static acs_entry *random_live(model *m, acs_entry_state wanted)
{
    scene *s = m->s;
    acs_op from = m->first_live, span = s->last - from + 1, start = span ? below(m, (uint32_t)span) : 0;
    for (acs_op i = 0; i < span; i++) {
        acs_entry *e = acs_window_find(&s->w, from + (start + i) % span);
        if (e && e->state == wanted)
            return e;
    }
    return NULL;
}

/* An issued op can end when all in front of it have: in its slot, and those that it conflicts with. */
static bool may_end(model *m, const acs_entry *e)
{
    scene *s = m->s;
    if (e->slot >= 0 && e->value != s->completed[e->slot] + 1)
        return false;
    for (acs_op i = m->first_live; i < e->seq; i++)
        if (s->status[i] == SCENE_RUNNING && !m->ops[i].observer && conflict(&m->ops[i].what, &m->ops[e->seq].what))
            return false;
    return true;
}

static void learn(model *m, model_op *op, int slot, uint64_t value)
{
    const model_op *front = &m->ops[m->issued[slot][value]];
    for (int i = 0; i < SCENE_SLOTS; i++)
        if (value && op->behind[i] < front->behind[i])
            op->behind[i] = front->behind[i];
    if (op->behind[slot] < value)
        op->behind[slot] = value;
}

/* Issue, and see that needs and slots put it behind all that it conflicts with. */
static void model_issue(model *m, acs_op op, int slot)
{
    scene *s = m->s;
    model_op *mine = &m->ops[op];
    const acs_entry *e = scene_entry(s, op);
    const acs_slot_wait *slot_waits = acs_entry_waits(&s->w, e);
    for (int i = 0; i < SCENE_SLOTS; i++)
        if (e->wait_mask >> i & 1)
            learn(m, mine, i, slot_waits[i].value);
    for (acs_op i = m->first_live; i < op; i++)
        if (s->status[i] == SCENE_RUNNING && !m->ops[i].observer && conflict(&m->ops[i].what, &mine->what))
            assert_true(mine->behind[m->ops[i].slot] >= m->ops[i].value);
    learn(m, mine, slot, s->issued[slot]);
    mine->slot = slot;
    mine->value = s->issued[slot] + 1;
    mine->behind[slot] = mine->value;
    m->issued[slot][mine->value] = op;
    scene_issue(s, op, slot);
}

/* Memory that no op touches any more is given out anew: failures of before mean nothing there. */
static void model_forget(model *m)
{
    uint32_t first = below(m, 16), count = 1 + below(m, 16 - first);
    uint64_t bytes = (count == 16 ? 0 : 1ull << 4 * count) - 1;
    bytes <<= 4 * first;
    for (acs_op op = m->first_live; op <= m->s->last; op++)
        if (m->s->status[op] == SCENE_RUNNING && ((m->ops[op].what.read | m->ops[op].what.written) & bytes))
            return;
    acs_window_forget_block(&m->s->w, g_base + 4 * first, 4 * count);
    m->failed.read &= ~bytes;
    m->failed.written &= ~bytes;
}

static void model_act(model *m, uint32_t failures)
{
    scene *s = m->s;
    uint32_t dice = below(m, 100);
    acs_entry *e;
    if (m->forgets && below(m, 4) == 0)
        model_forget(m);
    if (dice < 45) {
        model_insert(m);
    } else if (dice < 70 && (e = random_live(m, ACS_ENTRY_READY))) {
        if (below(m, 1000) < failures)
            scene_fail(s, e->seq);
        else if (m->ops[e->seq].on_host)
            scene_take(s, e->seq);
        else
            model_issue(m, e->seq, (int)below(m, SCENE_SLOTS));
    } else if (dice < 92 && (e = random_live(m, below(m, 4) ? ACS_ENTRY_ISSUED : ACS_ENTRY_ISSUING))) {
        if (may_end(m, e))
            scene_end(s, e->seq);
    } else if ((e = random_live(m, ACS_ENTRY_READY))) { /* as if its batch had been refused */
        scene_take(s, e->seq);
        acs_window_release(&s->w, e);
        scene_collect(s);
    }
}

/* Whether what op i did so far lets op j, which conflicts with it, go. */
static bool satisfied(model *m, acs_op i, acs_op j)
{
    if (m->s->status[i] != SCENE_RUNNING)
        return true;
    bool chained = !m->s->w.host_wait && !m->ops[i].on_host && !m->ops[j].on_host;
    return chained && scene_state(m->s, i) == ACS_ENTRY_ISSUED;
}

static void assert_ended_behind_all(model *m, acs_op op)
{
    for (acs_op i = m->first_live; i < op; i++)
        if (!m->ops[i].observer && conflict(&m->ops[i].what, &m->ops[op].what)) {
            assert_int_not_equal(m->s->status[i], SCENE_RUNNING);
            assert_true(m->s->order_ended[i] < m->s->order_ended[op]);
        }
}

static void note_failure(model *m, acs_op op)
{
    const touched *what = &m->ops[op].what;
    if (m->ops[op].observer)
        return;
    m->failed.read |= what->read;
    m->failed.written |= what->written;
    m->failed.tokens_read |= what->tokens_read;
    m->failed.tokens_written |= what->tokens_written;
    for (acs_op j = op + 1; j <= m->s->last; j++)
        if (conflict(what, &m->ops[j].what))
            m->ops[j].poisoned = true;
}

/* Ready exactly when all that it conflicts with lets it go: neither too early nor too late. */
static void assert_state(model *m, acs_op op)
{
    bool go = true;
    for (acs_op i = m->first_live; i < op && go; i++)
        if (!m->ops[i].observer && conflict(&m->ops[i].what, &m->ops[op].what))
            go = satisfied(m, i, op);
    acs_entry_state now = scene_state(m->s, op);
    if (!go)
        assert_int_equal(now, ACS_ENTRY_PENDING);
    else if (m->ops[op].poisoned)
        assert_int_equal(now, ACS_ENTRY_DRAINING);
    else
        assert_in_range(now, ACS_ENTRY_READY, ACS_ENTRY_DRAINING);
}

static void model_check(model *m)
{
    scene *s = m->s;
    assert_true(acs_window_check(&s->w));
    assert_true(s->w.edges_used <= s->w.edge_count);
    assert_true(s->w.live_joins <= s->w.joins);
    for (acs_op op = m->first_live; op <= s->last; op++) {
        if (s->status[op] == SCENE_RUNNING) {
            assert_state(m, op);
        } else if (!m->ops[op].checked) { /* collected since the last check */
            m->ops[op].checked = true;
            assert_ended_behind_all(m, op);
            if (s->status[op] != ACS_OK)
                note_failure(m, op);
            assert_int_equal(s->status[op] == ACS_ERR_SKIPPED, m->ops[op].poisoned);
        }
    }
    while (m->first_live <= s->last && m->ops[m->first_live].checked)
        m->first_live++;
}

static void model_drain(model *m)
{
    for (int i = 0; m->s->w.live > 0; i++) {
        assert_true(i < 100000);
        for (acs_op op = m->first_live; op <= m->s->last; op++) {
            acs_entry *e = acs_window_find(&m->s->w, op);
            if (e && e->state == ACS_ENTRY_READY && !m->ops[op].on_host)
                model_issue(m, op, 0);
            else if (e && e->state != ACS_ENTRY_PENDING && e->state != ACS_ENTRY_DRAINING && may_end(m, e))
                scene_end(m->s, op);
            scene_collect(m->s);
        }
        model_check(m);
    }
    assert_int_equal(m->s->w.live_joins, 0);
    assert_int_equal(m->s->w.edges_used, 0);
}

/* Take most edges and places of joins away, so that they run out. */
static void limit_edges(acs_window *w, uint32_t edges)
{
    w->edge_count = edges;
    w->edges[edges].next = 0;
    w->joins = edges / 5;
}

typedef struct model_run {
    uint32_t limit, failures, segments, edges;
    bool crowds, forgets, spread;
    bool at_end;        /* the bytes are the last ones of the address space */
} model_run;

static void run_model(uint64_t seed, model_run run)
{
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->s = scene_open(run.limit, seed % 5 == 0);
    if (seed % 3 == 0)
        m->s->w.readers_most = ACS_REGION_READERS;
    m->random.state = seed;
    m->first_live = 1;
    g_base = run.at_end ? UINT64_MAX - MODEL_BYTES + 1 : 0x4000;
    m->parts = !run.spread && seed / 6 % 2;
    m->spread = run.spread;
    m->crowds = run.crowds;
    m->forgets = run.forgets;
    m->segments_max = run.segments;
    if (run.edges)
        limit_edges(&m->s->w, run.edges);
    for (int round = 0; round < 12; round++) {
        uint32_t steps = 50 + below(m, 250);
        for (uint32_t i = 0; i < steps; i++) {
            model_act(m, run.failures);
            model_check(m);
        }
        model_drain(m);
        acs_window_clear_poison(&m->s->w);
        memset(&m->failed, 0, sizeof m->failed);
    }
    scene_close(m->s);
    free(m);
}

static void random_steps_make_ops_ready_exactly_when_their_conflicts_allow(void **state)
{
    (void)state;
    static const uint32_t limits[] = {1, 2, 5, 16, 64, 200};
    for (uint64_t seed = 1; seed <= 36; seed++)
        run_model(seed, (model_run){.limit = limits[seed % 6], .segments = 5});
}

static void random_steps_with_failures_skip_exactly_what_conflicts_with_failed_ops(void **state)
{
    (void)state;
    static const uint32_t limits[] = {1, 2, 5, 16, 64, 200};
    for (uint64_t seed = 101; seed <= 136; seed++)
        run_model(seed, (model_run){.limit = limits[seed % 6], .segments = 5, .failures = 60});
}

static void random_steps_with_few_edges_never_take_more_than_there_are(void **state)
{
    (void)state;
    for (uint64_t seed = 201; seed <= 230; seed++) {
        uint32_t segments = seed % 2 ? 5 : MODEL_SEGMENTS, edges = 24 * segments + 20 * (uint32_t)(seed % 10);
        run_model(seed, (model_run){.limit = 64, .segments = segments, .failures = 20, .edges = edges});
    }
}

static void random_steps_with_memory_given_out_anew_skip_what_meets_later_failures(void **state)
{
    (void)state;
    static const uint32_t limits[] = {5, 16, 64, 200};
    for (uint64_t seed = 401; seed <= 440; seed++)
        run_model(seed, (model_run){.limit = limits[seed % 4], .segments = 5, .failures = 40, .crowds = true,
                                    .forgets = true});
}

/* Blocks that nobody else overlaps, so that it is the same set of ops that many are behind. */
static void random_steps_of_crowds_are_ordered_through_shared_joins(void **state)
{
    (void)state;
    static const uint32_t limits[] = {16, 64, 200};
    for (uint64_t seed = 301; seed <= 336; seed++)
        run_model(seed, (model_run){.limit = limits[seed % 3], .segments = 5, .crowds = true,
                                    .failures = seed % 4 ? 0 : 30, .edges = seed % 5 ? 0 : 700});
}

static void random_steps_of_ops_whose_ranges_overlap_each_other_are_ordered(void **state)
{
    (void)state;
    static const uint32_t limits[] = {5, 16, 64, 200};
    for (uint64_t seed = 501; seed <= 540; seed++)
        run_model(seed, (model_run){.limit = limits[seed % 4], .segments = 8, .failures = seed % 3 ? 0 : 40, .spread = true,
                                    .at_end = seed % 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_make_ops_ready_exactly_when_their_conflicts_allow),
        cmocka_unit_test(random_steps_with_failures_skip_exactly_what_conflicts_with_failed_ops),
        cmocka_unit_test(random_steps_with_few_edges_never_take_more_than_there_are),
        cmocka_unit_test(random_steps_of_crowds_are_ordered_through_shared_joins),
        cmocka_unit_test(random_steps_of_ops_whose_ranges_overlap_each_other_are_ordered),
        cmocka_unit_test(random_steps_with_memory_given_out_anew_skip_what_meets_later_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
