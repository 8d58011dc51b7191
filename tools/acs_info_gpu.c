/*
 * The GPUs and the CUDA versions, for acs-info. Asks the CUDA runtime and, for the kernel driver's own version, /proc;
 * built without CUDA it says so. Changes nothing on the devices.
 */
#include "acs_info.h"

#include <stdio.h>
#include <string.h>

/* Virtual devices are not measured: their links are what ACS_TOPOLOGY says, or an estimate. */
static void no_links(info *to, bool measure)
{
    if (measure)
        snprintf(to->links_why, sizeof to->links_why, "there is no GPU to measure");
}

#ifdef ACS_HAVE_CUDA

#include <cuda_runtime_api.h>

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ...": the first word that looks like a version. */
static void read_driver(info *to)
{
    char line[512];
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (!file)
        return;
    if (fgets(line, sizeof line, file)) {
        char *rest = line;
        for (char *word; (word = strtok_r(rest, " \t\n", &rest)) != NULL && !*to->driver;)
            if (*word >= '0' && *word <= '9' && strchr(word, '.'))
                snprintf(to->driver, sizeof to->driver, "%.60s", word);
    }
    fclose(file);
}

static void read_gpu(info_gpu *to, int index)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, index);
    if (error != cudaSuccess) {
        snprintf(to->why, sizeof to->why, "%s", cudaGetErrorString(error));
        return;
    }
    snprintf(to->name, sizeof to->name, "%s", properties.name);
    acs_topology_id(to->uuid, properties.uuid.bytes);
    to->processors = properties.multiProcessorCount;
    to->major = properties.major;
    to->minor = properties.minor;
    to->memory_bytes = properties.totalGlobalMem;
}

void info_read_gpus(info *to)
{
    int count = 0;
    read_driver(to);
    if (cudaDriverGetVersion(&to->driver_cuda) != cudaSuccess)
        to->driver_cuda = 0;
    if (cudaRuntimeGetVersion(&to->runtime_cuda) != cudaSuccess)
        to->runtime_cuda = CUDART_VERSION; /* linked statically: it is what it was compiled as */
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        snprintf(to->gpus_why, sizeof to->gpus_why, "%s", cudaGetErrorString(error));
        return;
    }
    for (int i = 0; i < count && i < INFO_GPUS_MOST; i++)
        read_gpu(&to->gpus[to->gpu_count++], i);
    if (count == 0)
        snprintf(to->gpus_why, sizeof to->gpus_why, "the driver has none");
}

static void keep_error(info *to)
{
    acs_error error = {.size = sizeof error};
    (void)acs_last_error(&error);
    memcpy(to->links_why, error.text, sizeof to->links_why);
    to->links.count = 0;
}

static void store_links(info *to)
{
    if (acs_topology_store(&to->links) != ACS_OK) {
        acs_error error = {.size = sizeof error};
        (void)acs_last_error(&error);
        memcpy(to->links_why, error.text, sizeof to->links_why); /* they are known all the same */
        return;
    }
    (void)acs_topology_path(&to->links, to->links_kept); /* was written to */
}

/* Devices that say nothing of themselves have no links. */
void info_read_links(info *to, uint32_t devices, bool measure)
{
    int numbers[ACS_DEVICES_MOST];
    acs_topology *t = &to->links;
    const uint32_t most = devices && devices < ACS_DEVICES_MOST ? devices : ACS_DEVICES_MOST;
    for (uint32_t i = 0; i < to->gpu_count && t->count < most; i++) {
        if (*to->gpus[i].why)
            continue;
        memcpy(t->id[t->count], to->gpus[i].uuid, sizeof to->gpus[i].uuid);
        numbers[t->count++] = (int)i;
    }
    if (t->count == 0) {
        no_links(to, measure);
        return;
    }
    acs_status status = measure ? info_measure_links(t, numbers) : acs_topology_load(t);
    if (status == ACS_NOT_READY) {
        t->count = 0;
        snprintf(to->links_why, sizeof to->links_why, "not measured yet: acs-info --measure");
    } else if (status != ACS_OK) {
        keep_error(to);
    } else if (measure) {
        store_links(to);
    } else {
        (void)acs_topology_path(t, to->links_kept); /* was read */
    }
}

#else

void info_read_gpus(info *to)
{
    snprintf(to->gpus_why, sizeof to->gpus_why, "not looked for, since ACS was built without CUDA");
}

void info_read_links(info *to, uint32_t devices, bool measure)
{
    (void)devices;
    no_links(to, measure);
}

#endif
