/*
 * Which version of a kernel is best at which share of a device, by a problem's times; and which version is to be timed
 * next where times are missing. Pure functions over profile.h. Defined in choice.c.
 */
#ifndef ACS_CHOICE_H
#define ACS_CHOICE_H

#include "variants/profile.h"

/* Bring problem->at up to date with its times: the version with the least time at each share. */
void acs_choice_update(const acs_profile_kernel *kernel, acs_problem *problem);
/*
 * The version of the set that should be timed next at this step; false: each was timed often enough. `fits[i]`: the
 * kernel's version i is declared, and can run the problem.
 */
bool acs_choice_trial(const acs_profile_kernel *kernel, const acs_problem *problem, const bool *fits, uint32_t step,
                      uint32_t *version);
/* A launch of this version was timed at that step. */
void acs_choice_learn(acs_problem *problem, uint32_t version, uint32_t step, float us);

#endif
