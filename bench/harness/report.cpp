/*
 * Owns the form of result files. Called by the benchmark programs between measurements; measures nothing itself.
 */
#include "report.h"

#include "progress.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include <unistd.h>

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

static const char GO_ON[] = " --go-on", ROWS[] = " \"rows\": [", PARTIAL[] = "\n  {\"partial\": 1, ";
static const char INCOMPLETE[] = "], \"complete\": false}\n", COMPLETE[] = "], \"complete\": true}\n";

/* What a file begins with, up to its rows. */
static std::string head_of(const char *program, const std::string &command, bool gpu)
{
    const gpu_facts g = gpu_of(gpu);
    const time_t now = time(nullptr);
    char date[32];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    const char *const commit = getenv("BENCH_COMMIT");
    return "{\"program\": " + quoted(program) + ", \"command\": " + quoted(command) + ", \"date\": \"" + date +
           "\", \"commit\": " + quoted(commit ? commit : "unknown") + ",\n \"machine\": {\"cpu\": " +
           quoted(line_of("/proc/cpuinfo", "model name")) +
           ", \"cpus\": " + std::to_string(std::thread::hardware_concurrency()) + ", \"gpu\": " + quoted(g.name) +
           ", \"sms\": " + std::to_string(g.sms) + ", \"driver\": " + quoted(g.driver) +
           ", \"driver_cuda\": " + std::to_string(g.driver_cuda) + ", \"runtime_cuda\": " + std::to_string(g.runtime) +
           ", \"options\": " + quoted(variables()) + "},\n" + ROWS;
}

/* A head without the date and the commit. */
static std::string without_date(const std::string &head)
{
    const size_t date = head.find(", \"date\": "), machine = head.find("\n \"machine\": ");
    return machine == std::string::npos ? head : head.substr(0, date) + head.substr(machine);
}

result_file::result_file(const std::string &path, const char *program, const std::string &command, bool gpu)
{
    const size_t go_on = (command + " ").find(std::string(GO_ON) + " ");
    const bool goes_on = go_on != std::string::npos;
    std::string same = command;
    require(!goes_on || !path.empty(), "--go-on: --json says which file to go on with");
    if (path.empty())
        return;
    if (goes_on)
        same.erase(go_on, strlen(GO_ON));
    const std::string head = head_of(program, same, gpu);
    if (!goes_on || !keep(path, head)) {
        file_ = fopen(path.c_str(), "w");
        require(file_ != nullptr, ("cannot write " + path).c_str());
        fputs(head.c_str(), file_);
    }
    fputs(INCOMPLETE, file_);
    fflush(file_);
}

bool result_file::keep(const std::string &path, const std::string &head)
{
    std::ifstream in(path);
    std::stringstream all;
    if (!in)
        return false;
    all << in.rdbuf();
    const std::string text = all.str();
    const size_t rows = text.find(ROWS), begin = rows + strlen(ROWS);
    require(rows != std::string::npos && without_date(text.substr(0, begin)) == without_date(head),
            (path + " has results of another command or machine: --go-on needs the same").c_str());
    size_t end = text.rfind(INCOMPLETE), partial = text.find(PARTIAL);
    end = end == std::string::npos ? text.rfind(COMPLETE) : end;
    require(end != std::string::npos, (path + " has no end that can be gone on from").c_str());
    end = partial == std::string::npos ? end : partial;
    while (end > begin && (text[end - 1] == ',' || text[end - 1] == '\n'))
        end--; /* what is between two rows */
    kept_ = text.substr(begin, end - begin);
    first_ = kept_.empty();
    file_ = fopen(path.c_str(), "r+");
    require(file_ != nullptr && ftruncate(fileno(file_), static_cast<off_t>(end)) == 0 && fseek(file_, 0, SEEK_END) == 0,
            ("cannot write " + path).c_str());
    return true;
}

/* Says what the rows are. The end of an incomplete file is there already, and is the longer one. */
void result_file::end(bool complete)
{
    fseek(file_, -static_cast<long>(strlen(INCOMPLETE)), SEEK_END);
    fputs(complete ? COMPLETE : INCOMPLETE, file_);
    fflush(file_);
    if (complete && ftruncate(fileno(file_), ftell(file_)) != 0)
        fprintf(stderr, "bench: the result file could not be shortened\n");
}

result_file::~result_file()
{
    if (file_)
        end(!bench_interrupted());
    if (file_ && fclose(file_) != 0)
        fprintf(stderr, "bench: the result file could not be written to its end\n");
}

static std::string text_of(const std::vector<field> &fields)
{
    std::string text;
    for (size_t k = 0; k < fields.size(); k++) {
        const field &v = fields[k];
        char number[40];
        snprintf(number, sizeof number, "%.10g", std::isfinite(v.number) ? v.number : -1);
        text += (k ? ", \"" : "\"") + std::string(v.name) + "\": " + (v.is_text ? quoted(v.text) : number);
    }
    return text;
}

bool result_file::has(const std::vector<field> &first) const
{
    const std::string text = "\n  {" + text_of(first);
    for (size_t at = kept_.find(text); at != std::string::npos; at = kept_.find(text, at + 1))
        if (kept_.compare(at + text.size(), 2, ", ") == 0)
            return true;
    return false;
}

int end_of(const char *program, const std::string &json, bool right, const char *how)
{
    bench_progress_hide();
    if (!bench_interrupted())
        return right ? 0 : 1;
    if (json.empty())
        fprintf(stderr, "%s: interrupted; the tables above are what was measured\n", program);
    else
        fprintf(stderr, "%s: interrupted; %s has what was measured, and says that it is incomplete; go on with the same "
                "command and %s\n", program, json.c_str(), how);
    return BENCH_INTERRUPTED;
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
    fseek(file_, -static_cast<long>(strlen(INCOMPLETE)), SEEK_END); /* over what ends the file */
    fputs(first_ ? "" : ",", file_);
    fputs(bench_interrupted() ? PARTIAL : "\n  {", file_);
    first_ = false;
    fputs((text_of(fields) + ", \"runners\": [").c_str(), file_);
    for (size_t k = 0; k < runners.size(); k++) {
        fputs(((k ? ",\n    {" : "\n    {") + text_of(runners[k].fields)).c_str(), file_);
        for (const auto &t : runners[k].times_us)
            print_times(file_, t.first, t.second);
        fputs("}", file_);
    }
    fputs("]}", file_);
    fputs(INCOMPLETE, file_);
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
