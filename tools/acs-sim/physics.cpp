/*
 * Owns the physics sample as a program for the machine. Called through the list of programs. Every kernel takes the same
 * time: what Brax's take is in no text, so studies sweep it.
 */
#include "physics_record.h"
#include "programs.h"

namespace design {

program make_physics(const program_request &q, const std::string &name)
{
    const physics_request what = {physics_plan(name), static_cast<int>(q.scenes), static_cast<int>(q.worlds),
                                  static_cast<int>(q.env_steps), q.scene_order};
    const physics_recording taken = record_physics(what);
    std::vector<trace_wait> waits;
    bench::trace t;

    for (const physics_op &kept : taken.ops) {
        bench::op o = {};
        o.kind = kept.copy ? bench::OP_COPY : bench::OP_KERNEL;
        o.kernel = kept.kernel;
        o.grid = kept.grid;
        o.block = kept.block;
        o.from = kept.from;
        o.to = kept.to;
        o.bytes = kept.bytes;
        o.segments = kept.segments.data();
        o.segment_count = static_cast<uint32_t>(kept.segments.size());
        t.ops.push_back(o);
    }
    for (const physics_wait &w : taken.waits)
        waits.push_back({w.before, w.copy});
    const uint64_t ns = static_cast<uint64_t>((q.kernel_us < 0 ? 5 : q.kernel_us) * 1000);
    program p = from_trace(t, [ns](const bench::op &) { return ns; }, ACS_SIM_TO_HOST, waits);
    p.times = "given: every block takes as long";
    return p;
}

} // namespace design
