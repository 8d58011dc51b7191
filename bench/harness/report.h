/*
 * What a benchmark program writes: JSON for bench/report, with the machine that it ran on.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "measure.h"

namespace bench {

/** About the least that a run can take in µs, whoever issues it. */
struct bounds {
    double critical_us;  /* kernel times along the longest path */
    double work_us;      /* all kernel times, on as many CTAs as the device holds at once */
    double front_end_us; /* what the device's front end needs for so many kernels: docs/performance.md */
    double largest() const;
};

/** @param resident_ctas  how many CTAs, or on the CPU kernels, the machine holds at once; 0: not known, no work_us. */
bounds bounds_of(const trace &t, const dag &d, bool gpu, double resident_ctas);

/** A name and a number or a text, in a row of results. */
struct field {
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
    field(const char *n, T v) : name(n), number(static_cast<double>(v)), is_text(false)
    {
    }
    field(const char *n, const std::string &v) : name(n), number(0), text(v), is_text(true) {}
    const char *name;
    double number;
    std::string text;
    bool is_text;
};

/** One runner in a row of results: its name and whatever else is known of it, and times, one per repetition. */
struct entry {
    std::vector<field> fields;
    std::vector<std::pair<const char *, std::vector<double>>> times_us;
};

/**
 * One JSON file, written row by row so that a run that ends early leaves what it measured in a file that can be read. Then
 * "complete" is false in it, and a row that was under way begins with "partial".
 *
 * With --go-on in its command a program keeps the complete rows that the same command has left, and skips what they have.
 */
class result_file {
public:
    /**
     * `path` empty: nothing is written. Ends the program if the file cannot be made, or if it is to go on with the file of
     * another command or machine.
     */
    result_file(const std::string &path, const char *program, const std::string &command, bool gpu);
    ~result_file();
    result_file(const result_file &) = delete;
    result_file &operator=(const result_file &) = delete;

    /** Whether an earlier run left a complete row that begins with these fields. */
    bool has(const std::vector<field> &first) const;
    /** One program's fields, and how each runner did. */
    void row(const std::vector<field> &fields, const std::vector<outcome> &outcomes);
    /** The same for programs whose runners have other figures. */
    void row(const std::vector<field> &fields, const std::vector<entry> &runners);

private:
    /* Keeps what the file has, if `head` is that of the same command and machine. @return false: there is no file. */
    bool keep(const std::string &path, const std::string &head);
    void end(bool complete);

    FILE *file_ = nullptr;
    bool first_ = true;
    std::string kept_; /* the rows that were there */
};

/**
 * The exit status of a program at its end. After an interruption it says on standard error what is left, and how to go on:
 * `how` names the option.
 */
int end_of(const char *program, const std::string &json, bool right, const char *how = "--go-on");

/** One line: CPU, GPU, driver. */
std::string machine_line(bool gpu);

} // namespace bench

#endif
