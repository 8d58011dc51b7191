/*
 * How a context shares its device with other programs: the ledger (ACS_LEDGER), asked whenever its pools grow, and waited
 * for by groups. Private to src/runtime.
 */
#ifndef ACS_ADMISSION_H
#define ACS_ADMISSION_H

#include "runtime/context.h"

/* Before the pools are made: join the ledger, if options say so. ACS_ERR_OPTION, ACS_ERR_STATE, ACS_ERR_DEVICE. */
acs_status acs_admission_open(acs_context *context);
/* Behind the pools' end: what they had is others'. */
void acs_admission_close(acs_context *context);
/* Let the pools ask. */
void acs_admission_config(acs_context *context, acs_memory_config *config);

/*
 * Wait until so many bytes may be taken from the device, beyond what the context has in use; then acs_admission_end, whether
 * they were taken or not. Nothing else is waited for: ops go on meanwhile. ACS_ERR_MEMORY: they never will be there.
 */
acs_status acs_admission_wait(acs_context *context, uint64_t bytes);
void acs_admission_end(acs_context *context);
/* Nothing is to be done just now: what lies idle in the pools is others'. */
void acs_admission_idle(acs_context *context);

#endif
