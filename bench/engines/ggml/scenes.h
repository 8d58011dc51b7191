/*
 * Compute graphs to run: their tensors, contents and scenes.
 */
#pragma once

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml.h"

#include <functional>
#include <string>
#include <vector>

enum { INPUT_SETS = 3 };

/* A compute graph with weights, inputs and outputs. Its tensors' contents depend on the order of the calls alone. */
struct net {
    ggml_context *             constant = nullptr; /* weights, inputs, caches */
    ggml_context *             computed = nullptr;
    ggml_cgraph *              graph    = nullptr;
    ggml_backend_buffer_t      constant_buffer = nullptr, computed_buffer = nullptr;
    ggml_gallocr_t             allocator       = nullptr;
    std::vector<ggml_tensor *> weights, inputs, outputs;
    struct fixed { ggml_tensor * tensor; std::vector<char> bytes; };
    std::vector<fixed> fixed_tensors;
    int                weights_before = 0, inputs_before = 0; /* of the parts before this one, if it is a part of a scene */

    net() {
        ggml_init_params params = { 64u << 20, nullptr, true };
        constant                = ggml_init(params);
        computed                = ggml_init(params);
        graph                   = ggml_new_graph_custom(computed, 16384, false);
    }

    ~net() {
        ggml_gallocr_free(allocator);
        ggml_backend_buffer_free(computed_buffer);
        ggml_backend_buffer_free(constant_buffer);
        ggml_free(computed);
        ggml_free(constant);
    }

    net(const net &)             = delete;
    net & operator=(const net &) = delete;

    ggml_tensor * weight(ggml_type type, int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) {
        weights.push_back(ggml_new_tensor_4d(constant, type, a, b, c, d));
        return weights.back();
    }

    ggml_tensor * input(int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) {
        inputs.push_back(ggml_new_tensor_4d(constant, GGML_TYPE_F32, a, b, c, d));
        ggml_set_input(inputs.back());
        return inputs.back();
    }

    template <typename T> ggml_tensor * constants(ggml_type type, int64_t a, int64_t b, const std::vector<T> & values) {
        ggml_tensor * t = ggml_new_tensor_2d(constant, type, a, b);
        const char *  p = (const char *) values.data();
        fixed_tensors.push_back({ t, std::vector<char>(p, p + values.size() * sizeof(T)) });
        return t;
    }

    void output(ggml_tensor * t) {
        ggml_set_output(t);
        outputs.push_back(t);
        ggml_build_forward_expand(graph, t);
    }
};

/* A scene has one or more parts that share nothing. */
struct scene {
    const char *                    name, *what;
    int                             parts;
    std::function<void(net &, int)> build; /* add the part of that number */
};

const std::vector<scene> & scenes();

/* Add all parts of a scene. */
void build_all(const scene & s, net & n);

/* Place the tensors and fill them. reuse: by ggml's allocator, which gives bytes out again in the order of the nodes. */
void place(net & n, ggml_backend_t backend, bool reuse);

/* Fill the inputs with set `set` of INPUT_SETS. */
void set_inputs(net & n, int set);

/* Buffers of the computed tensors. */
std::vector<ggml_backend_buffer_t> computed_buffers(const net & n);

/* The bytes of all outputs, one after the other. */
std::vector<char> outputs_of(const net & n);

/* dry.cpp: check footprints on the CPU. `forget`: "reads" or "writes" are left out. False: outputs differ. */
bool dry_run(const std::vector<const scene *> & chosen, const std::string & forget);
