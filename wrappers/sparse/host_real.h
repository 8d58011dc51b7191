/*
 * The loop of host.c in one precision: included with REAL and NAME(name) defined, once for each.
 */

/* Element (i, j) of C: row i of A by column j of B. The old C is not looked at where beta is 0: there may be NaN. */
static void NAME(element)(const acs_sparse_args *x, size_t i, size_t j)
{
    const REAL *const values = x->a.values, *const b = (const REAL *)x->b + j * (size_t)x->ldb;
    REAL *const c = (REAL *)x->c + i + j * (size_t)x->ldc;
    REAL sum = 0;

    for (int k = x->a.row_offsets[i]; k < x->a.row_offsets[i + 1]; k++)
        sum += values[k] * b[x->a.column_indices[k]];
    sum *= (REAL)x->alpha;
    *c = x->beta == 0 ? sum : sum + (REAL)x->beta * *c;
}
