/*
 * Owns what a layer's call means: shapes, keys of tensors and weights, and the rule of decisions. Both machines go
 * through it, called by models; it computes no layer and holds no data.
 */
#include <algorithm>
#include <cmath>

#include "network.h"
#include "workload.h"

namespace bench {

void layers::restart()
{
    next_ = 0;
    verdict_.decisions.clear();
    verdict_.rounds.clear();
    verdict_.outputs.clear();
    verdict_.layers = 0;
    margin_ = 1;
}

void layers::at(uint32_t image, uint32_t part)
{
    require(part < PARTS, "a network has too many parts");
    next_ = (image * PARTS + part) * STEPS;
}

tensor layers::fresh(int c, int h, int w)
{
    const tensor t = {next_++, 0, c, h, w};
    require(next_ % STEPS != 0, "a part of a network has too many layers");
    make(t);
    return t;
}

/* Every layer takes a step, which names its weights, and its result unless that goes into a tensor made before. */
tensor layers::target(int c, int h, int w, const tensor *into)
{
    step_ = next_;
    verdict_.layers++;
    if (!into)
        return fresh(c, h, w);
    require(into->c == c && into->h == h && into->w == w, "a layer's result does not fit where it is to go");
    next_++;
    return *into;
}

/* Keeps variance from layer to layer: a uniform number of bound b has variance b * b / 3, and relu halves it. */
drawn layers::draw(int count, int fan_in, activation act) const
{
    const float bound = std::sqrt((act == RELU ? 6.0f : 3.0f) / static_cast<float>(fan_in));
    return {step_ % (PARTS * STEPS), count, -bound, bound};
}

/* "Same" padding. */
static int strided(int pixels, int stride)
{
    return (pixels + stride - 1) / stride;
}

tensor layers::image(int size_h, int size_w)
{
    const uint32_t number = next_ / (PARTS * STEPS);
    const tensor t = fresh(3, size_h, size_w);
    take_image(t, number);
    return t;
}

tensor layers::conv(const tensor &x, const conv_form &f)
{
    const int fan_in = x.c * f.kernel * f.kernel;
    conv_layer l = {};

    require(f.kernel % 2 == 1, "convolutions have odd kernels");
    l.x = x;
    l.y = target(f.channels, strided(x.h, f.stride), strided(x.w, f.stride), f.into);
    l.add = f.add;
    l.weights = f.weights;
    l.w = draw(f.channels * fan_in, fan_in, f.act);
    l.kernel = f.kernel;
    l.stride = f.stride;
    l.act = f.act;
    take(l);
    return l.y;
}

tensor layers::depthwise(const tensor &x, int kernel, int stride, activation act, const tensor *weights)
{
    conv_layer l = {};

    l.x = x;
    l.y = target(x.c, strided(x.h, stride), strided(x.w, stride), nullptr);
    l.weights = weights;
    l.w = draw(x.c * kernel * kernel, kernel * kernel, act);
    l.kernel = kernel;
    l.stride = stride;
    l.act = act;
    l.depthwise = true;
    take(l);
    return l.y;
}

tensor layers::pool(const tensor &x, int stride, bool largest)
{
    const tensor y = target(x.c, strided(x.h, stride), strided(x.w, stride), nullptr);
    take(pool_layer{x, y, stride, largest});
    return y;
}

tensor layers::sum(const std::vector<term> &terms, activation act, float scale, const tensor *into)
{
    require(!terms.empty() && terms.size() <= MAX_INPUTS, "a sum of a network has no inputs, or too many");
    const tensor &x = terms[0].x;
    sum_layer l = {terms, false, {}, scale, act, target(x.c, x.h, x.w, into)};
    for (const term &t : terms)
        require(t.x.size() == l.y.size(), "the inputs of a sum differ in shape");
    take(l);
    return l.y;
}

tensor layers::join(const std::vector<term> &terms, const tensor *spare)
{
    std::vector<term> chosen;
    bool known = true;

    for (const term &t : terms)
        if (t.chosen.yes) {
            chosen.push_back(t);
            known = known && !t.chosen.word;
        }
    if (chosen.empty() && spare)
        return *spare;
    if (known && chosen.size() == 1 && !chosen[0].weighted)
        return chosen[0].x;
    if (known)
        return sum(chosen);
    require(chosen.size() < MAX_INPUTS, "a sum of a network has too many inputs");
    const tensor &x = chosen[0].x;
    sum_layer l = {chosen, false, {}, 1, LINEAR, target(x.c, x.h, x.w, nullptr), spare};
    for (const term &t : chosen)
        require(t.x.size() == l.y.size(), "the inputs of a sum differ in shape");
    take(l);
    return l.y;
}

tensor layers::weighted_sum(const std::vector<tensor> &inputs, activation act)
{
    std::vector<term> terms;
    for (const tensor &x : inputs)
        terms.push_back({x, false, {}});
    require(!terms.empty() && terms.size() <= MAX_INPUTS, "a sum of a network has no inputs, or too many");
    sum_layer l = {terms, true, {}, 1, act, target(inputs[0].c, inputs[0].h, inputs[0].w, nullptr)};
    /* What a sigmoid of a trained weight may be. */
    l.w = {step_ % (PARTS * STEPS), static_cast<int>(inputs.size()), 0.6f, 1.0f};
    take(l);
    return l.y;
}

tensor layers::scale(const tensor &x, const tensor &factors)
{
    require(factors.size() == x.c, "one factor per channel");
    const tensor y = target(x.c, x.h, x.w, nullptr);
    take_scale(x, factors, y);
    return y;
}

tensor layers::enlarge(const tensor &x, int h, int w, int times)
{
    require(strided(h, times) == x.h && strided(w, times) == x.w, "a feature map is enlarged to another size");
    const tensor y = target(x.c, h, w, nullptr);
    take_enlarge(x, y, times);
    return y;
}

tensor layers::mean(const tensor &x)
{
    const tensor y = target(x.c, 1, 1, nullptr);
    take(rows_layer{x, y, {}, false, LINEAR});
    return y;
}

tensor layers::linear(const tensor &x, int outputs, activation act, bool normalized)
{
    const tensor y = target(outputs, 1, 1, nullptr);
    take(rows_layer{x, y, draw(outputs * x.size(), x.size(), act), normalized, act});
    return y;
}

tensor layers::softmax(const tensor &x)
{
    const tensor y = target(x.c, x.h, x.w, nullptr);
    take_softmax(x, y);
    return y;
}

tensor layers::mix(const tensor &routing, int count, int experts, int fan_in)
{
    const tensor y = target(count, 1, 1, nullptr);
    require(routing.size() == experts, "one routing weight per expert");
    take(mix_layer{routing, y, draw(experts * count, fan_in, RELU)});
    return y;
}

choices layers::decide(const tensor &x, int group, unsigned any)
{
    const decision_layer l = {x, group, any};
    const size_t count = static_cast<size_t>(x.size());
    choices made;

    verdict_.rounds.push_back(static_cast<uint32_t>(count));
    output(x);
    const uint32_t *const words = take_decision(l);
    if (!words)
        return decide_here(l);
    for (size_t k = 0; k < count; k++)
        made.each.push_back({true, words + k, false});
    made.any = {true, words + count, false};
    return made;
}

bool layers::open(const choice &c)
{
    if (c.word)
        begin_section(c.word, c.unless);
    return c.yes;
}

void layers::close(const choice &c)
{
    if (c.word)
        end_section();
}

choices layers::decide_here(const decision_layer &l)
{
    const std::vector<double> seen = fetch(l.x);
    const size_t step = l.group ? static_cast<size_t>(l.group) : seen.size();
    std::vector<char> chosen(seen.size());
    choices made;

    for (size_t first = 0; first < seen.size(); first += step) {
        bool any = false;
        for (size_t k = first; k < first + step; k++)
            any |= chosen[k] = seen[k] > 0;
        const bool fallback = l.group && !any;
        if (fallback)
            chosen[static_cast<size_t>(std::max_element(&seen[first], &seen[first] + step) - seen.data())] = true;
        find_margin(seen, first, step, fallback);
    }
    verdict_.decisions.insert(verdict_.decisions.end(), chosen.begin(), chosen.end());
    made.any.yes = false;
    for (size_t k = 0; k < chosen.size(); k++) {
        made.each.push_back({chosen[k] != 0, nullptr, false});
        made.any.yes = made.any.yes || (k < 32 && chosen[k] && (l.any >> k & 1));
    }
    return made;
}

void layers::find_margin(const std::vector<double> &seen, size_t first, size_t count, bool fallback)
{
    std::vector<double> group(seen.begin() + static_cast<long>(first), seen.begin() + static_cast<long>(first + count));
    double largest = 0, closest = INFINITY;

    for (double v : group) {
        largest = std::max(largest, std::fabs(v));
        closest = std::min(closest, std::fabs(v));
    }
    std::sort(group.rbegin(), group.rend());
    if (fallback && count > 1)
        closest = std::min(closest, group[0] - group[1]);
    margin_ = std::min(margin_, closest / largest);
}

int bounded(const sizes &s, const char *name, int low, int high)
{
    const uint64_t value = s[name];
    const std::string range = std::to_string(low) + " to " + std::to_string(high);
    const std::string what = std::string("the size \"") + name + "\" of a network must be " + range;
    require(value >= static_cast<uint64_t>(low) && value <= static_cast<uint64_t>(high), what.c_str());
    return static_cast<int>(value);
}

int cut(int full, int divide)
{
    return std::max(full / divide, 4);
}

tensor channels(const tensor &t, int first, int count)
{
    require(first >= 0 && count > 0 && first + count <= t.c, "channels that a tensor does not have");
    return {t.key, t.first + first * t.h * t.w, count, t.h, t.w};
}

uint64_t weight_seed(uint64_t seed, uint32_t key)
{
    return seed << 32 | key;
}

std::vector<float> fold_values(uint32_t key, int count)
{
    std::vector<float> v(static_cast<size_t>(count) * 2);
    for (size_t i = 0; i < v.size(); i++) {
        const double u = random_unit(key, i);
        v[i] = static_cast<float>(i < v.size() / 2 ? 0.9 + 0.2 * u : 0.2 * u - 0.1);
    }
    return v;
}

std::vector<float> image_pixels(const tensor &t, uint32_t image)
{
    std::vector<float> v;
    for (int c = 0; c < t.c; c++) {
        const uint64_t seed = image * 16u + static_cast<uint32_t>(c);
        const double tone = 2 * random_unit(seed, 0) - 1, wave_y = 0.2 + 1.5 * random_unit(seed, 1);
        const double wave_x = 0.2 + 1.5 * random_unit(seed, 2), phase = 6 * random_unit(seed, 3);
        for (int y = 0; y < t.h; y++)
            for (int x = 0; x < t.w; x++)
                v.push_back(static_cast<float>(tone + std::sin(wave_y * y + wave_x * x + phase)));
    }
    return v;
}

} // namespace bench
