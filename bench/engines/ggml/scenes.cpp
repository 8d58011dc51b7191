/*
 * Contents of tensors, and the scenes: ensembles, experts, transformers, convolutions (see scenes.h).
 */
#include "scenes.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace {

std::vector<float> random_floats(int seed, int64_t count, float scale) {
    std::mt19937       random(seed);
    std::vector<float> values(count);
    for (float & v : values) {
        v = scale * ((float) (random() >> 8) / (1 << 23) - 1.0f);
    }
    return values;
}

void set_floats(ggml_tensor * t, const std::vector<float> & values) {
    if (t->type == GGML_TYPE_F32) {
        ggml_backend_tensor_set(t, values.data(), 0, ggml_nbytes(t));
        return;
    }
    std::vector<char> bytes(ggml_nbytes(t));
    ggml_quantize_chunk(t->type, values.data(), bytes.data(), 0, ggml_nrows(t), t->ne[0], nullptr);
    ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
}

} // namespace

void set_inputs(net & n, int set) {
    for (size_t i = 0; i < n.inputs.size(); i++) {
        const int seed = (set + 1) * 100000 + n.inputs_before + (int) i;
        set_floats(n.inputs[i], random_floats(seed, ggml_nelements(n.inputs[i]), 1.0f));
    }
}

void place(net & n, ggml_backend_t backend, bool reuse) {
    n.constant_buffer = ggml_backend_alloc_ctx_tensors(n.constant, backend);
    ggml_backend_buffer_clear(n.constant_buffer, 0);
    ggml_backend_buffer_set_usage(n.constant_buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    if (reuse) {
        n.allocator = ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend));
        GGML_ASSERT(ggml_gallocr_alloc_graph(n.allocator, n.graph));
    } else {
        n.computed_buffer = ggml_backend_alloc_ctx_tensors(n.computed, backend);
    }
    for (size_t i = 0; i < n.weights.size(); i++) {
        ggml_tensor * t = n.weights[i];
        set_floats(t, random_floats(n.weights_before + (int) i, ggml_nelements(t), std::sqrt(3.0f / (float) t->ne[0])));
    }
    for (const net::fixed & f : n.fixed_tensors) {
        GGML_ASSERT(f.bytes.size() == ggml_nbytes(f.tensor));
        ggml_backend_tensor_set(f.tensor, f.bytes.data(), 0, f.bytes.size());
    }
    set_inputs(n, 0);
    n.graph->uid = ggml_graph_next_uid(); /* as ggml's scheduler does: the backend need not compare all nodes each time */
}

std::vector<ggml_backend_buffer_t> computed_buffers(const net & n) {
    std::vector<ggml_backend_buffer_t> found;
    for (int i = 0; i < n.graph->n_nodes; i++) {
        const ggml_tensor *   node   = n.graph->nodes[i];
        ggml_backend_buffer_t buffer = node->view_src ? node->view_src->buffer : node->buffer;
        if (buffer != n.constant_buffer && std::find(found.begin(), found.end(), buffer) == found.end()) {
            found.push_back(buffer);
        }
    }
    return found;
}

std::vector<char> outputs_of(const net & n) {
    std::vector<char> bytes;
    for (ggml_tensor * t : n.outputs) {
        const size_t at = bytes.size();
        bytes.resize(at + ggml_nbytes(t));
        ggml_backend_tensor_get(t, bytes.data() + at, 0, ggml_nbytes(t));
    }
    return bytes;
}

/* ------------------------------------------------------------------------------------------------------------- scenes */

namespace {

ggml_tensor * mlp(net & n, ggml_tensor * x, ggml_type type, int width, int layers) {
    ggml_context * c = n.computed;
    for (int i = 0; i < layers; i++) {
        x = ggml_add(c, ggml_mul_mat(c, n.weight(type, width, width), x), n.weight(GGML_TYPE_F32, width));
        x = ggml_gelu(c, x);
    }
    return x;
}

/* Layers of experts that all work, weighted by a gate, as a mixture before its routing is made sparse. */
void soft_experts(net & n, int layers, int experts, int width, int inner, int batch) {
    ggml_context * c = n.computed;
    ggml_tensor *  x = n.input(width, batch);
    for (int l = 0; l < layers; l++) {
        ggml_tensor * normed = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), n.weight(GGML_TYPE_F32, width));
        ggml_tensor * gates  = ggml_soft_max(c, ggml_mul_mat(c, n.weight(GGML_TYPE_F16, width, 64), normed));
        ggml_tensor * sum    = x;
        std::vector<ggml_tensor *> parts;
        for (int e = 0; e < experts; e++) {
            ggml_tensor * gate = ggml_mul_mat(c, n.weight(GGML_TYPE_F16, width, inner), normed);
            ggml_tensor * up   = ggml_mul_mat(c, n.weight(GGML_TYPE_F16, width, inner), normed);
            ggml_tensor * down = ggml_mul_mat(c, n.weight(GGML_TYPE_F16, inner, width), ggml_swiglu_split(c, gate, up));
            ggml_tensor * mine = ggml_view_2d(c, gates, 1, batch, gates->nb[1], e * gates->nb[0]);
            parts.push_back(ggml_mul(c, down, mine));
        }
        for (ggml_tensor * part : parts) {
            sum = ggml_add(c, sum, part);
        }
        x = sum;
    }
    n.output(x);
}

/* Decoding of `tokens` tokens with caches of keys and values. */
ggml_tensor * transformer(net & n, ggml_type type, int width, int heads, int layers, int inner, int tokens, int context) {
    ggml_context *       c    = n.computed;
    const int            head = width / heads;
    std::vector<int32_t> positions;
    std::vector<int64_t> rows;
    for (int t = 0; t < tokens; t++) {
        positions.push_back(context - tokens + t);
        rows.push_back(context - tokens + t);
    }
    ggml_tensor * position = n.constants(GGML_TYPE_I32, tokens, 1, positions);
    ggml_tensor * row      = n.constants(GGML_TYPE_I64, tokens, 1, rows);
    ggml_tensor * mask     = n.constants(GGML_TYPE_F32, context, tokens, std::vector<float>((size_t) context * tokens));
    ggml_tensor * x        = n.input(width, tokens);
    for (int l = 0; l < layers; l++) {
        ggml_tensor * normed = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), n.weight(GGML_TYPE_F32, width));
        ggml_format_name(normed, "attn_norm-%d", l);
        ggml_tensor * q = ggml_mul_mat(c, n.weight(type, width, width), normed);
        ggml_tensor * k = ggml_mul_mat(c, n.weight(type, width, width), normed);
        ggml_tensor * v = ggml_mul_mat(c, n.weight(type, width, width), normed);
        q = ggml_rope_ext(c, ggml_reshape_3d(c, q, head, heads, tokens), position, nullptr, head, 0, 4096, 10000.0f, 1.0f,
                          0.0f, 1.0f, 32.0f, 1.0f);
        k = ggml_rope_ext(c, ggml_reshape_3d(c, k, head, heads, tokens), position, nullptr, head, 0, 4096, 10000.0f, 1.0f,
                          0.0f, 1.0f, 32.0f, 1.0f);
        ggml_tensor * keys   = n.weight(GGML_TYPE_F16, width, context);
        ggml_tensor * values = n.weight(GGML_TYPE_F16, width, context);
        ggml_build_forward_expand(n.graph, q);
        ggml_build_forward_expand(n.graph, ggml_set_rows(c, keys, ggml_reshape_2d(c, k, width, tokens), row));
        ggml_build_forward_expand(n.graph, ggml_set_rows(c, values, v, row));
        /* From here on nothing but the bytes tells that the caches were written. */
        ggml_tensor * all_k = ggml_view_3d(c, keys, head, context, heads, keys->nb[1], head * keys->nb[0], 0);
        ggml_tensor * all_v = ggml_view_3d(c, values, head, context, heads, values->nb[1], head * values->nb[0], 0);
        ggml_tensor * score = ggml_mul_mat(c, all_k, ggml_permute(c, q, 0, 2, 1, 3));
        score               = ggml_soft_max_ext(c, score, mask, 1.0f / std::sqrt((float) head), 0.0f);
        ggml_tensor * mixed = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, all_v)), score);
        mixed               = ggml_cont_2d(c, ggml_permute(c, mixed, 0, 2, 1, 3), width, tokens);
        x                   = ggml_add(c, x, ggml_mul_mat(c, n.weight(type, width, width), mixed));
        normed              = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), n.weight(GGML_TYPE_F32, width));
        ggml_tensor * gate  = ggml_mul_mat(c, n.weight(type, width, inner), normed);
        ggml_tensor * up    = ggml_mul_mat(c, n.weight(type, width, inner), normed);
        x = ggml_add(c, x, ggml_mul_mat(c, n.weight(type, inner, width), ggml_swiglu_split(c, gate, up)));
    }
    return x;
}

/* Sparse experts as language models have them: the best two of `experts`, by ids that the graph computes. */
void sparse_experts(net & n, int layers, int experts, int width, int inner) {
    ggml_context * c = n.computed;
    ggml_tensor *  x = n.input(width, 1);
    for (int l = 0; l < layers; l++) {
        ggml_tensor * normed = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), n.weight(GGML_TYPE_F32, width));
        ggml_tensor * probs  = ggml_soft_max(c, ggml_mul_mat(c, n.weight(GGML_TYPE_F32, width, experts), normed));
        ggml_tensor * best   = ggml_argsort_top_k(c, probs, 2);
        ggml_tensor * share  = ggml_get_rows(c, ggml_reshape_3d(c, probs, 1, experts, 1), best);
        ggml_tensor * one    = ggml_reshape_3d(c, normed, width, 1, 1);
        ggml_tensor * gate   = ggml_mul_mat_id(c, n.weight(GGML_TYPE_Q8_0, width, inner, experts), one, best);
        ggml_tensor * up     = ggml_mul_mat_id(c, n.weight(GGML_TYPE_Q8_0, width, inner, experts), one, best);
        ggml_tensor * down   = ggml_mul_mat_id(c, n.weight(GGML_TYPE_Q8_0, inner, width, experts),
                                               ggml_swiglu_split(c, gate, up), best);
        down                 = ggml_mul(c, down, share);
        ggml_tensor * first  = ggml_view_2d(c, down, width, 1, down->nb[2], 0);
        ggml_tensor * second = ggml_view_2d(c, down, width, 1, down->nb[2], down->nb[1]);
        /* a dense expert beside the sparse ones, which does not wait for the routing */
        ggml_tensor * dense_gate = ggml_mul_mat(c, n.weight(GGML_TYPE_Q8_0, width, inner), normed);
        ggml_tensor * dense_up   = ggml_mul_mat(c, n.weight(GGML_TYPE_Q8_0, width, inner), normed);
        ggml_tensor * dense      = ggml_mul_mat(c, n.weight(GGML_TYPE_Q8_0, inner, width),
                                                ggml_swiglu_split(c, dense_gate, dense_up));
        x = ggml_add(c, ggml_add(c, ggml_add(c, x, first), second), dense);
    }
    n.output(x);
}

ggml_tensor * convolution(net & n, ggml_tensor * x, int kernel, int channels) {
    ggml_context * c = n.computed;
    ggml_tensor *  w = n.weight(GGML_TYPE_F16, kernel, kernel, x->ne[2], channels);
    x                = ggml_conv_2d(c, w, x, 1, 1, kernel / 2, kernel / 2, 1, 1);
    return ggml_relu(c, ggml_add(c, x, n.weight(GGML_TYPE_F32, 1, 1, channels)));
}

/* Blocks of four branches of convolutions, joined by their channels. */
void inception(net & n, int blocks, int size, int channels) {
    ggml_context * c = n.computed;
    ggml_tensor *  x = n.input(size, size, channels);
    for (int b = 0; b < blocks; b++) {
        const int     part   = channels / 4;
        ggml_tensor * one    = convolution(n, x, 1, part);
        ggml_tensor * three  = convolution(n, convolution(n, x, 1, part), 3, part);
        ggml_tensor * five   = convolution(n, convolution(n, x, 1, part), 5, part);
        ggml_tensor * pooled = convolution(n, ggml_pool_2d(c, x, GGML_OP_POOL_MAX, 3, 3, 1, 1, 1, 1), 1, part);
        x = ggml_concat(c, ggml_concat(c, one, three, 2), ggml_concat(c, five, pooled, 2), 2);
    }
    n.output(x);
}

/* A small network with an input of its own. */
std::function<void(net &, int)> network(ggml_type type, int width, int layers, int batch) {
    return [=](net & n, int) { n.output(mlp(n, n.input(width, batch), type, width, layers)); };
}

std::function<void(net &, int)> decoder(ggml_type type) {
    return [=](net & n, int) { n.output(transformer(n, type, 1024, 16, 8, 2816, 1, 256)); };
}

void small_decoder(net & n, int part) {
    const int width = 256 + 64 * (part % 4);
    n.output(transformer(n, GGML_TYPE_F16, width, width / 64, 4, 3 * width, 1, 128));
}

} // namespace

void build_all(const scene & s, net & n) {
    for (int part = 0; part < s.parts; part++) {
        s.build(n, part);
    }
}

const std::vector<scene> & scenes() {
    const ggml_type                 f16 = GGML_TYPE_F16;
    static const std::vector<scene> all = {
        { "chain", "control: one network, 48 layers, F16, batch 8", 1, network(f16, 512, 48, 8) },
        { "mlps_1", "16 networks of 6 layers, width 512, F16, batch 1", 16, network(f16, 512, 6, 1) },
        { "mlps_8", "16 networks, batch 8", 16, network(f16, 512, 6, 8) },
        { "mlps_64", "16 networks, batch 64, which cuBLAS multiplies", 16, network(f16, 512, 6, 64) },
        { "mlps_q4_1", "16 networks, Q4_0, batch 1, with scratch memory", 16, network(GGML_TYPE_Q4_0, 512, 6, 1) },
        { "mlps_q8_32", "16 networks, Q8_0, batch 32, with scratch memory", 16, network(GGML_TYPE_Q8_0, 512, 6, 32) },
        { "experts_dense", "4 layers of 8 gated experts that all work, width 512, F16, batch 8", 1,
          [](net & n, int) { soft_experts(n, 4, 8, 512, 1024, 8); } },
        { "experts_sparse", "8 layers, best 2 of 16 experts and a dense one, width 512, Q8_0, one token", 1,
          [](net & n, int) { sparse_experts(n, 8, 16, 512, 1024); } },
        { "decoder", "transformer, 8 layers, width 1024, F16, one token, 256 in the caches", 1, decoder(f16) },
        { "decoder_q4", "the same transformer, Q4_K", 1, decoder(GGML_TYPE_Q4_K) },
        { "decoders", "8 small transformers of four widths, 4 layers, F16, one token each", 8, small_decoder },
        { "inception", "6 blocks of 4 branches of convolutions, 28 x 28 x 128, F16", 1,
          [](net & n, int) { inception(n, 6, 28, 128); } },
    };
    return all;
}
