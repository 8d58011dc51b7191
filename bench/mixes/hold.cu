/*
 * Owns the kernel that keeps blocks in use: one before all others of a group and one behind them leave nothing to a
 * plan for memory, as HuntKT has none. Called for groups-none.
 */
#include <algorithm>

#include "acs_context.h"
#include "acs_dual.hpp"
#include "group.h"

namespace bench {

namespace {

enum { PLACES = 30 }; /* the words of a struct in which ACS_POINTER_AT can tell pointers */

struct hold_args {
    const void *places[PLACES];
    unsigned threads;
};

ACS_DUAL void hold_thread(const hold_args &, unsigned) {}

ACS_DUAL_KERNEL(hold, hold_args, 32)

} // namespace

bool launch_hold(acs_context *context, const std::vector<void *> &places, bool end)
{
    std::vector<acs_segment> uses;
    hold_args args = {};
    uint32_t type = ACS_ARG_POINTERS;
    op o = {};

    require(places.size() <= PLACES, "a job of groups-none has more blocks than one kernel can name");
    std::copy(places.begin(), places.end(), args.places);
    for (unsigned p = 0; p < places.size(); p++) {
        uses.push_back(end ? ACS_IN(places[p], 1) : ACS_INOUT(places[p], 1));
        type |= ACS_POINTER_AT(p);
    }
    args.threads = 1;
    o.kind = OP_KERNEL;
    o.kernel = &kernel_hold;
    o.grid = 1;
    o.block = 32;
    o.args = &args;
    o.arg_bytes = sizeof args;
    o.segments = uses.data();
    o.segment_count = static_cast<uint32_t>(uses.size());
    return acs_launch_kernel(context, o, type) != 0;
}

} // namespace bench
