/*
 * The command line of a benchmark program: options with or without a value, refused with the usage text if they are not
 * as they must be.
 */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/** "a,b,c" in pieces; empty pieces are kept, so that they are refused. */
std::vector<std::string> split(const std::string &text, char at);

class arguments {
public:
    arguments(int argc, char **argv, const char *program, const std::string &usage);

    /** Goes to the next option; prints the usage and ends the program at --help. @return false behind the last one. */
    bool next();
    bool is(const char *name) const { return name == option_; }
    /** The option's value; each of these refuses a missing or a bad one. */
    std::string text();
    std::vector<std::string> list() { return split(text(), ','); }
    uint64_t number(uint64_t low, uint64_t high);
    double real(double low, double high);
    std::vector<double> reals(double low, double high);
    /** Ends the program with status 2: the option is unknown, or its value is wrong. */
    [[noreturn]] void refuse(const std::string &why) const { refuse_for(option_, why); }
    /** The same for an option that was read before. */
    [[noreturn]] void refuse_for(const std::string &option, const std::string &why) const;
    /** The whole command line, for results. */
    const std::string &command() const { return command_; }

private:
    const std::string program_, usage_;
    std::vector<std::string> words_;
    std::string command_, option_;
    size_t place_ = 0;
};

} // namespace bench

#endif
