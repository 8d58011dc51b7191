/*
 * Owns the synthetic traces. Called by the program before anything is measured, and by tests. Numbers are drawn without
 * floating-point functions, whose last bits differ between machines.
 */
#include "allocation_trace.h"
#include "memory.h"

namespace bench {

namespace {

const uint64_t KIB = 1024;

class dice {
public:
    explicit dice(uint64_t seed) : seed_(seed) {}

    /* From 0 to n - 1; n is less than 2^24, which is what random_unit tells apart. */
    uint64_t below(uint64_t n) { return static_cast<uint64_t>(random_unit(seed_, drawn_++) * static_cast<double>(n)); }

    /* From 2^low to 2^high bytes: each power of two is as likely as the others, and within it each size. */
    uint64_t bytes(uint32_t low, uint32_t high)
    {
        const uint64_t octave = uint64_t{1} << (low + below(high - low));
        return octave + octave / 256 * below(256) + below(octave / 256);
    }

private:
    uint64_t seed_, drawn_ = 0;
};

allocation_trace named(const char *name)
{
    allocation_trace t;
    t.name = name;
    return t;
}

allocation_trace same(const synthetic_settings &s)
{
    allocation_trace t = named("same");
    for (uint32_t k = 0; k < s.pairs; k++)
        t.add_free(t.add_malloc(64 * KIB));
    return t;
}

allocation_trace cycle(const synthetic_settings &s)
{
    const uint32_t sizes = 8, live = 4;
    allocation_trace t = named("cycle");
    dice d(s.seed);
    std::vector<uint64_t> bytes;

    for (uint32_t k = 0; k < sizes; k++)
        bytes.push_back(d.bytes(8, 20));
    for (uint32_t k = 0; k < s.pairs; k++) {
        if (k >= live)
            t.add_free(k - live);
        t.add_malloc(bytes[k % sizes]);
    }
    for (uint32_t k = s.pairs > live ? s.pairs - live : 0; k < s.pairs; k++)
        t.add_free(k);
    return t;
}

/* Blocks of 2^low to 2^high bytes; once `most` of them are live, one of them, drawn at random, goes for each that comes. */
allocation_trace shuffled(const char *name, uint64_t seed, uint32_t pairs, uint32_t most, uint32_t low, uint32_t high)
{
    allocation_trace t = named(name);
    dice d(seed);
    std::vector<uint32_t> live;
    const auto free_one = [&] {
        const size_t place = d.below(live.size());
        t.add_free(live[place]);
        live[place] = live.back();
        live.pop_back();
    };

    for (uint32_t k = 0; k < pairs; k++) {
        if (live.size() >= most)
            free_one();
        live.push_back(t.add_malloc(d.bytes(low, high)));
    }
    while (!live.empty())
        free_one();
    return t;
}

allocation_trace random_blocks(const synthetic_settings &s)
{
    return shuffled("random", s.seed, s.pairs, s.live, 8, 20);
}

/* An eighth of the pairs: where frees wait for ops, gigabytes wait. */
allocation_trace large(const synthetic_settings &s)
{
    return shuffled("large", s.seed, (s.pairs + 7) / 8, 4, 20, 26);
}

/*
 * Steps of a training that are all alike. Forward, each layer leaves its activation, and needs a workspace meanwhile;
 * backward, it makes its gradient in a workspace, then the layer behind it is done with its own, and the activation goes.
 */
allocation_trace layers(const synthetic_settings &s)
{
    const uint32_t count = 16;
    allocation_trace t = named("layers");
    dice d(s.seed);
    std::vector<uint64_t> activation, workspace;
    std::vector<uint32_t> kept(count);

    for (uint32_t k = 0; k < count; k++) {
        activation.push_back(d.bytes(16, 23));
        workspace.push_back(d.bytes(12, 21));
    }
    while (t.pairs() < s.pairs) {
        for (uint32_t k = 0; k < count; k++) {
            kept[k] = t.add_malloc(activation[k]);
            t.add_free(t.add_malloc(workspace[k]));
        }
        for (uint32_t k = count, behind = 0; k-- > 0;) {
            const uint32_t gradient = t.add_malloc(activation[k]);
            t.add_free(t.add_malloc(workspace[k]));
            if (k + 1 < count)
                t.add_free(behind);
            t.add_free(kept[k]);
            behind = gradient;
            if (k == 0)
                t.add_free(gradient);
        }
    }
    return t;
}

allocation_trace jobs(const synthetic_settings &s)
{
    allocation_trace t = named("jobs");
    dice d(s.seed);

    while (t.pairs() < s.pairs) {
        const uint32_t first = t.add_malloc(d.bytes(12, 22));
        t.add_malloc(d.bytes(12, 22));
        t.add_malloc(d.bytes(12, 22));
        for (uint32_t k = 0; k < 3; k++)
            t.add_free(first + k);
    }
    return t;
}

} // namespace

const std::vector<synthetic_kind> &synthetic_kinds()
{
    static const std::vector<synthetic_kind> kinds = {
        {"same", "one block of 64 KiB, again and again", same},
        {"cycle", "8 sizes from 256 B to 1 MiB that recur, 4 blocks live, the oldest freed first", cycle},
        {"random", "sizes from 256 B to 1 MiB, as many of each power of two, --live blocks, freed in random order",
         random_blocks},
        {"large", "sizes from 1 to 64 MiB, 4 blocks live, freed in random order; an eighth of the pairs", large},
        {"layers", "steps of training a network of 16 layers: activations kept forward, freed backward, workspaces", layers},
        {"jobs", "each job takes three buffers of 4 KiB to 4 MiB and gives them back", jobs},
    };
    return kinds;
}

} // namespace bench
