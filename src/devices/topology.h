/*
 * The devices, and the links between each two of them and the host: bandwidth, latency, peer access. Measured once for a
 * set of devices, kept in a file, and read again in whatever order the devices are then. (GrCUDA's multi-GPU scheduler,
 * section III-B3, keeps such a graph of bandwidths.) Pure data and files: a backend measures.
 */
#ifndef ACS_DEVICES_TOPOLOGY_H
#define ACS_DEVICES_TOPOLOGY_H

#include "base/base.h"
#include "base/cache_file.h"

#include <stdio.h>

enum { ACS_DEVICE_ID_BYTES = 64, ACS_TOPOLOGY_PATH_BYTES = ACS_CACHE_PATH_BYTES };

/* A link from one place to another. */
typedef struct acs_route {
    double bandwidth; /* bytes per second of a large copy */
    double latency;   /* seconds of a small copy, beside other work of the same kind */
    bool peer;        /* whether the devices reach each other's memory; else copies go through the host */
} acs_route;

typedef struct acs_topology {
    uint32_t count; /* number of devices; the host is place number `count` */
    bool shared;                                                /* whether some devices are parts of one GPU */
    char id[ACS_DEVICES_MOST][ACS_DEVICE_ID_BYTES];             /* GPU-8-4-4-4-12 digits, or a name: no white space */
    acs_route links[ACS_DEVICES_MOST + 1][ACS_DEVICES_MOST + 1]; /* from, to; nothing between a place and itself */
} acs_topology;

/*
 * Check that every link is there and possible: 1 MB/s to 100 TB/s, at most 16 times as fast in one direction as in the
 * other, and a latency of at most a second. ACS_ERR_CHECK through ACS_FAIL: names the link and the figure.
 */
acs_status acs_topology_check(const acs_topology *topology);
/* Seconds that a copy takes; 0 within a place. */
double acs_topology_seconds(const acs_topology *topology, uint32_t from, uint32_t to, uint64_t bytes);

/*
 * Write a GPU's id by its UUID, as nvidia-smi writes it: GPU-8-4-4-4-12 hexadecimal digits. Programs name devices to
 * each other by it.
 */
void acs_topology_id(char id[ACS_DEVICE_ID_BYTES], const char uuid[16]);
/* "host", or the device's id. */
const char *acs_topology_place(const acs_topology *topology, uint32_t place);

/*
 * Write or read the topology as text that people can edit: a line for each device and each link. Reading wants all links
 * between the topology's own devices, by their ids, and skips other devices.
 *
 * ACS_ERR_OPTION: the file cannot be read, is no such file, has a link that is not possible (names `name` and the line),
 * or lacks a link. The topology's links are then undefined.
 */
acs_status acs_topology_write(const acs_topology *topology, FILE *file);
acs_status acs_topology_read(acs_topology *topology, FILE *file, const char *name);

/*
 * The file of these devices in any order, below $XDG_CACHE_HOME or $HOME/.cache. Loading: ACS_NOT_READY if there is
 * none; else as acs_topology_read. Storing makes the folder and replaces the file at once, readable by its owner alone.
 * It also stores files of the first device, of the first two, and so on, since a context may use fewer devices.
 *
 * ACS_ERR_UNSUPPORTED: there is no such folder. ACS_ERR_STATE: the file could not be written, and why.
 */
acs_status acs_topology_path(const acs_topology *topology, char path[ACS_TOPOLOGY_PATH_BYTES]);
acs_status acs_topology_load(acs_topology *topology);
/* As acs_topology_load, from a file that ACS_TOPOLOGY names; it must exist. */
acs_status acs_topology_open(acs_topology *topology, const char *path);
acs_status acs_topology_store(const acs_topology *topology);

#endif
