/*
 * The cost of a bundle by each issue method, by which a backend chooses one: a small model of a GPU, with the learnt
 * time of kernels. Its figures are the costs of one device (costs.h). Pure arithmetic; called by backends.
 *
 * A cost is the time in ns per bundle for which the GPU or the host is busy, whichever is longer. It is good enough to
 * rank methods.
 */
#ifndef ACS_COST_MODEL_H
#define ACS_COST_MODEL_H

#include "bundles/costs.h"
#include "bundles/layer_template.h"

/* The properties of a bundle that the model reads. */
typedef struct acs_cost_model_bundle {
    const acs_costs *costs; /* figures of the device */
    uint32_t ops, levels, edges;
    uint64_t kernel_ns; /* learnt time of the slowest of its kernel types; 0: not known */
    uint32_t beside;    /* bundles like it in other slots, which keep the GPU busy while this one waits */
    uint32_t path;      /* levels on the longest path if nothing waits for the bundle's end (acs_dag_path); 0: all */
    uint64_t device_ns; /* the device's time for all its ops, as learnt from launches; 0: not known */
    uint32_t slots;     /* slots that its ops would share if they were launched */
    uint64_t threads;   /* threads of all its ops */
    uint64_t device_threads; /* threads that the device runs at once */
} acs_cost_model_bundle;

/*
 * One launch for each op: the host's calls plus the kernels that run one after the other, or the device's learnt time
 * for them all. If the device was full when it learnt that time, no issue method costs less.
 */
uint64_t acs_cost_model_launch_ns(const acs_cost_model_bundle *bundle);
/*
 * Whether launched kernels of these types were seen to wait for a device that may be full. Then another method may
 * gain nothing, and whatever that method has to build must be earned first.
 */
bool acs_cost_model_queued(const acs_cost_model_bundle *bundle);
/* A cached graph of the bundle's shape. `fixed`: its nodes cannot be set by the device. */
uint64_t acs_cost_model_replay_ns(const acs_cost_model_bundle *bundle, bool fixed);
/* A cached graph of layers of which the bundle fills `levels`. */
uint64_t acs_cost_model_layers_ns(const acs_cost_model_bundle *bundle, const acs_layer_template *shape,
                                  uint32_t levels);
/* GPU-side issue. */
uint64_t acs_cost_model_gpu_ns(const acs_cost_model_bundle *bundle);
/* A resident executor. */
uint64_t acs_cost_model_resident_ns(const acs_cost_model_bundle *bundle);
/* The GPU's time for the bundles beside this one, if it issues them too and they are like this one. */
uint64_t acs_cost_model_gpu_others_ns(const acs_cost_model_bundle *bundle);

/*
 * How often a bundle must have come before a graph of `nodes` nodes is built for it, if each launch of the graph gains
 * `gain_ns`. UINT32_MAX: never. Building then costs no more than was lost by not having the graph. So the total is at
 * most twice the least possible cost (ski-rental rule).
 */
uint32_t acs_cost_model_sightings(const acs_costs *costs, uint32_t nodes, bool fixed, uint64_t gain_ns);

/* Costs in the form that acs_layers_choose takes. */
#define ACS_COST_MODEL_LAYERS(costs)                                                                                   \
    ((const acs_layers_costs){(costs)->layers_level_ns, (costs)->replay_op_ns, (costs)->layers_off_ns})

/* The new estimate of a kernel type's time, after a bundle with such kernels took `level_ns` per level. */
uint32_t acs_cost_model_learn(uint32_t known_ns, uint64_t level_ns);

#endif
