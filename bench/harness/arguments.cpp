/*
 * Owns the reading of command lines. Called by the benchmark programs before anything else. Ends the program on a bad
 * one, before anything has run.
 */
#include "arguments.h"

#include <cstdio>
#include <cstdlib>

namespace bench {

std::vector<std::string> split(const std::string &text, char at)
{
    std::vector<std::string> pieces;
    size_t first = 0;
    for (size_t k = 0; k <= text.size(); k++)
        if (k == text.size() || text[k] == at) {
            pieces.push_back(text.substr(first, k - first));
            first = k + 1;
        }
    return pieces;
}

arguments::arguments(int argc, char **argv, const char *program, const std::string &usage)
    : program_(program), usage_(usage), words_(argv + 1, argv + argc), command_(program)
{
    for (const std::string &w : words_)
        command_ += " " + w;
}

bool arguments::next()
{
    if (place_ == words_.size())
        return false;
    option_ = words_[place_++];
    if (option_ == "--help") {
        fputs(usage_.c_str(), stdout);
        exit(0);
    }
    return true;
}

void arguments::refuse_for(const std::string &option, const std::string &why) const
{
    fprintf(stderr, "%s: %s: %s\n%s", program_.c_str(), option.c_str(), why.c_str(), usage_.c_str());
    exit(2);
}

std::string arguments::text()
{
    if (place_ == words_.size())
        refuse("needs a value");
    return words_[place_++];
}

static bool parse_real(const std::string &word, double low, double high, double *value)
{
    char *end = nullptr;
    *value = strtod(word.c_str(), &end);
    return !word.empty() && *end == 0 && *value >= low && *value <= high;
}

uint64_t arguments::number(uint64_t low, uint64_t high)
{
    const std::string word = text();
    char *end = nullptr;
    const unsigned long long n = strtoull(word.c_str(), &end, 10);
    if (word.empty() || word[0] < '0' || word[0] > '9' || *end || n < low || n > high)
        refuse("'" + word + "' is not a number from " + std::to_string(low) + " to " + std::to_string(high));
    return n;
}

double arguments::real(double low, double high)
{
    const std::string word = text();
    double value;
    if (!parse_real(word, low, high, &value))
        refuse("'" + word + "' is not a number from " + std::to_string(low) + " to " + std::to_string(high));
    return value;
}

std::vector<double> arguments::reals(double low, double high)
{
    std::vector<double> values;
    for (const std::string &word : list()) {
        double value;
        if (!parse_real(word, low, high, &value))
            refuse("'" + word + "' is not a number from " + std::to_string(low) + " to " + std::to_string(high));
        values.push_back(value);
    }
    return values;
}

} // namespace bench
