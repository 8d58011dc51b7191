/*
 * The links between CUDA devices, measured.
 */
#ifndef ACS_CUDA_TOPOLOGY_H
#define ACS_CUDA_TOPOLOGY_H

#include "devices/topology.h"

/*
 * Fill the links of t->count devices, CUDA's device numbers of which are given. Peer access between them is enabled
 * where it can be. ACS_ERR_DEVICE: a call failed, which; ACS_ERR_CHECK: figures that cannot be, three times.
 */
acs_status acs_cuda_topology_measure(acs_topology *topology, const int *devices);

#endif
