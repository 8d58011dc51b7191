/*
 * The machine: what memory may show to which thread (see model.h), who holds which mutex, and which plain accesses race.
 * Called by explore.c with one operation at a time and the choice of what a load returns; by hooks.c for plain accesses.
 * Never decides who runs.
 *
 * A view says, per location, the oldest store that a thread may still read. Beside it goes a vector clock of
 * happens-before, which seq_cst fences do not move: they order what is seen and synchronise with nobody.
 */
#include "internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct knowledge {
    uint32_t before[MODEL_THREADS]; /* happens-before */
    uint16_t view[MODEL_OBJECTS];
} knowledge;

typedef struct store {
    uint64_t value;
    uint32_t event; /* of its thread; 0: there from the start */
    int thread;
    knowledge released;
} store;

/* An atomic location or a mutex. */
typedef struct object {
    uintptr_t at;
    uint32_t bytes, count; /* stores; 0: not a location */
    uint64_t initial;
    int owner;             /* mutex: thread, or -1 */
    store *stores;
} object;

typedef struct thread_memory {
    knowledge now, to_acquire, released; /* what an acquire fence would add; what the last release fence saw */
} thread_memory;

/* Eight bytes of plain memory. Valid if `stamp` is this execution's. */
typedef struct granule {
    uint32_t stamp;
    uint32_t write_clock, read_clock[MODEL_THREADS];
    uint8_t writer, write_mask, freed, read_mask[MODEL_THREADS];
    const void *wrote, *read[MODEL_THREADS]; /* the code that did */
} granule;

static object g_objects[MODEL_OBJECTS];
static uint32_t g_object_count;
static thread_memory g_threads[MODEL_THREADS];
static knowledge g_sc; /* its view: what seq_cst operations agree on */
static granule *g_granules;
static uint32_t g_stamp;
model_weakened g_weakened;

/* ---------------------------------------------------------------------------------------------------------- objects */

static uint64_t raw_read(uintptr_t at, uint32_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)at, bytes); /* little endian */
    return value;
}

/* Plain memory always holds the newest value, for setup, check and debuggers. */
static void raw_write(uintptr_t at, uint32_t bytes, uint64_t value)
{
    memcpy((void *)at, &value, bytes);
}

int machine_name(uintptr_t at)
{
    for (uint32_t i = 0; i < g_object_count; i++)
        if (g_objects[i].at == at)
            return (int)i;
    if (g_object_count == MODEL_OBJECTS)
        model_fail("the explorer has room for %d atomic locations and mutexes", MODEL_OBJECTS);
    object *new = &g_objects[g_object_count];
    store *stores = new->stores;
    *new = (object){.at = at, .owner = -1, .stores = stores};
    return (int)g_object_count++;
}

static store *add_store(object *o, uint64_t value, int thread, uint32_t event)
{
    if (o->count == MODEL_STORES)
        model_fail("the explorer has room for %d stores to one location", MODEL_STORES);
    store *s = &o->stores[o->count++];
    s->value = value;
    s->thread = thread;
    s->event = event;
    memset(&s->released, 0, sizeof s->released);
    return s;
}

static int location(const model_op *op)
{
    int i = machine_name(op->at);
    object *o = &g_objects[i];
    if (!o->stores && !(o->stores = malloc(MODEL_STORES * sizeof *o->stores)))
        model_fail("no memory");
    if (o->count == 0) {
        o->bytes = op->bytes;
        o->initial = raw_read(op->at, op->bytes);
        add_store(o, o->initial, 0, 0);
    }
    return i;
}

void machine_reset(void)
{
    g_object_count = 0;
    memset(g_threads, 0, sizeof g_threads);
    memset(&g_sc, 0, sizeof g_sc);
    if (!g_granules && !(g_granules = calloc(arena_granules(), sizeof *g_granules)))
        abort();
    g_stamp++;
    for (int t = 0; t < MODEL_THREADS; t++)
        g_threads[t].now.before[t] = 1;
}

void machine_restore(void)
{
    for (uint32_t i = 0; i < g_object_count; i++)
        if (g_objects[i].count)
            raw_write(g_objects[i].at, g_objects[i].bytes, g_objects[i].initial);
}

/* -------------------------------------------------------------------------------------------------------- knowledge */

static void learn_view(knowledge *to, const knowledge *from)
{
    for (uint32_t i = 0; i < g_object_count; i++)
        if (to->view[i] < from->view[i])
            to->view[i] = from->view[i];
}

static void learn(knowledge *to, const knowledge *from)
{
    learn_view(to, from);
    for (int t = 0; t < MODEL_THREADS; t++)
        if (to->before[t] < from->before[t])
            to->before[t] = from->before[t];
}

void machine_spawn(int parent, int child)
{
    learn(&g_threads[child].now, &g_threads[parent].now);
}

void machine_join(int thread, int ended)
{
    learn(&g_threads[thread].now, &g_threads[ended].now);
}

static bool acquires(int order)
{
    return order == memory_order_acquire || order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static bool releases(int order)
{
    return order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst;
}

/* --------------------------------------------------------------------------------------------------------- operations */

static int order_of(const model_op *op, bool failed)
{
    int order = failed ? op->fail_order : op->order;
    if (op->site != g_weakened.site || g_weakened.fail_order != failed)
        return order;
    return order == memory_order_seq_cst ? memory_order_acq_rel : memory_order_relaxed;
}

/*
 * The store that a choice stands for, or -1: 0 is the newest, then older ones. An older one is offered only where the
 * thread depends on the newer in some other way: else the execution in which this load comes first shows the same.
 */
static int readable(int thread, const model_op *op, int choice)
{
    int l = location(op);
    const object *o = &g_objects[l];
    int oldest = g_threads[thread].now.view[l];
    if (order_of(op, false) == memory_order_seq_cst && oldest < g_sc.view[l])
        oldest = g_sc.view[l];
    int at = (int)o->count - 1;
    for (int offered = 0;; at--) {
        /* An older store fails a compare-exchange, or cannot be read by one: success needs the newest. */
        bool counts = at == (int)o->count - 1 || op->kind == MODEL_LOAD || o->stores[at].value != op->expected;
        if (counts && offered++ == choice)
            return at;
        if (at <= oldest)
            return -1;
        if (!model_unreduced() && !model_in_past(thread, o->stores[at].thread, o->stores[at].event))
            return -1;
    }
}

int machine_choices(int thread, const model_op *op)
{
    int choices = 1;
    if (op->kind == MODEL_LOAD || op->kind == MODEL_CAS)
        while (readable(thread, op, choices) >= 0)
            choices++;
    return choices;
}

static void read_from(thread_memory *m, int l, int at, int order)
{
    const store *from = &g_objects[l].stores[at];
    if (m->now.view[l] < at)
        m->now.view[l] = (uint16_t)at;
    learn(acquires(order) ? &m->now : &m->to_acquire, &from->released);
}

/* `read`: the store that a read-modify-write follows, whose release sequence it continues. */
static void write_to(int thread, int l, uint64_t value, int order, uint32_t event, const store *read)
{
    thread_memory *m = &g_threads[thread];
    object *o = &g_objects[l];
    store *s = add_store(o, value, thread, event);
    uint16_t at = (uint16_t)(o->count - 1);
    m->now.view[l] = at;
    s->released = releases(order) ? m->now : m->released;
    if (read)
        learn(&s->released, &read->released);
    s->released.view[l] = at;
    if (order == memory_order_seq_cst)
        g_sc.view[l] = at;
    raw_write(o->at, o->bytes, value);
}

static uint64_t truncated(uint64_t value, uint32_t bytes)
{
    return bytes == 8 ? value : value & ((1ull << 8 * bytes) - 1);
}

static void access_location(int thread, model_op *op, int choice, uint32_t event)
{
    int l = location(op);
    object *o = &g_objects[l];
    thread_memory *m = &g_threads[thread];
    const store *last = &o->stores[o->count - 1];
    op->newest = last->value;
    if (op->kind == MODEL_STORE) {
        write_to(thread, l, op->operand, order_of(op, false), event, NULL);
        op->value = op->operand;
        return;
    }
    int at = op->kind == MODEL_LOAD || op->kind == MODEL_CAS ? readable(thread, op, choice) : (int)o->count - 1;
    op->value = o->stores[at].value;
    op->done = op->kind != MODEL_CAS || (at == (int)o->count - 1 && op->value == op->expected);
    int order = order_of(op, !op->done);
    read_from(m, l, at, order);
    if (op->kind == MODEL_LOAD || !op->done)
        return;
    uint64_t new = op->kind == MODEL_ADD ? truncated(op->value + op->operand, op->bytes) : op->operand;
    write_to(thread, l, new, order, event, last);
}

static void fence(int thread, int order)
{
    thread_memory *m = &g_threads[thread];
    if (acquires(order))
        learn(&m->now, &m->to_acquire);
    if (order == memory_order_seq_cst) {
        learn_view(&m->now, &g_sc);
        learn_view(&g_sc, &m->now);
    }
    if (releases(order))
        m->released = m->now;
}

/* A mutex is one store, that of its last unlock. */
static void mutex_take(int thread, uintptr_t mutex)
{
    object *o = &g_objects[machine_name(mutex)];
    o->owner = thread;
    if (o->count)
        learn(&g_threads[thread].now, &o->stores[0].released);
}

static void mutex_give(int thread, uintptr_t mutex)
{
    object *o = &g_objects[machine_name(mutex)];
    if (o->owner != thread)
        model_fail("a mutex is given up by a thread that does not hold it");
    o->owner = -1;
    if (!o->stores && !(o->stores = malloc(MODEL_STORES * sizeof *o->stores)))
        model_fail("no memory");
    if (!o->count)
        add_store(o, 0, thread, 0); /* of no bytes: nothing is written back */
    o->stores[0].released = g_threads[thread].now;
}

bool machine_mutex_free(uintptr_t mutex)
{
    return g_objects[machine_name(mutex)].owner < 0;
}

void machine_perform(int thread, model_op *op, int choice, uint32_t index)
{
    switch (op->kind) {
    case MODEL_FENCE:
        fence(thread, order_of(op, false));
        break;
    case MODEL_LOCK:
        mutex_take(thread, op->at);
        break;
    case MODEL_RELOCK:
        mutex_take(thread, op->mutex);
        break;
    case MODEL_UNLOCK:
        mutex_give(thread, op->at);
        break;
    case MODEL_WAIT:
        mutex_give(thread, op->mutex);
        break;
    case MODEL_WAKE:
    case MODEL_SPAWN:
    case MODEL_JOIN:
    case MODEL_EXIT:
        break;
    default:
        access_location(thread, op, choice, index);
    }
    g_threads[thread].now.before[thread]++;
}

/* ------------------------------------------------------------------------------------------------------ plain memory */

static granule *granule_at(size_t i)
{
    granule *g = &g_granules[i];
    if (g->stamp != g_stamp) {
        memset(g, 0, sizeof *g);
        g->stamp = g_stamp;
    }
    return g;
}

/* Addresses as addr2line wants them. */
static _Noreturn void race(int thread, bool write, const void *code, int other, bool wrote, const void *code_of_other)
{
    extern char __executable_start; /* the linker's */
    model_fail("data race: %c %s (addr2line %#lx), behind %s, what %c %s (addr2line %#lx)", 'a' + thread,
               write ? "writes" : "reads", (unsigned long)((const char *)code - &__executable_start - 1),
               model_place(thread), 'a' + other, wrote ? "wrote" : "reads",
               (unsigned long)((const char *)code_of_other - &__executable_start - 1));
}

static void access_granule(granule *g, int thread, uint8_t bytes, bool write, const void *caller)
{
    const uint32_t *before = g_threads[thread].now.before;
    if (g->freed)
        model_fail("use after free by %c, behind %s", 'a' + thread, model_place(thread));
    if ((g->write_mask & bytes) && g->write_clock > before[g->writer])
        race(thread, write, caller, g->writer, true, g->wrote);
    if (!write) {
        g->read_mask[thread] = g->read_clock[thread] == before[thread] ? g->read_mask[thread] | bytes : bytes;
        g->read_clock[thread] = before[thread];
        g->read[thread] = caller;
        return;
    }
    for (int t = 0; t < MODEL_THREADS; t++)
        if ((g->read_mask[t] & bytes) && g->read_clock[t] > before[t])
            race(thread, true, caller, t, false, g->read[t]);
    bool same = g->writer == thread && g->write_clock == before[thread];
    g->write_mask = same ? g->write_mask | bytes : bytes;
    g->writer = (uint8_t)thread;
    g->wrote = caller;
    g->write_clock = before[thread];
}

void machine_plain(const void *at, size_t bytes, bool write, const void *caller)
{
    int thread = model_current();
    size_t first = arena_granule(at);
    if (thread < 0 || first == SIZE_MAX)
        return;
    size_t from = (uintptr_t)at & 7, to = from + bytes;
    for (size_t i = 0; 8 * i < to; i++) {
        unsigned mask = 0xff;
        if (i == 0)
            mask &= 0xffu << from;
        if (to < 8 * i + 8)
            mask &= (1u << (to - 8 * i)) - 1;
        access_granule(granule_at(first + i), thread, (uint8_t)mask, write, caller);
    }
}

void machine_freed(const void *at, size_t bytes)
{
    machine_plain(at, bytes, true, __builtin_return_address(0));
    for (size_t i = 0; model_current() >= 0 && i < (bytes + 7) / 8; i++)
        granule_at(arena_granule(at) + i)->freed = 1;
}
