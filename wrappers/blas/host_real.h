/*
 * The loops of host.c in one precision: included with REAL, NAME(name) and SQUARE_ROOT defined, once for each. Element
 * (i, j) of a matrix is at i + j * ld, whatever operand it is; transposition swaps two strides.
 */

/* A matrix as its elements are reached: (i, j) at i * row + j * column. */
typedef struct NAME(view) {
    const REAL *p;
    size_t row, column;
} NAME(view);

static NAME(view) NAME(view_of)(const void *p, int ld, int trans)
{
    const size_t row = trans == ACS_BLAS_T ? (size_t)ld : 1, column = trans == ACS_BLAS_T ? 1 : (size_t)ld;
    return (NAME(view)){p, row, column};
}

static REAL NAME(element)(NAME(view) v, size_t i, size_t j)
{
    return v.p[i * v.row + j * v.column];
}

/* y = beta y, without a look at y where beta is 0: there may be NaN. */
static void NAME(scale)(REAL *y, size_t count, size_t distance, REAL beta)
{
    for (size_t i = 0; i < count; i++)
        y[i * distance] = beta == 0 ? 0 : beta * y[i * distance];
}

/* Rows first to end - 1 of column j of C: C = alpha A B + beta C. */
static void NAME(product_column)(NAME(view) a, NAME(view) b, size_t j, size_t first, size_t end, const acs_blas_args *args,
                                 REAL *c)
{
    NAME(scale)(c + first, end - first, 1, (REAL)args->beta);
    for (size_t l = 0; l < (size_t)args->k && args->alpha != 0; l++) {
        const REAL factor = (REAL)args->alpha * NAME(element)(b, l, j);
        for (size_t i = first; i < end; i++)
            c[i] += factor * NAME(element)(a, i, l);
    }
}

static void NAME(gemm)(const acs_blas_args *args)
{
    const NAME(view) a = NAME(view_of)(args->a, args->lda, args->transa);
    const NAME(view) b = NAME(view_of)(args->b, args->ldb, args->transb);
    for (size_t j = 0; j < (size_t)args->n; j++)
        NAME(product_column)(a, b, j, 0, (size_t)args->m, args, (REAL *)args->c + j * (size_t)args->ldc);
}

/* B is op(A) transposed. */
static void NAME(syrk)(const acs_blas_args *args)
{
    const size_t n = (size_t)args->n;
    const NAME(view) a = NAME(view_of)(args->a, args->lda, args->transa);
    const NAME(view) b = {a.p, a.column, a.row};
    for (size_t j = 0; j < n; j++) {
        const size_t first = args->uplo == ACS_BLAS_LOWER ? j : 0, end = args->uplo == ACS_BLAS_LOWER ? n : j + 1;
        NAME(product_column)(a, b, j, first, end, args, (REAL *)args->c + j * (size_t)args->ldc);
    }
}

/*
 * Solves op(A) x = b for one b whose elements are `distance` apart, over it. `forward`: op(A) is lower triangular. Row i
 * takes what the rows solved before it contribute, then divides.
 */
static void NAME(solve)(NAME(view) a, bool forward, bool unit, REAL *x, size_t n, size_t distance)
{
    for (size_t step = 0; step < n; step++) {
        const size_t i = forward ? step : n - 1 - step;
        REAL value = x[i * distance];
        for (size_t done = 0; done < step; done++) {
            const size_t j = forward ? done : n - 1 - done;
            value -= NAME(element)(a, i, j) * x[j * distance];
        }
        x[i * distance] = unit ? value : value / NAME(element)(a, i, i);
    }
}

/* From the right, x op(A) = b is a system with op(A) transposed, for each row of B. */
static void NAME(trsm)(const acs_blas_args *args)
{
    const bool left = args->side == ACS_BLAS_LEFT;
    const bool transposed = (args->transa == ACS_BLAS_T) == left;
    const bool forward = (args->uplo == ACS_BLAS_LOWER) != transposed;
    const size_t m = (size_t)args->m, n = (size_t)args->n, ld = (size_t)args->ldc;
    const NAME(view) a = NAME(view_of)(args->a, args->lda, transposed ? ACS_BLAS_T : ACS_BLAS_N);
    REAL *const b = args->c;

    for (size_t j = 0; j < n; j++)
        NAME(scale)(b + j * ld, m, 1, (REAL)args->alpha);
    for (size_t s = 0; s < (left ? n : m) && args->alpha != 0; s++)
        NAME(solve)(a, forward, args->diag == ACS_BLAS_UNIT, left ? b + s * ld : b + s, left ? m : n, left ? 1 : ld);
}

static void NAME(gemv)(const acs_blas_args *args)
{
    const bool transposed = args->transa == ACS_BLAS_T;
    const int in = transposed ? args->m : args->n, out = transposed ? args->n : args->m;
    const NAME(view) a = NAME(view_of)(args->a, args->lda, args->transa);
    const REAL *const x = (const REAL *)args->b + acs_blas_vector_start(in, args->ldb);
    REAL *const y = (REAL *)args->c + acs_blas_vector_start(out, args->ldc);

    for (ptrdiff_t i = 0; i < out && in > 0; i++) {
        REAL sum = 0;
        for (ptrdiff_t j = 0; j < in && args->alpha != 0; j++)
            sum += NAME(element)(a, (size_t)i, (size_t)j) * x[j * args->ldb];
        REAL *const at = y + i * args->ldc;
        NAME(scale)(at, 1, 1, (REAL)args->beta);
        *at += (REAL)args->alpha * sum;
    }
}

static void NAME(axpy)(const acs_blas_args *args)
{
    const REAL *const x = (const REAL *)args->b + acs_blas_vector_start(args->n, args->ldb);
    REAL *const y = (REAL *)args->c + acs_blas_vector_start(args->n, args->ldc);
    for (ptrdiff_t i = 0; i < args->n; i++)
        y[i * args->ldc] += (REAL)args->alpha * x[i * args->ldb];
}

/* Column by column of L; the upper form is the same with rows and columns exchanged. */
static void NAME(potrf)(const acs_blas_args *args)
{
    const size_t n = (size_t)args->n, ld = (size_t)args->ldc;
    const size_t row = args->uplo == ACS_BLAS_LOWER ? 1 : ld, column = args->uplo == ACS_BLAS_LOWER ? ld : 1;
    REAL *const a = args->c;
    int info = 0;

    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            REAL value = a[i * row + j * column];
            for (size_t k = 0; k < j; k++)
                value -= a[i * row + k * column] * a[j * row + k * column];
            a[i * row + j * column] = value;
        }
        REAL *const pivot = a + j * row + j * column;
        if (!(*pivot > 0)) { /* NaN too */
            info = (int)j + 1;
            break;
        }
        *pivot = SQUARE_ROOT(*pivot);
        for (size_t i = j + 1; i < n; i++)
            a[i * row + j * column] /= *pivot;
    }
    if (args->info)
        *args->info = info;
}

/* A pivot of 0 is noted and not divided by, as LAPACK does. */
static void NAME(getrf)(const acs_blas_args *args)
{
    const size_t m = (size_t)args->m, n = (size_t)args->n, ld = (size_t)args->ldc;
    REAL *const a = args->c;
    int info = 0;

    for (size_t k = 0; k < m && k < n; k++) {
        const REAL pivot = a[k + k * ld];
        if (pivot == 0 && info == 0)
            info = (int)k + 1;
        for (size_t i = k + 1; i < m && pivot != 0; i++)
            a[i + k * ld] /= pivot;
        for (size_t j = k + 1; j < n; j++)
            for (size_t i = k + 1; i < m; i++)
                a[i + j * ld] -= a[i + k * ld] * a[k + j * ld];
    }
    if (args->info)
        *args->info = info;
}
