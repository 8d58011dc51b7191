/*
 * The networks' oracle: the layers in double precision, written as their definitions read. Called by check(); shares
 * with the kernels only the input, the drawn weights and the model's list of layers.
 */
#ifndef BENCH_NETWORK_REFERENCE_H
#define BENCH_NETWORK_REFERENCE_H

#include <map>
#include <vector>

#include "network.h"

namespace bench {

class reference final : public layers {
public:
    explicit reference(uint64_t seed) : seed_(seed) {}
    void run(const model &m);
    std::vector<double> contents(const tensor &t) const;

private:
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
    std::vector<double> fetch(const tensor &x) override { return contents(x); }

    void store(const tensor &t, const std::vector<double> &v);
    std::vector<double> weights(const drawn &d) const;

    uint64_t seed_;
    std::map<uint32_t, std::vector<double>> data_;
};

} // namespace bench

#endif
