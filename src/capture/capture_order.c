/*
 * The order of captured ops (see capture_order.h): from the dependencies that the window finds to edges of a graph.
 * Called by capture.c and dot.c, each under its own lock. It adds no node itself, except for joins through its
 * configuration. It never forgets a dependency: where it runs short of room it adds more order.
 */
#include "capture/capture_order.h"

#include "base/tuning.h"
#include "capture/reduction.h"
#include "window/window.h"

enum { REACH_WORDS = TUNE_CAPTURE_REACH / 64 };

/* A node that an op may have to run behind. */
typedef struct upstream {
    void *node;
    uint64_t number;     /* number of the op that ends with it */
    uint32_t entry;      /* entry of that op, as long as its generation is this one; 0: none */
    uint32_t generation;
} upstream;

typedef struct upstreams {
    upstream *list;
    uint32_t count, capacity;
} upstreams;

/* End nodes of a window's entry; of a join, those of all ops that it stands for. */
typedef struct knowledge {
    upstreams ends;
    uint32_t generation;
    uint32_t uses;  /* of a join: number of ops that used it */
    bool followed;  /* whether an op that is no observer comes behind it */
} knowledge;

/* The ops that an op is behind: bit d - 1 is the op with a number lower by d. */
typedef struct reach {
    uint64_t words[REACH_WORDS];
} reach;

struct acs_capture_order {
    acs_capture_order_config config;
    acs_window window;
    knowledge *entries;  /* by index of the window's entries */
    uint32_t *joins;     /* indices of the entries that are joins */
    uint32_t join_count;
    uint32_t sweep_at;   /* number of live ops at which the next sweep is due */
    uint64_t taken, numbers;
    reach ring[TUNE_CAPTURE_REACH]; /* reaches of the latest ops, at their number modulo TUNE_CAPTURE_REACH */
    acs_reduction graph; /* graph of all numbers, for ops further back than the ring */
    uint32_t *kept; /* result of the latest reduction: numbers that the op is behind, then those that these imply */
    uint32_t kept_count, kept_room;
    upstreams found;     /* upstream nodes of the op that is being taken */
    reach found_reach;   /* numbers that that op is behind */
    uint32_t current;    /* its entry */
    bool observing;      /* whether it is an observer */
    bool broken;         /* whether memory ran out, so that a dependency may be lost */
    acs_nodes scratch, made;
};

/* ---------------------------------------------------------------------------------------------------------------- lists */

static bool add_upstream(upstreams *to, const upstream *list, uint32_t count)
{
    if (!ACS_GROW(to->list, to->capacity, (uint64_t)to->count + count))
        return false;
    if (count)
        memcpy(to->list + to->count, list, count * sizeof *list);
    to->count += count;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- reaches */

static bool reach_has(const reach *r, uint64_t distance)
{
    return distance >= 1 && distance <= TUNE_CAPTURE_REACH &&
           (r->words[(distance - 1) / 64] >> ((distance - 1) % 64) & 1);
}

/* Add the op at that distance, and the ops that it is behind. */
static void reach_add(reach *r, const reach *of, uint64_t distance)
{
    if (distance < 1 || distance > TUNE_CAPTURE_REACH)
        return;
    r->words[(distance - 1) / 64] |= 1ull << ((distance - 1) % 64);
    uint32_t skip = (uint32_t)(distance / 64), shift = (uint32_t)(distance % 64);
    for (uint32_t i = REACH_WORDS; i-- > skip;) {
        uint64_t word = of->words[i - skip] << shift;
        if (shift && i > skip)
            word |= of->words[i - skip - 1] >> (64 - shift);
        r->words[i] |= word;
    }
}

static int newest_first(const void *a, const void *b)
{
    const upstream *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Whether an op that follows this one is among the upstream ops, when these are all ops. */
static bool is_followed(const acs_capture_order *o, const upstream *up)
{
    return o->entries[up->entry].followed && o->entries[up->entry].generation == up->generation;
}

/* Write upstream ops to `kept` that no newer upstream op is behind, as far as the ring knows. */
static void keep_near(acs_capture_order *o, const upstreams *from, bool everything, reach *reached)
{
    const uint64_t own = o->numbers + 1;
    memset(reached, 0, sizeof *reached);
    o->kept_count = 0;
    for (uint32_t i = 0; i < from->count;) {
        const uint64_t number = from->list[i].number;
        const bool implied = reach_has(reached, own - number);
        bool kept = false;
        for (; i < from->count && from->list[i].number == number; i++)
            kept |= !implied && !(everything && is_followed(o, &from->list[i]));
        if (!kept)
            continue;
        o->kept[o->kept_count++] = (uint32_t)number;
        reach_add(reached, &o->ring[number % TUNE_CAPTURE_REACH], own - number);
    }
}

/* Reduce `kept`, which is sorted newest first, also by ops further back. Returns the number that is left. */
static uint32_t keep_far(acs_capture_order *o)
{
    if (o->kept_count < 2 || o->numbers + 1 - o->kept[o->kept_count - 1] <= TUNE_CAPTURE_REACH)
        return o->kept_count;
    return acs_reduction_reduce(&o->graph, o->kept, o->kept_count);
}

/*
 * Reduce upstream nodes to `behind`, from the newest op to the oldest: an op that a newer one is behind adds nothing. If
 * the op is behind everything, an op that is followed adds nothing, either.
 */
static bool reduce(acs_capture_order *o, upstreams *from, bool everything, acs_nodes *behind, reach *reached)
{
    behind->count = 0;
    if (!ACS_GROW(o->kept, o->kept_room, from->count))
        return false;
    if (from->count > 1)
        qsort(from->list, from->count, sizeof *from->list, newest_first);
    keep_near(o, from, everything, reached);
    const uint32_t count = keep_far(o);
    for (uint32_t i = 0, k = 0; i < from->count && k < count; i++) {
        const upstream *up = &from->list[i];
        k += up->number < o->kept[k];
        if (k < count && up->number == o->kept[k] && !(everything && is_followed(o, up)) &&
            !acs_nodes_add(behind, up->node))
            return false;
    }
    return true;
}

/* Give the result of the latest reduction a number. 0: no memory. */
static uint64_t number_next(acs_capture_order *o, const reach *reached)
{
    if (!acs_reduction_add(&o->graph, o->kept, o->kept_count)) /* nodes of the graph are numbered like `numbers` */
        return 0;
    uint64_t number = ++o->numbers;
    ACS_ASSERT(number + 1 == o->graph.node_count); /* CAP-2 */
    o->ring[number % TUNE_CAPTURE_REACH] = *reached;
    return number;
}

/* ---------------------------------------------------------------------------------------------------------------- joins */

static void mark_followed(acs_capture_order *o, const upstreams *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        knowledge *known = &o->entries[list->list[i].entry];
        if (list->list[i].entry && known->generation == list->list[i].generation)
            known->followed = true;
    }
}

/*
 * Use a join. From the second use on a large join gets a node: n edges to it and m from it, instead of n times m. The
 * first use goes without, since a node costs time when the graph runs. Without a node the order is the same.
 */
static void join_use(acs_capture_order *o, knowledge *join)
{
    reach reached;
    if (join->uses++ == 0 || join->ends.count <= TUNE_CAPTURE_JOIN_EDGES)
        return;
    o->made.count = 0;
    if (!reduce(o, &join->ends, false, &o->scratch, &reached) ||
        o->config.join(o->config.user, &o->scratch, &o->made) != ACS_OK || o->made.count != 1)
        return;
    const uint64_t number = number_next(o, &reached);
    if (!number) {
        o->broken = true; /* the join node is in the graph already */
        return;
    }
    if (!o->observing)
        mark_followed(o, &join->ends);
    join->ends.list[0] = (upstream){o->made.list[0], number, 0, 0};
    join->ends.count = 1;
}

/* Callback of the window: `down` depends on `up`. */
static void linked(void *user, acs_entry *up, acs_entry *down)
{
    acs_capture_order *o = user;
    knowledge *from = &o->entries[acs_entry_index(&o->window, up)];
    upstreams *to = &o->found;
    if (down->kind == ACS_KIND_JOIN) {
        uint32_t index = acs_entry_index(&o->window, down);
        knowledge *join = &o->entries[index];
        to = &join->ends;
        uint32_t generation = acs_entry_hold(&o->window, down)->generation;
        if (join->generation != generation) {
            join->generation = generation;
            join->uses = 0;
            join->followed = false;
            to->count = 0;
            ACS_ASSERT(o->join_count < o->window.joins);
            o->joins[o->join_count++] = index;
        }
    } else if (up->kind == ACS_KIND_JOIN) {
        join_use(o, from);
    }
    o->broken |= !add_upstream(to, from->ends.list, from->ends.count);
}

/* --------------------------------------------------------------------------------------------------------------- leaving */

static void leave(acs_capture_order *o, acs_entry *entry)
{
    if (entry->kind == ACS_KIND_JOIN) {
        acs_entry_hold(&o->window, entry)->generation++;
        o->window.live_joins--;
        acs_window_free(&o->window, entry);
        return;
    }
    acs_window_end(&o->window, entry, ACS_OK, 0);
    while ((entry = acs_window_pop_ended(&o->window)))
        acs_window_free(&o->window, entry);
}

/*
 * Whether the entry may leave: no region names it any more, so later ops touched its memory, or a later op touched all
 * memory. An op that touches all memory looks at ops, not at regions; so an op that only a join stands for has to stay.
 */
static bool may_leave(const acs_capture_order *o, const acs_entry *entry, uint64_t all_writer)
{
    bool join = entry->kind == ACS_KIND_JOIN;
    if (!entry->touches && !join)
        return true;
    if (entry->own_stamp < all_writer)
        return true;
    return o->window.holds[entry->index].refs == 0 && (join || o->entries[acs_entry_index(&o->window, entry)].followed);
}

static void sweep(acs_capture_order *o)
{
    acs_window *w = &o->window;
    uint64_t all_writer = acs_ref_live(w, w->all_writer) ? w->entries[w->all_writer.entry].own_stamp : 0;
    uint32_t kept = 0;
    for (uint32_t next, i = w->order_head; i; i = next) {
        next = w->entries[i].order_next;
        if (may_leave(o, &w->entries[i], all_writer))
            leave(o, &w->entries[i]);
    }
    for (uint32_t i = 0; i < o->join_count; i++) {
        if (may_leave(o, &w->entries[o->joins[i]], all_writer))
            leave(o, &w->entries[o->joins[i]]);
        else
            o->joins[kept++] = o->joins[i];
    }
    o->join_count = kept;
    o->sweep_at = 2 * w->live + TUNE_CAPTURE_SWEEP_STEP;
}

/* ---------------------------------------------------------------------------------------------------------------- taking */

static bool writes_all(const acs_record *op)
{
    bool all = op->any;
    for (uint32_t i = 0; i < op->segment_count && !all; i++)
        all = op->segments[i].extent == ACS_EXTENT_ALL && (op->segments[i].access & ACS_WRITE);
    return all;
}

/* Insert the op into the window, and reduce the nodes that it depends on. */
static bool insert(acs_capture_order *o, acs_record *op, bool observer, acs_nodes *behind)
{
    const acs_entry_traits traits = {.observer = observer};
    acs_entry *entry;
    o->found.count = 0;
    o->observing = observer;
    op->seq = ++o->taken;
    if (observer)
        op->kind = ACS_KIND_OBSERVE; /* the window ends an observer at once */
    entry = acs_window_insert(&o->window, op, &traits);
    (void)acs_window_pop_ready(&o->window);
    entry->op = NULL;
    o->current = acs_entry_index(&o->window, entry);
    while ((entry = acs_window_pop_ended(&o->window))) /* an observer */
        acs_window_free(&o->window, entry);
    if (o->broken || !reduce(o, &o->found, writes_all(op), behind, &o->found_reach))
        return false;
    if (!observer)
        mark_followed(o, &o->found);
    return true;
}

/*
 * Make a node behind everything, which stands for all ops so far. Without such a node its upstream nodes stand for them.
 */
static bool cut_order(acs_capture_order *o)
{
    acs_record all = {.kind = ACS_KIND_KERNEL, .any = 1};
    uint64_t number;
    all.segments = all.inline_segments; /* no segments, but not NULL */
    if (!insert(o, &all, false, &o->scratch))
        return false;
    o->made.count = 0;
    acs_status made = o->config.join(o->config.user, &o->scratch, &o->made);
    if (acs_capture_order_put(o, made == ACS_OK ? &o->made : &o->scratch, &number) != ACS_OK)
        return false;
    sweep(o);
    return true;
}

static bool has_room(const acs_capture_order *o, const acs_record *op)
{
    return o->window.live < o->config.limit && acs_window_has_room(&o->window, op);
}

/* Make room for one more op. */
static bool make_room(acs_capture_order *o, acs_record *op)
{
    if (o->window.live >= o->sweep_at || !has_room(o, op))
        sweep(o);
    if (!has_room(o, op) && !cut_order(o))
        return false;
    /* An op with more segments than the window has joins counts as one that may touch any memory. */
    if (!has_room(o, op))
        op->any = 1;
    return true;
}

acs_status acs_capture_order_take(acs_capture_order *o, acs_record *op, bool observer, acs_nodes *behind)
{
    if (o->config.in_order)
        op->any = 1;
    if (o->broken || !make_room(o, op) || !insert(o, op, observer, behind)) {
        o->broken = true;
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%s': no memory for the order of captured ops; the capture cannot go on",
                        acs_record_name(op));
    }
    return ACS_OK;
}

static const upstream *upstream_of(const acs_capture_order *o, const void *node)
{
    for (uint32_t i = 0; i < o->found.count; i++)
        if (o->found.list[i].node == node)
            return &o->found.list[i];
    return NULL;
}

/*
 * Whether the op has no node of its own, and ends with nodes of upstream ops. These keep their ops' numbers, which tell
 * more exactly what is behind what. If it has any end of its own, all ends get its number, since it is behind its
 * upstream ops with all of them.
 */
static bool is_transparent(const acs_capture_order *o, const acs_nodes *ends)
{
    for (uint32_t i = 0; i < ends->count; i++)
        if (!upstream_of(o, ends->list[i]))
            return false;
    return true;
}

acs_status acs_capture_order_put(acs_capture_order *o, const acs_nodes *ends, uint64_t *number)
{
    knowledge *known = &o->entries[o->current];
    *number = number_next(o, &o->found_reach);
    o->broken |= !*number;
    known->generation = o->window.holds[o->current].generation;
    known->followed = false;
    known->ends.count = 0;
    ACS_ASSERT(o->current != 0 && o->current <= o->window.entry_count);
    bool transparent = is_transparent(o, ends);
    for (uint32_t i = 0; i < ends->count; i++) {
        upstream end = {ends->list[i], *number, o->current, known->generation};
        if (transparent)
            end.number = upstream_of(o, end.node)->number;
        o->broken |= !add_upstream(&known->ends, &end, 1);
    }
    return o->broken ? ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the order of captured ops; the capture cannot go on")
                     : ACS_OK;
}

bool acs_capture_order_implies(const acs_capture_order *o, uint64_t number)
{
    ACS_ASSERT(number <= o->numbers);
    return reach_has(&o->found_reach, o->numbers + 1 - number);
}

/* --------------------------------------------------------------------------------------------------- create and destroy */

acs_status acs_capture_order_create(const acs_capture_order_config *config, acs_capture_order **order)
{
    acs_capture_order *o = calloc(1, sizeof *o);
    if (!o)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the order of captured ops");
    o->config = *config;
    /* One place more, for the op that stands for all others once there are too many. */
    const acs_window_config window = {.limit = config->limit + 1, .slots = 1, .linked = linked, .user = o};
    acs_status status = acs_window_init(&o->window, &window);
    if (status == ACS_OK) {
        o->entries = calloc((size_t)o->window.entry_count + 1, sizeof *o->entries);
        o->joins = calloc(o->window.joins, sizeof *o->joins);
        if (!o->entries || !o->joins)
            status = ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the order of captured ops");
    }
    o->sweep_at = TUNE_CAPTURE_SWEEP_STEP;
    if (status != ACS_OK) {
        acs_capture_order_destroy(o);
        return status;
    }
    *order = o;
    return ACS_OK;
}

void acs_capture_order_destroy(acs_capture_order *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; o->entries && i <= o->window.entry_count; i++)
        free(o->entries[i].ends.list);
    if (o->window.entries)
        acs_window_fini(&o->window);
    free(o->entries);
    free(o->joins);
    free(o->found.list);
    free(o->kept);
    acs_reduction_fini(&o->graph);
    acs_nodes_fini(&o->scratch);
    acs_nodes_fini(&o->made);
    free(o);
}
