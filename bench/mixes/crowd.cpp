/*
 * Owns the processes and the pipes to them. Called by the ways whose jobs are processes. A pipe that a process does not
 * answer on, because it ended, counts as an answer, so nobody waits for the dead.
 */
#include "crowd.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

namespace bench {

crowd::crowd(const std::vector<std::vector<std::string>> &arguments)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a process that ended is found by the missing answer */
    for (const std::vector<std::string> &words : arguments)
        start(words);
}

crowd::~crowd()
{
    (void)end();
}

void crowd::start(const std::vector<std::string> &arguments)
{
    int in[2], out[2];
    require(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "no more pipes for the processes that are jobs");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<char *> words;
    for (const std::string &word : arguments)
        words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    /* A GPU has only so many connections: with 32 for each of 16 processes, as one alone is given, some get no context. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
    pid_t process = 0;
    const int code = posix_spawn(&process, "/proc/self/exe", &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    require(code == 0, "a process that is a job cannot be started");
    members_.push_back({process, in[1], out[0], false, ""});
}

void crowd::tell(size_t who, const std::string &line)
{
    const std::string text = line + "\n"; /* less than a pipe holds */
    members_[who].asked = true;
    (void)!write(members_[who].to, text.data(), text.size());
}

/* Reads what is there. @return whether there is a whole line, or will be none. */
bool crowd::take_line(member &m, std::string &line)
{
    char bytes[512];
    const ssize_t count = read(m.from, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR)
        return false;
    if (count > 0)
        m.heard.append(bytes, static_cast<size_t>(count));
    const size_t at = m.heard.find('\n');
    if (at == std::string::npos && count > 0)
        return false;
    line = at == std::string::npos ? "wrong the process ended" : m.heard.substr(0, at);
    m.heard.erase(0, at == std::string::npos ? at : at + 1);
    return true;
}

size_t crowd::hear(std::string &line)
{
    for (;;) {
        std::vector<pollfd> list;
        for (const member &m : members_)
            list.push_back({m.asked ? m.from : -1, POLLIN, 0});
        const int ready = poll(list.data(), list.size(), -1);
        require(ready > 0 || errno == EINTR, "the processes that are jobs cannot be waited for");
        for (size_t k = 0; k < members_.size() && ready > 0; k++)
            if (list[k].revents && take_line(members_[k], line)) {
                members_[k].asked = false;
                return k;
            }
    }
}

std::vector<std::string> crowd::ask_all(const std::string &line, size_t at_once)
{
    std::vector<std::string> answers(members_.size());
    size_t next = 0;
    for (size_t heard = 0; heard < answers.size(); heard++) {
        for (; next < answers.size() && next - heard < at_once; next++)
            tell(next, line);
        std::string answer;
        const size_t who = hear(answer);
        answers[who] = answer;
    }
    return answers;
}

std::string crowd::end()
{
    std::string bad;
    for (const member &m : members_)
        (void)close(m.to); /* the end of what it reads is the end of it */
    for (size_t k = 0; k < members_.size(); k++) {
        int status = 0;
        (void)close(members_[k].from);
        while (waitpid(members_[k].process, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status != 0 && bad.empty())
            bad = "the process of job " + std::to_string(k) + " ended with " +
                  (WIFSIGNALED(status) ? std::string("signal ") + strsignal(WTERMSIG(status))
                                       : "status " + std::to_string(WEXITSTATUS(status)));
    }
    members_.clear();
    return bad;
}

} // namespace bench
