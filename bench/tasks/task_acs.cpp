/*
 * Owns the ways through ACS: the same calls in the same order, with blocks that have memory from begin to end, with half the
 * memory that they take, and as a group whose blocks are planned. Called by the measuring loop. Uses the public interface
 * only.
 */
#include "acs_context.h"
#include "task_way.h"

namespace bench {

namespace {

class acs_way : public task_way {
public:
    acs_way(const machine &m, bool grouped, unsigned slots, uint64_t limit)
        : grouped_(grouped), lazy_(grouped || limit), slots_(slots)
    {
        acs_options o = acs_options_for(m);
        o.memory_limit = static_cast<int64_t>(limit);
        context_ = acs_open_for(m, o);
    }
    ~acs_way() override { (void)acs_close(context_); }
    acs_way(const acs_way &) = delete;
    acs_way &operator=(const acs_way &) = delete;

    std::string run(task &t) override
    {
        std::vector<void *> places(t.blocks().size(), nullptr);
        failure_.clear();
        if (grouped_)
            need(acs_group_begin(context_, 0) == ACS_OK, "acs_group_begin");
        for (size_t b = 0; b < places.size(); b++)
            begin(t.blocks()[b], &places[b]);
        for (size_t k = 0; k < t.kernels(); k++)
            launch(t.kernel(k, places), t.argument_type(k));
        for (size_t b = 0; b < places.size(); b++)
            if (t.blocks()[b].out)
                need(acs_memcpy(context_, t.blocks()[b].out, places[b], t.blocks()[b].bytes) != 0, "acs_memcpy");
        for (void *place : places)
            need(acs_free(context_, place) != 0, "acs_free");
        if (grouped_)
            submit();
        need(acs_sync(context_) == ACS_OK, "acs_sync");
        return failure_;
    }

    uint64_t peak_bytes() override { return statistics().memory_peak; }
    uint64_t reserved_bytes() override { return statistics().memory_reserved; }
    uint64_t bound_bytes() override { return report_.memory_bound; }

private:
    void need(bool ok, const char *what)
    {
        if (!ok && failure_.empty())
            failure_ = acs_error_text(what);
    }

    void begin(const task_block &block, void **place)
    {
        const int kind = lazy_ ? ACS_MEMORY_DEVICE | ACS_LAZY : ACS_MEMORY_DEVICE;
        need(acs_malloc(context_, block.bytes, kind, place) == ACS_OK, "acs_malloc");
        if (block.in)
            need(acs_memcpy(context_, *place, block.in, block.bytes) != 0, "acs_memcpy");
        else if (block.zero)
            need(acs_memset(context_, *place, 0, block.bytes) != 0, "acs_memset");
    }

    void launch(const op &o, uint32_t argument_type) { need(acs_queue(context_, o, argument_type) != 0, op_name(o)); }

    void submit()
    {
        acs_group_params params = {};
        params.size = sizeof params;
        params.slots = slots_;
        report_ = {};
        report_.size = sizeof report_;
        need(acs_group_submit(context_, &params, &report_) == ACS_OK, "acs_group_submit");
    }

    acs_statistics statistics() const
    {
        acs_statistics s = {};
        s.size = sizeof s;
        require(acs_stats(context_, &s) == ACS_OK, acs_error_text("acs_stats").c_str());
        return s;
    }

    const bool grouped_, lazy_;
    const unsigned slots_;
    acs_context *context_ = nullptr;
    acs_group_report report_ = {};
    std::string failure_;
};

} // namespace

/* Half of what the blocks take, and a twentieth for what lies between them; as long as that is enough for each kernel. */
static std::unique_ptr<task_way> make_half(const machine &m, const task &t)
{
    const uint64_t limit = t.bytes() / 20 * 11 + (4u << 20);
    if (t.kernel_bytes() + (4u << 20) > limit)
        return nullptr;
    return std::unique_ptr<task_way>(new acs_way(m, false, 0, limit));
}

void add_acs_ways(std::vector<task_way_kind> &list, const std::vector<unsigned> &slots)
{
    list.push_back({"acs", "ACS, memory of all blocks from begin to end", [](const machine &m, const task &) {
                        return std::unique_ptr<task_way>(new acs_way(m, false, 0, 0));
                    }});
    list.push_back({"half", "ACS, half of that memory: blocks are spilled", make_half});
    for (unsigned n : slots) {
        const std::string name = n ? "group-" + std::to_string(n) : "group";
        const std::string about = n ? "a group, planned for " + std::to_string(n) + " slots"
                                    : "a group, memory shared where footprints alone allow it";
        list.push_back({name, about, [n](const machine &m, const task &) {
                            return std::unique_ptr<task_way>(new acs_way(m, true, n, 0));
                        }});
    }
}

} // namespace bench
