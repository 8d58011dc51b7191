/*
 * Processes of this program's own file that are told what to do, a line each, and answer with a line.
 */
#ifndef BENCH_MIX_CROWD_H
#define BENCH_MIX_CROWD_H

#include <string>
#include <vector>

#include <sys/types.h>

namespace bench {

class crowd {
public:
    /** Starts one for each list of arguments; ends the program where it cannot. */
    explicit crowd(const std::vector<std::vector<std::string>> &arguments);
    ~crowd();
    crowd(const crowd &) = delete;
    crowd &operator=(const crowd &) = delete;

    size_t size() const { return members_.size(); }
    /** Asks one that has answered all before. */
    void tell(size_t who, const std::string &line);
    /** Waits for an answer of any that were asked. @return whose; one that ended answers "wrong ..." */
    size_t hear(std::string &line);
    /** Asks all the same, so many at most at a time, and waits for all. @return their answers. */
    std::vector<std::string> ask_all(const std::string &line, size_t at_once);
    /** Lets all end, and waits for that. @return empty, or who ended badly. */
    std::string end();

private:
    struct member {
        pid_t process;
        int to, from;
        bool asked;
        std::string heard; /* not a whole line yet */
    };
    void start(const std::vector<std::string> &arguments);
    bool take_line(member &m, std::string &line);

    std::vector<member> members_;
};

} // namespace bench

#endif
