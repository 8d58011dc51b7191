/*
 * The paper's networks as lists of operators (ConCo, section 4.1): ResNet-18, VGG-19, BERT-small and DLRM, in fp32.
 *
 * **Numbers of operators.** The paper names operators by number ("22nd OP of resnet-18") and gives no list. Here operators
 * that differ (in kernel, sizes, strides, or what follows the sum) have numbers from 1, in the order in which an inference
 * first uses them. Every kernel counts.
 * - resnet-18 is the one of TVM's tests, whose normalisations come before the convolutions. Without the elementwise kernels
 *   between them it has the 24 operators of the paper.
 * - bert-small has 9, as in the paper: 1 norm (of the embeddings, and in layers), 2 projections to queries, keys and
 *   values, 3 products of queries and keys, 4 softmax, 5 products with the values, 6 projection and sum, 7 and 8 feed
 *   forward, 9 pooler.
 * - vgg-19 has 18: 9 is the third pool, 15 the first dense layer.
 * - dlrm has 7: 1 to 3 the bottom layers, 4 the embeddings, 5 the interaction, 6 and 7 the top layers, with 2 between.
 */
#ifndef VARIANTS_NETWORKS_H
#define VARIANTS_NETWORKS_H

#include <memory>
#include <string>
#include <vector>

#include "operators.h"
#include "tensors.h"

namespace variants {

/** One inference after another with activations of its own. */
struct instance {
    std::vector<operation> ops; /* of one inference, in order */
    float *output;
    size_t outputs;
};

class network {
public:
    /** @param name   resnet-18, vgg-19, bert-small or dlrm
     *  @param batch  1, or samples of dlrm */
    network(const std::string &name, int batch, tensors &where);

    /** Name and batch in a word: "dlrm-512". */
    std::string label() const;
    /** Makes instances until there are so many; weights are shared. */
    void need(size_t instances);
    instance &at(size_t k) { return *instances_[k]; }
    /** How many operators differ; 0 before need(). */
    unsigned operators() const { return static_cast<unsigned>(problems_.size()); }
    /** An operation of instance 0 with this operator, from 1. */
    const operation &sample(unsigned number) const;

private:
    friend class builder;
    struct seen {
        family_id family;
        problem p;
    };

    std::string name_;
    int batch_;
    tensors &where_;
    std::vector<float *> weights_; /* in the order in which an inference uses them */
    std::vector<seen> problems_;
    std::vector<std::unique_ptr<instance>> instances_;
};

/** The names that a network may have. */
const std::vector<std::string> &network_names();

} // namespace variants

#endif
