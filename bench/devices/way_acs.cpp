/*
 * Runs a task through ACS on several devices, op by op in program order. Inputs are copied into lazy blocks by the
 * program, or lie in pinned blocks that it shares with the devices, as arrays do in GrCUDA. Called by the measuring
 * loop; uses the public interface only.
 */
#include "ways.h"

#include <cstring>

#include "acs_context.h"

namespace bench {

namespace {

class acs_way : public devices_way {
public:
    acs_way(const machine &m, const task &t, unsigned devices, int policy, bool copies) : copies_(copies)
    {
        acs_options o = acs_options_for(m);
        o.devices = devices;
        o.policy = policy;
        o.pool = ACS_POOL_ON;
        context_ = acs_open_for(m, o);
        for (size_t b = 0; b < t.blocks().size(); b++) {
            shared_.push_back(shared(t, b));
            make(t.blocks()[b], shared_[b]);
        }
        for (unsigned d = 0; d < devices; d++) {
            awake_.push_back(nullptr);
            require(acs_on(context_, static_cast<int>(d)) == ACS_OK, "acs_on");
            require(acs_malloc(context_, 16, ACS_MEMORY_DEVICE, &awake_[d]) == ACS_OK, "acs_malloc");
        }
        require(acs_on(context_, ACS_ANY_DEVICE) == ACS_OK, "acs_on");
        void *staging = nullptr;
        require(acs_malloc(context_, READ_BYTES, ACS_MEMORY_HOST, &staging) == ACS_OK, "acs_malloc");
        staging_ = staging;
    }
    ~acs_way() override { (void)acs_close(context_); }
    acs_way(const acs_way &) = delete;
    acs_way &operator=(const acs_way &) = delete;

    void ready() override
    {
        for (int d = 0; d < acs_devices(context_); d++) {
            need(acs_on(context_, d) == ACS_OK, "acs_on");
            need(acs_memset(context_, awake_[static_cast<size_t>(d)], 0, 16) != 0, "acs_memset");
        }
        need(acs_on(context_, ACS_ANY_DEVICE) == ACS_OK && acs_sync(context_) == ACS_OK, "acs_sync");
    }

    void submit(task &t) override
    {
        failure_.clear();
        before_ = statistics().transfer_bytes;
        own_copies_ = 0;
        for (size_t b = 0; b < places_.size(); b++)
            begin(t.blocks()[b], shared_[b], places_[b]);
        for (size_t k = 0; k < t.kernels(); k++) {
            launch(t, k);
            for (size_t b = 0; b < places_.size(); b++)
                if (t.blocks()[b].out && t.blocks()[b].last == k) {
                    own_copies_ += t.blocks()[b].bytes;
                    need(acs_memcpy(context_, t.blocks()[b].out, places_[b], t.blocks()[b].bytes) != 0, "acs_memcpy");
                }
        }
    }

    std::string finish() override
    {
        need(acs_sync(context_) == ACS_OK, "acs_sync");
        copied_ = statistics().transfer_bytes - before_ + own_copies_;
        return failure_;
    }

    uint64_t copied() override { return copied_; }

private:
    void need(bool ok, const char *what)
    {
        if (!ok && failure_.empty())
            failure_ = acs_error_text(what);
    }

    /* An input that nobody writes: of others the program would have to write the first contents anew. */
    bool shared(const task &t, size_t b) const
    {
        bool written = !t.blocks()[b].in || copies_;
        for (size_t k = 0; k < t.kernels() && !written; k++)
            for (const task_part &part : t.parts(k))
                written = written || (part.block == b && part.writes);
        return !written;
    }

    void make(const task_block &b, bool shared)
    {
        void *place = nullptr;
        const int kind = shared ? ACS_MEMORY_HOST | ACS_RELOCATABLE : ACS_MEMORY_DEVICE | ACS_LAZY;
        require(acs_malloc(context_, b.bytes, kind, &place) == ACS_OK, acs_error_text("acs_malloc").c_str());
        if (shared)
            memcpy(place, b.in, b.bytes);
        places_.push_back(place);
    }

    /* What is shared is the program's since acs_sync, as if it had written it anew: nothing of it is on a device. */
    void begin(const task_block &b, bool shared, void *place)
    {
        if (b.in && !shared) {
            own_copies_ += b.bytes;
            need(acs_memcpy(context_, place, b.in, b.bytes) != 0, "acs_memcpy");
        } else if (!b.in && b.zero) {
            need(acs_memset(context_, place, 0, b.bytes) != 0, "acs_memset");
        }
    }

    void launch(task &t, size_t k)
    {
        const op &o = t.kernel(k, places_);
        if (o.kind == OP_READ) {
            const acs_op copy = acs_memcpy(context_, staging_, o.from, o.bytes);
            need(copy && acs_wait(context_, copy) == ACS_OK, "a read");
        } else {
            need(acs_queue(context_, o, t.argument_type(k)) != 0, op_name(o));
        }
    }

    acs_statistics statistics() const
    {
        acs_statistics s = {};
        s.size = sizeof s;
        require(acs_stats(context_, &s) == ACS_OK, acs_error_text("acs_stats").c_str());
        return s;
    }

    const bool copies_;
    acs_context *context_ = nullptr;
    std::vector<void *> places_;
    std::vector<bool> shared_;
    std::vector<void *> awake_; /* of each device */
    void *staging_ = nullptr;
    uint64_t own_copies_ = 0, copied_ = 0, before_ = 0;
    std::string failure_;
};

} // namespace

std::unique_ptr<devices_way> make_acs_way(const machine &m, const task &t, unsigned devices, int policy, bool copies)
{
    return std::unique_ptr<devices_way>(new acs_way(m, t, devices, policy, copies));
}

} // namespace bench
