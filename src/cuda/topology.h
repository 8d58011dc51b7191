/*
 * Measurement of the links between CUDA devices.
 */
#ifndef ACS_CUDA_TOPOLOGY_H
#define ACS_CUDA_TOPOLOGY_H

#include "devices/topology.h"

/*
 * Measure the links of t->count devices, given by their CUDA numbers. Peer access between them is enabled where
 * possible. ACS_ERR_DEVICE: a CUDA call failed. ACS_ERR_CHECK: the figures were impossible three times.
 */
acs_status acs_cuda_topology_measure(acs_topology *topology, const int *devices);

#endif
