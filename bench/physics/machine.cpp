/*
 * Owns the description of the machine that results are kept with. Called once by the report; measures nothing.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <unistd.h>

#include "report.h"
#include "runner.h"

#if PHYSICS_CUDA
#include <cuda_runtime_api.h>
#endif

/* The rest of the first line of a file that holds `key`, from behind `key`; empty if there is none. */
static std::string line_of(const char *path, const char *key)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const size_t place = line.find(key);
        if (place == std::string::npos)
            continue;
        const size_t first = line.find_first_not_of(" \t:", place + strlen(key));
        return first == std::string::npos ? "" : line.substr(first);
    }
    return "";
}

#if PHYSICS_CUDA
static std::string version_text(int version)
{
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

static void describe_gpu(machine_facts &m)
{
    cudaDeviceProp p;
    int device = 0, version = 0;

    require_cuda(cudaGetDevice(&device), "cudaGetDevice");
    require_cuda(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties");
    m.gpu = p.name;
    require_cuda(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    m.cuda_driver = version_text(version);
    require_cuda(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
    m.cuda_runtime = version_text(version);
    m.driver = line_of("/proc/driver/nvidia/version", "NVRM version");
}
#endif

machine_facts machine_describe(bool gpu)
{
    machine_facts m;
    char date[32] = "";
    const time_t now = time(nullptr);
    struct tm utc;
    const char *const commit = getenv("BENCH_COMMIT");

    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &utc));
    m.date = date;
    m.commit = commit ? commit : "";
    m.cpu = line_of("/proc/cpuinfo", "model name");
    m.cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "ACS_", 4) == 0)
            m.options.push_back(*e);
#if PHYSICS_CUDA
    if (gpu)
        describe_gpu(m);
#endif
    (void)gpu;
    return m;
}
