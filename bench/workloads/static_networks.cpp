/*
 * The static networks that ACS was measured with, as controls: SqueezeNet, NASNet-A and RandWire, all for images of
 * CIFAR's size. Their kernels are the same in each run, so a CUDA graph that is made once should tie with ACS.
 * Listed for acs-workloads; layers are in network*.cpp.
 */
#include <algorithm>

#include "network.h"
#include "workload.h"

namespace bench {

namespace {

class squeezenet final : public model {
public:
    explicit squeezenet(const sizes &s)
        : model(s["seed"]), pixels_(bounded(s, "image", LEAST_IMAGE, MOST_IMAGE)),
          classes_(bounded(s, "classes", 2, 100000)),
          divide_(bounded(s, "divide", 1, 1000))
    {
    }

    /* Version 1.1; small images are not halved by the first layer, or nothing would be left of them. */
    void forward(layers &l) const override
    {
        static const int squeezed[8] = {16, 16, 32, 32, 48, 48, 64, 64};

        l.at(0, 0);
        tensor x = l.conv(l.image(pixels_, pixels_), {cut(64, divide_), 3, pixels_ < 64 ? 1 : 2, RELU});
        x = l.pool(x, 2, true);
        for (int k = 0; k < 8; k++) {
            l.at(0, 1 + static_cast<uint32_t>(k));
            x = fire(l, x, cut(squeezed[k], divide_));
            if (k == 1 || k == 3)
                x = l.pool(x, 2, true);
        }
        const tensor scores = l.mean(l.conv(x, {classes_, 1, 1, RELU}));
        l.output(scores);
        l.output(l.softmax(scores));
    }

private:
    /* The two expansions write their halves of one tensor. */
    static tensor fire(layers &l, const tensor &x, int squeezed)
    {
        const int half = 4 * squeezed;
        const tensor whole = l.fresh(2 * half, x.h, x.w), narrow = l.conv(x, {squeezed, 1, 1, RELU});
        const tensor left = channels(whole, 0, half), right = channels(whole, half, half);
        conv_form expand1 = {half, 1, 1, RELU}, expand3 = {half, 3, 1, RELU};

        expand1.into = &left;
        expand3.into = &right;
        l.conv(narrow, expand1);
        l.conv(narrow, expand3);
        return whole;
    }

    int pixels_, classes_;
    int divide_;
};

/*
 * By hand. Kernels: first convolution, 3 pools, 8 fire modules of 3, convolution, mean, softmax. Edges: 4 with each
 * fire module, 2 into its expansions and 2 out of them; 6 more along the chain. Depth: one expansion per module.
 */
shape squeezenet_shape(const sizes &)
{
    return {1 + 3 + 8 * 3 + 3, 8 * 4 + 6, 2, 1 + 3 + 8 * 2 + 3};
}

/* `repeat` normal cells, a reduction, `repeat` normal cells, a reduction, `repeat` normal cells. */
const int STAGES = 3;

class nasnet final : public model {
public:
    explicit nasnet(const sizes &s)
        : model(s["seed"]), pixels_(bounded(s, "image", LEAST_IMAGE, MOST_IMAGE)),
          classes_(bounded(s, "classes", 2, 100000)),
          repeat_(bounded(s, "repeat", 1, 80)), divide_(bounded(s, "divide", 1, 1000))
    {
    }

    void forward(layers &l) const override
    {
        uint32_t cell = 0;

        l.at(0, 0);
        tensor before = l.conv(l.image(pixels_, pixels_), {cut(96, divide_), 3, 1, LINEAR}), x = before;
        for (int stage = 0; stage < STAGES; stage++) {
            const int filters = cut(32, divide_) << stage;
            for (int k = stage ? -1 : 0; k < repeat_; k++) {
                l.at(0, 1 + cell++);
                const tensor y = k < 0 ? reduction(l, before, x, filters) : normal(l, before, x, filters);
                before = x;
                x = y;
            }
        }
        l.at(0, 1 + cell);
        const tensor scores = l.linear(l.mean(x), classes_, LINEAR);
        l.output(scores);
        l.output(l.softmax(scores));
    }

private:
    /* What a cell reads: the result of the cell before, and of that before it, brought to one size. */
    struct inputs {
        tensor p, h;
    };

    static inputs adjust(layers &l, const tensor &before, const tensor &x, int filters)
    {
        return {l.conv(before, {filters, 1, before.h > x.h ? 2 : 1, RELU}), l.conv(x, {filters, 1, 1, RELU})};
    }

    /* Separable convolutions come in pairs: 4 kernels. */
    static term separable(layers &l, const tensor &x, int kernel, int stride = 1)
    {
        const tensor half = l.conv(l.depthwise(x, kernel, stride, LINEAR), {x.c, 1, 1, RELU});
        return {l.conv(l.depthwise(half, kernel, 1, LINEAR), {x.c, 1, 1, LINEAR}), false, {}};
    }

    static term pooled(layers &l, const tensor &x, int stride, bool largest)
    {
        return {l.pool(x, stride, largest), false, {}};
    }

    /* Adds up a block's two results in place number `block` of the cell's result. */
    static tensor join(layers &l, const tensor &whole, int filters, int block, const term &a, const term &b)
    {
        const tensor y = channels(whole, block * filters, filters);
        return l.sum({a, b}, LINEAR, 1, &y);
    }

    /* 31 kernels: 2 adjust, 5 pairs of separable convolutions, 3 pools, 5 sums, a copy. */
    static tensor normal(layers &l, const tensor &before, const tensor &x, int filters)
    {
        const tensor whole = l.fresh(6 * filters, x.h, x.w), first = channels(whole, 0, filters);
        const inputs i = adjust(l, before, x, filters);
        const term p = {i.p, false, {}}, h = {i.h, false, {}};

        l.sum({p}, LINEAR, 1, &first);
        join(l, whole, filters, 1, separable(l, i.h, 3), h);
        const term wide = separable(l, i.h, 5);
        join(l, whole, filters, 2, separable(l, i.p, 3), wide);
        join(l, whole, filters, 3, pooled(l, i.h, 1, false), p);
        const term left = pooled(l, i.p, 1, false);
        join(l, whole, filters, 4, left, pooled(l, i.p, 1, false));
        const term narrow = separable(l, i.p, 3);
        join(l, whole, filters, 5, separable(l, i.p, 5), narrow);
        return whole;
    }

    /* 31 kernels: 2 adjust, 5 pairs of separable convolutions, 4 pools, 5 sums, the first no part of the result. */
    static tensor reduction(layers &l, const tensor &before, const tensor &x, int filters)
    {
        const inputs i = adjust(l, before, x, filters);
        const term a1 = separable(l, i.h, 5, 2), a2 = separable(l, i.p, 7, 2);
        const tensor b1 = l.sum({a1, a2}), whole = l.fresh(4 * filters, b1.h, b1.w);
        const term b = pooled(l, i.h, 2, true);
        const tensor b2 = join(l, whole, filters, 0, b, separable(l, i.p, 7, 2));
        const term c = pooled(l, i.h, 2, false);
        join(l, whole, filters, 1, c, separable(l, i.p, 5, 2));
        join(l, whole, filters, 2, pooled(l, b1, 1, false), {b2, false, {}});
        const term d = separable(l, b1, 3);
        join(l, whole, filters, 3, d, pooled(l, i.h, 2, true));
        return whole;
    }

    int pixels_, classes_, repeat_;
    int divide_;
};

/*
 * By hand. Kernels: stem, 31 per cell, head of 3. Edges inside of a cell: 5 with each pair of separable convolutions;
 * in a normal cell 8 more with pools, the second input as it is and its copy; in a reduction 9 with pools and b2 -> b4.
 * Edges into a cell: as many parts as its inputs were written in, but for b2, which b4 is behind. Depth: 6 per normal
 * cell (adjust, 4, sum), 11 per reduction (adjust, 4, b1, 4, b5).
 */
shape nasnet_shape(const sizes &s)
{
    const uint32_t repeat = static_cast<uint32_t>(s["repeat"]), cells = STAGES * repeat + STAGES - 1;
    uint32_t edges = 0, before = 1, last = 1;

    for (uint32_t k = 0; k < cells; k++) {
        const bool reduces = k % (repeat + 1) == repeat;
        edges += before + last + 5 * 5 + (reduces ? 9 : 8);
        before = last;
        last = reduces ? 3 : 6;
    }
    return {1 + 31 * cells + 3, edges + last + 2, 0, 1 + 6 * STAGES * repeat + 11 * (STAGES - 1) + 3};
}

/* Watts and Strogatz: a ring whose edges are moved with probability 0.75; then from the lower number to the higher. */
const int NEIGHBOURS = 4;
const double MOVED = 0.75;

typedef std::vector<std::vector<char>> adjacency; /* [from][to], both ways while the graph is made */

adjacency small_world(int nodes, uint64_t seed)
{
    const size_t n = static_cast<size_t>(nodes);
    adjacency linked(n, std::vector<char>(n, 0));
    uint64_t draws = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t near = 1; near <= NEIGHBOURS / 2; near++)
            linked[i][(i + near) % n] = linked[(i + near) % n][i] = 1;
    for (size_t near = 1; near <= NEIGHBOURS / 2; near++)
        for (size_t i = 0; i < n; i++) {
            const size_t old = (i + near) % n;
            size_t other = i;
            if (random_unit(seed, draws++) >= MOVED)
                continue;
            while (other == i || linked[i][other])
                other = static_cast<size_t>(random_unit(seed, draws++) * static_cast<double>(n));
            linked[i][old] = linked[old][i] = 0;
            linked[i][other] = linked[other][i] = 1;
        }
    return linked;
}

class randwire final : public model {
public:
    explicit randwire(const sizes &s)
        : model(s["seed"]), pixels_(bounded(s, "image", LEAST_IMAGE, MOST_IMAGE)),
          classes_(bounded(s, "classes", 2, 100000)),
          nodes_(bounded(s, "nodes", 2 * NEIGHBOURS + 1, 90)), divide_(bounded(s, "divide", 1, 1000))
    {
        for (uint64_t stage = 0; stage < STAGES; stage++)
            graphs_.push_back(small_world(nodes_, 100 * s["graph"] + stage));
    }

    void forward(layers &l) const override
    {
        l.at(0, 0);
        tensor x = l.conv(l.image(pixels_, pixels_), {cut(39, divide_), 3, 1, RELU});
        for (uint32_t stage = 0; stage < STAGES; stage++)
            x = one_stage(l, x, stage);
        l.at(0, last_part());
        const tensor wide = l.conv(x, {cut(1280, divide_), 1, 1, RELU});
        const tensor scores = l.linear(l.mean(wide), classes_, LINEAR);
        l.output(scores);
        l.output(l.softmax(scores));
    }

private:
    uint32_t last_part() const { return 1 + STAGES * static_cast<uint32_t>(nodes_ + 1); }

    /* Nodes without inputs read the stage's, and halve it; those without outputs make up the stage's mean. */
    tensor one_stage(layers &l, const tensor &x, uint32_t stage) const
    {
        const adjacency &linked = graphs_[stage];
        const int filters = cut(78, divide_) << stage;
        std::vector<tensor> y;
        std::vector<term> ends;

        for (size_t k = 0; k < linked.size(); k++) {
            std::vector<tensor> inputs;
            l.at(0, 1 + stage * static_cast<uint32_t>(nodes_ + 1) + static_cast<uint32_t>(k));
            for (size_t from = 0; from < k; from++)
                if (linked[from][k])
                    inputs.push_back(y[from]);
            y.push_back(node(l, inputs.empty() ? std::vector<tensor>{x} : inputs, inputs.empty() ? 2 : 1, filters));
            if (std::find(linked[k].begin() + static_cast<long>(k), linked[k].end(), 1) == linked[k].end())
                ends.push_back({y[k], false, {}});
        }
        l.at(0, 1 + stage * static_cast<uint32_t>(nodes_ + 1) + static_cast<uint32_t>(nodes_));
        return l.sum(ends, LINEAR, 1 / static_cast<float>(ends.size()));
    }

    /* 3 kernels. */
    static tensor node(layers &l, const std::vector<tensor> &inputs, int stride, int filters)
    {
        const tensor x = l.weighted_sum(inputs, RELU);
        return l.conv(l.depthwise(x, 3, stride, LINEAR), {filters, 1, 1, LINEAR});
    }

    int pixels_, classes_, nodes_;
    int divide_;
    std::vector<adjacency> graphs_;
};

/* Stem, 3 kernels per node and a mean per stage, head of 4. */
shape randwire_shape(const sizes &s)
{
    return {1 + STAGES * (3 * static_cast<uint32_t>(s["nodes"]) + 1) + 4, 0, 0, 0};
}

template <class M> std::unique_ptr<program> make(memory &m, const sizes &s)
{
    return make_network(m, std::make_unique<M>(s));
}

} // namespace

void add_static_networks(std::vector<workload> &list)
{
    const parameter image = {"image", "pixels each way", 8, 32, 32};
    const parameter classes = {"classes", "of the classifier", 10, 10, 10};
    const parameter divide = {"divide", "channels are divided by this", 8, 1, 1};
    const parameter seed = {"seed", "of the weights", 1, 1, 1};

    list.push_back({"squeezenet", "SqueezeNet 1.1: fire modules, whose two expansions are independent", "control",
                    {image, classes, divide, seed}, squeezenet_shape, make<squeezenet>, false});
    list.push_back({"nasnet", "NASNet-A: cells of 31 kernels", "control",
                    {image, classes, {"repeat", "normal cells of each of three stages", 1, 6, 6}, divide, seed},
                    nasnet_shape, make<nasnet>, false});
    list.push_back({"randwire", "RandWire: three random graphs, WS(32, 4, 0.75)", "control",
                    {image,
                     classes,
                     {"nodes", "of each graph", 32, 32, 32},
                     {"graph", "which graphs", 1, 1, 1},
                     divide,
                     seed},
                    randwire_shape, make<randwire>, false});
}

} // namespace bench
