/*
 * Owns the random program and its kernels. Used by the tests of planners and runners, with memory of the CPU always.
 */
#include "random_program.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <random>

#if TEST_FAKE_GPU
#include <cuda_runtime_api.h>

#include "fake_gpu.h"
#endif

using namespace bench;

namespace {

struct mix_args {
    uint64_t *out;
    const uint64_t *a, *b;
    uint64_t salt, decision;
    unsigned threads;
    bool update;
};

uint64_t stir(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 27)) * 0x94d049bb133111ebu;
}

void mix_host(const acs_grid *, void *const *args)
{
    const mix_args &m = *static_cast<const mix_args *>(args[0]);
    for (unsigned i = 0; i < m.threads; i++)
        m.out[i] = stir(stir(m.a[i]) + 3 * m.b[i] + m.salt + m.decision + (m.update ? stir(m.out[i]) : 0));
}

/* The "__global__ function" of a pretended GPU is the host body. */
const acs_dual_kernel kernel_mix = {ACS_KERNEL_INIT("mix", mix_host, mix_host), {"mix", __FILE__, __LINE__}};

std::atomic<int> g_places{0};

/* Where places lie: the recorder never destroys its own. */
std::mutex g_lock;
std::deque<int> g_values;

void *make_place(int slot)
{
    std::lock_guard<std::mutex> guard(g_lock);
    g_values.push_back(slot);
    g_places++;
    return &g_values.back();
}

void destroy_place(void *)
{
    g_places--;
}

void issue_mix(const acs_call_env *env, mix_args args)
{
    void *list[1] = {&args};
#if TEST_FAKE_GPU
    if (env->stream) {
        (void)cudaLaunchKernel(reinterpret_cast<const void *>(mix_host), dim3(1), dim3(32), list, 0,
                               static_cast<cudaStream_t>(env->stream));
        return;
    }
#endif
    (void)env;
    mix_host(nullptr, list);
}

/* Two kernels, the first of which writes scratch memory and the second of which reads it. */
int mix_call(const acs_call_env *env, void *closure)
{
    mix_args args = *static_cast<const mix_args *>(closure);
    if (!*env->place)
        *env->place = make_place(env->slot);
    if (*static_cast<int *>(*env->place) != env->slot)
        return 7;
    if (args.salt % 3 == 0)
        return 0; /* a call that issues nothing */
    mix_args first = args;
    first.out = static_cast<uint64_t *>(env->scratch);
    first.update = false;
    args.a = first.out;
    issue_mix(env, first);
    issue_mix(env, args);
    return 0;
}

} // namespace

void random_program_on_fake_gpu()
{
#if TEST_FAKE_GPU
    fake_gpu_kernel(reinterpret_cast<const void *>(mix_host), sizeof(mix_args));
#endif
}

int random_program_places()
{
    return g_places;
}

random_program::random_program(memory &m, const random_settings &s) : program(m)
{
    std::mt19937_64 random(s.seed);
    const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };

    for (unsigned k = 0; k < s.ops; k++) {
        mix_step step = {};
        const unsigned what = below(10);
        step.kind = what == 0 ? OP_COPY : what == 1 ? OP_FILL : OP_KERNEL;
        if (s.call_every && below(s.call_every) == 0)
            step.kind = OP_CALL;
        if (s.read_every && below(s.read_every) == 0)
            step.kind = OP_READ;
        step.count = 1 + below(6);
        step.out = below(s.words - step.count);
        step.a = below(s.words - step.count);
        step.b = below(s.words - step.count);
        step.update = below(2) == 0;
        step.salt = random();
        step.us = static_cast<float>(below(30)); /* 0: unknown */
        if (step.kind == OP_COPY && step.a < step.out + step.count && step.out < step.a + step.count)
            step.kind = OP_KERNEL; /* a copy may not overlap itself */
        steps_.push_back(step);
    }
    std::vector<uint64_t> first(s.words);
    for (uint64_t &w : first)
        w = random();
    words_ = values(first);
    mark_result(words_);
}

void random_program::run(sink &s)
{
    begin();
    decision_ = 0;
    for (unsigned k = 0; k < steps_.size(); k++)
        if (static_cast<int>(k) != leave_out)
            send(s, steps_[k], k);
}

void random_program::send(sink &s, const mix_step &step, unsigned number)
{
    const size_t bytes = step.count * sizeof *words_;
    uint64_t seen[8] = {0};

    switch (step.kind) {
    case OP_COPY: copy(s, words_ + step.out, words_ + step.a, bytes); break;
    case OP_FILL: fill(s, words_ + step.out, static_cast<int>(step.salt & 0xff), bytes); break;
    case OP_CALL: send_call(s, step); break;
    case OP_READ:
        s.read(seen, words_ + step.a, bytes);
        for (unsigned i = 0; i < step.count; i++)
            decision_ = stir(decision_ + seen[i]);
        break;
    default: send_kernel(s, step, number);
    }
}

void random_program::send_kernel(sink &s, const mix_step &step, unsigned number)
{
    const mix_args args = {words_ + step.out, words_ + step.a, words_ + step.b, step.salt, decision_, step.count,
                           step.update};
    const acs_segment uses[3] = {in(args.a, step.count), in(args.b, step.count),
                                 step.update ? inout(args.out, step.count) : out(args.out, step.count)};
    launch_grid(s, kernel_mix, static_cast<int>(number) == change ? 2 : 1, 32, args, uses, 3, step.us);
}

void random_program::send_call(sink &s, const mix_step &step)
{
    static const acs_site site = {"mix_call", __FILE__, __LINE__};
    const mix_args args = {words_ + step.out, words_ + step.a, words_ + step.b, step.salt, decision_, step.count,
                           step.update};
    const acs_segment uses[3] = {in(args.a, step.count), in(args.b, step.count), inout(args.out, step.count)};
    acs_call_params c = {};
    c.size = sizeof c;
    c.function = mix_call;
    c.closure = &args;
    c.closure_bytes = sizeof args;
    c.scratch_bytes = step.count * sizeof *words_;
    c.place_key = &g_places;
    c.place_destroy = destroy_place;
    c.uses.segments = uses;
    c.uses.count = 3;
    c.site = &site;
    call(s, c, step.us);
}
