/*
 * A global queue of requests, first in, first out, of which some are in flight at once (ConCo, section 4.5).
 */
#ifndef VARIANTS_SERVE_H
#define VARIANTS_SERVE_H

#include <vector>

#include "session.h"

namespace variants {

/** The models of a mix in equal proportion, `most` requests in flight, each on an instance of its own. */
struct mix {
    std::vector<network *> networks; /* with `most` instances each */
    unsigned most;
    unsigned slots() const { return most * static_cast<unsigned>(networks.size()); }
};

struct served {
    double per_second;
    std::vector<double> latency_us; /* from a request's first launch until it was seen to have ended */
};

/** Serves `requests`. @param plans  one for each network */
served serve(const mix &m, issuer &by, const std::vector<plan> &plans, size_t requests);

} // namespace variants

#endif
