/*
 * Random numbers on a GPU: cuRAND, found at run time. Called by the thread that issues an op, with the slot's stream. Each
 * call sets seed and offset, so earlier calls do not matter. A generator of cuRAND has memory on the device that its kernels
 * change, so no two running ops share one. Never synchronises, but for what cuRAND does when a generator is made. Built
 * without CUDA's headers it only says so.
 */
#include "rand/rand.h"

#if ACS_RAND_HAVE_CUDA

#include <curand.h>

#include <stdlib.h>

#define FUNCTIONS(X)                                                                                                   \
    X(curandCreateGenerator) X(curandDestroyGenerator) X(curandSetStream) X(curandSetPseudoRandomGeneratorSeed)        \
    X(curandSetGeneratorOffset) X(curandGenerate) X(curandGenerateUniform) X(curandGenerateUniformDouble)              \
    X(curandGenerateNormal) X(curandGenerateNormalDouble)

static struct {
    FUNCTIONS(ACS_WRAP_MEMBER)
} g;
static const acs_wrap_function g_functions[] = {FUNCTIONS(ACS_WRAP_ROW)};
static const acs_wrap_library g_library = {"libcurand.so." ACS_WRAP_TEXT(CURAND_VER_MAJOR), g_functions,
                                           sizeof g_functions / sizeof g_functions[0]};
static acs_wrap_loader g_loader = {&g_library, 1, 0, ""};

bool acs_rand_cuda_load(const char **why)
{
    return acs_wrap_load(&g_loader, why);
}

static int code_of(curandStatus_t status)
{
    return status == CURAND_STATUS_SUCCESS ? 0 : ACS_WRAP_CODE_BASE + (int)status;
}

static int create(void **handle)
{
    curandGenerator_t made = NULL;
    const int code = code_of(g.curandCreateGenerator(&made, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    *handle = made;
    return code;
}

static void destroy(void *handle)
{
    (void)g.curandDestroyGenerator(handle); /* the context closes: there is nobody to tell of a failure */
}

/* `count` numbers from number `first` of the op. */
static curandStatus_t generate(curandGenerator_t generator, const acs_rand_args *x, size_t first, size_t count)
{
    uint32_t *const narrow = (uint32_t *)x->out + first; /* or floats */
    double *const wide = (double *)x->out + first;

    switch ((acs_rand_kind)x->kind) {
    case ACS_RAND_BITS: return g.curandGenerate(generator, narrow, count);
    case ACS_RAND_UNIFORM: return g.curandGenerateUniform(generator, (float *)narrow, count);
    case ACS_RAND_UNIFORM_DOUBLE: return g.curandGenerateUniformDouble(generator, wide, count);
    case ACS_RAND_NORMAL:
        return g.curandGenerateNormal(generator, (float *)narrow, count, (float)x->mean, (float)x->deviation);
    case ACS_RAND_NORMAL_DOUBLE: return g.curandGenerateNormalDouble(generator, wide, count, x->mean, x->deviation);
    }
    return CURAND_STATUS_TYPE_ERROR;
}

static int generate_at(curandGenerator_t generator, const acs_rand_args *x, uint64_t position, size_t first, size_t count)
{
    const int code = code_of(g.curandSetGeneratorOffset(generator, position));
    return code ? code : code_of(generate(generator, x, first, count));
}

/*
 * From an offset inside a pass cuRAND goes on as if the numbers before it had been of 32 bits. So the doubles of that pass
 * are a call of their own, and the others begin with the next pass of doubles.
 */
static int generate_all(curandGenerator_t generator, const acs_rand_args *x)
{
    const uint64_t in_pass = x->position % ACS_RAND_PASS, rest = ACS_RAND_PASS - in_pass;
    const size_t count = (size_t)x->count;
    int code;

    if (!acs_rand_is_wide(x->kind) || in_pass == 0 || count <= rest)
        return generate_at(generator, x, x->position, 0, count);
    code = generate_at(generator, x, x->position, 0, (size_t)rest);
    return code ? code
                : generate_at(generator, x, x->position - in_pass + 2 * ACS_RAND_PASS, (size_t)rest, count - (size_t)rest);
}

int acs_rand_cuda_run(const acs_call_env *env, const acs_rand_args *args)
{
    static const acs_wrap_handle_type type = {create, destroy};
    const char *why;
    void *generator;
    int code;

    if (!acs_rand_cuda_load(&why))
        return ACS_WRAP_CODE_LIBRARY;
    code = acs_wrap_handle(env, &type, &generator);
    if (!code)
        code = code_of(g.curandSetStream(generator, env->stream));
    if (!code)
        code = code_of(g.curandSetPseudoRandomGeneratorSeed(generator, args->seed));
    return code ? code : generate_all(generator, args);
}

#else /* no CUDA */

bool acs_rand_cuda_load(const char **why)
{
    *why = "this build of acs_rand has no cuRAND: CUDA's headers were not there, or were not wanted";
    return false;
}

int acs_rand_cuda_run(const acs_call_env *env, const acs_rand_args *args)
{
    (void)env;
    (void)args;
    return ACS_WRAP_CODE_LIBRARY;
}

#endif
