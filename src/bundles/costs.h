/*
 * The rows of the cost model (tuning.def, group "Cost model") as they hold for one GPU: the table's, which are one H200's,
 * or those that acs-info has measured and kept in a file. Pure data and files: a backend has one acs_costs for each device.
 */
#ifndef ACS_COSTS_H
#define ACS_COSTS_H

#include "devices/topology.h"

/* A field for each row: TUNE_COST_HOP_NS is hop_ns, here and in a file. */
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

/* The table's rows. */
extern const acs_costs acs_costs_table;

/* Which GPU: a file names both. */
typedef struct acs_costs_gpu {
    char id[ACS_DEVICE_ID_BYTES];  /* acs_topology_id */
    char name[ACS_GPU_NAME_BYTES]; /* as its driver calls the model: "NVIDIA H200" */
} acs_costs_gpu;

/* Rows that were measured, with a remark on each. */
typedef struct acs_costs_measured {
    acs_costs_gpu gpu;
    acs_costs costs;
    char note[ACS_COST_ROWS][ACS_COST_NOTE_BYTES]; /* how it was measured, or why not; empty: nothing to say */
} acs_costs_measured;

/* By number: the row's field as a text, and its value. */
const char *acs_cost_name(uint32_t row);
uint32_t *acs_cost_at(acs_costs *costs, uint32_t row);
uint32_t acs_cost_value(const acs_costs *costs, uint32_t row);

/*
 * As text: a line for the GPU, then one for each row, which people can edit. Reading takes the rows below a line of this
 * GPU, by its id, or by its name where the id is "any"; rows of other GPUs are skipped, and a row that is
 * missing keeps its value. ACS_ERR_OPTION: it cannot be read; not such a file, no such row, or a value that cannot be, with
 * `name` and the line; or there is nothing of this GPU. The costs are then as before.
 */
acs_status acs_costs_write(const acs_costs_measured *measured, FILE *file);
acs_status acs_costs_read(acs_costs *costs, const acs_costs_gpu *gpu, FILE *file, const char *name);

/*
 * costs_file.c: the file of a GPU, below $XDG_CACHE_HOME, or $HOME/.cache. Loading: ACS_NOT_READY where there is none, as
 * acs_costs_read where there is. Opening: the same of a file that ACS_COSTS names. Storing: as acs_cache_store.
 */
acs_status acs_costs_path(const acs_costs_gpu *gpu, char path[ACS_CACHE_PATH_BYTES]);
acs_status acs_costs_load(acs_costs *costs, const acs_costs_gpu *gpu);
acs_status acs_costs_open(acs_costs *costs, const acs_costs_gpu *gpu, const char *path);
acs_status acs_costs_store(const acs_costs_measured *measured);

#endif
