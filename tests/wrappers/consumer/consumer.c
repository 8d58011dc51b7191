/*
 * y = 2 x + y on the backend that is there, by the installed acs::blas. Exit status: 0 if y is right.
 */
#include <acs_blas.h>

#include <stdio.h>

int main(void)
{
    acs_context *const context = acs_default();
    double *x = NULL, *y = NULL;
    if (acs_malloc(context, 2 * sizeof *x, ACS_MEMORY_HOST, (void **)&x) != ACS_OK ||
        acs_malloc(context, 2 * sizeof *y, ACS_MEMORY_HOST, (void **)&y) != ACS_OK)
        return 1;
    x[0] = 1, x[1] = 2, y[0] = 10, y[1] = 20;
    if (!acs_blas_daxpy(context, 2, 2, x, 1, y, 1) || acs_sync(context) != ACS_OK) {
        acs_error error = {.size = sizeof error};
        (void)acs_blas_last_error(&error);
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return y[0] == 12 && y[1] == 24 ? 0 : 1;
}
