/*
 * Simulated annealing over settings of a mix (ConCo, section 3.5: 10^2n settings of code version and share for n models).
 * Pure: the caller runs the mix. Defined in anneal.c.
 */
#ifndef ACS_ANNEAL_H
#define ACS_ANNEAL_H

#include "variants/profile.h"

typedef struct acs_anneal {
    uint32_t count;   /* models */
    uint32_t runs;    /* most runs of the mix */
    bool fit_fixed;   /* `fit` stays 100 */
    uint64_t seed;
    /* Run the mix with settings: requests per second; 0 or less: stop. */
    double (*run)(void *user, const acs_mix_setting *settings);
    void *user;
} acs_anneal;

/*
 * Find settings with a high throughput, which is that of the last of several runs with them. 0: the first run failed. `best`
 * has the best settings so far also if a run stopped the search; then *stopped is true.
 */
double acs_anneal_run(const acs_anneal *anneal, acs_mix_setting *best, bool *stopped);

#endif
