/*
 * Costs of the issue methods (cost_model.h), as formulas over the costs of a device. Called by backends when they
 * issue a bundle, on any thread. Keeps nothing; never looks at a clock.
 */
#include "bundles/cost_model.h"

#include "base/tuning.h"

static uint64_t calls(const acs_cost_model_bundle *b)
{
    return b->ops * (b->costs->place_ns + b->costs->launch_ns);
}

/* Threads that launched ops would bring to the device at once: one op per slot, all of one level. */
static uint64_t threads_at_once(const acs_cost_model_bundle *b)
{
    const uint64_t wide = b->ops / (b->levels ? b->levels : 1), slots = b->slots < wide ? b->slots : wide;
    const uint64_t threads = b->ops ? b->threads / b->ops * (slots ? slots : 1) : 0;
    return threads < b->device_threads ? threads : b->device_threads;
}

/*
 * The device's time in any case. device_ns was learnt while slots delayed launches as much as the device did. So it
 * counts only as far as this bundle's threads fill the device.
 */
static uint64_t work(const acs_cost_model_bundle *b)
{
    return b->device_threads ? b->device_ns * threads_at_once(b) / b->device_threads : 0;
}

bool acs_cost_model_queued(const acs_cost_model_bundle *b)
{
    const bool full = b->device_threads && threads_at_once(b) * TUNE_FILL_PART >= b->device_threads;
    return full && b->device_ns * TUNE_QUEUED_PART >= calls(b);
}

/*
 * Kernels that run one after the other if their launches share the slots. By Graham's bound for list scheduling that
 * is at least the longest path and each slot's share, and at most their sum. The middle is taken.
 */
static uint64_t in_turn(const acs_cost_model_bundle *b)
{
    const uint64_t path = b->path ? b->path : b->levels, others = b->ops > path ? b->ops - path : 0;
    const uint64_t slots = b->slots;
    return slots ? acs_max((b->ops + slots - 1) / slots, path + (others + slots) / (2 * slots)) : path;
}

/*
 * The time of two activities that sometimes wait for each other: 1.5 times the time of one if they are equal, the
 * longer one if the other is short.
 */
static uint64_t in_step(uint64_t a_ns, uint64_t b_ns)
{
    const uint64_t longer_us = acs_max(a_ns, b_ns) / 1000, shorter_us = (a_ns < b_ns ? a_ns : b_ns) / 1000;
    return acs_max(a_ns, b_ns) + (longer_us ? shorter_us * shorter_us / (2 * longer_us) * 1000 : 0);
}

uint64_t acs_cost_model_launch_ns(const acs_cost_model_bundle *b)
{
    const uint64_t device = acs_cost_model_queued(b) ? b->device_ns : work(b);
    return acs_max(device, in_step(calls(b), in_turn(b) * (b->kernel_ns + b->costs->hop_ns)));
}

/*
 * A time in which the front end does nothing for this bundle, divided among the bundles that use it. The host still
 * has to submit the bundle (submitted).
 */
static uint64_t idle(const acs_cost_model_bundle *b, uint64_t ns)
{
    const uint32_t most = b->costs->overlap_most;
    return ns / (1 + (b->beside < most ? b->beside : most));
}

static uint64_t submitted(const acs_cost_model_bundle *b, uint64_t ns)
{
    return acs_max(ns, b->costs->submit_ns + (uint64_t)b->ops * b->costs->submit_op_ns);
}

uint64_t acs_cost_model_replay_ns(const acs_cost_model_bundle *b, bool fixed)
{
    uint32_t more_edges = b->edges > b->ops ? b->edges - b->ops : 0;
    uint64_t front = (uint64_t)b->ops * (fixed ? b->costs->fixed_op_ns : b->costs->replay_op_ns) +
                     (uint64_t)more_edges * b->costs->edge_ns;
    uint64_t path = b->levels * (b->kernel_ns + b->costs->replay_hop_ns);
    return submitted(b, idle(b, b->costs->replay_start_ns) + acs_max(acs_max(front, work(b)), idle(b, path)));
}

uint64_t acs_cost_model_layers_ns(const acs_cost_model_bundle *b, const acs_layer_template *shape, uint32_t levels)
{
    uint64_t front = acs_layers_cost(shape, &ACS_COST_MODEL_LAYERS(b->costs), b->ops);
    return acs_max(submitted(b, front + idle(b, b->costs->layers_start_ns + levels * b->kernel_ns)),
                   idle(b, b->costs->layers_start_ns) + work(b));
}

uint64_t acs_cost_model_gpu_ns(const acs_cost_model_bundle *b)
{
    uint64_t path = b->costs->gpu_start_ns + b->levels * (b->kernel_ns + b->costs->gpu_hop_ns);
    return acs_max(submitted(b, (uint64_t)b->ops * b->costs->gpu_op_ns + idle(b, path)),
                   idle(b, b->costs->gpu_start_ns) + work(b));
}

/* An executor keeps the front end free: bundles beside it only share the multiprocessors. */
uint64_t acs_cost_model_resident_ns(const acs_cost_model_bundle *b)
{
    uint64_t path = b->costs->resident_start_ns + b->levels * (b->kernel_ns + b->costs->resident_hop_ns);
    uint64_t busy = acs_max((uint64_t)b->ops * b->costs->resident_op_ns, work(b));
    return submitted(b, acs_max(busy, idle(b, path)));
}

uint64_t acs_cost_model_gpu_others_ns(const acs_cost_model_bundle *b)
{
    return (uint64_t)b->beside * b->ops * b->costs->gpu_op_ns;
}

uint32_t acs_cost_model_sightings(const acs_costs *costs, uint32_t nodes, bool fixed, uint64_t gain_ns)
{
    uint64_t build = (uint64_t)nodes * (fixed ? costs->build_fixed_ns : costs->build_ns);
    uint64_t times = gain_ns ? build / gain_ns + 1 : UINT32_MAX;
    if (times > UINT32_MAX)
        return UINT32_MAX;
    return times < TUNE_SIGHTINGS_LEAST ? TUNE_SIGHTINGS_LEAST : (uint32_t)times;
}

/*
 * Many causes make a kernel seem slower than it is, none makes it seem faster: a graph being uploaded, another program
 * on the GPU, a late poll. So the estimate falls at once and rises little by little.
 */
uint32_t acs_cost_model_learn(uint32_t known_ns, uint64_t level_ns)
{
    uint64_t most = known_ns ? (uint64_t)known_ns + known_ns / 4 + TUNE_LEARN_STEP_NS : TUNE_LEARN_FIRST_NS;
    uint64_t now = level_ns < most ? level_ns : most;
    return now == 0 ? 1 : now > UINT32_MAX ? UINT32_MAX : (uint32_t)now;
}
