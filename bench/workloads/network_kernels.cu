/*
 * The networks' kernels. Sums are taken in a fixed order and nothing is atomic, so results repeat bit for bit whatever
 * the order of kernels is. Every function keeps a NaN: what was read before it was written must show at the end.
 * Launched by network.cpp only.
 */
#include "network_kernels.h"

#include <cmath>

namespace bench {

/* A comparison with a NaN is false, so the NaN is what relu returns. */
ACS_DUAL float activate(int act, float v)
{
    switch (act) {
    case RELU: return v < 0 ? 0 : v;
    case SIGMOID: return 1.0f / (1.0f + expf(-v));
    case TANH: return tanhf(v);
    default: return v;
    }
}

/* A dense convolution as a product of matrices, [out_c][depth] by [depth][pixels]: the second is gathered from x. */
enum {
    DEPTH_TILE = 64,                            /* of the depth at a time */
    SPLITS = 4,                                 /* groups of threads, each of which takes a quarter of the depth tile */
    SPLIT_DEPTH = DEPTH_TILE / SPLITS,
    PATCH = 4,                                  /* a thread makes 4 channels of 4 pixels */
    PATCHES = CONV_TILE / PATCH,                /* in a row, and rows */
    STAGED = DEPTH_TILE * CONV_TILE / CONV_BLOCK
};

/* Two buffers, so that a tile is fetched while the one before is multiplied: one barrier per tile. 48 KiB in all. */
struct conv_shared {
    float w[2][DEPTH_TILE][CONV_TILE], x[2][DEPTH_TILE][CONV_TILE];
    float sum[PATCH * PATCH][CONV_BLOCK];
};

struct conv_place {
    int channel, pixel; /* first of the CTA's tile */
};

ACS_DUAL int conv_depth(const conv_args &a)
{
    return a.in_c * a.kernel * a.kernel;
}

ACS_DUAL int conv_tiles(const conv_args &a)
{
    return (conv_depth(a) + DEPTH_TILE - 1) / DEPTH_TILE;
}

ACS_DUAL conv_place conv_place_of(const conv_args &a, unsigned block)
{
    const int across = (a.out_h * a.out_w + CONV_TILE - 1) / CONV_TILE, b = static_cast<int>(block);
    return {b / across * CONV_TILE, b % across * CONV_TILE};
}

/* Pixel (y, x) of the output, under element `depth` of a filter. */
ACS_DUAL float conv_input(const conv_args &a, int depth, int y, int x)
{
    const int window = a.kernel * a.kernel, c = depth / window, within = depth - c * window, pad = (a.kernel - 1) / 2;
    const int in_y = y * a.stride + within / a.kernel - pad, in_x = x * a.stride + within % a.kernel - pad;

    if (in_y < 0 || in_y >= a.in_h || in_x < 0 || in_x >= a.in_w)
        return 0;
    return a.x[(c * a.in_h + in_y) * a.in_w + in_x];
}

/* Fetches this thread's share of a tile: neighbouring threads take neighbouring channels, and pixels. */
ACS_DUAL void conv_fetch(const conv_args &a, conv_place p, int tile, int t, float w[STAGED], float x[STAGED])
{
    const int lane = t % CONV_TILE, first = tile * DEPTH_TILE + t / CONV_TILE, depth = conv_depth(a);
    const int channel = p.channel + lane, pixel = p.pixel + lane, oy = pixel / a.out_w, ox = pixel % a.out_w;
    const bool has_channel = channel < a.out_c, has_pixel = oy < a.out_h;

    for (int j = 0; j < STAGED; j++) {
        const int d = first + j * (CONV_BLOCK / CONV_TILE);
        w[j] = has_channel && d < depth ? a.w[d * a.out_c + channel] : 0;
        x[j] = has_pixel && d < depth ? conv_input(a, d, oy, ox) : 0;
    }
}

/* Adds this thread's part of a tile's depth to the sums of its patch. */
ACS_DUAL void conv_multiply(const conv_args &a, conv_place p, int tile, int t, conv_shared &s)
{
    const int within = t % (PATCHES * PATCHES), c0 = within / PATCHES * PATCH, p0 = within % PATCHES * PATCH;
    const int first = t / (PATCHES * PATCHES) * SPLIT_DEPTH, left = conv_depth(a) - tile * DEPTH_TILE;
    const int end = first + SPLIT_DEPTH < left ? first + SPLIT_DEPTH : left;
    float sum[PATCH * PATCH];

    if (p.channel + c0 >= a.out_c || p.pixel + p0 >= a.out_h * a.out_w)
        return;
    for (int k = 0; k < PATCH * PATCH; k++)
        sum[k] = tile == 0 ? 0 : s.sum[k][t];
    for (int d = first; d < end; d++)
        for (int i = 0; i < PATCH; i++)
            for (int j = 0; j < PATCH; j++)
                sum[i * PATCH + j] += s.w[tile & 1][d][c0 + i] * s.x[tile & 1][d][p0 + j];
    for (int k = 0; k < PATCH * PATCH; k++)
        s.sum[k][t] = sum[k];
}

/* Joins what the groups of threads have summed, and writes the tile. */
ACS_DUAL void conv_write(const conv_args &a, conv_place p, int t, const conv_shared &s)
{
    const int pixels = a.out_h * a.out_w;

    for (int e = t; e < CONV_TILE * CONV_TILE; e += CONV_BLOCK) {
        const int c = e / CONV_TILE, x = e % CONV_TILE, channel = p.channel + c, pixel = p.pixel + x;
        const int owner = c / PATCH * PATCHES + x / PATCH, k = c % PATCH * PATCH + x % PATCH;
        float v = 0;
        if (channel >= a.out_c || pixel >= pixels)
            continue;
        for (int split = 0; split < SPLITS; split++)
            v += s.sum[k][split * PATCHES * PATCHES + owner];
        v = v * a.fold[channel] + a.fold[a.out_c + channel];
        if (a.add)
            v += a.add[channel * pixels + pixel];
        a.y[channel * pixels + pixel] = activate(a.act, v);
    }
}

ACS_DUAL int net_conv_phases(const conv_args &a)
{
    return conv_tiles(a) + 2;
}

ACS_DUAL void net_conv_phase(const conv_args &a, int phase, unsigned block, unsigned thread, conv_shared &s)
{
    const int tiles = conv_tiles(a), t = static_cast<int>(thread);
    const conv_place p = conv_place_of(a, block);
    float w[STAGED], x[STAGED];

    if (phase > tiles) {
        conv_write(a, p, t, s);
        return;
    }
    if (phase < tiles)
        conv_fetch(a, p, phase, t, w, x);
    if (phase > 0)
        conv_multiply(a, p, phase - 1, t, s);
    for (int j = 0; phase < tiles && j < STAGED; j++) {
        const int d = t / CONV_TILE + j * (CONV_BLOCK / CONV_TILE);
        s.w[phase & 1][d][t % CONV_TILE] = w[j];
        s.x[phase & 1][d][t % CONV_TILE] = x[j];
    }
}

ACS_DUAL_BLOCK_KERNEL(net_conv, conv_args, conv_shared, CONV_BLOCK)

ACS_DUAL float depthwise_at(const depthwise_args &a, int c, int y, int x)
{
    const int pad = (a.kernel - 1) / 2;
    float sum = 0;

    for (int ky = 0; ky < a.kernel; ky++)
        for (int kx = 0; kx < a.kernel; kx++) {
            const int in_y = y * a.stride + ky - pad, in_x = x * a.stride + kx - pad;
            if (in_y >= 0 && in_y < a.in_h && in_x >= 0 && in_x < a.in_w)
                sum += a.w[(c * a.kernel + ky) * a.kernel + kx] * a.x[(c * a.in_h + in_y) * a.in_w + in_x];
        }
    return activate(a.act, sum * a.fold[c] + a.fold[a.c + c]);
}

ACS_DUAL void net_depthwise_thread(const depthwise_args &a, unsigned i)
{
    for (unsigned e = i; e < a.count; e += a.threads) {
        const int x = static_cast<int>(e) % a.out_w, row = static_cast<int>(e) / a.out_w;
        a.y[e] = depthwise_at(a, row / a.out_h, row % a.out_h, x);
    }
}

ACS_DUAL_KERNEL(net_depthwise, depthwise_args, FLAT_BLOCK)

ACS_DUAL float pool_at(const pool_args &a, int c, int y, int x)
{
    float most = 0, sum = 0;
    int met = 0;

    for (int in_y = y * a.stride - 1; in_y <= y * a.stride + 1; in_y++)
        for (int in_x = x * a.stride - 1; in_x <= x * a.stride + 1; in_x++) {
            if (in_y < 0 || in_y >= a.in_h || in_x < 0 || in_x >= a.in_w)
                continue;
            const float v = a.x[(c * a.in_h + in_y) * a.in_w + in_x];
            most = met == 0 || v > most || v != v ? v : most;
            sum += v;
            met++;
        }
    /* The sum of the window is a NaN if one of its values is, wherever the largest stands. */
    return a.largest ? (sum != sum ? sum : most) : sum / static_cast<float>(met);
}

ACS_DUAL void net_pool_thread(const pool_args &a, unsigned i)
{
    for (unsigned e = i; e < a.count; e += a.threads) {
        const int x = static_cast<int>(e) % a.out_w, row = static_cast<int>(e) / a.out_w;
        a.y[e] = pool_at(a, row / a.out_h, row % a.out_h, x);
    }
}

ACS_DUAL_KERNEL(net_pool, pool_args, FLAT_BLOCK)

/* Element e of input k. */
ACS_DUAL float sum_input(const sum_args &a, int k, unsigned e)
{
    return a.factor[k] ? *a.factor[k] * a.x[k][e] : a.x[k][e];
}

ACS_DUAL void net_sum_thread(const sum_args &a, unsigned i)
{
    for (unsigned e = i; e < a.count; e += a.threads) {
        float sum = 0;
        for (int k = 0; k < a.inputs; k++)
            sum += sum_input(a, k, e);
        a.y[e] = activate(a.act, a.scale * sum);
    }
}

ACS_DUAL_KERNEL(net_sum, sum_args, FLAT_BLOCK)

/* Bit k: input k counts. */
ACS_DUAL unsigned chosen_inputs(const chosen_sum_args &a)
{
    unsigned chosen = 0;
    for (int k = 0; k < a.sum.inputs; k++)
        if (!a.word[k] || (*a.word[k] != 0) != (a.unless >> k & 1))
            chosen |= 1u << k;
    return chosen;
}

ACS_DUAL void net_chosen_sum_thread(const chosen_sum_args &a, unsigned i)
{
    const unsigned chosen = chosen_inputs(a);

    for (unsigned e = i; e < a.count; e += a.threads) {
        float sum = 0;
        for (int k = 0; k < a.sum.inputs; k++)
            if (chosen >> k & 1)
                sum += sum_input(a.sum, k, e);
        a.sum.y[e] = chosen || !a.spare ? activate(a.sum.act, a.sum.scale * sum) : a.spare[e];
    }
}

ACS_DUAL_KERNEL(net_chosen_sum, chosen_sum_args, FLAT_BLOCK)

/*
 * A number that was not written yet is a NaN. Its word is neither 0 nor 1, so that too early a decision shows. Thread i
 * decides about `step` elements. With a step of all, its one thread knows whether any is chosen.
 */
ACS_DUAL void net_decide_thread(const decide_args &a, unsigned i)
{
    const unsigned first = i * a.step;
    unsigned largest = first, chosen = 0, any = 0;

    if (first >= a.count)
        return;
    for (unsigned k = first; k < first + a.step; k++) {
        const unsigned yes = !(a.x[k] <= 0);
        a.word[k] = a.x[k] > 0 ? 1 : 2 * yes;
        chosen |= yes;
        any |= k < 32 && yes && (a.any >> k & 1);
        largest = a.x[k] > a.x[largest] ? k : largest;
    }
    if (a.fallback && !chosen)
        a.word[largest] = 1;
    if (a.step == a.count)
        a.word[a.count] = any;
}

ACS_DUAL_KERNEL(net_decide, decide_args, DECIDE_BLOCK)

ACS_DUAL void net_scale_thread(const scale_args &a, unsigned i)
{
    for (unsigned e = i; e < a.count; e += a.threads)
        a.y[e] = a.x[e] * a.factor[e / a.plane];
}

ACS_DUAL_KERNEL(net_scale, scale_args, FLAT_BLOCK)

ACS_DUAL void net_enlarge_thread(const enlarge_args &a, unsigned i)
{
    for (unsigned e = i; e < a.count; e += a.threads) {
        const int x = static_cast<int>(e) % a.out_w, row = static_cast<int>(e) / a.out_w;
        const int c = row / a.out_h, y = row % a.out_h;
        a.y[e] = a.x[(c * a.in_h + y / a.times) * a.in_w + x / a.times];
    }
}

ACS_DUAL_KERNEL(net_enlarge, enlarge_args, FLAT_BLOCK)

ACS_DUAL void net_mix_thread(const mix_args &a, unsigned i)
{
    for (unsigned e = i; e < a.count; e += a.threads) {
        float sum = 0;
        for (int k = 0; k < a.experts; k++)
            sum += a.routing[k] * a.weights[static_cast<unsigned>(k) * a.count + e];
        a.y[e] = sum;
    }
}

ACS_DUAL_KERNEL(net_mix, mix_args, FLAT_BLOCK)

/* The threads of a row sum, then one of each 16 joins the sums of its neighbours, then the first one joins those. */
struct rows_shared {
    float dot[ROWS_BLOCK], squares[ROWS_BLOCK];
};

ACS_DUAL int net_rows_phases(const rows_args &)
{
    return 3;
}

ACS_DUAL void rows_sum(const rows_args &a, unsigned row, unsigned lane, float &dot, float &squares)
{
    dot = squares = 0;
    for (unsigned i = lane; row < a.rows && i < a.length; i += a.lanes) {
        const float v = a.w ? a.x[i] : a.x[row * a.length + i];
        dot += a.w ? a.w[row * a.length + i] * v : v;
        squares += v * v;
    }
}

ACS_DUAL void rows_join(rows_shared &s, unsigned t, unsigned count, unsigned apart)
{
    for (unsigned k = apart; k < count * apart; k += apart) {
        s.dot[t] += s.dot[t + k];
        s.squares[t] += s.squares[t + k];
    }
}

ACS_DUAL void net_rows_phase(const rows_args &a, int phase, unsigned block, unsigned t, rows_shared &s)
{
    const unsigned lane = t % a.lanes, row = block * (ROWS_BLOCK / a.lanes) + t / a.lanes;
    const float length = static_cast<float>(a.length);

    if (phase == 0)
        rows_sum(a, row, lane, s.dot[t], s.squares[t]);
    if (phase == 1 && lane % ROWS_JOINED == 0)
        rows_join(s, t, ROWS_JOINED, 1);
    if (phase < 2 || lane != 0 || row >= a.rows)
        return;
    rows_join(s, t, a.lanes / ROWS_JOINED, ROWS_JOINED);
    float v = a.w ? s.dot[t] : s.dot[t] / length;
    if (a.normalized)
        v /= sqrtf(s.squares[t] / length);
    a.y[row] = activate(a.act, v);
}

ACS_DUAL_BLOCK_KERNEL(net_rows, rows_args, rows_shared, ROWS_BLOCK)

struct softmax_shared {
    float largest[SOFTMAX_BLOCK], sum[SOFTMAX_BLOCK];
};

ACS_DUAL int net_softmax_phases(const softmax_args &)
{
    return 3;
}

/* One CTA. A NaN among x makes the sum a NaN, whether or not it was taken for the largest. */
ACS_DUAL void net_softmax_phase(const softmax_args &a, int phase, unsigned, unsigned t, softmax_shared &s)
{
    const unsigned most = SOFTMAX_BLOCK, used = a.count < most ? a.count : most;
    float largest = 0, sum = 0;

    if (t >= used)
        return;
    if (phase == 0) {
        s.largest[t] = a.x[t];
        for (unsigned i = t; i < a.count; i += SOFTMAX_BLOCK)
            s.largest[t] = a.x[i] > s.largest[t] ? a.x[i] : s.largest[t];
        return;
    }
    largest = s.largest[0];
    for (unsigned k = 1; k < used; k++)
        largest = s.largest[k] > largest ? s.largest[k] : largest;
    if (phase == 1) {
        for (unsigned i = t; i < a.count; i += SOFTMAX_BLOCK)
            sum += expf(a.x[i] - largest);
        s.sum[t] = sum;
        return;
    }
    for (unsigned k = 0; k < used; k++)
        sum += s.sum[k];
    for (unsigned i = t; i < a.count; i += SOFTMAX_BLOCK)
        a.y[i] = expf(a.x[i] - largest) / sum;
}

ACS_DUAL_BLOCK_KERNEL(net_softmax, softmax_args, softmax_shared, SOFTMAX_BLOCK)

} // namespace bench
