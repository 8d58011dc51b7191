/* ACS_LOG=debug: a line when an op enters the window, is issued and ends. Private to src/debug and src/library. */
#ifndef ACS_OP_LOG_H
#define ACS_OP_LOG_H

#include "api/context.h"

/* Follow the context's ops, if its log has the level debug. The core is open, and holds no op. */
void acs_op_log_open(acs_context *context);

#endif
