/*
 * Networks as programs: a `model` says which layers run, once; `layers` works out shapes, weights and decisions; and
 * two machines take the layers. `network` launches kernels for the harness; `reference` (network_reference.h) computes
 * in double precision, shares no code with the kernels and knows nothing of buffers or footprints.
 *
 * Batches are of one image, feature maps are planes of floats. Every tensor has a buffer of its own.
 */
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H

#include <memory>
#include <string>
#include <vector>

#include "network_kernels.h"
#include "program.h"

namespace bench {

class sizes;

/** A feature map: c planes of h x w from element `first` on of the buffer that `key` names. */
struct tensor {
    uint32_t key;
    int first, c, h, w;
    int size() const { return c * h * w; }
};

/** Weights, drawn at random: their key is that of the layer, without the image. */
struct drawn {
    uint32_t key;
    int count;
    float low, high;
};

/* Layers as the machines take them: x and y are shaped already. */
struct conv_layer {
    tensor x, y;
    const tensor *add, *weights; /* or NULL; with `weights`, w is not drawn */
    drawn w;
    int kernel, stride;
    activation act;
    bool depthwise;
};
struct pool_layer {
    tensor x, y;
    int stride;
    bool largest;
};
/** A choice of the network. The host knows it, or the device does, which has it as a word. */
struct choice {
    bool yes = true;                /* the host's; where the device chooses true, since its ops have to be launched */
    const uint32_t *word = nullptr; /* where the device says it; NULL: the host chose */
    bool unless = false;            /* the word says no */
    choice operator!() const { return word ? choice{true, word, !unless} : choice{!yes, nullptr, false}; }
};
/** What a network chose by a tensor. */
struct choices {
    std::vector<choice> each; /* by element */
    choice any;               /* of those that the layer was asked about */
};
struct decision_layer {
    tensor x;
    int group;    /* of each so many elements, the largest is chosen if none is above 0; 0: no such rule */
    unsigned any; /* bit k: element k counts for choices::any */
};
/** One input of a sum: times `factor`, a tensor of one element, if it has one. It counts if it is chosen. */
struct term {
    tensor x;
    bool weighted;
    tensor factor;
    choice chosen = {};
};
struct sum_layer {
    std::vector<term> terms;
    bool draws; /* each input has a drawn factor */
    drawn w;
    float scale;
    activation act;
    tensor y;
    const tensor *spare = nullptr; /* the result if no term is chosen, on the device; NULL: one is */
};
struct rows_layer {
    tensor x, y;
    drawn w; /* count 0: means of rows */
    bool normalized;
    activation act;
};
struct mix_layer {
    tensor routing, y;
    drawn experts;
};

/** What a model asks of a convolution. */
struct conv_form {
    int channels, kernel, stride;
    activation act;
    const tensor *add = nullptr, *into = nullptr, *weights = nullptr;
};

/** What was decided in a run, and what it ends in. */
struct verdict {
    std::vector<char> decisions;  /* one per bit that was chosen */
    std::vector<uint32_t> rounds; /* how many bits each look at a tensor decided */
    std::vector<tensor> outputs;
    uint32_t layers = 0;          /* kernels launched */
};

/** One layer per call, in program order; each but `decide` is one kernel. Keys are the same in each run. */
class layers {
public:
    virtual ~layers() {}

    enum { PARTS = 288, STEPS = 64 }; /* parts of a network, tensors of a part */

    /** What follows belongs to this part of the network, for this image. A part is entered once per image. */
    void at(uint32_t image, uint32_t part);
    /** A tensor to write layers' results into, part by part. */
    tensor fresh(int c, int h, int w);
    /** The input: waves and a tone of its own for each image. */
    tensor image(int size_h, int size_w);
    tensor conv(const tensor &x, const conv_form &f);
    tensor depthwise(const tensor &x, int kernel, int stride, activation act, const tensor *weights = nullptr);
    tensor pool(const tensor &x, int stride, bool largest);
    tensor sum(const std::vector<term> &terms, activation act = LINEAR, float scale = 1, const tensor *into = nullptr);
    /**
     * The sum of the terms that are chosen; `spare` if none is (NULL: one always is). Where the host knows that it is a
     * single one without a factor, that is taken as it is.
     */
    tensor join(const std::vector<term> &terms, const tensor *spare);
    /** A sum whose factors are weights of the network. */
    tensor weighted_sum(const std::vector<tensor> &inputs, activation act);
    tensor scale(const tensor &x, const tensor &factors);
    tensor enlarge(const tensor &x, int h, int w, int times);
    /** One number per channel. */
    tensor mean(const tensor &x);
    /** `normalized`: x is divided by its root mean square first, so that sizes do not fade away over many layers. */
    tensor linear(const tensor &x, int outputs, activation act, bool normalized = false);
    tensor softmax(const tensor &x);
    /** `count` weights, mixed from those of `experts` networks; bound as for a layer of `fan_in` inputs. */
    tensor mix(const tensor &routing, int count, int experts, int fan_in);
    /**
     * The host looks at x and chooses, or the device does: element k is chosen if it is above 0. Of each `group`
     * elements, the largest is chosen if none is above 0; 0: no such rule. Bit k of `any`: choices::any asks for it.
     */
    choices decide(const tensor &x, int group, unsigned any = 0);
    /** Layers up to close() run only if this was chosen. @return false: do not call them, nor close(). */
    bool open(const choice &c);
    void close(const choice &c);
    /** x is a result: compared with the oracle's. */
    void output(const tensor &x) { verdict_.outputs.push_back(x); }

    const verdict &summary() const { return verdict_; }
    /** Smallest distance of a decision from the other choice, as a fraction of the largest element looked at. */
    double margin() const { return margin_; }

protected:
    void restart();
    virtual void make(const tensor &t) = 0;
    virtual void take_image(const tensor &y, uint32_t image) = 0;
    virtual void take(const conv_layer &l) = 0;
    virtual void take(const pool_layer &l) = 0;
    virtual void take(const sum_layer &l) = 0;
    virtual void take(const rows_layer &l) = 0;
    virtual void take(const mix_layer &l) = 0;
    virtual void take_scale(const tensor &x, const tensor &factors, const tensor &y) = 0;
    virtual void take_enlarge(const tensor &x, const tensor &y, int times) = 0;
    virtual void take_softmax(const tensor &x, const tensor &y) = 0;
    virtual std::vector<double> fetch(const tensor &x) = 0;
    /**
     * Leaves a decision to the device. @return the words that it writes, one for each element of x and one for `any`;
     * NULL: the host decides.
     */
    virtual const uint32_t *take_decision(const decision_layer &l)
    {
        (void)l;
        return nullptr;
    }
    virtual void begin_section(const uint32_t *word, bool unless)
    {
        (void)word;
        (void)unless;
    }
    virtual void end_section() {}
    /* What the device decided in the whole run, once that is known. */
    void set_decisions(const std::vector<char> &chosen) { verdict_.decisions = chosen; }

private:
    tensor target(int c, int h, int w, const tensor *into);
    drawn draw(int count, int fan_in, activation act) const;
    choices decide_here(const decision_layer &l);
    void find_margin(const std::vector<double> &seen, size_t first, size_t count, bool fallback);

    uint32_t next_ = 0, step_ = 0; /* the step that the next layer takes; that of the layer in hand */
    verdict verdict_;
    double margin_ = 1;
};

enum { LEAST_IMAGE = 8, MOST_IMAGE = 4096 };
/** A size of a workload as a number of pixels, classes or the like; ends the program if it is not in [low, high]. */
int bounded(const sizes &s, const char *name, int low, int high);
/** Channels of small presets; 4 keep a layer more than a number. */
int cut(int full, int divide);
/** Part of a tensor: `count` channels from `first` on. */
tensor channels(const tensor &t, int first, int count);

/* The data that both machines start from. */
std::vector<float> image_pixels(const tensor &t, uint32_t image);
/** Scale and shift per channel, as batch normalisation leaves them when it is folded into a layer. */
std::vector<float> fold_values(uint32_t key, int count);
uint64_t weight_seed(uint64_t seed, uint32_t key);

/** Which layers a network has, by its sizes and the decisions. */
class model {
public:
    explicit model(uint64_t weights) : seed(weights) {}
    virtual ~model() {}
    virtual void forward(layers &l) const = 0;
    /** What is wrong with the run's shape, counted from the decisions alone; else empty. */
    virtual std::string wrong(const verdict &o) const
    {
        (void)o;
        return {};
    }
    const uint64_t seed; /* of the weights */
};

std::unique_ptr<program> make_network(memory &m, std::unique_ptr<const model> what);

} // namespace bench

#endif
