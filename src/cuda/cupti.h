/*
 * When kernels, copies and graphs ran on the GPU, from CUPTI, the interface of NVIDIA's profilers. One for the process:
 * CUPTI has one client, and must start before CUDA does. The library of CUPTI is opened at run time.
 *
 * CUPTI tells when something ran by a number of its own, of the driver's call that launched it. While a thread has pushed a
 * number of ours (acs_cupti_push), its calls get that, too. acs_cupti_take brings the two together.
 */
#ifndef ACS_CUPTI_H
#define ACS_CUPTI_H

#include "cuda/driver.h"

#include "scheduler/backend.h"

typedef enum acs_cupti_detail {
    ACS_CUPTI_OFF,
    ACS_CUPTI_GRAPHS, /* single kernels, copies, and graphs as wholes; physics takes 1.05 times as long */
    ACS_CUPTI_KERNELS /* the kernels of graphs, too; programs of short kernels take two to three times as long */
} acs_cupti_detail;

/* What a context with these options asks for. */
acs_cupti_detail acs_cupti_wanted(const acs_options *options);
/*
 * Start with what the options want, if it has not been tried. Before the first CUDA call of the process: later it is
 * refused, since CUPTI crashes at the launch of a graph that is older than it. NULL: it has started with what the options
 * want. Else the reason, in static storage. With ACS_TRACE_TIMES=auto any detail will do.
 */
const char *acs_cupti_start(const acs_options *options);
/* The detail with which it has started. */
acs_cupti_detail acs_cupti_started(void);

/* The driver's calls of this thread launch an op of a backend, until the pop. They nest. Only once it has started. */
void acs_cupti_push(uint64_t backend, acs_op op);
void acs_cupti_pop(void);
/* In the launch with the op's number, this node of the graph is another op. ACS_CUPTI_KERNELS only. */
void acs_cupti_node(uint64_t backend, acs_op launch, CUgraphNode node, acs_op op);

/* What ran of a backend, by number of op; nothing of it runs any more. The caller frees the list. ACS_ERR_MEMORY. */
acs_status acs_cupti_take(uint64_t backend, acs_device_times *times);

#endif
