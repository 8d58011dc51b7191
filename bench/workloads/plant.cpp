/*
 * Plants mistakes in the footprints of a program's launches (plant.h). The trace is run op by op: kernels by a context that
 * checks them, library calls and reads serially. Called by acs-workloads.
 */
#include "plant.h"

#include <vector>

#include "acs_context.h"
#include "dag.h"

namespace bench {

namespace {

enum mistake { DROPPED, SHORT, HALVED, SHIFTED, SWAPPED, PITCHED, MISTAKES };

const char *const mistake_names[MISTAKES] = {"dropped", "4 bytes short", "halved", "shifted by 4 bytes", "swapped",
                                             "with another pitch"};

/* A context that checks, and knows the program's memory. */
acs_context *open_checking(program &p, const machine &m)
{
    acs_options o = acs_options_for(m);
    o.check = ACS_CHECK_READS;
    acs_context *context = acs_open_for(m, o);
    for (const memory::block &b : p.mem().blocks())
        require(acs_check_register(context, b.p, b.bytes) == ACS_OK, acs_error_text("acs_check_register").c_str());
    return context;
}

bool applies(const acs_segment &s, mistake m)
{
    if (s.extent != ACS_EXTENT_BYTES || s.access == ACS_COMMUTE || s.rows * s.row_bytes < 16)
        return false;
    return m == PITCHED ? s.rows > 1 : m != HALVED || s.rows == 1;
}

/* Whether another segment names bytes near this one, so that a mistake in it may be none. */
bool is_covered(const op &o, uint32_t segment)
{
    const acs_segment &s = o.segments[segment];
    const uint64_t end = s.base + (s.rows - 1) * s.pitch_bytes + s.row_bytes;
    for (uint32_t i = 0; i < o.segment_count; i++) {
        const acs_segment &other = o.segments[i];
        const uint64_t other_end = other.base + (other.rows - 1) * other.pitch_bytes + other.row_bytes;
        if (i != segment && other.base < end + 8 && other_end + 8 > s.base)
            return true;
    }
    return false;
}

void plant(std::vector<acs_segment> &segments, uint32_t at, mistake m)
{
    acs_segment &s = segments[at];
    switch (m) {
    case DROPPED: segments.erase(segments.begin() + at); break;
    case SHORT: s.row_bytes -= 4; break;
    case HALVED: s.row_bytes /= 2; break;
    case SHIFTED: s.base += 4; break;
    case SWAPPED: s.access = static_cast<uint8_t>(s.access == ACS_WRITE ? ACS_READ : ACS_WRITE); break;
    case PITCHED: s.pitch_bytes += 16; break;
    case MISTAKES: break;
    }
}

/* Launch the kernel with these segments. @return whether something was reported of it. */
bool is_reported(acs_context *context, op o, const std::vector<acs_segment> &segments)
{
    o.segments = segments.data();
    o.segment_count = static_cast<uint32_t>(segments.size());
    require(acs_launch_kernel(context, o) != 0, acs_error_text("acs_launch").c_str());
    const acs_status status = acs_sync(context);
    require(status == ACS_OK || status == ACS_ERR_CHECK, acs_error_text("acs_sync").c_str());
    return acs_clear(context) == ACS_OK && status == ACS_ERR_CHECK;
}

/* Choose a mistake for the op by its number, so that all kinds occur. False: it can have none. */
bool choose(const op &o, uint32_t number, uint32_t *segment, mistake *m)
{
    for (uint32_t turn = 0; turn < o.segment_count * MISTAKES; turn++) {
        const uint32_t choice = (number * 7 + turn) % (o.segment_count * MISTAKES);
        *segment = choice / MISTAKES;
        *m = static_cast<mistake>(choice % MISTAKES);
        if (applies(o.segments[*segment], *m) && !is_covered(o, *segment))
            return true;
    }
    return false;
}

std::string name_of(const op &o, uint32_t number, const char *what, uint32_t segment)
{
    return std::string(op_name(o)) + " (op " + std::to_string(number + 1) + "): segment " + std::to_string(segment) + " " +
           what;
}

void run_right(program &p, const machine &m, const trace &t, planted &done)
{
    p.reset();
    acs_context *context = open_checking(p, m);
    for (uint32_t k = 0; k < t.ops.size(); k++) {
        const op &o = t.ops[k];
        if (o.kind != OP_KERNEL) {
            execute(p.mem(), o);
            continue;
        }
        done.right++;
        if (is_reported(context, o, {o.segments, o.segments + o.segment_count}))
            done.blamed.push_back(name_of(o, k, "is right", 0));
    }
    require(acs_close(context) == ACS_OK, "acs_close");
}

void run_wrong(program &p, const machine &m, const trace &t, planted &done)
{
    p.reset();
    acs_context *context = open_checking(p, m);
    for (uint32_t k = 0; k < t.ops.size(); k++) {
        const op &o = t.ops[k];
        uint32_t segment = 0;
        mistake what = MISTAKES;
        if (o.kind != OP_KERNEL || !choose(o, k, &segment, &what)) {
            execute(p.mem(), o);
            continue;
        }
        std::vector<acs_segment> segments(o.segments, o.segments + o.segment_count);
        plant(segments, segment, what);
        done.wrong++;
        if (is_reported(context, o, segments))
            done.found++;
        else
            done.missed.push_back(name_of(o, k, mistake_names[what], segment));
    }
    require(acs_close(context) == ACS_OK, "acs_close");
}

} // namespace

planted plant_mistakes(program &p, const machine &m)
{
    planted done;
    p.reset();
    const trace t = record(p);
    run_right(p, m, t, done);
    run_wrong(p, m, t, done);
    return done;
}

} // namespace bench
