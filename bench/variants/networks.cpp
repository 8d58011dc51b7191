/*
 * Owns the networks' structure (networks.h). Sizes are those of the papers that the networks are from, with 224x224 images
 * and 128 tokens; DLRM's are those of its benchmark with Criteo's data, with tables of 100000 rows.
 */
#include "networks.h"

#include "builder.h"

namespace variants {

namespace {

const after PLAIN = {0, ACT_NONE, nullptr}, BIAS = {WITH_BIAS, ACT_NONE, nullptr}, RELU = {WITH_BIAS, ACT_RELU, nullptr};

after summed(const float *add)
{
    return {WITH_ADD, ACT_NONE, add};
}

after normed(const float *add)
{
    return {WITH_AFFINE | (add ? WITH_ADD : 0), ACT_RELU, add};
}

image picture(builder &b)
{
    const image x = {nullptr, 3, 224, 224};
    return {b.where().random(x.count(), -1, 1), x.channels, x.height, x.width};
}

void resnet_18(builder &b, int)
{
    image x = b.pool(b.conv(picture(b), 64, 7, 2, 3, RELU), 3, 2, 1, normed(nullptr));

    for (int32_t channels = 64; channels <= 512; channels *= 2) {
        const int32_t stride = channels == 64 ? 1 : 2;
        const image inside = b.conv(x, channels, 3, stride, 1, RELU);
        const image past = b.conv(x, channels, 1, stride, 0, PLAIN);
        const image first = b.conv(inside, channels, 3, 1, 1, summed(past.data));
        const image second = b.conv(b.elements(first, normed(nullptr)), channels, 3, 1, 1, RELU);
        x = b.conv(second, channels, 3, 1, 1, normed(first.data));
    }
    b.output(b.softmax(b.dense(b.average(x).data, 1, 512, 1000, BIAS), 1, 1000), 1000);
}

void vgg_19(builder &b, int)
{
    static const int32_t stages[5][2] = {{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}};
    image x = picture(b);

    for (const auto &stage : stages) {
        for (int32_t k = 0; k < stage[1]; k++)
            x = b.conv(x, stage[0], 3, 1, 1, RELU);
        x = b.pool(x, 2, 2, 0, PLAIN);
    }
    const float *const hidden = b.dense(b.dense(x.data, 1, 512 * 7 * 7, 4096, RELU), 1, 4096, 4096, RELU);
    b.output(b.softmax(b.dense(hidden, 1, 4096, 1000, BIAS), 1, 1000), 1000);
}

const int32_t TOKENS = 128, WIDTH = 512, HEADS = 8, HEAD = WIDTH / HEADS, HIDDEN = 4 * WIDTH;

float *attention(builder &b, const float *x)
{
    const size_t all = static_cast<size_t>(TOKENS) * WIDTH, scores = static_cast<size_t>(HEADS) * TOKENS * TOKENS;
    const float *const query = b.dense(x, TOKENS, WIDTH, WIDTH, BIAS);
    const float *const key = b.dense(x, TOKENS, WIDTH, WIDTH, BIAS);
    const float *const value = b.dense(x, TOKENS, WIDTH, WIDTH, BIAS);
    problem p = no_problem();

    p.batch = HEADS;
    p.m = p.n = TOKENS;
    p.k = HEAD;
    p.a_row = p.b_n = WIDTH;
    p.b_k = 1;
    p.a_batch = p.b_batch = HEAD;
    p.y_row = TOKENS;
    p.y_batch = TOKENS * TOKENS;
    p.scale = 0.125f; /* 1 / sqrt(HEAD) */
    const float *const score = b.products("queries x keys", p, query, all, key, all, scores);
    const float *const weight = b.softmax(score, HEADS * TOKENS, TOKENS);
    p.n = HEAD;
    p.k = p.a_row = TOKENS;
    p.a_batch = TOKENS * TOKENS;
    p.b_k = p.y_row = WIDTH;
    p.b_n = 1;
    p.y_batch = HEAD;
    p.scale = 1;
    return b.products("weights x values", p, weight, scores, value, all, all);
}

void bert_small(builder &b, int)
{
    const size_t all = static_cast<size_t>(TOKENS) * WIDTH;
    const float *x = b.layer_norm(b.where().random(all, -1, 1), TOKENS, WIDTH, nullptr);

    for (int layer = 0; layer < 4; layer++) {
        const float *const seen = b.dense(attention(b, x), TOKENS, WIDTH, WIDTH, {WITH_BIAS | WITH_ADD, ACT_NONE, x});
        const float *const middle = b.layer_norm(seen, TOKENS, WIDTH, nullptr);
        const float *const wide = b.dense(middle, TOKENS, WIDTH, HIDDEN, {WITH_BIAS, ACT_GELU, nullptr});
        x = b.layer_norm(b.dense(wide, TOKENS, HIDDEN, WIDTH, {WITH_BIAS | WITH_ADD, ACT_NONE, middle}), TOKENS, WIDTH,
                         nullptr);
    }
    b.output(b.dense(x, 1, WIDTH, WIDTH, {WITH_BIAS, ACT_TANH, nullptr}), static_cast<size_t>(WIDTH));
}

void dlrm(builder &b, int batch)
{
    const int32_t tables = 26, columns = 64, features = tables + 1, table_rows = 100000;
    const size_t samples = static_cast<size_t>(batch);
    const float *const numbers = b.where().random(samples * 13, 0, 1);
    const float *const index = b.where().indices(samples * 26, table_rows);
    float *const joined = b.where().room(samples * static_cast<size_t>(features * columns));
    const float *const bottom = b.dense(b.dense(numbers, batch, 13, 512, RELU), batch, 512, 256, RELU);

    (void)b.dense(bottom, batch, 256, columns, RELU, joined, features * columns);
    b.embedding(index, batch, tables, table_rows, 1, columns, joined + columns, features * columns);
    const float *const crossed = b.interaction(joined, batch, features, columns);
    const int32_t width = columns + features * (features - 1) / 2;
    const float *const top = b.dense(b.dense(crossed, batch, width, 512, RELU), batch, 512, 256, RELU);
    b.output(b.dense(top, batch, 256, 1, BIAS), samples);
}

struct kind {
    const char *name;
    void (*build)(builder &b, int batch);
};

const kind kinds[] = {{"resnet-18", resnet_18}, {"vgg-19", vgg_19}, {"bert-small", bert_small}, {"dlrm", dlrm}};

} // namespace

const std::vector<std::string> &network_names()
{
    static const std::vector<std::string> names = [] {
        std::vector<std::string> list;
        for (const kind &k : kinds)
            list.push_back(k.name);
        return list;
    }();
    return names;
}

network::network(const std::string &name, int batch, tensors &where) : name_(name), batch_(batch), where_(where) {}

std::string network::label() const
{
    return name_ == "dlrm" ? name_ + "-" + std::to_string(batch_) : name_;
}

void network::need(size_t count)
{
    while (instances_.size() < count) {
        instances_.emplace_back(new instance{});
        builder b(this, where_, *instances_.back());
        bool known = false;
        for (const kind &k : kinds)
            if (name_ == k.name) {
                k.build(b, batch_);
                known = true;
            }
        bench::require(known, ("there is no network " + name_).c_str());
    }
}

const operation &network::sample(unsigned number) const
{
    for (const operation &o : instances_[0]->ops)
        if (o.number == number)
            return o;
    bench::require(false, (name_ + " has no operator " + std::to_string(number)).c_str());
    return instances_[0]->ops[0];
}

} // namespace variants
