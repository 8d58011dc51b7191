/*
 * The figures of the cost model for one GPU (tuning.def, group "Cost model"): those of the table, measured on an H200,
 * or those that acs-info has measured and kept in a file. Pure data and files; a backend has one acs_costs for each
 * device.
 */
#ifndef ACS_COSTS_H
#define ACS_COSTS_H

#include "devices/topology.h"

/* One field per row: TUNE_COST_HOP_NS is hop_ns, here and in a file. */
typedef struct acs_costs {
#define ACS_TUNE_GROUP(title)
#define ACS_TUNE(name, value, unit, effect, origin)
#define ACS_TUNE_COST(field, name, value, unit, effect, origin) uint32_t field;
#include "base/tuning.def"
#undef ACS_TUNE_GROUP
#undef ACS_TUNE
} acs_costs;

enum {
    ACS_COST_ROWS = sizeof(acs_costs) / sizeof(uint32_t),
    ACS_COST_MOST = 1000000000, /* largest value of a row; the least is 1 */
    ACS_GPU_NAME_BYTES = 128,
    ACS_COST_NOTE_BYTES = 96
};
/* The number of a row, by its field. */
#define ACS_COST_ROW(field) (offsetof(acs_costs, field) / sizeof(uint32_t))

/* The figures of the table. */
extern const acs_costs acs_costs_table;

/* The GPU that figures hold for; a file names both fields. */
typedef struct acs_costs_gpu {
    char id[ACS_DEVICE_ID_BYTES];  /* from acs_topology_id */
    char name[ACS_GPU_NAME_BYTES]; /* model, as the driver names it: "NVIDIA H200" */
} acs_costs_gpu;

/* Measured figures, with a remark on each. */
typedef struct acs_costs_measured {
    acs_costs_gpu gpu;
    acs_costs costs;
    char note[ACS_COST_ROWS][ACS_COST_NOTE_BYTES]; /* how the row was measured, or why not; empty: no remark */
} acs_costs_measured;

/* A row by number: the name of its field, its place, its value. */
const char *acs_cost_name(uint32_t row);
uint32_t *acs_cost_at(acs_costs *costs, uint32_t row);
uint32_t acs_cost_value(const acs_costs *costs, uint32_t row);

/*
 * The figures as text: a line for the GPU, then one line per row, which people can edit.
 *
 * Reading takes the rows below a line of this GPU: one with its id, or with the id "any" and its name. Rows of other
 * GPUs are skipped; a missing row keeps its value. ACS_ERR_OPTION, with the costs unchanged: the file cannot be read,
 * is no such file, or has nothing of this GPU; or a row is unknown or its value bad. The error then has `name` and the
 * line.
 */
acs_status acs_costs_write(const acs_costs_measured *measured, FILE *file);
acs_status acs_costs_read(acs_costs *costs, const acs_costs_gpu *gpu, FILE *file, const char *name);

/*
 * The file of a GPU below $XDG_CACHE_HOME or $HOME/.cache. acs_costs_load: ACS_NOT_READY if there is
 * none, else as acs_costs_read. acs_costs_open: the same for a file that ACS_COSTS names; it must exist.
 * acs_costs_store: as acs_cache_store.
 */
acs_status acs_costs_path(const acs_costs_gpu *gpu, char path[ACS_CACHE_PATH_BYTES]);
acs_status acs_costs_load(acs_costs *costs, const acs_costs_gpu *gpu);
acs_status acs_costs_open(acs_costs *costs, const acs_costs_gpu *gpu, const char *path);
acs_status acs_costs_store(const acs_costs_measured *measured);

#endif
