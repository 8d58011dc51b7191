/*
 * What acs-info finds out (acs-info.c, acs_info_gpu.c) and prints (acs_info_print.c).
 */
#ifndef ACS_INFO_H
#define ACS_INFO_H

#include <acs.h>

#include "devices/ledger.h"
#include "devices/topology.h"

#include <stdbool.h>
#include <stdint.h>

#define INFO_COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { INFO_OPTIONS_MOST = 64, INFO_UNKNOWN_MOST = 16, INFO_GPUS_MOST = 64, INFO_BACKENDS = 3,
       INFO_LEDGER_MOST = 512 };

/* Whether a context opens on the backend `asked` for: `opened` names the one that it got, else `why` is the error. */
typedef struct info_open {
    const char *asked;  /* NULL: the variables are bad, so there is no telling */
    const char *opened; /* NULL: none */
    char why[ACS_ERROR_TEXT_BYTES];
} info_open;

typedef struct info_gpu {
    char name[256];
    char uuid[ACS_DEVICE_ID_BYTES];
    int processors; /* SMs */
    int major, minor;
    uint64_t memory_bytes;
    char why[128]; /* not empty: the device was counted, but says nothing of itself */
} info_gpu;

/* One line of acs_options_dump. */
typedef struct info_option {
    const char *name, *value, *source;
} info_option;

typedef struct info {
    char bad[INFO_OPTIONS_MOST][ACS_ERROR_TEXT_BYTES]; /* the library's sentence about each variable with a bad value */
    uint32_t bad_count;
    const char *unknown[INFO_UNKNOWN_MOST]; /* ACS_* variables that are no options; the first ones */
    uint32_t unknown_count;
    info_option options[INFO_OPTIONS_MOST];
    uint32_t option_count;
    char *dump; /* where the options' texts are */

    info_open backends[INFO_BACKENDS]; /* cuda, host, sim */
    info_open automatic;               /* ACS_BACKEND=auto */
    info_open program;                 /* what a program gets that sets no option itself */

    int driver_cuda, runtime_cuda; /* 13020 for 13.2; 0: there is none */
    char driver[64];               /* the kernel driver's own version; empty if unknown */
    info_gpu gpus[INFO_GPUS_MOST];
    uint32_t gpu_count;
    char gpus_why[256]; /* why none is listed */
    acs_topology links; /* between the GPUs; count 0: not known */
    char links_why[ACS_ERROR_TEXT_BYTES];
    char links_kept[ACS_TOPOLOGY_PATH_BYTES]; /* the file that they are in; empty: none */
    acs_ledger_line ledger[INFO_LEDGER_MOST]; /* the programs in it */
    uint32_t ledger_count;
    char ledger_why[ACS_ERROR_TEXT_BYTES];    /* why there are none */
} info;

/*
 * Measure the links of topology->count devices, given by their CUDA numbers. Peer access between them is enabled where
 * possible. ACS_ERR_DEVICE: a CUDA call failed. ACS_ERR_CHECK: the figures were impossible three times.
 */
acs_status info_measure_links(acs_topology *topology, const int *devices);
/* Versions and devices, by the CUDA runtime. */
void info_read_gpus(info *to);
/*
 * What lies between them, as it was measured before; `measure`: now, and kept, or links_why says why not. Of the first
 * `devices`, as a context takes them; 0: of all.
 */
void info_read_links(info *to, uint32_t devices, bool measure);

/* Who is in the ledger that ACS_LEDGER names, or in that of ACS_LEDGER=on. */
void info_read_ledger(info *to, const char *option);

/* Text in aligned columns, or one JSON object, to standard output. */
void info_print_text(const info *from);
void info_print_json(const info *from);

#endif
