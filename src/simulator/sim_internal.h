/*
 * Private to src/simulator/sim*.c: the backend's state. sim_issue.c takes batches to the machine, sim_bundle.c bundles
 * by the issue methods of sim_method.c, sim.c lets time pass, runs bodies and polls, sim_faults.c says what fails.
 */
#ifndef ACS_BACKEND_SIM_INTERNAL_H
#define ACS_BACKEND_SIM_INTERNAL_H

#include "host/host_kernel.h"
#include "simulator/sim.h"
#include "base/lock.h"
#include "bundles/dag.h"
#include "bundles/graph_cache.h"
#include "bundles/layer_template.h"

/* How long ops take when the seed decides; one per seed. Each makes another kind of missing order likely to show. */
typedef enum acs_sim_strategy {
    ACS_SIM_UNIFORM, /* any time */
    ACS_SIM_NEWEST,  /* an op ends before those that run already: overtakes everything that it need not wait for */
    ACS_SIM_STARVE,  /* the ops of one slot end when nothing else runs */
    ACS_SIM_EAGER,   /* everything runs and is seen at the first poll: an infinitely fast GPU */
    ACS_SIM_STRATEGIES
} acs_sim_strategy;

/* Native codes of injected failures that take the device, and of memory. */
enum { ACS_SIM_NATIVE_EVENT = 720, ACS_SIM_NATIVE_LOST, ACS_SIM_NATIVE_MEMORY };

typedef struct acs_sim_mark {
    uint32_t event;     /* plus 1; 0: never recorded */
    uint64_t value;     /* of the latest record */
} acs_sim_mark;

enum {
    ACS_SIM_NEWS = 4,           /* how much progress inside bundles a slot remembers that nobody has seen */
    ACS_SIM_GPU_GRAPHS = 8         /* bundles that the GPU itself issues, at once */
};

typedef struct acs_sim_slot {
    uint32_t stream;
    uint64_t value;     /* highest of any op or mark */
    uint64_t visible;   /* how much of the timeline poll has shown */
    uint32_t late;      /* polls in a row that hid a completion */
    uint64_t known_at;  /* when the host can know of the completion that was looked at last */
    struct {
        uint64_t value, at;
    } news[ACS_SIM_NEWS]; /* all ops up to the value ended by then; oldest first */
    uint32_t news_used;
} acs_sim_slot;

/* A bundle that was issued and has not ended. */
typedef struct acs_sim_bundle {
    uint32_t slot;
    uint64_t first;                       /* value of its first op */
    uint32_t ops, prefix;                 /* the first `prefix` ops have ended, as far as is known */
    uint32_t works;                       /* not ended */
    bool by_level;                        /* what is known of it comes from the barriers between layers */
    bool tells_end;                       /* of its last op, too */
    uint64_t ended[ACS_BATCH_ITEMS / 64]; /* ops; not by_level */
    struct acs_sim_bundle *next;          /* free ones */
} acs_sim_bundle;

/* What the machine tells of, as its `user`: an op, or a barrier between layers. */
typedef struct acs_sim_work {
    const acs_record *op;   /* NULL: a barrier */
    acs_sim_bundle *bundle; /* NULL: a plain launch */
    uint32_t position;      /* among the bundle's ops; of a barrier: so many of them have ended then */
    struct acs_sim_work *next; /* free ones */
} acs_sim_work;

/* The shape of the bundle that is being issued, and what its issue methods keep. */
typedef struct acs_sim_methods {
    acs_dag dag;
    acs_layers layers;
    uint64_t budget;            /* nodes */
    acs_graph_cache *cache;      /* objects: number of the machine's graph, plus 1 */
    acs_random random;          /* of its own: what a seed chooses for ops does not depend on bundles */
    uint32_t sightings_least;   /* after so many a shape is kept */
    uint32_t *spare;            /* graphs of the machine that nobody uses */
    uint32_t spare_used, spare_capacity;
    uint32_t gpu_graph[ACS_SIM_GPU_GRAPHS], gpu_graphs;
    uint32_t type_count;
    struct acs_sim_type *types;
} acs_sim_methods;

typedef struct acs_sim_state {
    acs_backend base;
    uint32_t slots, mark_capacity;
    bool by_seed;
    acs_sim_strategy strategy;
    uint64_t kernel_ns;
    uint64_t salt;            /* which ops run when they start */
    acs_sim_gpu gpu;
    acs_sim_describe describe;
    void *describe_user;
    acs_host_scratch scratch; /* of the thread that runs ops: `running` */

    acs_lock lock;            /* rank BACKEND; guards the rest */
    acs_sim *machine;
    acs_random random;
    acs_sim_faults faults;
    acs_sim_slot *slot;
    acs_sim_mark *marks;      /* [slot * mark_capacity + index] */
    uint64_t now;             /* the host's time */
    uint64_t happened;        /* that of the last poll in which anything did */
    uint64_t issued;          /* items */
    uint32_t victim;          /* of SIM_STARVE */
    uint32_t polls_idle;      /* in a row */
    acs_sim_work *free_works; /* at least as many as ops may begin before more are made */
    uint32_t free_work_count;
    void **blocks;            /* of works and bundles, to be freed at close */
    uint32_t block_count, block_capacity;
    acs_sim_bundle *free_bundles;
    acs_sim_methods methods;
    const acs_record **due;   /* ops that the machine ran and whose bodies did not run yet, in that order */
    uint32_t due_count, due_capacity;
    uint32_t in_flight;       /* ops issued whose bodies did not run: all of them have room in `due` */
    bool told;                /* an op ran or ended since this was cleared */
    bool running;             /* a poll is running bodies, with the lock released */
    bool lost;
} acs_sim_state;

static inline acs_sim_state *acs_sim_state_of(acs_backend *backend)
{
    return (acs_sim_state *)backend;
}

/* sim_issue.c */
void acs_sim_submit(acs_backend *backend, acs_batch *batch);

/* sim_order.c */
acs_sim_mark *acs_sim_mark_at(const acs_sim_state *s, const acs_mark *mark);
/* Does the item name slots and marks that exist? If not, there is nothing that could be issued. */
bool acs_sim_item_exists(const acs_sim_state *s, const acs_batch *batch, const acs_item *item);
/* Marks, waits and value of an item: NULL, or what the core did wrong. And the mark behind it. */
const char *acs_sim_issue_order(acs_sim_state *s, const acs_batch *batch, const acs_item *item);
const char *acs_sim_record_mark(acs_sim_state *s, const acs_mark *mark);
void acs_sim_lose(acs_sim_state *s, acs_item *item, int native, const char *text);

/* sim_kernel.c */
/* How long a block of this kernel takes where time decides, as a backend would have learnt it. */
uint64_t acs_sim_kernel_ns(const acs_sim_state *s, const acs_record *op);
uint64_t acs_sim_threads(const acs_sim_state *s, const acs_record *op);
/* What a kernel needs, and how long it takes, drawn where the seed decides. */
acs_sim_kernel acs_sim_draw_kernel(acs_sim_state *s, const acs_record *op, uint32_t slot);

/* sim_work.c: what the machine tells of, and progress inside bundles. */

/* Works for `count` things that are about to be issued: acs_sim_work_take gives them. False: no memory. */
bool acs_sim_work_reserve(acs_sim_state *s, uint32_t count);
acs_sim_work *acs_sim_work_take(acs_sim_state *s, const acs_record *op, acs_sim_bundle *bundle, uint32_t position);
/* It has ended. */
void acs_sim_work_ended(acs_sim_state *s, acs_sim_work *work, uint64_t when);
/* NULL: no memory. */
acs_sim_bundle *acs_sim_bundle_take(acs_sim_state *s);
void acs_sim_bundle_give(acs_sim_state *s, acs_sim_bundle *bundle);
/* Progress inside bundles that a poll may show now; 0: none. */
uint64_t acs_sim_progress(acs_sim_state *s, acs_sim_slot *slot);
void acs_sim_works_fini(acs_sim_state *s);
/* The machine's acs_sim_told: lists the body as due. */
void acs_sim_on_told(void *owner, void *user, bool ended, uint64_t when);
/* Room to list `ops` more as due. False: no memory. */
bool acs_sim_due_reserve(acs_sim_state *s, uint32_t ops);

/* sim_bundle.c */
void acs_sim_submit_bundle(acs_sim_state *s, acs_batch *batch);
/* check() of the ops table: also numbers the kernel's type. */
acs_status acs_sim_check(acs_backend *backend, acs_record *op);
acs_status acs_sim_types_init(acs_sim_state *s);

/* sim_method.c */

acs_status acs_sim_methods_init(acs_sim_state *s, const acs_backend_config *config);
void acs_sim_methods_fini(acs_sim_state *s);
/*
 * Issue the bundle, whose shape is issue methods.dag, by the issue method that it asks for; there is room for its
 * works. By which it went; AUTO: refused, nothing was issued. *wrong is set where the index of cached graphs broke its
 * rules.
 */
acs_issue_method acs_sim_method_issue(acs_sim_state *s, const acs_batch *batch, acs_sim_bundle *bundle,
                                      const char **wrong);
/* "refused" for AUTO. */
const char *acs_sim_method_name(acs_issue_method method);

#endif
