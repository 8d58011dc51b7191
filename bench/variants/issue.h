/*
 * Who issues operations: ACS, or plain CUDA with a stream for each instance.
 */
#ifndef VARIANTS_ISSUE_H
#define VARIANTS_ISSUE_H

#include <memory>
#include <vector>

#include "operators.h"

namespace variants {

/** What each operation of a list gets; which of the two counts depends on the issuer. */
struct plan {
    std::vector<acs_attributes> attributes; /* by ACS */
    std::vector<unsigned> numbers;          /* the version, by plain CUDA */
};

class issuer {
public:
    virtual ~issuer() = default;
    /** Issues operations [first, first + count) of a slot. A slot is an instance: its operations follow each other.
     *  @param marked  done() and wait() will ask for them */
    virtual void run(unsigned slot, const std::vector<operation> &ops, size_t first, size_t count, const plan &how,
                     bool marked) = 0;
    /** Whether all that run() marked for the slot has ended. */
    virtual bool done(unsigned slot) = 0;
    virtual void wait(unsigned slot) = 0;
    /** Waits for everything. Ends the program if anything failed. */
    virtual void drain() = 0;
};

/** @param context  stays open */
std::unique_ptr<issuer> issue_by_acs(acs_context *context, unsigned slots);
std::unique_ptr<issuer> issue_by_streams(unsigned slots);

} // namespace variants

#endif
