/*
 * Which issue method a bundle should take, by what each would cost: a small model of a GPU, and of how long kernels
 * take, which is learnt. Its figures are the costs of a device (costs.h). Pure arithmetic; called by backends.
 *
 * Costs are of the GPU or of the host, whichever is busy for longer, in nanoseconds per bundle: good enough to rank.
 */
#ifndef ACS_COST_MODEL_H
#define ACS_COST_MODEL_H

#include "bundles/costs.h"
#include "bundles/layer_template.h"

/* What matters of a bundle. */
typedef struct acs_cost_model_bundle {
    const acs_costs *costs; /* of the device */
    uint32_t ops, levels, edges;
    uint64_t kernel_ns; /* of the longest of its types, as learnt; 0: not known */
    uint32_t beside;    /* bundles like it in other slots: what it waits for on the GPU, the GPU does not wait for */
    uint32_t path;      /* levels where nothing waits for the end of a bundle (acs_dag_path); 0: all */
    uint64_t launch_ns; /* of the host, for a launch here; 0: as in the costs */
    uint64_t device_ns; /* what the device takes for its ops, beside each other as launches are; 0: not known */
    uint32_t slots;     /* that its ops would share if they were launched */
    uint64_t threads;   /* of all its ops, */
    uint64_t device_threads; /* and that the device runs at once */
} acs_cost_model_bundle;

/*
 * One launch for each op: the host's calls and the kernels that run one after the other, or what the device was seen to
 * take for them all. No way costs less than that if the device was full then.
 */
uint64_t acs_cost_model_launch_ns(const acs_cost_model_bundle *bundle);
/*
 * Whether such kernels, launched one by one, were seen to wait for a device that may be full of them. Then it is in
 * doubt that another way gains anything, and what that lacks has to be earned.
 */
bool acs_cost_model_queued(const acs_cost_model_bundle *bundle);
/* A cached graph of its shape; `fixed`: with nodes that the device does not set. */
uint64_t acs_cost_model_replay_ns(const acs_cost_model_bundle *bundle, bool fixed);
/* Layers of this template, of which the bundle fills `levels`. */
uint64_t acs_cost_model_layers_ns(const acs_cost_model_bundle *bundle, const acs_layer_template *shape,
                                  uint32_t levels);
/* GPU-side issue. */
uint64_t acs_cost_model_gpu_ns(const acs_cost_model_bundle *bundle);
/* What the GPU is busy with meanwhile, if it issues the bundles beside this one, too, and they are like it. */
uint64_t acs_cost_model_gpu_others_ns(const acs_cost_model_bundle *bundle);

/*
 * How often a bundle must have come until a graph of `nodes` nodes is built for it, where each launch of that gains
 * `gain_ns`: so often that building it costs no more than was lost by then, which is at most twice the least cost that
 * was possible (the ski-rental rule). UINT32_MAX: never.
 */
uint32_t acs_cost_model_sightings(const acs_costs *costs, uint32_t nodes, bool fixed, uint64_t gain_ns);

/* Costs of layers, for acs_layers_choose. */
#define ACS_COST_MODEL_LAYERS(costs)                                                                                   \
    ((const acs_layers_costs){(costs)->layers_level_ns, (costs)->replay_op_ns, (costs)->layers_off_ns})

/* What is known of the time that kernels of one type take, after a bundle with them took `level_ns` per level. */
uint32_t acs_cost_model_learn(uint32_t known_ns, uint64_t level_ns);

#endif
