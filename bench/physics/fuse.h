/*
 * The narrow phases of a substep as one kernel: what a programmer would write who has few kernels in mind.
 */
#ifndef PHYSICS_BENCH_FUSE_H
#define PHYSICS_BENCH_FUSE_H

#include "simulation.h"

/** One pair type of a fused launch. Addresses are in words from the arena's beginning: pointers would not fit. */
struct fused_type {
    unsigned candidates, counts, manifold, threads, first_block;
    int type;
};

/** narrow of all active pair types: each CTA finds its type by the first CTA of each. */
struct narrow_fused_args {
    unsigned threads;
    int worlds, tick, types;
    float *base;
    const float *pos, *rot, *vel;
    fused_type of[MAX_TYPES];
};

extern const kernel_object kernel_narrow_fused;

/** Hands ops on to `inner`, with the narrow ops of a scene's substep as one: when the scene's next other op comes. */
class fusing_runner : public runner {
public:
    fusing_runner(std::unique_ptr<runner> inner, const simulation &sim);
    void launch(const op &o) override;
    void wait_copy(int scene, int copy) override { inner_->wait_copy(scene, copy); }
    void finish() override { inner_->finish(); }
    int threads(int scenes) const override { return inner_->threads(scenes); }
    /** How many launches fusing has saved. */
    uint64_t saved() const;

private:
    struct pending {
        narrow_fused_args args;
        uint32_t blocks;
        uint64_t saved;
    };
    void add(pending &p, const scene &s, const op &o);
    void flush(pending &p, int scene);

    std::unique_ptr<runner> inner_;
    const simulation &sim_;
    std::vector<pending> pending_;
};

#endif
