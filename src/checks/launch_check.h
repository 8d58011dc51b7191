/*
 * ACS_CHECK=writes, reads and all: find what the footprint of a kernel leaves out. Private to src/checks and
 * src/library.
 */
#ifndef ACS_LAUNCH_CHECK_H
#define ACS_LAUNCH_CHECK_H

#include "api/context.h"

struct acs_draft;

/* acs_open with one of these options; acs_close. ACS_ERR_MEMORY. */
acs_status acs_checks_open(acs_context *context);
void acs_checks_close(acs_context *context);
/* acs_clear: what is found from now on is told again. */
void acs_checks_clear(acs_context *context);

/*
 * acs_launch alone, after all ops before it and before all behind it: it returns when the kernel has ended and was looked
 * at. With ACS_CHECK=reads and all the kernel runs some times more, with its own arguments, and memory is as the first
 * time has left it at last. Launches are not checked that may not wait, are held or captured, or may write any memory.
 */
acs_op acs_check_launch(acs_context *context, const acs_launch_params *params);

/*
 * The same for a host function or a library call, which runs once: only what it writes is looked at. `begin`: before its
 * draft enters the FIFO. `end`: behind that; waits for it. `drop`: the draft is dropped instead.
 */
void acs_check_op_begin(struct acs_draft *draft);
void acs_check_op_end(struct acs_draft *draft, acs_op op);
void acs_check_op_drop(struct acs_draft *draft);
/* The largest range of acs_check_register in which the address lies. False: there is none. */
bool acs_checks_registered(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes);

#endif
