/* What programs with --lazy have beside others: short memory, hints, and accounts that have to come out even. */
#ifndef RANDOM_MOVING_H
#define RANDOM_MOVING_H

#include "program.h"

enum { MOVING_TIGHT_BYTES = 4096 }; /* of all blocks where memory is short, so that there are no gaps */

/* The least ACS_MEMORY_LIMIT with which no op may be refused. */
int64_t moving_least_memory(const program *p);
/* Now and then a launch says itself where it is to run, or does not wait, and is tried again; */
acs_op moving_launch(const random_config *config, acs_context *context, const step *s, acs_launch_params *launch);
/* or a thread says where for its ops from here on, and for what it allocates. */
void moving_hint(const random_config *config, acs_context *context, const step *s);
/* All blocks were freed: nothing is counted as in use any more. */
void moving_check(acs_context *context, verdict *v);

#endif
