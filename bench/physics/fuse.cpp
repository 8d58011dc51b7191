/*
 * Owns the collecting of narrow ops into fused ones. Called for every op by drivers that fuse, from the thread that
 * issues the op's scene: nothing is shared between scenes. Changes neither the order of other ops nor any result.
 */
#include "fuse.h"

#include <cstring>

static_assert(sizeof(narrow_fused_args) <= OP_ARG_BYTES, "a fused launch must fit into an op");

fusing_runner::fusing_runner(std::unique_ptr<runner> inner, const simulation &sim)
    : inner_(std::move(inner)), sim_(sim), pending_(sim.scenes.size(), pending{})
{
}

uint64_t fusing_runner::saved() const
{
    uint64_t sum = 0;
    for (const pending &p : pending_)
        sum += p.saved;
    return sum;
}

void fusing_runner::add(pending &p, const scene &s, const op &o)
{
    const float *const base = reinterpret_cast<const float *>(s.at.m);
    const auto words = [base](const void *at) {
        return static_cast<unsigned>(static_cast<const float *>(at) - base);
    };
    narrow_args n;

    memcpy(&n, o.args, sizeof n);
    if (p.args.types == 0) {
        p.args = {0, n.worlds, n.tick, 0, reinterpret_cast<float *>(s.at.m), n.pos, n.rot, n.vel, {}};
        p.blocks = 0;
    } else {
        p.saved++;
    }
    p.args.of[p.args.types++] = {words(n.candidates), words(n.counts), words(n.manifold), n.threads, p.blocks, n.type};
    p.blocks += o.grid;
}

void fusing_runner::flush(pending &p, int scene)
{
    op o{};

    p.args.threads = p.blocks * CONTACT_BLOCK;
    o.kernel = &kernel_narrow_fused;
    o.scene = scene;
    o.grid = p.blocks;
    o.block = CONTACT_BLOCK;
    o.arg_bytes = sizeof p.args;
    memcpy(o.args, &p.args, sizeof p.args);
    p.args.types = 0;
    inner_->launch(o);
}

void fusing_runner::launch(const op &o)
{
    pending &p = pending_[static_cast<size_t>(o.scene)];

    if (o.kernel == &kernel_narrow) {
        add(p, *sim_.scenes[static_cast<size_t>(o.scene)], o);
        return;
    }
    if (p.args.types > 0)
        flush(p, o.scene);
    inner_->launch(o);
}
