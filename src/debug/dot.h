/* ACS_DOT: the graph of a context's ops for Graphviz, coloured by device. Private to src/debug and src/library. */
#ifndef ACS_DOT_H
#define ACS_DOT_H

#include "api/context.h"

/*
 * Begin the file, if one is asked for. The core is open, and holds no op. ACS_ERR_OPTION: the file cannot be written.
 */
acs_status acs_dot_open(acs_context *context);
/* End the file. No op is left, and no event will come. */
void acs_dot_close(acs_context *context);

#endif
