/*
 * Private to src/simulator/sim*.c: the backend's state. sim_issue.c takes batches to the machine, sim_bundle.c
 * bundles, by the issue methods of sim_method.c. sim.c lets time pass, runs bodies and polls; sim_faults.c decides on
 * faults.
 */
#ifndef ACS_BACKEND_SIM_INTERNAL_H
#define ACS_BACKEND_SIM_INTERNAL_H

#include "host/host_kernel.h"
#include "simulator/sim.h"
#include "base/lock.h"
#include "bundles/dag.h"
#include "bundles/graph_cache.h"
#include "window/replay.h"

/*
 * How the seed decides on times of ops; one strategy per seed. Each makes another kind of missing order likely to
 * show.
 */
typedef enum acs_sim_strategy {
    ACS_SIM_UNIFORM, /* any time */
    ACS_SIM_NEWEST,  /* an op ends before those that already run, so it overtakes all that it need not wait for */
    ACS_SIM_STARVE,  /* the ops of one slot end when nothing else runs */
    ACS_SIM_EAGER,   /* all ops run and are seen at the first poll, as on an infinitely fast GPU */
    ACS_SIM_STRATEGIES
} acs_sim_strategy;

/* Native codes of injected failures: those that cost the device, and of memory. */
enum { ACS_SIM_NATIVE_EVENT = 720, ACS_SIM_NATIVE_LOST, ACS_SIM_NATIVE_MEMORY };

typedef struct acs_sim_mark {
    uint32_t event;     /* number of the machine's event, plus 1; 0: never recorded */
    uint64_t value;     /* value of the latest record */
} acs_sim_mark;

enum {
    ACS_SIM_NEWS = 4,              /* reports of progress inside bundles that a slot keeps until they are seen */
    ACS_SIM_EXECUTOR_GRAPHS = 8    /* most bundles in executors at once */
};

typedef struct acs_sim_slot {
    uint32_t stream;
    uint64_t value;     /* highest value of any op or mark */
    uint64_t visible;   /* highest value that poll has shown */
    uint32_t late;      /* consecutive polls that hid a completion */
    uint8_t share;      /* of its last op */
    uint32_t first_sm;  /* multiprocessors of that share, from this one on */
    uint64_t known_at;  /* time at which the host can know the completion looked at last */
    struct {
        uint64_t value, at;
    } news[ACS_SIM_NEWS]; /* all ops up to `value` had ended at `at`; oldest first */
    uint32_t news_used;
} acs_sim_slot;

/* A bundle that was issued and has not ended. */
typedef struct acs_sim_bundle {
    uint32_t slot;
    uint64_t first;                       /* value of its first op */
    uint32_t ops, prefix;                 /* number of first ops that are known to have ended */
    uint32_t works;                       /* works that have not ended */
    bool tells_end;                       /* whether the end of its last op is reported, too */
    uint64_t ended[ACS_BATCH_ITEMS / 64]; /* ops that have ended */
    struct acs_sim_bundle *next;          /* next unused bundle */
} acs_sim_bundle;

/* The machine's `user` of an item or node: an op. */
typedef struct acs_sim_work {
    acs_record *op;
    acs_sim_bundle *bundle; /* NULL: a plain launch */
    uint32_t position;      /* position among the bundle's ops */
    struct acs_sim_work *next; /* next unused work */
} acs_sim_work;

/* The shape of the bundle being issued, and the state of the issue methods. */
typedef struct acs_sim_methods {
    acs_dag dag;
    acs_batch replay;           /* the replay that is being issued, as a bundle */
    uint64_t budget;            /* most nodes of cached graphs */
    acs_graph_cache *cache;      /* objects: numbers of the machine's graphs, plus 1 */
    acs_random random;          /* apart from `random`, so that the seed's choices for ops do not depend on bundles */
    uint32_t sightings_least;   /* sightings of a shape before its graph is built */
    uint32_t *spare;            /* unused graphs of the machine */
    uint32_t spare_used, spare_capacity;
    uint32_t executor_graph[ACS_SIM_EXECUTOR_GRAPHS], executor_graphs;
    uint32_t type_count;
    struct acs_sim_type *types;
} acs_sim_methods;

typedef struct acs_sim_state {
    acs_backend base;
    uint32_t slots, mark_capacity;
    bool by_seed;
    uint32_t bundles_after;   /* items until bundles may come; UINT32_MAX: none come */
    acs_sim_strategy strategy;
    uint64_t kernel_ns;
    uint64_t salt;            /* decides which ops run at their start */
    acs_sim_gpu gpu;
    acs_sim_describe describe;
    void *describe_user;
    acs_host_scratch scratch; /* belongs to the thread that runs bodies (`running`) */

    acs_lock lock;            /* rank BACKEND; guards the fields below */
    acs_sim *machine;
    acs_random random;
    acs_sim_faults faults;
    acs_sim_slot *slot;
    acs_sim_mark *marks;      /* [slot * mark_capacity + index] */
    uint64_t now;             /* the host's time */
    uint64_t happened;        /* time of the last poll in which anything happened */
    uint64_t issued;          /* items issued so far */
    uint32_t victim;          /* slot that starves */
    uint32_t share_turn[101]; /* slots that got a share so far: the places of the share are taken in turn */
    uint32_t polls_idle;      /* consecutive polls without an event */
    acs_sim_work *free_works; /* unused works; at least as many as ops may be issued before more are made */
    uint32_t free_work_count;
    void **blocks;            /* memory of works and bundles, freed at close */
    uint32_t block_count, block_capacity;
    acs_sim_bundle *free_bundles;
    acs_sim_methods methods;
    const acs_record **due;   /* ops that the machine ran and whose bodies have not run, in that order */
    uint32_t due_count, due_capacity;
    uint32_t in_flight;       /* issued ops whose bodies have not run; `due` has room for all */
    bool told;                /* whether an op ran or ended since this was cleared */
    bool running;             /* whether a poll is running bodies, with the lock released */
    bool lost;
    bool takers;              /* threads that issue are played; constant */
    const char *wrong;        /* a mistake of the core that no item has told yet */
} acs_sim_state;

static inline acs_sim_state *acs_sim_state_of(acs_backend *backend)
{
    return (acs_sim_state *)backend;
}

/* sim_issue.c */
void acs_sim_submit(acs_backend *backend, acs_batch *batch);

/* sim_launch.c */
/* Set the status of an item, which was ACS_OK, if it cannot be issued. */
void acs_sim_judge(acs_sim_state *s, acs_item *item);
/* Hand an op, for which works and bodies are reserved, to the machine. */
void acs_sim_launch_op(acs_sim_state *s, acs_record *op, uint32_t slot, uint8_t share);
acs_status acs_sim_queue_init(acs_sim_state *s, const acs_options *options);
/* Send an item, or the mark behind one that bounced, by way of the queues of s->base.queue. */
acs_issue_way acs_sim_send(acs_sim_state *s, const acs_batch *batch, const acs_item *item, bool follows);
void acs_sim_send_mark(acs_sim_state *s, const acs_mark *mark);
/* settle of acs_backend_ops */
void acs_sim_settle(acs_backend *backend);

/* sim_kernel.c */
acs_status acs_sim_share_find(acs_backend *backend, uint32_t device, uint32_t percent, acs_share_info *info);
/* The multiprocessors of a kernel with this share (0: all) in a slot. */
void acs_sim_share_use(acs_sim_state *s, uint32_t slot, uint8_t share, acs_sim_kernel *kernel);

/* sim_order.c */
acs_sim_mark *acs_sim_mark_at(const acs_sim_state *s, const acs_mark *mark);
/* Whether the item names slots and marks that exist. If not, it cannot be issued. */
bool acs_sim_item_exists(const acs_sim_state *s, const acs_batch *batch, const acs_item *item);
/* Issue an item's value; a mark; a wait. @return NULL, or the core's mistake. */
const char *acs_sim_take_value(acs_sim_state *s, const acs_item *item);
const char *acs_sim_send_wait(acs_sim_state *s, const acs_mark *mark, uint32_t slot);
const char *acs_sim_record_mark(acs_sim_state *s, const acs_mark *mark);
void acs_sim_lose(acs_sim_state *s, acs_item *item, int native, const char *text);

/* The needs and time of a kernel, drawn if the seed decides. */
acs_sim_kernel acs_sim_draw_kernel(acs_sim_state *s, const acs_record *op, uint32_t slot);

/* sim_work.c: reports of the machine, and progress inside bundles. */

/* Make `count` works ready for acs_sim_work_take. False: no memory. */
bool acs_sim_work_reserve(acs_sim_state *s, uint32_t count);
acs_sim_work *acs_sim_work_take(acs_sim_state *s, acs_record *op, acs_sim_bundle *bundle, uint32_t position);
/* A work has ended. */
void acs_sim_work_ended(acs_sim_state *s, acs_sim_work *work, uint64_t when);
/* An unused bundle; NULL: no memory. */
acs_sim_bundle *acs_sim_bundle_take(acs_sim_state *s);
void acs_sim_bundle_give(acs_sim_state *s, acs_sim_bundle *bundle);
/* The highest value of progress inside bundles that a poll may show now; 0: none. */
uint64_t acs_sim_progress(acs_sim_state *s, acs_sim_slot *slot);
void acs_sim_works_fini(acs_sim_state *s);
/* The machine's acs_sim_told: it lists the op's body as due. */
void acs_sim_on_told(void *owner, void *user, bool ended, uint64_t when);
/* The machine's acs_sim_asked, if time decides: as the op's cell says. */
uint32_t acs_sim_on_asked(void *owner, void *user, uint32_t ctas);
/* Make room in `due` for `ops` more. False: no memory. */
bool acs_sim_due_reserve(acs_sim_state *s, uint32_t ops);

/* sim_bundle.c */
void acs_sim_submit_bundle(acs_sim_state *s, acs_batch *batch);
/* Issue a replay by a cached graph, without marks and waits. False: refused. There is room for its works. */
bool acs_sim_replay(acs_sim_state *s, acs_replay *replay, const acs_item *item);
/* check() of the ops table; it also numbers the kernel's type. */
acs_status acs_sim_check(acs_backend *backend, acs_record *op);
acs_status acs_sim_types_init(acs_sim_state *s);

/* sim_method.c */

acs_status acs_sim_methods_init(acs_sim_state *s, const acs_backend_config *config);
void acs_sim_methods_fini(acs_sim_state *s);
/*
 * Issue the bundle, whose shape is methods.dag, by the method that it asks for; its works are reserved. @return the
 * method, or AUTO: refused, nothing was issued. *wrong is set if the index of cached graphs broke its rules.
 */
acs_issue_method acs_sim_method_issue(acs_sim_state *s, const acs_batch *batch, acs_sim_bundle *bundle,
                                      const char **wrong);
/* Name of a method; "refused" for AUTO. */
const char *acs_sim_method_name(acs_issue_method method);

#endif
