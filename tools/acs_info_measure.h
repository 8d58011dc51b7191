/*
 * Measuring the rows of the cost model on a GPU, for acs-info --measure: how each row is made (acs_info_measure.c), and the
 * bundles that are timed for it (acs_info_meter.c).
 */
#ifndef ACS_INFO_MEASURE_H
#define ACS_INFO_MEASURE_H

#include "bundles/costs.h"

/*
 * Measure on one GPU, by its CUDA device number; `name` stands in the lines of progress that go to standard error. Takes a
 * few seconds, and never more than a minute. ACS_OK: a row that could not be measured has the table's value, and a note
 * that says so. ACS_ERR_UNSUPPORTED: the model is not used on this GPU. Other errors: which call failed; nothing was
 * measured.
 */
acs_status info_measure_costs(int device, const char *name, acs_costs_measured *measured);
/*
 * Measure the links of topology->count devices, given by their CUDA numbers. Peer access between them is enabled where
 * possible. ACS_ERR_DEVICE: a CUDA call failed. ACS_ERR_CHECK: the figures were impossible three times.
 */
acs_status info_measure_links(acs_topology *topology, const int *devices);

/* -------------------------------------------------------------------------------------------------------------- meter */

/* A GPU, opened as the library opens it, with one bundle of kernels that do nothing, and a clock. */
typedef struct meter meter;

/* Ways to issue the bundle. */
typedef enum meter_way {
    METER_REPLAY, /* a graph of its shape, whose nodes the device sets, each time to other arguments */
    METER_FIXED,  /* the same with nodes that nobody sets */
    METER_LAYERS, /* a graph of layers */
    METER_GPU,    /* GPU-side issue */
    METER_STREAM, /* launches into one stream, which run one after the other */
    METER_EVENTS  /* launches into two streams in turn, each behind the one before by an event */
} meter_way;
enum { METER_WAYS = METER_EVENTS + 1 };

/* All return ACS_OK, ACS_NOT_READY (the GPU or its driver does not offer that way) or an error through ACS_FAIL. */
acs_status meter_open(int device, meter **opened);
void meter_close(meter *m);
void meter_gpu(meter *m, acs_costs_gpu *gpu);

/* The bundle: ops in columns, each op below another one of its column, and of both columns beside it (`stencil`). */
void meter_shape(meter *m, uint32_t ops, uint32_t width, bool stencil);
/* Edges beyond the first of each op. */
uint32_t meter_edges(const meter *m);
/* Cells that each level has, for METER_LAYERS. */
void meter_cells(meter *m, uint32_t cells);

/* Time of the GPU for the bundle, behind others of the same way. The host has issued them all before the first begins. */
acs_status meter_time(meter *m, meter_way way, double *ns);
/* Time of the host for a launch. */
acs_status meter_launch(meter *m, double *ns);
/* Time of the host to build a graph for the bundle, by node, and the loss of another thread that launches meanwhile. */
acs_status meter_build(meter *m, meter_way way, double *ns);
/* Time of the host to build a cell, while another thread launches. */
acs_status meter_cell(meter *m, double *ns);

#endif
