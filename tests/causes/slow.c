/*
 * Programs that are slow for one reason each, on the simulated GPU in its own time, so they are the same on every
 * machine (ACS_BACKEND names another backend). What a report says of them is tested (check). Most were tried on
 * readers who did not know these sources.
 *
 *     slow NAME    with ACS_TRACE or ACS_REPORT in the environment
 *
 * image      each op names the whole array, and touches its own part of it
 * particles  one buffer is written again while other ops still read it
 * solver     the host waits in the loop
 * mesh       the window is too small for the parts that could run at once
 * layers     there are too few streams
 * render     one kernel fills the GPU beside small ones
 * batches    memory is allocated in the loop, and is short
 * series     each op needs the result of the one before
 * relay      the same with ops so short that their starts take as long
 * setup      blocks are allocated before the first op
 */
#include "acs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 60, PARTS = 8, PART = 1 << 16, SMALL = 4 };

static void body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

#define KERNEL(name) static const acs_kernel name = ACS_KERNEL_HOST_INIT(#name, body)
KERNEL(blur);
KERNEL(forces);
KERNEL(draw);
KERNEL(relax);
KERNEL(smooth);
KERNEL(gather);
KERNEL(dense);
KERNEL(shade);
KERNEL(overlay);
KERNEL(decode);
KERNEL(resize);
KERNEL(advance);

static acs_context *g_context;

static void check(bool good)
{
    acs_error error = {.size = sizeof error};
    if (good)
        return;
    (void)acs_last_error(&error);
    fprintf(stderr, "slow: %s\n", error.text);
    exit(1);
}

/* Declare a block. */
#define BLOCK(name, bytes)                                                                                           \
    void *name##_memory = NULL;                                                                                      \
    check(acs_malloc(g_context, bytes, ACS_MEMORY_DEVICE, &name##_memory) == ACS_OK);                                \
    char *name = name##_memory

static void image(void)
{
    BLOCK(pixels, PARTS * PART);
    for (int turn = 0; turn < TURNS; turn++)
        for (int part = 0; part < PARTS; part++) {
            char *tile = pixels + part * PART;
            check(ACS_LAUNCH_ON(g_context, &blur, SMALL, 128, 0, ACS_ARGS(tile),
                                ACS_USES(ACS_INOUT(pixels, PARTS * PART))));
        }
}

static void particles(void)
{
    BLOCK(positions, PART);
    BLOCK(picture, PARTS * PART);
    for (int turn = 0; turn < TURNS; turn++) {
        check(ACS_LAUNCH_ON(g_context, &forces, SMALL, 128, 0, ACS_ARGS(positions, turn),
                            ACS_USES(ACS_OUT(positions, PART))));
        for (int part = 0; part < PARTS; part++) {
            char *tile = picture + part * PART;
            check(ACS_LAUNCH_ON(g_context, &draw, SMALL, 128, 0, ACS_ARGS(positions, tile),
                                ACS_USES(ACS_IN(positions, PART), ACS_OUT(tile, PART))));
        }
    }
}

static void solver(void)
{
    BLOCK(field, PARTS * PART);
    for (int turn = 0; turn < TURNS; turn++)
        for (int part = 0; part < PARTS; part++) {
            char *tile = field + part * PART;
            const acs_op op = ACS_LAUNCH_ON(g_context, &relax, SMALL, 128, 0, ACS_ARGS(tile, turn),
                                            ACS_USES(ACS_INOUT(tile, PART)));
            check(op && acs_wait(g_context, op) == ACS_OK);
        }
}

/* Parts are independent, but the ops of one part come after each other. */
static void mesh(void)
{
    BLOCK(parts, PARTS * PART);
    for (int part = 0; part < PARTS; part++)
        for (int turn = 0; turn < TURNS; turn++) {
            char *tile = parts + part * PART;
            check(ACS_LAUNCH_ON(g_context, &smooth, SMALL, 128, 0, ACS_ARGS(tile, turn),
                                ACS_USES(ACS_INOUT(tile, PART))));
        }
}

static void layers(void)
{
    BLOCK(parts, PARTS * PART);
    for (int turn = 0; turn < TURNS; turn++)
        for (int part = 0; part < PARTS; part++) {
            char *tile = parts + part * PART;
            check(ACS_LAUNCH_ON(g_context, part % 2 ? &gather : &dense, SMALL, 128, 0, ACS_ARGS(tile, turn),
                                ACS_USES(ACS_INOUT(tile, PART))));
        }
}

static void render(void)
{
    BLOCK(frames, TURNS * PART);
    BLOCK(parts, PARTS * PART);
    for (int turn = 0; turn < TURNS; turn++) {
        char *frame = frames + turn * PART;
        check(ACS_LAUNCH_ON(g_context, &shade, 4 * 132, 1024, 0, ACS_ARGS(frame), ACS_USES(ACS_OUT(frame, PART))));
        for (int part = 0; part < PARTS; part++) {
            char *tile = parts + part * PART;
            check(ACS_LAUNCH_ON(g_context, &overlay, SMALL, 128, 0, ACS_ARGS(tile, turn),
                                ACS_USES(ACS_INOUT(tile, PART))));
        }
    }
}

static void batches(void)
{
    for (int turn = 0; turn < TURNS; turn++) {
        BLOCK(pixels, 8 << 20);
        check(ACS_LAUNCH_ON(g_context, &decode, SMALL, 128, 0, ACS_ARGS(pixels), ACS_USES(ACS_OUT(pixels, 8 << 20))));
        check(
            ACS_LAUNCH_ON(g_context, &resize, SMALL, 128, 0, ACS_ARGS(pixels), ACS_USES(ACS_INOUT(pixels, 8 << 20))));
        check(acs_free(g_context, pixels));
    }
}

static void series(void)
{
    BLOCK(state, PART);
    for (int turn = 0; turn < TURNS * PARTS; turn++)
        check(ACS_LAUNCH_ON(g_context, &advance, SMALL, 128, 0, ACS_ARGS(state, turn),
                            ACS_USES(ACS_INOUT(state, PART / 2))));
}

static void setup(void)
{
    for (int i = 0; i < TURNS * PARTS; i++) {
        BLOCK(unused, PART);
        (void)unused;
    }
    series();
}

static const struct program {
    const char *name;
    void (*run)(void);
    int window, streams;
    long long memory;
    int kernel_us;
} g_programs[] = {{"image", image, 256, 64, 0, 20},
                  {"particles", particles, 256, 64, 0, 20},
                  {"solver", solver, 256, 64, 0, 20},
                  {"mesh", mesh, 16, 64, 0, 20},
                  {"layers", layers, 256, 2, 0, 20},
                  {"render", render, 256, 64, 0, 20},
                  {"batches", batches, 256, 64, 16 << 20, 20},
                  {"series", series, 256, 64, 0, 20},
                  {"relay", series, 256, 64, 0, 2},
                  {"setup", setup, 256, 64, 0, 20}};

int main(int argc, char **argv)
{
    acs_options options;
    check(acs_options_init(&options, sizeof options) == ACS_OK);
    if (!getenv("ACS_BACKEND"))
        options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.issue = ACS_ISSUE_LAUNCH;
    for (size_t i = 0; argc == 2 && i < sizeof g_programs / sizeof g_programs[0]; i++) {
        const struct program *p = &g_programs[i];
        if (strcmp(argv[1], p->name) != 0)
            continue;
        options.window = p->window;
        options.streams = p->streams;
        options.memory_limit = p->memory;
        options.sim_kernel_us = p->kernel_us;
        check(acs_open(&options, &g_context) == ACS_OK);
        p->run();
        check(acs_sync(g_context) == ACS_OK);
        check(acs_close(g_context) == ACS_OK);
        return 0;
    }
    fprintf(stderr, "usage: slow image|particles|solver|mesh|layers|render|batches|series|relay|setup\n");
    return 2;
}
