/*
 * The calls of acs_rand.h: arguments are checked, footprints made from them, positions moved on, and ops queued. Called by
 * programs from any thread. Makes no numbers: rand/host.c and rand/cuda.c do, when the op runs.
 */
#include "acs_rand.h"
#include "rand/rand.h"

ACS_WRAP_ROOM(acs_rand_args);

static const acs_wrap_codes g_codes = {"the CUDA driver", "CUresult", acs_rand_cuda_load, NULL, NULL};

size_t acs_rand_code_text(int code, char *text, size_t bytes)
{
    return acs_wrap_code_text(&g_codes, code, text, bytes);
}

acs_status acs_rand_load(void)
{
    static const acs_site site = {"acs_rand_load", NULL, 0};
    return acs_wrap_load_status(acs_rand_cuda_load, &site);
}

static int run(const acs_call_env *env, void *closure)
{
    const acs_rand_args *const args = closure;

    if (args->count == 0)
        return 0;
    if (env->device >= 0)
        return acs_rand_cuda_run(env, args);
    acs_rand_host_run(args);
    return 0;
}

static bool is_normal(const acs_rand_args *args)
{
    return args->kind == ACS_RAND_NORMAL || args->kind == ACS_RAND_NORMAL_DOUBLE;
}

static acs_status check(const acs_rand_args *args, size_t size, const acs_site *site)
{
    if (!args->out && args->count)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "out is NULL");
    if ((uintptr_t)args->out % size)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "out is not aligned to %zu bytes", size);
    if (args->count > SIZE_MAX / 2 / size)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "count is %llu; memory cannot have so many",
                             (unsigned long long)args->count);
    if (is_normal(args) && args->count % 2)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "count is %llu; it must be even", (unsigned long long)args->count);
    if (is_normal(args) && args->count && args->position % 2)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "the generator's position is %llu; it must be even",
                             (unsigned long long)args->position);
    return ACS_OK;
}

/* The length of a pass of doubles, or of other numbers, in positions. */
static uint64_t pass_of(uint64_t wide)
{
    return wide ? 2 * ACS_RAND_PASS : ACS_RAND_PASS;
}

/* Where the generator's next numbers of this width begin. If the width changes, the rest of the pass is left out. */
static uint64_t position_of(const acs_rand_generator *g, bool wide)
{
    const uint64_t in_pass = g->position % ACS_RAND_PASS;
    return in_pass && (g->wide != 0) != wide ? g->position - in_pass + pass_of(g->wide) : g->position;
}

static uint64_t position_behind(const acs_rand_args *args, bool wide)
{
    const uint64_t in_pass = args->position % ACS_RAND_PASS, from_pass = in_pass + args->count;
    return args->position - in_pass + from_pass / ACS_RAND_PASS * pass_of(wide) + from_pass % ACS_RAND_PASS;
}

static acs_status prepare(acs_wrap_call *call, const acs_site *site, acs_rand_generator *generator, acs_rand_args args)
{
    static const acs_wrap_kind kind = {acs_rand_cuda_load, run, NULL, NULL};
    static const size_t sizes[] = {sizeof(uint32_t), sizeof(float), sizeof(double), sizeof(float), sizeof(double)};
    const size_t size = sizes[args.kind];
    const bool wide = acs_rand_is_wide(args.kind);

    if (!call || !generator)
        return acs_wrap_fail(ACS_ERR_ARGUMENT, site, "%s is NULL", call ? "generator" : "call");
    args.seed = generator->seed;
    args.position = position_of(generator, wide);
    if (check(&args, size, site) != ACS_OK)
        return ACS_ERR_ARGUMENT;
    call->segments[0] = ACS_OUT(args.out, args.count * size);
    acs_wrap_fill(call, &kind, site, &args, sizeof args, args.count ? 1 : 0, 0);
    if (args.count == 0)
        return ACS_OK;
    generator->position = position_behind(&args, wide);
    generator->wide = wide;
    return ACS_OK;
}

/* The public functions: the operation, its further parameters, their names, and the members that they become. */
#define UNWRAP(...) __VA_ARGS__
#define ENTRY(operation, parameters, names, ...)                                                                       \
    static const acs_site g_site_##operation = {"acs_rand_" #operation, NULL, 0};                                      \
    acs_status acs_rand_##operation##_prepare(acs_wrap_call *call, acs_rand_generator *generator, UNWRAP parameters)   \
    {                                                                                                                  \
        return prepare(call, &g_site_##operation, generator, (acs_rand_args){.out = out, .count = count, __VA_ARGS__});\
    }                                                                                                                  \
    acs_op acs_rand_##operation(acs_context *context, acs_rand_generator *generator, UNWRAP parameters)                \
    {                                                                                                                  \
        acs_wrap_call call;                                                                                            \
        const acs_rand_generator before = generator ? *generator : acs_rand_begin(0);                                  \
        const acs_status prepared = acs_rand_##operation##_prepare(&call, generator, UNWRAP names);                    \
        const acs_op op = acs_wrap_queue(context, &call.params, &g_site_##operation, prepared, acs_rand_cuda_load);    \
        if (!op && generator)                                                                                          \
            *generator = before; /* ACS may refuse what was prepared */                                                \
        return op;                                                                                                     \
    }

ENTRY(bits, (uint32_t *out, size_t count), (out, count), .kind = ACS_RAND_BITS)
ENTRY(uniform, (float *out, size_t count), (out, count), .kind = ACS_RAND_UNIFORM)
ENTRY(uniform_double, (double *out, size_t count), (out, count), .kind = ACS_RAND_UNIFORM_DOUBLE)
ENTRY(normal, (float *out, size_t count, float mean, float deviation), (out, count, mean, deviation),
      .kind = ACS_RAND_NORMAL, .mean = (double)mean, .deviation = (double)deviation)
ENTRY(normal_double, (double *out, size_t count, double mean, double deviation), (out, count, mean, deviation),
      .kind = ACS_RAND_NORMAL_DOUBLE, .mean = mean, .deviation = deviation)
