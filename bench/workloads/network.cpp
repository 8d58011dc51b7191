/*
 * Owns networks as programs: buffers by key, footprints, grids. The harness runs them; models call the layers. The
 * constructor makes a dry run in which the device decides, so that all is launched, to make every buffer: run() makes
 * none.
 */
#include "network.h"

#include <algorithm>

#include "check.h"
#include "network_reference.h"

namespace bench {

namespace {

/* Sums of up to some thousands of floats, 50 to 200 layers deep: rounding leaves about 1e-5 of the largest element,
   and a wrong order leaves a NaN. Decisions must be further from the other choice than rounding can reach. */
const double TOLERANCE = 1e-3, LEAST_MARGIN = 1e-4;

class network final : public program, private layers {
public:
    network(memory &m, std::unique_ptr<const model> what);
    void run(sink &s) override;
    std::string check() override;
    bool decided() const override { return !dry_.rounds.empty(); }
    bool spares(const op &from, const op &to) const override;

private:
    struct storage {
        float *tensor = nullptr, *weights = nullptr, *fold = nullptr;
        uint32_t *words = nullptr; /* what is decided by the tensor */
        size_t count = 0;
    };
    enum { SEGMENTS = 3 * MAX_INPUTS + 2 };
    struct footprint {
        acs_segment segment[SEGMENTS];
        size_t count = 0;
        void add(const acs_segment &s) { segment[count++] = s; }
    };

    void make(const tensor &t) override;
    void take_image(const tensor &y, uint32_t image) override;
    void take(const conv_layer &l) override;
    void take(const pool_layer &l) override;
    void take(const sum_layer &l) override;
    void take(const rows_layer &l) override;
    void take(const mix_layer &l) override;
    void take_scale(const tensor &x, const tensor &factors, const tensor &y) override;
    void take_enlarge(const tensor &x, const tensor &y, int times) override;
    void take_softmax(const tensor &x, const tensor &y) override;
    std::vector<double> fetch(const tensor &x) override;
    const uint32_t *take_decision(const decision_layer &l) override;
    void begin_section(const uint32_t *word, bool unless) override;
    void end_section() override;

    storage &at_key(uint32_t key);
    float *place(const tensor &t) { return at_key(t.key).tensor + t.first; }
    const float *weights(const drawn &d);
    const float *fold(uint32_t key, int channels);
    const float *reads(footprint &f, const tensor &t);
    float *writes(footprint &f, const tensor &t);
    template <class A> void issue(const acs_dual_kernel &k, uint32_t ctas, uint32_t block, A &args, const footprint &f,
                                  double work_us);
    template <class A> void issue_flat(const acs_dual_kernel &k, A &args, const footprint &f, double work_us);
    void take_depthwise(const conv_layer &l, const float *w, footprint &f);
    void take_dense(const conv_layer &l, const float *w, footprint &f);
    void take_chosen(const sum_args &a, const sum_layer &l, footprint &f);
    void learn_decisions();
    std::string compare(const tensor &t, const std::vector<double> &want) const;

    std::unique_ptr<const model> model_;
    std::vector<storage> storage_;
    sink *sink_ = nullptr; /* NULL during the dry run */
    bool device_decides_ = true;
    struct decision {
        const uint32_t *words;
        size_t count;
    };
    std::vector<decision> asked_; /* of the device in the last run */
    verdict dry_;                 /* of the dry run */
    float seen_[READ_BYTES / sizeof(float)];
    std::unique_ptr<reference> right_; /* made by the first check: it depends on sizes alone */
};

network::network(memory &m, std::unique_ptr<const model> what) : program(m), model_(std::move(what))
{
    restart();
    model_->forward(*this);
    dry_ = summary();
    for (const tensor &t : dry_.outputs)
        mark_result(at_key(t.key).tensor);
}

void network::run(sink &s)
{
    begin();
    sink_ = &s;
    device_decides_ = s.decides();
    asked_.clear();
    restart();
    model_->forward(*this);
}

network::storage &network::at_key(uint32_t key)
{
    if (key >= storage_.size()) {
        require(!sink_, "a run of a network has a layer that the dry run had not");
        storage_.resize(key + 1);
    }
    return storage_[key];
}

void network::make(const tensor &t)
{
    storage &s = at_key(t.key);
    const size_t count = static_cast<size_t>(t.size());
    if (!s.tensor) {
        require(!sink_, "a run of a network has a tensor that the dry run had not");
        s.tensor = scratch<float>(count);
        s.count = count;
    }
    require(s.count == count, "a tensor of a network has another size than in the dry run");
}

void network::take_image(const tensor &y, uint32_t image)
{
    if (!sink_)
        at_key(y.key).tensor = values(image_pixels(y, image));
}

const float *network::weights(const drawn &d)
{
    storage &s = at_key(d.key);
    if (!s.weights) {
        require(!sink_, "a run of a network has weights that the dry run had not");
        s.weights = random<float>(static_cast<size_t>(d.count), weight_seed(model_->seed, d.key), d.low, d.high);
    }
    return s.weights;
}

const float *network::fold(uint32_t key, int channels)
{
    storage &s = at_key(key);
    if (!s.fold) {
        require(!sink_, "a run of a network has scales that the dry run had not");
        s.fold = values(fold_values(key, channels));
    }
    return s.fold;
}

const float *network::reads(footprint &f, const tensor &t)
{
    const float *const p = place(t);
    f.add(in(p, static_cast<size_t>(t.size())));
    return p;
}

float *network::writes(footprint &f, const tensor &t)
{
    float *const p = place(t);
    f.add(out(p, static_cast<size_t>(t.size())));
    return p;
}

/* `work_us`: how long one CTA works. What a planner is told is rough: a large GPU runs some 500 such CTAs at once. */
template <class A>
void network::issue(const acs_dual_kernel &k, uint32_t ctas, uint32_t block, A &args, const footprint &f,
                    double work_us)
{
    const double waves = (ctas + 499) / 500;
    args.threads = ctas * block;
    if (sink_)
        launch_grid(*sink_, k, ctas, block, args, f.segment, f.count, static_cast<float>(1.5 + waves * work_us));
}

/* For kernels that work element by element, FLAT_ITEMS to a thread. */
template <class A> void network::issue_flat(const acs_dual_kernel &k, A &args, const footprint &f, double work_us)
{
    const uint32_t threads = (args.count + FLAT_ITEMS - 1) / FLAT_ITEMS;
    issue(k, (threads + FLAT_BLOCK - 1) / FLAT_BLOCK, FLAT_BLOCK, args, f, work_us);
}

void network::take(const conv_layer &l)
{
    footprint f;
    const float *const w = l.weights ? place(*l.weights) : weights(l.w);

    f.add(in(w, static_cast<size_t>(l.w.count)));
    if (l.depthwise)
        take_depthwise(l, w, f);
    else
        take_dense(l, w, f);
}

void network::take_depthwise(const conv_layer &l, const float *w, footprint &f)
{
    depthwise_args a = {};
    a.count = static_cast<unsigned>(l.y.size());
    a.x = reads(f, l.x);
    a.w = w;
    a.fold = fold(l.w.key, l.y.c);
    f.add(in(a.fold, static_cast<size_t>(l.y.c) * 2));
    a.y = writes(f, l.y);
    a.c = l.x.c;
    a.in_h = l.x.h;
    a.in_w = l.x.w;
    a.out_h = l.y.h;
    a.out_w = l.y.w;
    a.kernel = l.kernel;
    a.stride = l.stride;
    a.act = l.act;
    issue_flat(kernel_net_depthwise, a, f, 0.1 * l.kernel * l.kernel);
}

void network::take_dense(const conv_layer &l, const float *w, footprint &f)
{
    conv_args a = {};
    a.x = reads(f, l.x);
    a.w = w;
    a.fold = fold(l.w.key, l.y.c);
    f.add(in(a.fold, static_cast<size_t>(l.y.c) * 2));
    a.add = l.add ? reads(f, *l.add) : nullptr;
    a.y = writes(f, l.y);
    a.in_c = l.x.c;
    a.in_h = l.x.h;
    a.in_w = l.x.w;
    a.out_c = l.y.c;
    a.out_h = l.y.h;
    a.out_w = l.y.w;
    a.kernel = l.kernel;
    a.stride = l.stride;
    a.act = l.act;
    const uint32_t across = static_cast<uint32_t>((l.y.h * l.y.w + CONV_TILE - 1) / CONV_TILE);
    const uint32_t down = static_cast<uint32_t>((l.y.c + CONV_TILE - 1) / CONV_TILE);
    issue(kernel_net_conv, across * down, CONV_BLOCK, a, f, 0.9 * (l.x.c * l.kernel * l.kernel / 64.0 + 1));
}

void network::take(const pool_layer &l)
{
    footprint f;
    pool_args a = {};
    a.count = static_cast<unsigned>(l.y.size());
    a.x = reads(f, l.x);
    a.y = writes(f, l.y);
    a.in_h = l.x.h;
    a.in_w = l.x.w;
    a.out_h = l.y.h;
    a.out_w = l.y.w;
    a.stride = l.stride;
    a.largest = l.largest;
    issue_flat(kernel_net_pool, a, f, 0.9);
}

void network::take(const sum_layer &l)
{
    footprint f;
    sum_args a = {};
    a.count = static_cast<unsigned>(l.y.size());
    a.inputs = static_cast<int>(l.terms.size());
    a.act = l.act;
    a.scale = l.scale;
    const float *const drawn_factors = l.draws ? weights(l.w) : nullptr;
    if (l.draws)
        f.add(in(drawn_factors, l.terms.size()));
    for (size_t k = 0; k < l.terms.size(); k++) {
        a.x[k] = reads(f, l.terms[k].x);
        a.factor[k] = l.terms[k].weighted ? reads(f, l.terms[k].factor) : (l.draws ? drawn_factors + k : nullptr);
    }
    a.y = writes(f, l.y);
    if (l.spare || std::any_of(l.terms.begin(), l.terms.end(), [](const term &t) { return t.chosen.word != nullptr; }))
        take_chosen(a, l, f);
    else
        issue_flat(kernel_net_sum, a, f, 0.5 + 0.2 * a.inputs);
}

void network::take_chosen(const sum_args &a, const sum_layer &l, footprint &f)
{
    chosen_sum_args c = {};
    c.count = a.count;
    c.sum = a;
    c.spare = l.spare ? reads(f, *l.spare) : nullptr;
    for (size_t k = 0; k < l.terms.size(); k++) {
        const choice &chosen = l.terms[k].chosen;
        c.word[k] = chosen.word;
        c.unless |= (chosen.unless ? 1u : 0u) << k;
        if (chosen.word)
            f.add(in(chosen.word, 1));
    }
    issue_flat(kernel_net_chosen_sum, c, f, 0.5 + 0.2 * a.inputs);
}

void network::take(const rows_layer &l)
{
    footprint f;
    rows_args a = {};
    a.rows = static_cast<unsigned>(l.y.size());
    a.length = static_cast<unsigned>(l.w.count ? l.x.size() : l.x.h * l.x.w);
    a.act = l.act;
    a.normalized = l.normalized;
    a.x = reads(f, l.x);
    a.w = l.w.count ? weights(l.w) : nullptr;
    if (a.w)
        f.add(in(a.w, static_cast<size_t>(l.w.count)));
    a.y = writes(f, l.y);
    a.lanes = a.length < 1024 ? 2 * ROWS_JOINED : ROWS_BLOCK;
    const uint32_t per_cta = ROWS_BLOCK / a.lanes;
    issue(kernel_net_rows, (a.rows + per_cta - 1) / per_cta, ROWS_BLOCK, a, f, 1 + 0.1 * a.length / a.lanes);
}

void network::take(const mix_layer &l)
{
    footprint f;
    mix_args a = {};
    a.count = static_cast<unsigned>(l.y.size());
    a.experts = l.routing.size();
    a.routing = reads(f, l.routing);
    a.weights = weights(l.experts);
    f.add(in(a.weights, static_cast<size_t>(l.experts.count)));
    a.y = writes(f, l.y);
    issue_flat(kernel_net_mix, a, f, 1);
}

void network::take_scale(const tensor &x, const tensor &factors, const tensor &y)
{
    footprint f;
    scale_args a = {};
    a.count = static_cast<unsigned>(y.size());
    a.plane = static_cast<unsigned>(y.h * y.w);
    a.x = reads(f, x);
    a.factor = reads(f, factors);
    a.y = writes(f, y);
    issue_flat(kernel_net_scale, a, f, 0.5);
}

void network::take_enlarge(const tensor &x, const tensor &y, int times)
{
    footprint f;
    enlarge_args a = {};
    a.count = static_cast<unsigned>(y.size());
    a.x = reads(f, x);
    a.y = writes(f, y);
    a.in_h = x.h;
    a.in_w = x.w;
    a.out_h = y.h;
    a.out_w = y.w;
    a.times = times;
    issue_flat(kernel_net_enlarge, a, f, 0.5);
}

void network::take_softmax(const tensor &x, const tensor &y)
{
    footprint f;
    softmax_args a = {};
    a.count = static_cast<unsigned>(x.size());
    a.x = reads(f, x);
    a.y = writes(f, y);
    issue(kernel_net_softmax, 1, SOFTMAX_BLOCK, a, f, 3);
}

std::vector<double> network::fetch(const tensor &x)
{
    const size_t count = static_cast<size_t>(x.size());

    require(count * sizeof(float) <= sizeof seen_, "a network's decision looks at too much at once");
    sink_->read(seen_, place(x), count * sizeof(float));
    return std::vector<double>(seen_, seen_ + count);
}

const uint32_t *network::take_decision(const decision_layer &l)
{
    footprint f;
    decide_args a = {};

    if (!device_decides_)
        return nullptr;
    a.count = static_cast<unsigned>(l.x.size());
    a.step = l.group ? static_cast<unsigned>(l.group) : a.count;
    a.fallback = l.group != 0;
    a.any = l.any;
    storage &s = at_key(l.x.key);
    if (!s.words)
        s.words = scratch<uint32_t>(a.count + 1);
    a.x = reads(f, l.x);
    a.word = s.words;
    f.add(out(a.word, a.count + (a.step == a.count))); /* only then the word behind them is written */
    const uint32_t groups = a.count / a.step;
    issue(kernel_net_decide, (groups + DECIDE_BLOCK - 1) / DECIDE_BLOCK, DECIDE_BLOCK, a, f, 0.5);
    asked_.push_back({a.word, a.count});
    return a.word;
}

void network::begin_section(const uint32_t *word, bool unless)
{
    if (sink_)
        sink_->begin_if(word, unless);
}

void network::end_section()
{
    if (sink_)
        sink_->end_if();
}

/* A sum does without inputs that are not chosen, and without the spare if any is. */
bool network::spares(const op &from, const op &to) const
{
    if (to.kernel != &kernel_net_chosen_sum)
        return false;
    const chosen_sum_args &a = *static_cast<const chosen_sum_args *>(to.args);
    const auto written = [&](const float *x) {
        return std::any_of(from.segments, from.segments + from.segment_count, [&](const acs_segment &s) {
            return s.access != ACS_READ && s.base == reinterpret_cast<uintptr_t>(x);
        });
    };
    bool any = false, needs = false;
    for (int k = 0; k < a.sum.inputs; k++) {
        const bool chosen = !a.word[k] || (get(a.word[k], 1)[0] != 0) != (a.unless >> k & 1);
        any = any || chosen;
        needs = needs || (chosen && written(a.sum.x[k]));
    }
    return !needs && (any || !written(a.spare));
}

/* The host gets to know what the device decided. */
void network::learn_decisions()
{
    std::vector<char> chosen;
    for (const decision &d : asked_)
        for (uint32_t word : get(d.words, d.count))
            chosen.push_back(static_cast<char>(std::min(word, 2u)));
    if (device_decides_)
        set_decisions(chosen);
}

/* Rounding is compared with the tensor's largest element: small ones are differences of large ones. */
std::string network::compare(const tensor &t, const std::vector<double> &want) const
{
    double largest = 0;
    for (double v : want)
        largest = std::max(largest, std::fabs(v));
    const std::string name = "tensor " + std::to_string(t.key);
    if (!(largest > 0))
        return name + " is zero: the network has died away";
    return differs(name.c_str(), get(storage_[t.key].tensor + t.first, want.size()), want, 0, TOLERANCE * largest);
}

std::string network::check()
{
    if (!right_) {
        right_ = std::make_unique<reference>(model_->seed);
        right_->run(*model_);
    }
    learn_decisions();
    const verdict &mine = summary(), &right = right_->summary();

    if (right_->margin() < LEAST_MARGIN)
        return "a decision of the oracle is closer to the other choice than rounding: take another seed";
    if (mine.decisions != right.decisions || mine.rounds != right.rounds)
        return "the decisions differ from the oracle's";
    const std::string shape = device_decides_ ? std::string() : model_->wrong(mine);
    if (!shape.empty())
        return shape;
    for (const tensor &t : right.outputs) {
        const std::string wrong = compare(t, right_->contents(t));
        if (!wrong.empty())
            return wrong;
    }
    return {};
}

} // namespace

std::unique_ptr<program> make_network(memory &m, std::unique_ptr<const model> what)
{
    return std::make_unique<network>(m, std::move(what));
}

} // namespace bench
