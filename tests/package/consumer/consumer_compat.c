/*
 * A program of somebody else's whose CUDA calls drain ACS: a call of CUDA's runs an op that only a wait runs. Without a GPU
 * the call itself fails, which does not matter here. With an argument: the calls are not wrapped, and the op does not run.
 */
#include <acs.h>
#include <acs_compat.h>
#include <stdio.h>

#ifndef __CUDACC__
int cudaDeviceSynchronize(void); /* of cuda_runtime_api.h, whose folder a C compiler need not know */
#endif

static int g_ran;

static int run(void *closure)
{
    (void)closure;
    g_ran = 1;
    return 0;
}

int main(int argc, char **argv)
{
    acs_options options;
    acs_context *context = NULL;
    const int wraps = argc < 2;
    (void)argv;
    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return 1;
    options.backend = ACS_BACKEND_HOST;
    options.workers = 0;
    if (acs_open(&options, &context) != ACS_OK || !acs_host(context, run, NULL, 0, ACS_USES_ANY))
        return 1;
    (void)cudaDeviceSynchronize();
    const int as_it_should = g_ran == wraps;
    if (!as_it_should)
        printf("the op %s before cudaDeviceSynchronize returned\n", g_ran ? "ran" : "did not run");
    return acs_close(context) != ACS_OK || !as_it_should;
}
