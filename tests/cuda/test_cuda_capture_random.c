/*
 * Random programs inside captures, over the twin, which runs a graph's nodes in any order that its edges allow: kernels,
 * copies, fills and library calls in several sections, among work that the program gives to the stream itself. Some ops
 * run only if a word says so (acs_if, acs_else). Instantiated and launched several times, the graph leaves the bytes that
 * serial execution leaves.
 */
#include "capture_random.h"

enum { BUFFERS = 6, BUFFER_BYTES = 256, BYTES = BUFFERS * BUFFER_BYTES, STEPS_MOST = 160, LAUNCHES = 3,
       DEPTH = 3 };

typedef enum step_kind { KERNEL, COPY, FILL, CALL, OWN_WORK, NEW_SECTION, IF, ELSE, END_IF } step_kind;

/* Places are offsets: the program runs on the device's memory and on the oracle's. */
typedef struct step {
    step_kind kind;
    work w;
    uint32_t to, from, bytes, nodes;
    int value;
} step;

static step g_steps[STEPS_MOST + DEPTH];
static uint32_t g_step_count;
static unsigned char *g_device, g_expected[BYTES];

/* Begin or end a branch now and then. `branches`: how many are open; bit i of `others`: number i is behind its acs_else. */
static step_kind branch_kind(uint32_t *branches, uint32_t *others)
{
    const uint32_t roll = below(4), innermost = *branches > 0 ? 1u << (*branches - 1) : 0;
    if (*branches == 0 || (roll == 0 && *branches < DEPTH)) {
        *others &= ~(1u << (*branches)++);
        return IF;
    }
    if (roll == 1 && !(*others & innermost)) {
        *others |= innermost;
        return ELSE;
    }
    --*branches;
    return END_IF;
}

static void generate(uint64_t seed)
{
    uint32_t branches = 0, others = 0;
    g_random = seed;
    g_step_count = 10 + below(STEPS_MOST - 10);
    for (uint32_t i = 0; i < g_step_count; i++) {
        static const step_kind kinds[] = {KERNEL, KERNEL, KERNEL, KERNEL, KERNEL, COPY, FILL, CALL, CALL};
        step *s = &g_steps[i];
        *s = (step){.kind = kinds[below(9)], .w = random_work(i, BYTES), .bytes = 8 * below(8), .nodes = below(3),
                    .value = below(3) ? (int)below(256) : 0};
        s->to = 8 * below((BYTES / 2 - 64) / 8);
        s->from = BYTES / 2 + 8 * below((BYTES / 2 - 64) / 8);
        if (below(12) == 0)
            s->kind = below(2) ? OWN_WORK : NEW_SECTION;
        if (branches && s->kind == CALL) /* refused in sections of captures */
            s->kind = FILL;
        if (seed % 2 && below(10) == 0)
            s->kind = branch_kind(&branches, &others);
    }
    for (; branches; branches--)
        g_steps[g_step_count++].kind = END_IF;
}

/* A branch as the oracle sees it: it is decided when its first op comes. */
typedef struct branch {
    const step *begun;
    bool other, decided[2], runs[2];
} branch;

static bool branch_runs(branch *list, uint32_t count)
{
    uint32_t word;
    if (count == 0)
        return true;
    branch *b = &list[count - 1];
    if (b->decided[b->other])
        return b->runs[b->other];
    const bool around = branch_runs(list, count - 1);
    memcpy(&word, g_expected + b->begun->to, sizeof word);
    const bool holds = (word != 0) == (b->begun->value % 2 == 0);
    b->decided[b->other] = true;
    return b->runs[b->other] = around && (b->other ? !(b->decided[0] ? b->runs[0] : holds) : holds);
}

/* Serially, on the oracle's bytes. */
static void run_serially(void)
{
    branch branches[DEPTH];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < g_step_count; i++) {
        const step *s = &g_steps[i];
        const work w = placed(&s->w, g_expected);
        if (s->kind == IF)
            branches[depth++] = (branch){.begun = s};
        if (s->kind == ELSE)
            branches[depth - 1].other = true;
        depth -= s->kind == END_IF;
        if ((s->kind == KERNEL || s->kind == COPY || s->kind == FILL) && !branch_runs(branches, depth))
            continue;
        uint32_t times = s->kind == KERNEL || s->kind == OWN_WORK ? 1 : s->kind == CALL ? s->nodes : 0;
        for (uint32_t n = 0; n < times; n++)
            mix_run(&w.head, w.pieces, NULL, 1);
        if (s->kind == COPY)
            memcpy(g_expected + s->to, g_expected + s->from, s->bytes);
        if (s->kind == FILL)
            memset(g_expected + s->to, s->value, s->bytes);
    }
}

typedef struct call_closure {
    work w;
    uint32_t nodes;
} call_closure;

static int library(const acs_call_env *env, void *closure)
{
    const call_closure *c = closure;
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < c->nodes && result == CUDA_SUCCESS; i++)
        result = send_work(env->stream, &c->w);
    return (int)result;
}

static acs_op call(const step *s)
{
    call_closure closure = {placed(&s->w, g_device), s->nodes};
    acs_segment segments[PIECES];
    for (uint32_t i = 0; i < closure.w.head.pieces; i++)
        segments[i] = segment_of(&closure.w.pieces[i]);
    const acs_call_params params = {.size = sizeof params, .function = library, .closure = &closure,
                                    .closure_bytes = sizeof closure, .scratch_bytes = 64 * (s->nodes % 2),
                                    .uses = {.segments = segments, .count = closure.w.head.pieces}};
    return acs_call(g_context, &params);
}

/* What own work touches, so that the sections around it order themselves against it and no more. */
static acs_uses uses_of(const work *w, acs_segment *segments)
{
    for (uint32_t i = 0; i < w->head.pieces; i++)
        segments[i] = segment_of(&w->pieces[i]);
    return (acs_uses){.segments = segments, .count = w->head.pieces};
}

static void own_work(const step *s)
{
    acs_segment segments[PIECES];
    const work w = placed(&s->w, g_device);
    const acs_uses touched = uses_of(&w, segments);
    assert_int_equal(acs_stream_after(g_context, g_stream, below(3) ? touched : anything()), ACS_OK);
    ok(send_work(g_stream, &w));
    assert_int_not_equal(acs_after_stream(g_context, g_stream, below(3) ? touched : anything()), 0);
}

static void launch_step(const step *s)
{
    const work w = placed(&s->w, g_device);
    switch (s->kind) {
    case KERNEL: assert_int_not_equal(launch_work(&w), 0); break;
    case COPY: assert_int_not_equal(acs_memcpy(g_context, g_device + s->to, g_device + s->from, s->bytes), 0); break;
    case FILL: assert_int_not_equal(acs_memset(g_context, g_device + s->to, s->value, s->bytes), 0); break;
    case CALL: assert_int_not_equal(call(s), 0); break;
    case OWN_WORK: own_work(s); break;
    case IF: {
        const uint32_t *word = (const uint32_t *)(const void *)(g_device + s->to);
        assert_int_equal(s->value % 2 ? acs_unless(g_context, word) : acs_if(g_context, word), ACS_OK);
        break;
    }
    case ELSE: assert_int_equal(acs_else(g_context), ACS_OK); break;
    case END_IF: assert_int_equal(acs_end_if(g_context), ACS_OK); break;
    case NEW_SECTION: {
        const acs_uses nothing = ACS_USES(ACS_TOKEN(1)); /* the sections alone keep the order */
        assert_int_equal(acs_stream_after(g_context, g_stream, nothing), ACS_OK);
        assert_int_not_equal(acs_after_stream(g_context, g_stream, nothing), 0);
        break;
    }
    }
}

static void run_program(uint64_t seed)
{
    capture_open(seed, seed % 16 == 0);
    generate(seed);
    g_device = memory_new(BYTES);
    for (uint32_t i = 0; i < BYTES; i++)
        g_expected[i] = g_device[i] = (unsigned char)(i * 7);
    capture_begin(g_stream);
    assert_int_not_equal(acs_after_stream(g_context, g_stream, anything()), 0);
    for (uint32_t i = 0; i < g_step_count; i++)
        launch_step(&g_steps[i]);
    assert_int_equal(acs_stream_after(g_context, g_stream, anything()), ACS_OK);
    graph_run(capture_end(g_stream), LAUNCHES);
    for (int i = 0; i < LAUNCHES; i++)
        run_serially();
    compare_bytes(seed, g_device, g_expected, BYTES);
    assert_int_not_equal(acs_free(g_context, g_device), 0);
    capture_close(ACS_OK);
}

static uint64_t g_first = 1, g_count = 60;

static void graphs_of_random_programs_leave_the_bytes_of_serial_execution(void **state)
{
    (void)state;
    for (uint64_t seed = g_first; seed < g_first + g_count; seed++)
        run_program(seed);
}

/* test_cuda_capture_random [first seed [programs]] */
int main(int argc, char **argv)
{
    if (argc > 1)
        g_first = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        g_count = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_of_random_programs_leave_the_bytes_of_serial_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
