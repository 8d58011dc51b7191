/*
 * Which devices there are, and what lies between each two of them and the host: bandwidth, latency, peer access. Measured
 * once for a set of devices, kept in a file, and read again whatever order the devices are in then (GrCUDA's multi-GPU
 * scheduler, section III-B3, keeps such a graph of bandwidths). Pure data and files: who measures is a backend.
 */
#ifndef ACS_DEVICES_TOPOLOGY_H
#define ACS_DEVICES_TOPOLOGY_H

#include "base/base.h"
#include "base/cache_file.h"

#include <stdio.h>

enum { ACS_DEVICE_ID_BYTES = 64, ACS_TOPOLOGY_PATH_BYTES = ACS_CACHE_PATH_BYTES };

/* From one place to another. */
typedef struct acs_route {
    double bandwidth; /* bytes per second of a large copy */
    double latency;   /* seconds of a small one, beside other work of the same kind */
    bool peer;        /* the devices reach each other's memory; else copies go through the host */
} acs_route;

typedef struct acs_topology {
    uint32_t count;                                             /* devices; the host is place number `count` */
    bool shared;                                                /* some are parts of one GPU */
    char id[ACS_DEVICES_MOST][ACS_DEVICE_ID_BYTES];             /* GPU-8-4-4-4-12 digits, or a name: no white space */
    acs_route links[ACS_DEVICES_MOST + 1][ACS_DEVICES_MOST + 1]; /* from, to; nothing between a place and itself */
} acs_topology;

/*
 * Every link is there, and what it says is possible: 1 MB/s to 100 TB/s, a latency of at most a second, and not more than 16
 * times as fast in one direction as in the other. ACS_ERR_CHECK through ACS_FAIL: names the link and the figure.
 */
acs_status acs_topology_check(const acs_topology *topology);
/* What a copy takes, in seconds: nothing within a place. */
double acs_topology_seconds(const acs_topology *topology, uint32_t from, uint32_t to, uint64_t bytes);

/* A GPU's id by its UUID, as nvidia-smi writes it: GPU-8-4-4-4-12 hexadecimal digits. Programs know each other's by it. */
void acs_topology_id(char id[ACS_DEVICE_ID_BYTES], const char uuid[16]);
/* "host", or the device's id. */
const char *acs_topology_place(const acs_topology *topology, uint32_t place);

/*
 * As text: a line for each device and each link, which people can edit. Reading wants all links between the topology's own
 * devices, by their ids; what the file says of other devices is skipped. ACS_ERR_OPTION: it cannot be read; not such a file,
 * or a link that cannot be (as above), with `name` and the line; a link is missing. The topology's links are then undefined.
 */
acs_status acs_topology_write(const acs_topology *topology, FILE *file);
acs_status acs_topology_read(acs_topology *topology, FILE *file, const char *name);

/*
 * The file of these devices, in any order: below $XDG_CACHE_HOME, or $HOME/.cache. Loading: ACS_NOT_READY where there is
 * none, as acs_topology_read where there is. Storing makes the folder and replaces the file at once, readable by its owner
 * alone, and so the files of the first device, of the first two and so on: contexts take as many as they are to have.
 * ACS_ERR_UNSUPPORTED: there is no such folder; ACS_ERR_STATE: it could not be written, why.
 */
acs_status acs_topology_path(const acs_topology *topology, char path[ACS_TOPOLOGY_PATH_BYTES]);
acs_status acs_topology_load(acs_topology *topology);
acs_status acs_topology_store(const acs_topology *topology);

#endif
