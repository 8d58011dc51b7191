/*
 * The dynamic networks that ACS was measured with: InstaNAS, where a controller picks blocks per image; dynamic
 * routing, where 61 gates open and close paths on a grid of scales; CondConv, whose weights are mixed from
 * experts' as it runs. Their shapes are the papers', their weights are drawn. Listed for acs-workloads;
 * layers are in network*.cpp.
 */
#include <algorithm>

#include "network.h"
#include "workload.h"

namespace bench {

namespace {

/* How many of `count` decisions from `first` on were "yes". */
uint32_t chosen_among(const verdict &o, size_t first, size_t count)
{
    return static_cast<uint32_t>(std::count(o.decisions.begin() + static_cast<long>(first),
                                            o.decisions.begin() + static_cast<long>(first + count), 1));
}

const int INSTANAS_LAYERS = 17, CANDIDATES = 5;

class instanas final : public model {
public:
    explicit instanas(const sizes &s)
        : model(s["seed"]), images_(static_cast<uint32_t>(bounded(s, "images", 1, 1000))),
          pixels_(bounded(s, "image", LEAST_IMAGE, MOST_IMAGE)),
          divide_(bounded(s, "divide", 1, 1000))
    {
    }

    void forward(layers &l) const override
    {
        for (uint32_t n = 0; n < images_; n++)
            one_image(l, n);
    }

    /* Kernels per image: controller 5, stem, head 4; 3 per inverted bottleneck, 2 per basic block, a sum. */
    std::string wrong(const verdict &o) const override
    {
        uint32_t kernels = images_ * 10;
        for (size_t k = 0; k + CANDIDATES <= o.decisions.size(); k += CANDIDATES) {
            const uint32_t bottlenecks = chosen_among(o, k, 4), basic = chosen_among(o, k + 4, 1);
            kernels += 3 * bottlenecks + 2 * basic + (bottlenecks + basic > 1);
        }
        if (o.rounds != std::vector<uint32_t>(images_, INSTANAS_LAYERS * CANDIDATES))
            return "instanas decides once per image, about five blocks in each of 17 layers";
        if (kernels != o.layers)
            return "instanas launched " + std::to_string(o.layers) + " kernels, must be " + std::to_string(kernels);
        return {};
    }

private:
    /* Parts of the network: 0 input and controller, 1 stem and head, then candidates and their sum, layer by layer. */
    static uint32_t part(int layer, int candidate)
    {
        return static_cast<uint32_t>(2 + layer * (CANDIDATES + 1) + candidate);
    }

    choices policy(layers &l, const tensor &x) const
    {
        tensor t = l.conv(x, {cut(16, divide_), 3, 2, RELU});
        t = l.conv(t, {cut(32, divide_), 3, 2, RELU});
        t = l.mean(l.conv(t, {cut(64, divide_), 3, 2, LINEAR}));
        return l.decide(l.linear(t, INSTANAS_LAYERS * CANDIDATES, LINEAR, true), CANDIDATES);
    }

    tensor block(layers &l, const tensor &x, int candidate, int channels, int stride) const
    {
        if (candidate == 4)
            return l.conv(l.conv(x, {channels, 3, stride, RELU}), {channels, 3, 1, LINEAR});
        const int expansion = candidate < 2 ? 6 : 3, kernel = candidate % 2 ? 5 : 3;
        const tensor wide = l.conv(x, {x.c * expansion, 1, 1, RELU});
        return l.conv(l.depthwise(wide, kernel, stride, RELU), {channels, 1, 1, LINEAR});
    }

    void one_image(layers &l, uint32_t image) const
    {
        static const int width[INSTANAS_LAYERS] = {16, 24, 24, 32, 32, 32, 64,  64, 64,
                                                   64, 96, 96, 96, 160, 160, 160, 320};
        static const int strides[INSTANAS_LAYERS] = {1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};

        l.at(image, 0);
        const tensor input = l.image(pixels_, pixels_);
        const choices chosen = policy(l, input);
        l.at(image, 1);
        tensor x = l.conv(input, {cut(32, divide_), 3, 1, RELU});
        for (int layer = 0; layer < INSTANAS_LAYERS; layer++) {
            std::vector<term> results;
            for (int c = 0; c < CANDIDATES; c++) {
                const choice &taken = chosen.each[static_cast<size_t>(layer * CANDIDATES + c)];
                if (!l.open(taken))
                    continue;
                l.at(image, part(layer, c));
                results.push_back({block(l, x, c, cut(width[layer], divide_), strides[layer]), false, {}, taken});
                l.close(taken);
            }
            l.at(image, part(layer, CANDIDATES));
            x = l.join(results, nullptr);
        }
        l.at(image, part(INSTANAS_LAYERS, 0));
        const tensor pooled = l.mean(l.conv(x, {cut(1280, divide_), 1, 1, RELU}));
        const tensor scores = l.linear(pooled, 10, LINEAR);
        l.output(scores);
        l.output(l.softmax(scores));
    }

    uint32_t images_;
    int pixels_;
    int divide_;
};

const int ROUTING_LAYERS = 16, SCALES = 4;

/* Scales of a layer: the stem feeds two, each layer may feed one more. */
int scales_of(int layer)
{
    return std::min(layer + 2, SCALES);
}

class dynroute final : public model {
public:
    explicit dynroute(const sizes &s)
        : model(s["seed"]), height_(bounded(s, "height", LEAST_IMAGE, MOST_IMAGE)), width_(2 * height_),
          channels_(cut(32, bounded(s, "divide", 1, 1000)))
    {
    }

    void forward(layers &l) const override
    {
        flows open;
        uint32_t cell = 0;

        l.at(0, 0);
        const tensor stem = l.conv(l.conv(l.image(height_, width_), {channels_, 3, 2, RELU}), {channels_, 3, 2, RELU});
        open.into[0].push_back({stem, false, {}});
        open.into[1].push_back({l.conv(stem, {2 * channels_, 3, 2, RELU}), false, {}});
        for (int layer = 0; layer < ROUTING_LAYERS; layer++) {
            flows next;
            const int scales = scales_of(layer), after = layer + 1 < ROUTING_LAYERS ? scales_of(layer + 1) : scales;
            for (int s = 0; s < scales; s++, cell++) {
                l.at(0, part(cell, GATHER));
                const tensor x = gather(l, open, s);
                one_cell(l, cell, x, s, s + 1 == scales && after > scales, after, next);
            }
            next.keep(open, scales);
            open = next;
        }
        head(l, open);
    }

    std::string wrong(const verdict &o) const override
    {
        return o.rounds.size() == 61 ? std::string() : "dynamic routing takes 61 decisions";
    }

private:
    /* What may flow into each scale of a layer, and what it adds up to. */
    struct flows {
        std::vector<term> into[SCALES];
        tensor spare[SCALES]; /* what a scale had before; it keeps that where no open path feeds it */
        bool has_spare[SCALES] = {};
        tensor total[SCALES];

        void keep(const flows &had, int scales)
        {
            std::copy(had.total, had.total + scales, spare);
            std::fill(has_spare, has_spare + scales, true);
        }
    };

    /* Parts of the network: 0 stem and head, then four per cell, so that what is left out shifts no keys. */
    enum { GATHER, CELL, UP, DOWN, CELL_PARTS };
    static uint32_t part(uint32_t cell, uint32_t which) { return 1 + cell * CELL_PARTS + which; }

    static tensor gather(layers &l, flows &f, int s)
    {
        f.total[s] = l.join(f.into[s], f.has_spare[s] ? &f.spare[s] : nullptr);
        return f.total[s];
    }

    /* The gates drop the cell, or its paths up, straight on and down. Where a scale begins, its way in is open. */
    void one_cell(layers &l, uint32_t cell, const tensor &x, int s, bool begins, int after, flows &next) const
    {
        l.at(0, part(cell, CELL));
        const tensor gates = l.linear(l.mean(x), 3, TANH, true);
        const bool has_up = s > 0, has_down = s + 1 < after;
        const choices open = l.decide(gates, 0, (has_up ? 1u : 0u) | 2u | (has_down ? 4u : 0u));
        const choice runs = begins ? choice() : open.any;
        tensor y = x;

        if (l.open(runs)) {
            y = l.conv(l.depthwise(x, 3, 1, LINEAR), {x.c, 1, 1, RELU});
            y = l.conv(l.depthwise(y, 3, 1, LINEAR), {x.c, 1, 1, RELU});
            l.close(runs);
        }
        next.into[s].push_back({x, false, {}, !runs});
        if (has_up && l.open(open.each[0])) {
            l.at(0, part(cell, UP));
            const tensor half = l.conv(y, {x.c / 2, 1, 1, LINEAR});
            const tensor raised = l.enlarge(half, rows(s - 1), columns(s - 1), 2);
            next.into[s - 1].push_back({raised, true, channels(gates, 0, 1), open.each[0]});
            l.close(open.each[0]);
        }
        next.into[s].push_back({y, true, channels(gates, 1, 1), open.each[1]});
        const choice down = begins ? choice() : open.each[2];
        if ((begins || has_down) && l.open(down)) {
            l.at(0, part(cell, DOWN));
            const tensor twice = l.conv(y, {2 * x.c, 1, 2, LINEAR});
            next.into[s + 1].push_back({twice, true, channels(gates, 2, 1), open.each[2]});
            if (begins)
                next.into[s + 1].push_back({twice, false, {}, !open.each[2]});
            l.close(down);
        }
    }

    /* Classes per pixel of the finest scale, from all scales. */
    void head(layers &l, flows &f) const
    {
        std::vector<term> scores;
        for (int s = 0; s < SCALES; s++) {
            l.at(0, part(61 + static_cast<uint32_t>(s), GATHER));
            const tensor x = gather(l, f, s);
            l.at(0, part(61 + static_cast<uint32_t>(s), CELL));
            const tensor classes = l.conv(x, {19, 1, 1, LINEAR});
            scores.push_back({s ? l.enlarge(classes, rows(0), columns(0), 1 << s) : classes, false, {}});
        }
        l.output(l.sum(scores));
    }

    int rows(int s) const { return shrunk(height_, s); }
    int columns(int s) const { return shrunk(width_, s); }
    /* The stem halves twice, each scale once more; odd sizes are rounded up each time, which is the same as once. */
    static int shrunk(int pixels, int s) { return (pixels + (4 << s) - 1) / (4 << s); }

    int height_, width_, channels_;
};

/* Block of MobileNet's kind with squeeze and excitation, all of whose convolutions are mixed from four experts'. */
const int EXPERTS = 4, CONDCONV_BLOCKS = 8;

class condconv final : public model {
public:
    explicit condconv(const sizes &s)
        : model(s["seed"]), pixels_(bounded(s, "image", LEAST_IMAGE, MOST_IMAGE)),
          divide_(bounded(s, "divide", 1, 1000)),
          classes_(bounded(s, "classes", 2, 100000))
    {
    }

    void forward(layers &l) const override
    {
        static const int width[CONDCONV_BLOCKS] = {16, 24, 40, 80, 112, 192, 192, 320};
        static const int strides[CONDCONV_BLOCKS] = {1, 2, 2, 2, 1, 2, 1, 1};
        static const int kernel[CONDCONV_BLOCKS] = {3, 3, 5, 3, 5, 5, 5, 3};

        l.at(0, 0);
        tensor x = l.conv(l.image(pixels_, pixels_), {cut(32, divide_), 3, 2, RELU});
        for (uint32_t b = 0; b < CONDCONV_BLOCKS; b++) {
            l.at(0, 1 + b);
            x = block(l, x, cut(width[b], divide_), kernel[b], strides[b]);
        }
        l.at(0, 1 + CONDCONV_BLOCKS);
        const tensor pooled = l.mean(l.conv(x, {cut(1280, divide_), 1, 1, RELU}));
        const tensor scores = l.linear(pooled, classes_, LINEAR);
        l.output(scores);
        l.output(l.softmax(scores));
    }

private:
    /* 12 kernels: routing 2, mixing 3, the block itself 7. */
    tensor block(layers &l, const tensor &x, int channels, int kernel, int stride) const
    {
        const int wide = x.c * 6;
        const tensor routing = l.linear(l.mean(x), EXPERTS, SIGMOID, true);
        const tensor w1 = l.mix(routing, x.c * wide, EXPERTS, x.c);
        const tensor w2 = l.mix(routing, wide * kernel * kernel, EXPERTS, kernel * kernel);
        const tensor w3 = l.mix(routing, wide * channels, EXPERTS, wide);
        conv_form expand = {wide, 1, 1, RELU}, project = {channels, 1, 1, LINEAR};

        expand.weights = &w1;
        project.weights = &w3;
        project.add = channels == x.c && stride == 1 ? &x : nullptr;
        const tensor t = l.depthwise(l.conv(x, expand), kernel, stride, RELU, &w2);
        const tensor squeezed = l.linear(l.mean(t), std::max(x.c / 4, 4), RELU);
        return l.conv(l.scale(t, l.linear(squeezed, wide, SIGMOID)), project);
    }

    int pixels_;
    int divide_;
    int classes_;
};

template <class M> std::unique_ptr<program> make(memory &m, const sizes &s)
{
    return make_network(m, std::make_unique<M>(s));
}

/*
 * CondConv, counted by hand. Kernels: stem, 8 blocks of 12, head of 4. Edges per block: into the mean, mean -> routing,
 * routing -> 3 mixes, 3 mixes -> the convolution that each feeds, and 6 along the block from expansion to projection;
 * the head has 4. The three mixes are the width; a block's longest path leaves out two of them.
 */
shape condconv_shape(const sizes &)
{
    return {1 + CONDCONV_BLOCKS * 12 + 4, CONDCONV_BLOCKS * 14 + 4, 3, 1 + CONDCONV_BLOCKS * 10 + 4};
}

} // namespace

void add_dynamic_networks(std::vector<workload> &list)
{
    list.push_back({"instanas", "InstaNAS-like: a controller picks among five blocks in each of 17 layers, per image",
                    "ACS",
                    {{"images", "images, one after another", 2, 4, 10},
                     {"image", "pixels each way", 8, 32, 32},
                     {"divide", "channels are divided by this", 8, 1, 1},
                     {"seed", "of the weights", 1, 1, 1}},
                    nullptr, make<instanas>, true, true});
    list.push_back({"dynroute", "dynamic routing: gates open and close paths on a grid of 16 layers and 4 scales",
                    "ACS",
                    {{"height", "pixels of the image; it is twice as wide", 32, 128, 1024},
                     {"divide", "channels are divided by this", 8, 1, 1},
                     {"seed", "of the weights", 1, 1, 1}},
                    nullptr, make<dynroute>, true, true});
    list.push_back({"condconv", "CondConv: weights of 8 blocks mixed from four experts' as it runs", "ACS",
                    {{"image", "pixels each way", 16, 128, 224},
                     {"divide", "channels are divided by this", 8, 1, 1},
                     {"classes", "of the classifier", 10, 1000, 1000},
                     {"seed", "of the weights", 1, 1, 1}},
                    condconv_shape, make<condconv>, false});
}

} // namespace bench
