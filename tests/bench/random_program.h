/*
 * A program of random ops over an array of words: kernels, copies, fills, library calls with scratch memory, and reads
 * whose values decide what follows. Every op mixes what it reads into what it writes, so that a wrong order shows.
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <cstdint>
#include <vector>

#include "program.h"

struct random_settings {
    uint64_t seed = 1;
    unsigned ops = 100;
    unsigned words = 128;     /* fewer: more dependencies */
    unsigned read_every = 0;  /* about; 0: no reads */
    unsigned call_every = 0;  /* about; 0: no library calls */
};

class random_program : public bench::program {
public:
    random_program(bench::memory &m, const random_settings &s);

    void run(bench::sink &s) override;
    std::string check() override { return ""; }

    /** The op of this number is left out, or takes one CTA more: for runs that are not as planned. -1: none. */
    int leave_out = -1, change = -1;

private:
    struct mix_step {
        unsigned kind, out, a, b, count;
        bool update;
        uint64_t salt;
        float us;
    };
    void send(bench::sink &s, const mix_step &step, unsigned number);
    void send_kernel(bench::sink &s, const mix_step &step, unsigned number);
    void send_call(bench::sink &s, const mix_step &step);

    std::vector<mix_step> steps_;
    uint64_t *words_;
    uint64_t decision_ = 0; /* mixed from all that was read so far */
};

/** Tell a pretended GPU about the kernels; library calls then issue them to their stream. */
void random_program_on_fake_gpu();
/** Places of library calls that were made and not destroyed. */
int random_program_places();

#endif
