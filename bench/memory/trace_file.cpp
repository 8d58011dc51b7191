/*
 * Owns the form of recorded traces: CSV, one line per call, read as strictly as it is written. Called by the program before
 * anything is measured, and by tests. Prints nothing; whoever calls says what is wrong.
 */
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "allocation_trace.h"

namespace bench {

namespace {

const char HEADER[] = "event,block,bytes,memory,op,file,line";
const size_t FIELDS = 7;
/* More than any device has, and few enough for sums not to overflow. */
const uint64_t MOST_BYTES = uint64_t{1} << 48;

std::string not_read(const std::string &what, const char *needed)
{
    return "'" + what.substr(0, 40) + "' is not " + needed;
}

bool parse_number(const std::string &word, uint64_t *value)
{
    char *end = nullptr;
    errno = 0;
    if (word.empty() || word[0] < '0' || word[0] > '9')
        return false;
    *value = strtoull(word.c_str(), &end, 10);
    return *end == 0 && errno == 0;
}

/* The first four fields, which are all that is looked at; a file's name may have commas of its own. */
bool split_fields(const std::string &line, std::string (&fields)[4], size_t *count)
{
    size_t first = 0;
    for (*count = 0;; ++*count) {
        const size_t comma = line.find(',', first);
        if (*count < 4)
            fields[*count] = line.substr(first, comma == std::string::npos ? comma : comma - first);
        if (comma == std::string::npos)
            return ++*count >= FIELDS;
        first = comma + 1;
    }
}

class reader {
public:
    /* @return empty, or what is wrong with the line. */
    std::string take(const std::string &line)
    {
        std::string fields[4];
        size_t count = 0;
        uint64_t number = 0, bytes = 0;

        if (!split_fields(line, fields, &count))
            return "has " + std::to_string(count) + " fields; needed are " + HEADER;
        if (fields[0] != "malloc" && fields[0] != "free")
            return not_read(fields[0], "an event: malloc or free");
        if (!parse_number(fields[1], &number))
            return not_read(fields[1], "the number of a block");
        if (!parse_number(fields[2], &bytes) || bytes > MOST_BYTES)
            return not_read(fields[2], "a number of bytes up to 2^48");
        if (fields[3] != "device" && fields[3] != "host")
            return not_read(fields[3], "a kind of memory: device or host");
        return fields[0] == "malloc" ? take_malloc(number, bytes, fields[3]) : take_free(number, fields[3]);
    }

    allocation_trace finish(const std::string &name)
    {
        size_t left = 0;
        for (uint32_t block = 0; block < live_.size(); block++)
            if (live_[block]) {
                trace_.add_free(block);
                left++;
            }
        trace_.name = name;
        if (left)
            trace_.note = "never freed in the log, so freed at the end: " + std::to_string(left);
        if (host_)
            trace_.note += (trace_.note.empty() ? "" : "; ") + std::string("of host memory, so left out: ") +
                           std::to_string(host_);
        return std::move(trace_);
    }

private:
    struct open_block {
        bool host;
        uint32_t block;
    };

    std::string take_malloc(uint64_t number, uint64_t bytes, const std::string &memory)
    {
        if (bytes == 0)
            return "block " + std::to_string(number) + " has 0 bytes";
        if (open_.count(number))
            return "block " + std::to_string(number) + " is there already, and was not freed";
        const bool host = memory == "host";
        open_[number] = {host, host ? 0 : trace_.add_malloc(bytes)};
        host_ += host;
        if (!host)
            live_.push_back(true);
        return "";
    }

    std::string take_free(uint64_t number, const std::string &memory)
    {
        const auto found = open_.find(number);
        if (found == open_.end())
            return "block " + std::to_string(number) + " is freed, and is not there";
        if (found->second.host != (memory == "host"))
            return "block " + std::to_string(number) + " is not of " + memory + " memory";
        if (!found->second.host) {
            trace_.add_free(found->second.block);
            live_[found->second.block] = false;
        }
        open_.erase(found);
        return "";
    }

    allocation_trace trace_;
    std::vector<bool> live_;                           /* by block */
    std::unordered_map<uint64_t, open_block> open_; /* by the log's number, which may come again after its free */
    size_t host_ = 0;
};

void strip_return(std::string &line)
{
    if (!line.empty() && line.back() == '\r')
        line.pop_back();
}

} // namespace

std::string read_trace(const std::string &path, allocation_trace *t)
{
    std::ifstream in(path);
    if (!in)
        return path + ": cannot be read: " + strerror(errno);
    reader r;
    std::string line;
    size_t number = 1;

    if (!std::getline(in, line))
        return in.bad() ? path + ": cannot be read" : path + ":1: is empty; the header " + HEADER + " is needed";
    strip_return(line);
    if (line != HEADER)
        return path + ":1: " + not_read(line, "the header ") + HEADER;
    while (std::getline(in, line)) {
        number++;
        strip_return(line);
        const std::string wrong = r.take(line);
        if (!wrong.empty())
            return path + ":" + std::to_string(number) + ": " + wrong;
    }
    if (in.bad())
        return path + ":" + std::to_string(number) + ": cannot be read to its end";
    const size_t slash = path.find_last_of('/');
    allocation_trace found = r.finish(slash == std::string::npos ? path : path.substr(slash + 1));
    if (found.pairs() == 0)
        return path + ":" + std::to_string(number) + ": the log ends without a block of device memory";
    *t = std::move(found);
    return "";
}

std::string write_trace(const std::string &path, const allocation_trace &t)
{
    std::ofstream out(path);
    if (!out)
        return path + ": cannot be written: " + strerror(errno);
    out << HEADER << '\n';
    size_t op = 0;
    for (const allocation_event &e : t.events)
        out << (e.is_malloc ? "malloc," : "free,") << e.block << ',' << t.bytes[e.block] << ",device," << ++op << ','
            << t.name << ",0\n";
    out.close();
    return out ? "" : path + ": cannot be written to its end";
}

} // namespace bench
