/*
 * The hooks that gcc calls at the begin and the end of each instrumented function. Owns the set of functions that ran
 * while recording was on, and the deepest stack of any thread. Used by plain_launch.c; tests/route/route turns addresses
 * into names.
 */
#include "recorder.h"

#include "base/lock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MOST = 128, FUNCTIONS_MOST = 4096 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static bool g_recording;                     /* guarded by g_lock, as all that follows */
static void *g_functions[FUNCTIONS_MOST];
static unsigned g_function_count;
static void *g_deepest[DEPTH_MOST];
static unsigned g_deepest_depth;
static _Thread_local void *tl_stack[DEPTH_MOST];
static _Thread_local unsigned tl_depth;
static _Thread_local unsigned tl_locks;

void __cyg_profile_func_enter(void *function, void *call_site);
void __cyg_profile_func_exit(void *function, void *call_site);

static void note_function(void *function)
{
    for (unsigned i = 0; i < g_function_count; i++)
        if (g_functions[i] == function)
            return;
    if (g_function_count < FUNCTIONS_MOST)
        g_functions[g_function_count++] = function;
}

static void note_depth(void)
{
    if (tl_depth <= g_deepest_depth || tl_depth > DEPTH_MOST)
        return;
    g_deepest_depth = tl_depth;
    memcpy(g_deepest, tl_stack, tl_depth * sizeof g_deepest[0]);
}

void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)call_site;
    tl_locks += function == (void *)(uintptr_t)acs_lock_acquire || function == (void *)(uintptr_t)acs_lock_try;
    if (tl_depth < DEPTH_MOST)
        tl_stack[tl_depth] = function;
    tl_depth++;
    pthread_mutex_lock(&g_lock);
    if (g_recording) {
        note_function(function);
        note_depth();
    }
    pthread_mutex_unlock(&g_lock);
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)function;
    (void)call_site;
    tl_depth--;
}

static void set_recording(bool on)
{
    pthread_mutex_lock(&g_lock);
    g_recording = on;
    pthread_mutex_unlock(&g_lock);
}

void recorder_start(void)
{
    set_recording(true);
}

void recorder_stop(void)
{
    set_recording(false);
}

unsigned recorder_locks(void)
{
    return tl_locks;
}

void recorder_print(void)
{
    printf("depth %u\n", g_deepest_depth);
    for (unsigned i = 0; i < g_deepest_depth; i++)
        printf("stack %p\n", g_deepest[i]);
    for (unsigned i = 0; i < g_function_count; i++)
        printf("function %p\n", g_functions[i]);
}
