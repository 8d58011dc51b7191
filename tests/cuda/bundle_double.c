/*
 * The kernels of tests/gpu/bundle.h as C functions over the double of the driver, so that the tests of issue methods
 * run without a GPU too. Called by that double, with its lock held.
 */
#include "../gpu/bundle.h"

#include "twin.h"

#include <stdlib.h>
#include <string.h>

static const char g_symbols[BUNDLE_SPIN + 1];

/* As `work` in tests/gpu/bundle_kernels.cu: the grid is part of the result. */
static void work(uint32_t *to, void *const *from, uint32_t salt)
{
    uint32_t grid[3];
    const uint32_t *in[3];
    twin_grid(grid);
    salt += grid[0] * 977 + grid[1] * 31 + grid[2];
    for (int k = 0; k < 3; k++)
        memcpy(&in[k], from[k], sizeof in[k]);
    for (int i = 0; i < BUNDLE_WORDS; i++)
        to[i] = bundle_mix(to[i], in[0] ? in[0][i] : 0, in[1] ? in[1][i] : 0, in[2] ? in[2][i] : 0, salt);
}

static void plain_body(void *const *args)
{
    work(*(uint32_t **)args[0], args + 1, *(const uint32_t *)args[4]);
}

static void odd_body(void *const *args)
{
    const bundle_odd *odd = args[2];
    uint32_t low = *(const uint8_t *)args[0];
    work(*(uint32_t **)args[1], args + 3, low + ((uint32_t)odd->a << 8) + (uint32_t)odd->b + (uint32_t)odd->c);
}

static void large_body(void *const *args)
{
    const bundle_large *salts = args[0];
    work(*(uint32_t **)args[1], args + 2, salts->words[0] + salts->words[47]);
}

static void shared_body(void *const *args)
{
    work(*(uint32_t **)args[4], args, *(const uint32_t *)args[3]);
}

/* Work runs by itself, in an order by the seed. */
void bundle_prepare(void)
{
    static bool prepared;
    if (prepared)
        return;
    prepared = true;
    const char *seed = getenv("DOUBLE_SEED");
    (void)atexit(twin_reset); /* its memory */
    twin_seed(seed ? strtoull(seed, NULL, 10) : 1);

    static const uint32_t plain[] = {8, 8, 8, 8, 4}, odd[] = {1, 8, sizeof(bundle_odd), 8, 8, 8},
                          large[] = {sizeof(bundle_large), 8, 8, 8, 8}, shared[] = {8, 8, 8, 4, 8};
    const twin_kernel_spec specs[] = {
        {.name = "plain", .body = plain_body, .param_bytes = plain, .param_count = 5},
        {.name = "odd", .body = odd_body, .param_bytes = odd, .param_count = 6},
        {.name = "large", .body = large_body, .param_bytes = large, .param_count = 5},
        {.name = "shared", .body = shared_body, .param_bytes = shared, .param_count = 5},
        {.name = "spin", .param_bytes = plain, .param_count = 5},
    };
    for (int i = 0; i <= BUNDLE_SPIN; i++) {
        twin_kernel_spec spec = specs[i];
        spec.symbol = &g_symbols[i];
        (void)twin_kernel(&spec);
    }
}

const void *bundle_kernel(int number)
{
    return &g_symbols[number];
}

void bundle_hold(int hold)
{
    twin_set_strategy(hold ? TWIN_HELD : TWIN_UNIFORM);
}

const int bundle_runs_at_once = 1;

int bundle_zero(void *at, size_t bytes)
{
    memset(at, 0, bytes);
    return 1;
}

int bundle_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return twin_breach() == NULL;
}
