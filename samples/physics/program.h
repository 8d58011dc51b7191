/*
 * The simulation as a program: which ops each scene launches, in which order, with which footprints. What runs next
 * may depend on contact counts that come back from the device, so a program is asked for its ops portion by portion.
 */
#ifndef PHYSICS_PROGRAM_H
#define PHYSICS_PROGRAM_H

#include <cstring>
#include <type_traits>
#include <vector>

#include "islands.h"
#include "scene.h"

enum { OP_ARG_BYTES = 256, OP_SEGMENTS = 24 };

/** One launch, or one copy of counts to the host. */
struct op {
    const kernel_object *kernel; /* NULL: the copy */
    int scene;
    uint32_t grid, block;
    uint32_t arg_bytes, segments;
    const void *source;
    void *target;
    size_t bytes;
    int copy; /* which of the scene's two host buffers a copy fills */
    const unsigned *section; /* the op runs only if this word, on the device, is not 0; NULL: always */
    bool section_begins, section_ends; /* the ops of a section follow each other */
    alignas(8) char args[OP_ARG_BYTES];
    acs_segment segment[OP_SEGMENTS];
};

/** What executes ops: see runner.h. */
class runner;

/** Where actions come from: kernels of the scene, or the caller, which writes arena::act before each step. */
enum actor { ACTOR_SCENE, ACTOR_CALLER };

/**
 * Who decides which contacts there are. The host waits for their counts, and launches what they need. Or the kernels
 * are launched for all contacts that there can be, and look for themselves. The GPU has the same kernels, in a section for
 * each island that it may switch off; a runner that has no sections runs all of them.
 */
enum decider { HOST_DECIDES, KERNELS_DECIDE, GPU_DECIDES };

/** The ops of one scene. Deterministic: the same counts give the same ops, whoever executes them. */
class program {
public:
    explicit program(const scene &s, actor a = ACTOR_SCENE, decider d = HOST_DECIDES);

    /**
     * The ops that find the first substep's candidates, and observe for a caller's first action; to be issued before the
     * first step.
     */
    void prime(bool footprints);
    /**
     * The next portion of the current environment step; `ready` is valid until the next call.
     * @return false: the step is over, the next call begins another.
     */
    bool advance(runner &r, bool footprints);

    std::vector<op> ready;

private:
    using island = island_model;
    enum portion { BEFORE_COUNTS, AFTER_COUNTS, STEP_END, STEP_OVER };

    op &add_op(const kernel_object &kernel, const void *args, size_t bytes, size_t threads, uint32_t block);
    template <class Args> op &add(const kernel_object &kernel, const Args &args, size_t threads, uint32_t block)
    {
        static_assert(std::has_unique_object_representations<Args>::value, "arguments of kernels have no padding");
        return add_op(kernel, &args, sizeof args, threads, block);
    }
    void touch(op &o, acs_access access, const void *p, size_t bytes);
    void touch_bodies(op &o, acs_access access, const float *field, int components, unsigned bodies);
    void touch_range(op &o, acs_access access, const float *field, int components, int first, int bodies);
    void touch_model(op &o);
    unsigned type_bodies(int type) const;
    void before_counts();
    void after_counts();
    void all_contacts();
    void step_end();
    void add_joints(int joint_class);
    void add_integrate();
    void add_broad(int type);
    void add_copy();
    void add_islands();
    void add_counts();
    device_words *words() const;
    void touch_words(op &o, int tick);
    int told_tick() const;
    op &add_narrow(int type, unsigned threads);
    op &add_solve(const island &i, int iteration);
    op &add_apply(const island *islands, int count);
    void add_narrows(unsigned types);
    void add_section(int k);
    void add_observe();
    void add_policy();
    void add_reward();
    void add_reset();

    const scene &s_;
    const model &m_;
    actor actor_;
    decider decider_;
    int tick_, substep_;
    portion next_;
    bool footprints_;
};

/** What `run` did, for reports. */
struct launch_counts {
    uint64_t kernels = 0, copies = 0, segments = 0;
    uint64_t sections = 0; /* that the GPU decides about */
    uint64_t ctas[7] = {}; /* kernels by CTAs at most: 1, 2-4, 5-9, 10-19, 20-39, 40-79, more */

    void add(const launch_counts &more);
};

/** Issue order of several scenes. */
enum order { ORDER_SCENE, ORDER_INTERLEAVED };

/** The programs of several scenes, issued to a runner. */
class issue {
public:
    issue(std::vector<const scene *> scenes, order o, runner &r, actor a = ACTOR_SCENE);
    void prime();
    void step();

    launch_counts counts;

private:
    void send_all();
    void send(const op &o);
    size_t send_turn(const std::vector<op> &ops, size_t first);
    std::vector<program> programs_;
    order order_;
    runner &runner_;
    launch_counts step_; /* of the step under way */
};

#endif
