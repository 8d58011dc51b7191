/*
 * Versions of the programs' kernels: other grids and blocks, and on the CPU another body. All of them do what the kernel
 * does, so a program's results do not depend on the choice. Called by moving.c, in all threads of a program.
 */
#include "versions.h"

#include "bodies.h"
#include "sections.h"

#include <pthread.h>

enum { KERNELS_MOST = 64 };

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the next two */
static const void *g_known[KERNELS_MOST]; /* functions or bodies that have versions */
static uint32_t g_count;

static void mix_again_body(const acs_grid *grid, void *const *args)
{
    mix_body(grid, args);
}

static size_t more_blocks(const acs_footprint_input *in, acs_launch_shape *shape)
{
    shape->grid.x = in->grid[0] % 5 + 1;
    return ACS_SHAPE_FITS;
}

/* Not for each launch. */
static size_t small_blocks(const acs_footprint_input *in, acs_launch_shape *shape)
{
    shape->block.x = 32;
    return in->grid[0] % 3 ? ACS_SHAPE_FITS : ACS_SHAPE_UNFIT;
}

static void declare(const acs_kernel *kernel)
{
    acs_kernel again = *kernel;
    if (kernel->host == mix_body)
        again.host = mix_again_body;
    const acs_variant versions[] = {{"blocks", &again, more_blocks, NULL}, {"small", kernel, small_blocks, NULL},
                                    {"same", kernel, NULL, NULL}};
    (void)acs_variants(kernel, versions, 3); /* without memory the kernel has one version */
}

static void declare_once(const acs_kernel *kernel)
{
    const void *key = kernel->function ? kernel->function : (const void *)(uintptr_t)kernel->host;
    pthread_mutex_lock(&g_mutex);
    uint32_t i = 0;
    while (i < g_count && g_known[i] != key)
        i++;
    if (i == g_count && g_count < KERNELS_MOST) {
        g_known[g_count++] = key;
        declare(kernel);
    }
    pthread_mutex_unlock(&g_mutex);
}

void versions_launch(const random_config *c, const step *s, acs_launch_params *launch)
{
    dice d = {c->seed ^ (0x6a09e667f3bcc909u + s->index)};
    if (!c->variants) {
        launch->attributes.variant = 1; /* an earlier program may have declared versions */
        return;
    }
    declare_once(launch->kernel);
    if (dice_percent(&d, 10))
        launch->attributes.fit = (uint8_t)(10 * (1 + dice_below(&d, 10)));
    if (!program_decides(c) && dice_percent(&d, 10))
        launch->attributes.variant = (uint8_t)(dice_percent(&d, 50) ? 4 : 2); /* "small" may not fit */
}
