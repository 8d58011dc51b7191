/*
 * A context of ACS to be measured, opened alike by all programs.
 */
#ifndef BENCH_ACS_CONTEXT_H
#define BENCH_ACS_CONTEXT_H

#include <string>
#include <vector>

#include "acs.h"
#include "runner.h"

namespace bench {

/** "what: why", of this thread's latest error of ACS. */
std::string acs_error_text(const char *what);

/**
 * The defaults and the environment, for that machine; ACS_BACKEND=sim has the simulator in place of the CPU. Then a
 * context with them. Both end the program where they fail.
 */
acs_options acs_options_for(const machine &m);
acs_context *acs_open_for(const machine &m, acs_options &options);

/** Executors of the program's kernels, for runners that use them; then those of a context. */
void acs_use_executor(const acs_executor_params *executor);
void acs_add_executors(acs_context *context);

/** Where footprints of kernels by acs-scan are found, by the kernel's name; NULL: it has none. */
typedef acs_footprint (*scanned_footprints)(const char *kernel);
/** The program has such footprints. */
void acs_use_scanned(scanned_footprints find);
/** The memory of the program that comes, which such a context gets to know; it stays until another one's. */
void acs_use_memory(const memory &m);
void acs_register_memory(acs_context *context);
/** Declares those of a program's kernels. @return empty, or why not. */
std::string acs_declare_scanned(const std::vector<op> &ops);

/** Queues a kernel by its declared footprint. @return 0 with acs_last_error(). */
acs_op acs_launch_declared(acs_context *context, const op &o);
/** Queues a kernel; `argument_type`: of its one struct, see acs_arg. @return 0 with acs_last_error(). */
acs_op acs_launch_kernel(acs_context *context, const op &o, uint32_t argument_type = ACS_ARG_VALUE);

/** Queues a kernel, as above, a copy or a fill. */
acs_op acs_queue(acs_context *context, const op &o, uint32_t argument_type);

} // namespace bench

#endif
