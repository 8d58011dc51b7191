/* The machine of GPUs in virtual time: programs small enough for their times to be computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "simulator/machine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct span {
    uint64_t start, end;
    int starts, ends;
} span;

typedef struct machine {
    acs_sim_gpu gpu;
    acs_sim *sim;
    span seen[MOST];
    uint64_t last; /* time of the last telling */
} machine;

static void told(void *owner, void *user, bool ended, uint64_t when)
{
    machine *m = owner;
    span *s = user;

    assert_true(when >= m->last);
    m->last = when;
    *(ended ? &s->end : &s->start) = when;
    (*(ended ? &s->ends : &s->starts))++;
}

/* Two multiprocessors of two blocks or 100 threads, costs in round numbers. */
static acs_sim_gpu small_gpu(void)
{
    return (acs_sim_gpu){.name = "small", .sms = 2, .sm_ctas = 2, .sm_threads = 100, .sm_registers = 1000,
                         .sm_shared_bytes = 1000, .queues = 2, .kernels = 8, .engines = 2, .host_mbps = 1000,
                         .peer_mbps = 2000, .memory_mbps = 4000,
                         .device = {.launch_latency = 1000, .kernel_fixed = 10, .stream_hop = 100, .event_hop = 200,
                                    .graph_hop = 50, .graph_start = 500, .front_end = 20, .front_end_edge = 5,
                                    .node_off = 80,
                                    .device_launch = 3000, .host_visible = 1, .copy_latency = 70}};
}

static void start_on(machine *m, const acs_sim_gpu *gpu, uint32_t devices)
{
    memset(m, 0, sizeof *m);
    m->gpu = *gpu;
    m->sim = acs_sim_create(gpu, devices, told, m);
    assert_non_null(m->sim);
}

static void start(machine *m)
{
    acs_sim_gpu gpu = small_gpu();
    start_on(m, &gpu, 1);
}

static void finish(machine *m)
{
    assert_false(acs_sim_failed(m->sim));
    acs_sim_destroy(m->sim);
}

static acs_sim_kernel kernel(uint32_t ctas, uint32_t threads, uint64_t ns)
{
    return (acs_sim_kernel){.ctas = ctas, .threads = threads, .cta_ns = ns};
}

static void launch(machine *m, uint64_t now, uint32_t stream, uint32_t ctas, uint32_t threads, uint64_t ns, int id)
{
    acs_sim_kernel k = kernel(ctas, threads, ns);
    acs_sim_launch(m->sim, now, stream, &k, &m->seen[id]);
}

static void assert_span(const machine *m, int id, uint64_t begin, uint64_t end)
{
    assert_int_equal(m->seen[id].start, begin);
    assert_int_equal(m->seen[id].end, end);
    assert_int_equal(m->seen[id].starts, 1);
    assert_int_equal(m->seen[id].ends, 1);
}

static void one_stream_is_a_chain(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t s = acs_sim_stream(m.sim, 0);
    launch(&m, 0, s, 1, 1, 300, 0);
    launch(&m, 5, s, 1, 1, 400, 1);
    assert_int_equal(acs_sim_stream_done(m.sim, s), ACS_SIM_NEVER);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1310);
    assert_span(&m, 1, 1410, 1820);
    assert_int_equal(acs_sim_stream_done(m.sim, s), 1820);
    assert_int_equal(acs_sim_next(m.sim), ACS_SIM_NEVER);
    finish(&m);
}

static void streams_share_the_front_end(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0);
    launch(&m, 0, a, 1, 1, 300, 0);
    launch(&m, 0, b, 1, 1, 300, 1);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1310);
    assert_span(&m, 1, 1020, 1330);
    assert_int_equal(acs_sim_count(m.sim, 0).running_high, 2);
    assert_int_equal(acs_sim_count(m.sim, 0).kernels, 2);
    finish(&m);
}

/* Four places of 50 threads: six blocks take two waves, and the kernel behind waits for a place. */
static void blocks_wait_for_room(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0);
    launch(&m, 0, a, 6, 50, 300, 0);
    launch(&m, 0, b, 3, 50, 100, 1);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1610);
    /* started at its turn; two blocks beside the second wave from 1310 to 1420, the third after them */
    assert_span(&m, 1, 1020, 1520);
    assert_int_equal(acs_sim_count(m.sim, 0).cta_ns, 6 * 300 + 3 * 100);
    assert_int_equal(acs_sim_count(m.sim, 0).sm_busy_ns, 2 * 610);
    finish(&m);
}

static void shared_memory_and_registers_limit(void **state)
{
    (void)state;
    for (int by_registers = 0; by_registers < 2; by_registers++) {
        machine m;
        start(&m);
        uint32_t s = acs_sim_stream(m.sim, 0);
        acs_sim_kernel k = kernel(3, 1, 100);
        *(by_registers ? &k.registers : &k.shared_bytes) = 600; /* one block a multiprocessor */
        acs_sim_launch(m.sim, 0, s, &k, &m.seen[0]);
        acs_sim_advance(m.sim, 100000);
        assert_span(&m, 0, 1000, 1210);
        finish(&m);
    }
}

static void what_fits_nowhere_takes_a_multiprocessor(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t s = acs_sim_stream(m.sim, 0);
    launch(&m, 0, s, 3, 5000, 100, 0);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1210);
    finish(&m);
}

static void events_order_streams(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0), e = acs_sim_event(m.sim);
    launch(&m, 0, a, 1, 1, 300, 0);
    acs_sim_record(m.sim, 0, a, e);
    launch(&m, 0, a, 1, 1, 5000, 1); /* behind the record: not waited for */
    acs_sim_wait(m.sim, 0, b, e);
    launch(&m, 0, b, 1, 1, 300, 2);
    assert_int_equal(acs_sim_event_time(m.sim, e), ACS_SIM_NEVER);
    acs_sim_advance(m.sim, 1309);
    assert_int_equal(acs_sim_event_time(m.sim, e), ACS_SIM_NEVER);
    acs_sim_advance(m.sim, 1310);
    assert_int_equal(acs_sim_event_time(m.sim, e), 1310);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 2, 1510, 1820);
    finish(&m);
}

/* A wait is for the record before the call, not for a later one; without any it is for nothing. */
static void waits_mean_the_record_before_them(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0), e = acs_sim_event(m.sim);
    acs_sim_wait(m.sim, 0, b, e);
    launch(&m, 0, b, 1, 1, 10, 0);
    acs_sim_record(m.sim, 0, a, e);
    acs_sim_wait(m.sim, 0, b, e);
    launch(&m, 0, b, 1, 1, 10, 1);
    launch(&m, 0, a, 1, 1, 50000, 2);
    acs_sim_record(m.sim, 0, a, e);
    acs_sim_advance(m.sim, 20000);
    assert_int_equal(m.seen[0].ends, 1);
    assert_int_equal(m.seen[1].ends, 1);
    assert_int_equal(m.seen[2].ends, 0);
    finish(&m);
}

/* Three streams on two queues: the third shares the first's, and is held up by what that waits for. */
static void a_queue_blocks_at_its_head(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0), c = acs_sim_stream(m.sim, 0);
    launch(&m, 0, a, 1, 1, 1000, 0);
    launch(&m, 0, a, 1, 1, 1000, 1);
    launch(&m, 0, c, 1, 1, 10, 2);
    launch(&m, 0, b, 1, 1, 10, 3);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 2010);
    assert_span(&m, 3, 1020, 1040);
    assert_span(&m, 1, 2110, 3120);
    assert_span(&m, 2, 2130, 2150);
    assert_int_equal(acs_sim_count(m.sim, 0).blocked_ns, 2110 - 1000);
    finish(&m);
}

static void only_so_many_kernels_run(void **state)
{
    (void)state;
    machine m;
    acs_sim_gpu gpu = small_gpu();
    gpu.kernels = 1;
    start_on(&m, &gpu, 1);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0);
    launch(&m, 0, a, 1, 1, 300, 0);
    launch(&m, 0, b, 1, 1, 300, 1);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1310);
    assert_span(&m, 1, 1310, 1620);
    finish(&m);
}

static void copies_hold_engines_and_links(void **state)
{
    (void)state;
    machine m;
    acs_sim_gpu gpu = small_gpu();
    start_on(&m, &gpu, 2);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0), c = acs_sim_stream(m.sim, 1);
    acs_sim_copy(m.sim, 0, a, ACS_SIM_TO_DEVICE, 0, 500, &m.seen[0]);
    acs_sim_copy(m.sim, 0, b, ACS_SIM_TO_DEVICE, 0, 500, &m.seen[1]); /* another engine, the same link */
    acs_sim_copy(m.sim, 0, c, ACS_SIM_TO_PEER, 0, 500, &m.seen[2]);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1570);
    assert_span(&m, 1, 1570, 2140);
    assert_span(&m, 2, 1000, 1320);
    assert_int_equal(acs_sim_count(m.sim, 0).copies, 2);
    finish(&m);
}

/* A diamond: the join has two upstream nodes, so its edge beyond the first costs the front end. */
static void graphs_follow_their_edges(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t s = acs_sim_stream(m.sim, 0), g = acs_sim_graph(m.sim, 0), n[4];
    acs_sim_kernel k = kernel(1, 1, 100);
    for (int i = 0; i < 4; i++)
        n[i] = acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, &m.seen[i]);
    acs_sim_graph_edge(m.sim, g, n[0], n[1]);
    acs_sim_graph_edge(m.sim, g, n[0], n[2]);
    acs_sim_graph_edge(m.sim, g, n[1], n[3]);
    acs_sim_graph_edge(m.sim, g, n[2], n[3]);
    acs_sim_graph_launch(m.sim, 0, s, g);
    launch(&m, 0, s, 1, 1, 100, 4);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1500, 1610);
    /* the two in the middle are ready together; the front end takes 20 for one */
    assert_int_equal(m.seen[1].start + m.seen[2].start, 1660 + 1680);
    assert_span(&m, 3, 1840, 1950);
    assert_span(&m, 4, 2050, 2160);
    assert_int_equal(acs_sim_count(m.sim, 0).graphs, 1);
    finish(&m);
}

static void a_graph_never_overlaps_itself(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0), g = acs_sim_graph(m.sim, 0);
    acs_sim_kernel k = kernel(1, 1, 100);
    acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, NULL);
    acs_sim_graph_launch(m.sim, 0, a, g);
    acs_sim_graph_launch(m.sim, 0, b, g);
    acs_sim_advance(m.sim, 100000);
    assert_int_equal(acs_sim_stream_done(m.sim, a), 1610);
    assert_int_equal(acs_sim_stream_done(m.sim, b), 1610 + 610);
    finish(&m);
}

static void an_empty_graph_ends(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0);
    acs_sim_graph_launch(m.sim, 0, a, acs_sim_graph(m.sim, 0));
    acs_sim_advance(m.sim, 100000);
    assert_int_equal(acs_sim_stream_done(m.sim, a), 1500);
    finish(&m);
}

/*
 * Three roots: the front end takes 80 for each that is off, so the third's turn is after both, and what follows an off one
 * follows its turn.
 */
static void a_node_that_is_off_takes_the_front_end_only(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t s = acs_sim_stream(m.sim, 0), g = acs_sim_graph(m.sim, 0), n[4];
    acs_sim_kernel k = kernel(1, 1, 100);
    for (int i = 0; i < 4; i++)
        n[i] = acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, &m.seen[i]);
    acs_sim_graph_edge(m.sim, g, n[0], n[3]);
    acs_sim_graph_set(m.sim, g, n[0], NULL, NULL);
    acs_sim_graph_set(m.sim, g, n[1], NULL, NULL);
    assert_false(acs_sim_graph_busy(m.sim, g));
    acs_sim_graph_launch(m.sim, 0, s, g);
    assert_true(acs_sim_graph_busy(m.sim, g)); /* from the call on, not from its start */
    acs_sim_advance(m.sim, 100000);
    assert_false(acs_sim_graph_busy(m.sim, g));
    assert_span(&m, 2, 1660, 1770);
    assert_span(&m, 3, 1680, 1790);
    assert_int_equal(acs_sim_count(m.sim, 0).kernels, 2);
    finish(&m);
}

/* The owner's answer about each decided kernel, by the number of blocks it was launched with. */
static uint32_t half_or_none(void *owner, void *user, uint32_t ctas)
{
    const machine *m = owner;
    assert_true(m->seen <= (const span *)user && (const span *)user < m->seen + MOST);
    return ctas == 1 ? 0 : ctas / 2;
}

/*
 * In a graph: a kernel that does not run takes 80 of the front end, and what follows begins behind it; a kernel of 8 blocks
 * that runs with half of them takes one round, not two. By itself a kernel is asked after the head's 150 and the 20 of
 * any launch.
 */
static void the_owner_says_how_many_blocks_a_decided_kernel_has(void **state)
{
    (void)state;
    machine m;
    acs_sim_gpu gpu = small_gpu();
    gpu.device.decided_head = 150;
    start_on(&m, &gpu, 1);
    acs_sim_ask(m.sim, half_or_none);
    uint32_t s = acs_sim_stream(m.sim, 0), g = acs_sim_graph(m.sim, 0), n[3];
    for (int i = 0; i < 3; i++) {
        acs_sim_kernel k = kernel(i == 1 ? 8 : 1, 1, 100);
        k.decided = i < 2;
        n[i] = acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, &m.seen[i]);
        if (i)
            acs_sim_graph_edge(m.sim, g, n[i - 1], n[i]);
    }
    acs_sim_graph_launch(m.sim, 0, s, g);
    acs_sim_advance(m.sim, 10000);
    assert_span(&m, 0, 1500, 1500);
    assert_span(&m, 1, 1580, 1690);
    assert_span(&m, 2, 1740, 1850);
    acs_sim_kernel k = kernel(1, 1, 100);
    k.decided = true;
    acs_sim_launch(m.sim, 10000, s, &k, &m.seen[3]);
    k.ctas = 8;
    acs_sim_launch(m.sim, 10000, s, &k, &m.seen[4]);
    acs_sim_advance(m.sim, 20000);
    assert_span(&m, 3, 11170, 11170);
    assert_span(&m, 4, 11440, 11550);
    finish(&m);
}

static void a_graph_can_be_set_and_made_anew(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t s = acs_sim_stream(m.sim, 0), g = acs_sim_graph(m.sim, 0);
    acs_sim_kernel k = kernel(1, 1, 100), longer = kernel(1, 1, 300);
    uint32_t first = acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, NULL);
    acs_sim_graph_edge(m.sim, g, first, acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, NULL));
    acs_sim_graph_set(m.sim, g, first, &longer, &m.seen[0]);
    acs_sim_graph_launch(m.sim, 0, s, g);
    acs_sim_advance(m.sim, 10000);
    assert_span(&m, 0, 1500, 1810);
    assert_int_equal(acs_sim_stream_done(m.sim, s), 1810 + 50 + 110);
    acs_sim_graph_clear(m.sim, g);
    acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, &m.seen[1]);
    acs_sim_graph_launch(m.sim, 10000, s, g);
    acs_sim_advance(m.sim, 20000);
    assert_span(&m, 1, 11500, 11610);
    assert_int_equal(acs_sim_count(m.sim, 0).kernels, 3);
    finish(&m);
}

static void a_device_launch_costs_its_hop(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), g = acs_sim_graph(m.sim, 0);
    acs_sim_kernel k = kernel(1, 1, 100);
    uint32_t first = acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_FIXED, &m.seen[0]);
    uint32_t second = acs_sim_graph_node(m.sim, g, &k, ACS_SIM_NODE_RELEASED, &m.seen[1]);
    acs_sim_graph_edge(m.sim, g, first, second);
    acs_sim_graph_launch(m.sim, 0, a, g);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 1, 1610 + 3000, 1610 + 3000 + 110);
    finish(&m);
}

static void an_endless_kernel_keeps_its_stream(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0), b = acs_sim_stream(m.sim, 0);
    launch(&m, 0, a, 1, 1, ACS_SIM_NEVER, 0);
    launch(&m, 0, a, 1, 1, 1, 1);
    launch(&m, 0, b, 1, 1, 1, 2);
    acs_sim_advance(m.sim, 1000000);
    assert_int_equal(acs_sim_next(m.sim), ACS_SIM_NEVER);
    assert_int_equal(acs_sim_stream_done(m.sim, a), ACS_SIM_NEVER);
    assert_int_equal(m.seen[0].starts, 1);
    assert_int_equal(m.seen[0].ends + m.seen[1].starts, 0);
    assert_int_equal(m.seen[2].ends, 1);
    finish(&m);
}

static void delays_take_their_stream(void **state)
{
    (void)state;
    machine m;
    start(&m);
    uint32_t a = acs_sim_stream(m.sim, 0);
    acs_sim_delay(m.sim, 0, a, 40, &m.seen[0]);
    acs_sim_delay(m.sim, 0, a, 0, &m.seen[1]);
    acs_sim_advance(m.sim, 100000);
    assert_span(&m, 0, 1000, 1040);
    assert_span(&m, 1, 1140, 1140);
    finish(&m);
}

/* A random program, advanced in one step or in many: the same spans; and kernels of a stream never overlap. */
static void run_random(uint64_t seed, uint64_t step, span *seen)
{
    machine m;
    acs_random random = {seed};
    uint32_t streams[3], events[4];
    start(&m);
    for (int i = 0; i < 3; i++)
        streams[i] = acs_sim_stream(m.sim, 0);
    for (int i = 0; i < 4; i++)
        events[i] = acs_sim_event(m.sim);
    for (int i = 0; i < MOST; i++) {
        uint32_t s = streams[acs_random_below(&random, 3)], e = events[acs_random_below(&random, 4)];
        uint64_t now = (uint64_t)i * 10;
        for (uint64_t at = 0; step && at < now; at += step)
            acs_sim_advance(m.sim, now - now % step);
        if (acs_random_below(&random, 3) == 0)
            acs_sim_record(m.sim, now, s, e);
        else if (acs_random_below(&random, 3) == 0)
            acs_sim_wait(m.sim, now, s, e);
        launch(&m, now, s, 1 + acs_random_below(&random, 9), 1 + acs_random_below(&random, 90),
               acs_random_below(&random, 900), i);
    }
    for (uint64_t at = 0; step && acs_sim_next(m.sim) != ACS_SIM_NEVER; at += step)
        acs_sim_advance(m.sim, at);
    acs_sim_advance(m.sim, 10000000);
    memcpy(seen, m.seen, sizeof m.seen);
    finish(&m);
}

static void it_does_not_matter_how_far_one_looks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        span once[MOST], often[MOST];
        run_random(seed, 0, once);
        run_random(seed, 7, often);
        assert_memory_equal(once, often, sizeof once);
        for (int i = 0; i < MOST; i++)
            assert_int_equal(once[i].ends, 1);
    }
}

static void models_are_found_by_name(void **state)
{
    (void)state;
    for (uint32_t i = 0; acs_sim_gpu_at(i); i++)
        assert_ptr_equal(acs_sim_gpu_find(acs_sim_gpu_at(i)->name), acs_sim_gpu_at(i));
    assert_non_null(acs_sim_gpu_find("h200"));
    assert_null(acs_sim_gpu_find("h2000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stream_is_a_chain),
        cmocka_unit_test(streams_share_the_front_end),
        cmocka_unit_test(blocks_wait_for_room),
        cmocka_unit_test(shared_memory_and_registers_limit),
        cmocka_unit_test(what_fits_nowhere_takes_a_multiprocessor),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(waits_mean_the_record_before_them),
        cmocka_unit_test(a_queue_blocks_at_its_head),
        cmocka_unit_test(only_so_many_kernels_run),
        cmocka_unit_test(copies_hold_engines_and_links),
        cmocka_unit_test(graphs_follow_their_edges),
        cmocka_unit_test(a_graph_never_overlaps_itself),
        cmocka_unit_test(an_empty_graph_ends),
        cmocka_unit_test(a_node_that_is_off_takes_the_front_end_only),
        cmocka_unit_test(the_owner_says_how_many_blocks_a_decided_kernel_has),
        cmocka_unit_test(a_graph_can_be_set_and_made_anew),
        cmocka_unit_test(a_device_launch_costs_its_hop),
        cmocka_unit_test(an_endless_kernel_keeps_its_stream),
        cmocka_unit_test(delays_take_their_stream),
        cmocka_unit_test(it_does_not_matter_how_far_one_looks),
        cmocka_unit_test(models_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
