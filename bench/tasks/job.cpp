/*
 * Owns a job's buffers for what comes out. Called by the program between runs, and by ways during one.
 */
#include "job.h"

namespace bench {

job::job(const task &t) : task_(t)
{
    for (const task_block &b : t.blocks())
        outs_.push_back(b.right.empty() ? nullptr : static_cast<char *>(pinned_allocate(t.gpu(), b.bytes)));
}

job::~job()
{
    for (char *out : outs_)
        if (out)
            pinned_release(task_.gpu(), out);
}

uint64_t job::bytes_in() const
{
    uint64_t bytes = 0;
    for (const task_block &b : task_.blocks())
        bytes += b.in ? b.bytes : 0;
    return bytes;
}

uint64_t job::bytes_out() const
{
    uint64_t bytes = 0;
    for (const task_block &b : task_.blocks())
        bytes += b.right.empty() ? 0 : b.bytes;
    return bytes;
}

void job::reset()
{
    for (size_t b = 0; b < outs_.size(); b++)
        if (outs_[b])
            spoil(outs_[b], task_.blocks()[b].bytes);
}

bool job::is_right() const
{
    for (size_t b = 0; b < outs_.size(); b++)
        if (outs_[b] && !are_same(outs_[b], task_.blocks()[b].right.data(), task_.blocks()[b].bytes))
            return false;
    return true;
}

} // namespace bench
