/*
 * Owns the form of result files. Called by the benchmark programs between measurements; measures nothing itself.
 */
#include "report.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

extern char **environ;

namespace bench {

/* What an H200's front end needs per kernel in a cached graph, measured; further edges cost more, but can be joined. */
static const double FRONT_END_KERNEL_US = 0.19;

double bounds::largest() const
{
    return std::max({critical_us, work_us, front_end_us});
}

bounds bounds_of(const trace &t, const dag &d, bool gpu, double resident_ctas)
{
    bounds b = {0, 0, 0};
    std::vector<double> us;

    for (const op &o : t.ops) {
        us.push_back(static_cast<double>(o.us));
        b.work_us += resident_ctas > 0 ? static_cast<double>(o.us) * (gpu ? o.grid : 1) / resident_ctas : 0;
    }
    if (!d.up.empty())
        b.critical_us = dag_critical_us(d, us, 0);
    if (gpu)
        b.front_end_us = FRONT_END_KERNEL_US * static_cast<double>(t.ops.size());
    return b;
}

static std::string line_of(const char *path, const std::string &head)
{
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);)
        if (line.compare(0, head.size(), head) == 0) {
            const size_t colon = line.find(": ");
            return colon == std::string::npos ? line : line.substr(colon + 2);
        }
    return "unknown";
}

static std::string quoted(const std::string &text)
{
    std::string all = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            all += '\\';
        if (static_cast<unsigned char>(c) >= 0x20)
            all += c;
    }
    return all + "\"";
}

/* Environment variables that runtimes read. */
static std::string variables()
{
    std::string all;
    for (char **e = environ; *e; e++)
        for (const char *head : {"ACS_", "OMP_", "GOMP_", "STARPU_", "CUDA_"})
            if (std::string(*e).compare(0, strlen(head), head) == 0)
                all += (all.empty() ? "" : " ") + std::string(*e);
    return all;
}

struct gpu_facts {
    std::string name = "none", driver = "none";
    int sms = 0, driver_cuda = 0, runtime = 0;
};

static gpu_facts gpu_of(bool gpu)
{
    gpu_facts g;
#if BENCH_CUDA
    cudaDeviceProp p;
    if (gpu && cudaGetDeviceProperties(&p, 0) == cudaSuccess) {
        g.name = p.name;
        g.sms = p.multiProcessorCount;
        (void)cudaDriverGetVersion(&g.driver_cuda);
        (void)cudaRuntimeGetVersion(&g.runtime);
        /* "NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..." */
        std::istringstream words(line_of("/proc/driver/nvidia/version", "NVRM version"));
        for (std::string word; g.driver == "none" && words >> word;)
            if (isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
                g.driver = word;
    }
#endif
    (void)gpu;
    return g;
}

std::string machine_line(bool gpu)
{
    const gpu_facts g = gpu_of(gpu);
    return line_of("/proc/cpuinfo", "model name") + ", " + std::to_string(std::thread::hardware_concurrency()) +
           " CPUs" + (gpu ? "; " + g.name + ", driver " + g.driver : "");
}

result_file::result_file(const std::string &path, const char *program, const std::string &command, bool gpu)
{
    if (path.empty())
        return;
    file_ = fopen(path.c_str(), "w");
    require(file_ != nullptr, ("cannot write " + path).c_str());
    const gpu_facts g = gpu_of(gpu);
    const time_t now = time(nullptr);
    char date[32];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    const char *const commit = getenv("BENCH_COMMIT");
    fprintf(file_, "{\"program\": %s, \"command\": %s, \"date\": \"%s\", \"commit\": %s,\n", quoted(program).c_str(),
            quoted(command).c_str(), date, quoted(commit ? commit : "unknown").c_str());
    fprintf(file_,
            " \"machine\": {\"cpu\": %s, \"cpus\": %u, \"gpu\": %s, \"sms\": %d, \"driver\": %s, \"driver_cuda\": %d, "
            "\"runtime_cuda\": %d, \"options\": %s},\n \"rows\": [",
            quoted(line_of("/proc/cpuinfo", "model name")).c_str(), std::thread::hardware_concurrency(),
            quoted(g.name).c_str(), g.sms, quoted(g.driver).c_str(), g.driver_cuda, g.runtime,
            quoted(variables()).c_str());
    fputs("]}\n", file_);
    fflush(file_);
}

result_file::~result_file()
{
    if (file_ && fclose(file_) != 0)
        fprintf(stderr, "bench: the result file could not be written to its end\n");
}

static void print_fields(FILE *f, const std::vector<field> &fields)
{
    for (size_t k = 0; k < fields.size(); k++) {
        const field &v = fields[k];
        if (v.is_text)
            fprintf(f, "%s\"%s\": %s", k ? ", " : "", v.name, quoted(v.text).c_str());
        else
            fprintf(f, "%s\"%s\": %.10g", k ? ", " : "", v.name, std::isfinite(v.number) ? v.number : -1);
    }
}

static void print_times(FILE *f, const char *name, const std::vector<double> &times_us)
{
    fprintf(f, ", \"%s\": [", name);
    for (size_t k = 0; k < times_us.size(); k++)
        fprintf(f, "%s%.2f", k ? ", " : "", times_us[k]);
    fputs("]", f);
}

void result_file::row(const std::vector<field> &fields, const std::vector<entry> &runners)
{
    if (!file_)
        return;
    fseek(file_, -3, SEEK_CUR); /* over what ends the file */
    fputs(first_ ? "\n  {" : ",\n  {", file_);
    first_ = false;
    print_fields(file_, fields);
    fputs(", \"runners\": [", file_);
    for (size_t k = 0; k < runners.size(); k++) {
        fputs(k ? ",\n    {" : "\n    {", file_);
        print_fields(file_, runners[k].fields);
        for (const auto &t : runners[k].times_us)
            print_times(file_, t.first, t.second);
        fputs("}", file_);
    }
    fputs("]}]}\n", file_);
    fflush(file_);
}

void result_file::row(const std::vector<field> &fields, const std::vector<outcome> &outcomes)
{
    std::vector<entry> runners;
    for (const outcome &o : outcomes) {
        std::vector<double> total_us, submit_us;
        for (const sample &s : o.samples) {
            total_us.push_back(s.total_us);
            submit_us.push_back(s.submit_us);
        }
        runners.push_back({{{"name", o.kind->name},
                            {"setting", o.setting},
                            {"note", o.note},
                            {"left_out", o.left_out},
                            {"wrong", o.wrong}},
                           {{"total_us", total_us}, {"submit_us", submit_us}}});
    }
    row(fields, runners);
}

} // namespace bench
