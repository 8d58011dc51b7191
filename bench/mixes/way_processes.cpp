/*
 * Owns the ways whose jobs are processes: one at a time on each device, as programs by hand, and all at once, which
 * share the devices' memory through ACS's ledger. Called by the measuring loop. Touches no GPU itself.
 */
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include "processes.h"

namespace bench {

namespace {

/* A job takes twice its memory to learn what it does, all on the first device. */
enum { PREPARED_AT_ONCE = 8 };

std::string of_job(size_t k, const std::string &why)
{
    return "job " + std::to_string(k) + ": " + why;
}

class process_way : public mix_way {
public:
    process_way(const mix_machine &m, crowd &c) : machine_(m), crowd_(c) {}

    std::string reset() override { return expect("reset", "ready"); }
    std::string check() override { return expect("check", "right"); }
    unsigned exhausted() const override { return exhausted_; }

protected:
    std::string expect(const char *question, const char *answer)
    {
        const std::vector<std::string> heard = crowd_.ask_all(question, crowd_.size());
        for (size_t k = 0; k < heard.size(); k++)
            if (heard[k] != answer)
                return of_job(k, heard[k]);
        return "";
    }

    void begin()
    {
        exhausted_ = 0;
        why_.clear();
    }

    /* Waits for a job's end. @return which one's. */
    size_t hear_end()
    {
        std::string line;
        const size_t who = crowd_.hear(line);
        const bool done = line.compare(0, 5, "done ") == 0, exhausted = done && line[5] == '1';
        exhausted_ += exhausted;
        if (why_.empty() && (!done || line.size() > 7))
            why_ = of_job(who, done ? line.substr(7) : line);
        return who;
    }

    const mix_machine machine_;
    crowd &crowd_;
    unsigned exhausted_ = 0;
    std::string why_;
};

class one_process_way : public process_way {
public:
    using process_way::process_way;

    std::string run() override
    {
        std::vector<unsigned> devices(crowd_.size(), 0); /* of each job */
        size_t next = 0;
        begin();
        for (; next < crowd_.size() && next < machine_.devices; next++)
            start(next, devices[next] = static_cast<unsigned>(next));
        for (size_t ended = 0; ended < crowd_.size(); ended++) {
            const size_t who = hear_end();
            if (next < crowd_.size()) {
                start(next, devices[next] = devices[who]);
                next++;
            }
        }
        return why_;
    }

private:
    void start(size_t k, unsigned device) { crowd_.tell(k, "hand " + std::to_string(device)); }
};

class ledger_way : public process_way {
public:
    using process_way::process_way;

    std::string run() override
    {
        begin();
        for (size_t k = 0; k < crowd_.size(); k++)
            crowd_.tell(k, "group");
        for (size_t ended = 0; ended < crowd_.size(); ended++)
            (void)hear_end();
        return why_;
    }
};

std::string ledger_name()
{
    return "acs-mixes-" + std::to_string(getpid());
}

} // namespace

std::string ledger_text(uint64_t limit)
{
    return "/" + ledger_name() + ":" + std::to_string(limit);
}

void remove_ledger()
{
    std::error_code code;
    for (const auto &entry : std::filesystem::directory_iterator("/dev/shm", code))
        if (entry.path().filename().string().compare(0, ledger_name().size() + 1, ledger_name() + "-") == 0)
            (void)std::filesystem::remove(entry.path(), code);
}

std::vector<std::string> child_arguments(const child_settings &s)
{
    char scale[32];
    snprintf(scale, sizeof scale, "%.17g", s.scale);
    std::vector<std::string> words = {"acs-mixes",  "--job",     s.task,
                                      "--scale",    scale,       "--ledger",
                                      s.ledger,     "--devices", std::to_string(s.devices),
                                      "--backend",  s.where.gpu ? "cuda" : "host"};
    if (s.check)
        words.push_back("--check");
    return words;
}

std::string prepare(crowd &c, mix_run &run, uint64_t &most)
{
    const std::vector<std::string> answers = c.ask_all("prepare", PREPARED_AT_ONCE);
    run.bytes = run.in = run.out = most = 0;
    for (size_t k = 0; k < answers.size(); k++) {
        std::istringstream words(answers[k]);
        std::string ready;
        uint64_t all = 0, in = 0, out = 0;
        if (!(words >> ready >> all >> in >> out) || ready != "ready")
            return of_job(k, answers[k]);
        run.bytes += all;
        run.in += in;
        run.out += out;
        most = std::max(most, all);
    }
    return "";
}

void add_process_ways(std::vector<mix_way_kind> &list, const mix_machine &m, crowd &c)
{
    list.push_back({"one-process", "by hand, one process at a time on each device: the paper's SA", 1,
                    [m, &c] { return std::unique_ptr<mix_way>(new one_process_way(m, c)); }});
    list.push_back({"ledger", "ACS, all processes at once, each a group that waits for memory: HuntKTm", 2.69,
                    [m, &c] { return std::unique_ptr<mix_way>(new ledger_way(m, c)); }});
}

} // namespace bench
