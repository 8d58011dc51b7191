/*
 * The number of hardware connections that a GPU's streams share; the driver reads it from the environment when it
 * makes a context. Called by member.c before the first call that makes one. It sets the variable only while the
 * process has one thread and no context.
 */
#include "cuda/internal.h"

#include "base/options.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_DEFAULT = 8, CONNECTIONS_MOST = 32 };

/* Whether this thread is the only one: setenv during another thread's getenv is undefined. */
static bool process_is_single_threaded(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    if (!tasks)
        return false;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count == 1;
}

/* Whether the current device has a context; asks without making one. In doubt, true. */
static bool context_exists(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver)
        return false; /* the driver's library is not loaded, so there is no context */
    dlclose(driver);
    int device = 0, active = 1;
    unsigned flags;
    PFN_cuDevicePrimaryCtxGetState_v7000 get_state = NULL;
    void *symbol = acs_cuda_driver_symbol("cuDevicePrimaryCtxGetState", 12000);
    memcpy(&get_state, &symbol, sizeof symbol);
    if (cudaGetDevice(&device) != cudaSuccess)
        (void)cudaGetLastError();
    else if (get_state && get_state(device, &flags, &active) != CUDA_SUCCESS)
        active = 1;
    return active != 0;
}

/*
 * Streams on one hardware connection wait for each other without need. The driver reads how many to make when it makes
 * the context. So the variable is set before the first CUDA call, if that is safe.
 */
void acs_cuda_connections_prepare(uint32_t slots)
{
    static const char variable[] = "CUDA_DEVICE_MAX_CONNECTIONS";
    const char *given = acs_environment(variable);
    long in_force = given ? strtol(given, NULL, 10) : CONNECTIONS_DEFAULT;
    if (in_force <= 0)
        in_force = CONNECTIONS_DEFAULT;
    const long useful = slots < CONNECTIONS_MOST ? (long)slots : CONNECTIONS_MOST;
    if (useful <= in_force)
        return;
    if (!given && process_is_single_threaded() && !context_exists() && acs_environment_set(variable, "32"))
        in_force = CONNECTIONS_MOST;
    if (useful > in_force)
        acs_log(ACS_LOG_WARN,
                "cuda: %u streams share %ld hardware connections, so some wait for each other without need; set %s=%d "
                "before the program starts, or use fewer streams",
                slots, in_force, variable, CONNECTIONS_MOST);
}
