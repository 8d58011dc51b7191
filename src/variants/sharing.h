/*
 * Which versions are measured at which shares. Results at one share tell about others where they correlate (ConCo, section
 * 3.4: optimal code sharing, PPMCC), so most of them need not be taken. Pure: the caller measures. Defined in sharing.c.
 */
#ifndef ACS_SHARING_H
#define ACS_SHARING_H

#include "variants/profile.h"

typedef struct acs_sharing {
    uint32_t count;              /* versions; times of each are kept */
    acs_version_times *times;
    const bool *fits;            /* versions that can run */
    uint32_t percent;            /* correlation from which shares between two are measured for the best alone; 0: never */
    /* Measure a version at a step: stores the time. False: stop. */
    bool (*measure)(void *user, uint32_t version, uint32_t step);
    void *user;
} acs_sharing;

/*
 * Measure all that is missing: every version on the whole device and on its smallest share. Between two shares whose times
 * correlate, the best quarter of either; else the best third of either in the middle, and so on in both halves. False:
 * stopped.
 */
bool acs_sharing_run(const acs_sharing *sharing);
/* Correlation (PPMCC) of the versions' times at two steps, those of versions that lack one left out; 1 if fewer than 3. */
double acs_sharing_correlation(const acs_sharing *sharing, uint32_t a, uint32_t b);

#endif
