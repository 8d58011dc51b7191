/*
 * Sparse products on the CPU, for the host backends: loops as the definitions have them, so that the same call gives the
 * same bits. Called when an op runs, or by whoever issues it by other means. Checks nothing.
 */
#include "sparse/sparse.h"

#define REAL float
#define NAME(name) name##_float
#include "sparse/host_real.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_double
#include "sparse/host_real.h"

void acs_sparse_host_run(const acs_sparse_args *args)
{
    const size_t columns = args->n ? (size_t)args->n : 1;

    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < (size_t)args->a.rows; i++)
            (args->a.precise ? element_double : element_float)(args, i, j);
}
