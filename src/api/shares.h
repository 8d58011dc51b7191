/*
 * Shares of a device (shares.c, docs/variants.md): what a launch's share comes to. Called by launch.c on the caller's
 * thread.
 */
#ifndef ACS_API_SHARES_H
#define ACS_API_SHARES_H

#include "api/draft.h"

/*
 * Give a filled kernel record the share that the launch asks for, which is not 0. The record gets none, and that is counted,
 * where a device cannot be partitioned, in captures and in decided ops. ACS_ERR_ARGUMENT, through ACS_FAIL: no such share.
 */
acs_status acs_share_set(const acs_draft *draft, uint32_t percent);

#endif
