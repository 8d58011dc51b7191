/*
 * Bundles made by hand (bundle.h). Called by the issue methods' tests and their benchmark, from one thread; stands for
 * the core, which hands what bounces to plain launches.
 */
#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------- the world */

bool bundle_open(bundle_world *world)
{
    static acs_options options;
    acs_backend_config config = {.devices = 1, .options = &options, .slots = BUNDLE_SLOTS, .mark_capacity = BUNDLE_MARKS};
    memset(world, 0, sizeof *world);
    world->batch = &world->own_batch;
    bundle_prepare();
    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return false;
    options.issuers = 0; /* an op that bounced is launched with its value again, before launch() returns */
    if (acs_backend_cuda.open(&config, &world->backend) != ACS_OK ||
        acs_record_pool_create(BUNDLE_SLOTS * BUNDLE_RECORDS, &world->pool) != ACS_OK)
        return false;
    (void)acs_backend_cuda.decider(world->backend); /* bundles from the first op on */
    acs_backend_cuda.thread_enter(world->backend);
    for (int s = 0; s < BUNDLE_SLOTS; s++) {
        void *cells = NULL;
        size_t bytes = sizeof world->slot[s].model;
        if (acs_backend_cuda.memory_alloc(world->backend, ACS_MEMORY_DEVICE, bytes, &cells) != ACS_OK ||
            !bundle_zero(cells, bytes))
            return false;
        world->slot[s].cells = cells;
    }
    return true;
}

void bundle_close(bundle_world *world)
{
    for (int s = 0; s < BUNDLE_SLOTS; s++) {
        bundle_wait(world, s);
        (void)acs_backend_cuda.memory_free(world->backend, ACS_MEMORY_DEVICE, world->slot[s].cells);
    }
    acs_backend_cuda.close(world->backend);
    for (int s = 0; s < BUNDLE_SLOTS; s++)
        for (int i = 0; i < BUNDLE_RECORDS; i++)
            if (world->records[s][i])
                acs_record_release(world->pool, world->records[s][i]);
    acs_record_pool_destroy(world->pool);
}

uint32_t bundle_differences(bundle_world *world, int slot)
{
    static uint32_t seen[BUNDLE_CELLS][BUNDLE_WORDS];
    uint32_t differences = 0;
    if (!bundle_read(seen, world->slot[slot].cells, sizeof seen))
        return UINT32_MAX;
    for (int i = 0; i < BUNDLE_CELLS; i++)
        differences += memcmp(seen[i], world->slot[slot].model[i], sizeof seen[i]) != 0;
    return differences;
}

/* -------------------------------------------------------------------------------------------------------- the ops */

static void arg_add(acs_record *r, const void *value, uint32_t bytes)
{
    acs_arg_slot *arg = &r->args[r->arg_count++];
    r->arg_bytes_used = (r->arg_bytes_used + 15) / 16 * 16;
    *arg = (acs_arg_slot){.offset = r->arg_bytes_used, .size = bytes};
    memcpy(r->arg_bytes + r->arg_bytes_used, value, bytes);
    r->arg_bytes_used += bytes;
}

static void args_write(acs_record *r, const bundle_op *op, uint32_t *to, uint32_t *const *from)
{
    uint8_t low = (uint8_t)op->salt;
    bundle_odd odd = {(short)(op->salt >> 8 & 0x7f), (double)(op->salt >> 15), 3};
    bundle_large large = {{op->salt}};
    large.words[47] = 5;
    if (op->kernel == 1) {
        arg_add(r, &low, 1);
        arg_add(r, &to, 8);
        arg_add(r, &odd, sizeof odd);
    } else if (op->kernel == 2) {
        arg_add(r, &large, sizeof large);
        arg_add(r, &to, 8);
    } else if (op->kernel != 3) {
        arg_add(r, &to, 8);
    }
    for (int i = 0; i < 3; i++)
        arg_add(r, &from[i], 8);
    if (op->kernel != 1 && op->kernel != 2)
        arg_add(r, &op->salt, 4);
    if (op->kernel == 3)
        arg_add(r, &to, 8);
}

static void model_step(bundle_slot *slot, const bundle_op *op)
{
    uint32_t salt = op->salt;
    if (op->kernel == 1)
        salt = (uint8_t)op->salt + ((op->salt >> 8 & 0x7f) << 8) + (op->salt >> 15) + 3;
    if (op->kernel == 2)
        salt = op->salt + 5;
    salt += op->grid.x * 977 + op->grid.y * 31 + op->grid.z;
    for (int i = 0; i < BUNDLE_WORDS; i++) {
        uint32_t in[3];
        for (int k = 0; k < 3; k++)
            in[k] = op->from[k] < 0 ? 0 : slot->model[op->from[k]][i];
        slot->model[op->to][i] = bundle_mix(slot->model[op->to][i], in[0], in[1], in[2], salt);
    }
}

acs_record *bundle_record(bundle_world *world, int slot, const bundle_op *op)
{
    static const acs_site site = {"op", __FILE__, __LINE__};
    bundle_slot *s = &world->slot[slot];
    acs_record **place = &world->records[slot][s->records++ % BUNDLE_RECORDS], *r = *place;
    if (!r) {
        r = *place = acs_record_acquire(world->pool);
        if (!r || acs_record_reserve(world->pool, r, 8, 512, 0) != ACS_OK)
            abort();
    }
    r->arg_count = r->arg_bytes_used = 0;
    r->site = &site;
    r->kind = ACS_KIND_KERNEL;
    r->u.launch.kernel = (acs_kernel){.kind = ACS_KERNEL_FUNCTION, .function = bundle_kernel(op->kernel)};
    r->grid = op->grid;
    r->u.launch.block = (acs_dim3){op->kernel == 1 ? 64 : 32, 1, 1};
    r->u.launch.shared_bytes = op->kernel == 3 ? 128 : 0;
    r->u.launch.attributes = (acs_attributes){.priority = 0};
    uint32_t *from[3];
    for (int k = 0; k < 3; k++)
        from[k] = op->from[k] < 0 ? NULL : s->cells + (size_t)op->from[k] * BUNDLE_WORDS;
    args_write(r, op, s->cells + (size_t)op->to * BUNDLE_WORDS, from);
    acs_status status = acs_backend_cuda.check(world->backend, r);
    /*
     * A kernel that seems to take long, as one does where a CPU runs it, may ride now and then only: this is such a
     * time.
     */
    for (int i = 0; status == ACS_OK && !r->type && i < 1024; i++)
        status = acs_backend_cuda.check(world->backend, r);
    if (status != ACS_OK) {
        fprintf(stderr, "check: %s\n", acs_error_thread()->text);
        abort();
    }
    if (op->kernel != BUNDLE_SPIN)
        model_step(s, op);
    return r;
}

/* ---------------------------------------------------------------------------------------------------------- bundles */

void bundle_begin(bundle_world *world, acs_issue_method method)
{
    acs_batch *b = world->batch;
    b->items_used = b->waits_used = b->marks_used = b->edges_used = 0;
    b->bundle = true;
    b->method = (uint8_t)method;
}

uint32_t bundle_add(bundle_world *world, int slot, acs_record *record, const uint16_t *after, uint32_t count)
{
    acs_batch *b = world->batch;
    acs_item *item = &b->items[b->items_used];
    memset(item, 0, sizeof *item);
    item->op = record;
    item->slot = (int16_t)(record ? slot : -1);
    item->first_edge = (uint16_t)b->edges_used;
    item->edge_count = (uint16_t)count;
    for (uint32_t i = 0; i < count; i++)
        b->edges[b->edges_used++] = after[i];
    return b->items_used++;
}

static void launch_one_by_one(bundle_world *world)
{
    static acs_batch one_by_one;
    const acs_batch *b = world->batch;
    one_by_one.items_used = 0;
    for (uint32_t i = 0; i < b->items_used; i++) /* edges go: the stream orders them all */
        if (b->items[i].op) {
            one_by_one.items[one_by_one.items_used] = b->items[i];
            one_by_one.items[one_by_one.items_used++].edge_count = 0;
        }
    acs_backend_cuda.submit(world->backend, &one_by_one);
}

acs_issue_method bundle_submit(bundle_world *world, int slot, acs_status *status)
{
    acs_batch *b = world->batch;
    bundle_slot *s = &world->slot[slot];
    acs_item *last = NULL;
    for (uint32_t i = 0; i < b->items_used; i++)
        if (b->items[i].op) {
            last = &b->items[i];
            last->value = ++s->issued;
        }
    while (s->marked - s->first == BUNDLE_MARKS)
        bundle_poll(world, slot);
    last->mark_after = true;
    last->after = (acs_mark){.slot = (uint16_t)slot, .index = (uint16_t)(s->marked % BUNDLE_MARKS), .value = last->value};
    s->marks[s->marked++ % BUNDLE_MARKS] = last->after;
    acs_backend_cuda.submit(world->backend, b);
    *status = b->items[0].status;
    if (*status == ACS_OK)
        return (acs_issue_method)b->method;
    launch_one_by_one(world);
    return ACS_METHOD_LAUNCH;
}

void bundle_poll(bundle_world *world, int slot)
{
    bundle_slot *s = &world->slot[slot];
    acs_mark list[BUNDLE_MARKS];
    uint32_t count = 0;
    for (uint32_t i = s->first; i != s->marked; i++)
        list[count++] = s->marks[i % BUNDLE_MARKS];
    if (count && acs_backend_cuda.poll(world->backend, slot, list, count, &s->completed) != ACS_OK) {
        fprintf(stderr, "poll: %s\n", acs_error_thread()->text);
        exit(1);
    }
    while (s->first != s->marked && s->marks[s->first % BUNDLE_MARKS].value <= s->completed)
        s->first++;
}

void bundle_wait(bundle_world *world, int slot)
{
    while (world->slot[slot].completed < world->slot[slot].issued)
        bundle_poll(world, slot);
}
