/* ACS_DOT: the graph of a context's ops for Graphviz, coloured by device. Private to src/debug. */
#ifndef ACS_DOT_H
#define ACS_DOT_H

#include "api/context.h"

/* Begin the file, if one is asked for. The core is open, and no op is in. ACS_ERR_OPTION: it cannot be written. */
acs_status acs_dot_open(acs_context *context);
/* Another hook is told of what the file is told of. False: there is no file. Under the core's lock. */
bool acs_dot_follow(acs_context *context, acs_trace_fn function, void *user);
/* End the file. No op is in, or will be told of. */
void acs_dot_close(acs_context *context);

#endif
