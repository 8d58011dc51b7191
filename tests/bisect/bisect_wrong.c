/*
 * A program for acs-bisect: 60 updates of cells, two of which lack an order. With the argument "right" none does; with
 * "always" it is wrong in any order. Ends with 1 where the cells are not as serial execution leaves them; with "print" it
 * writes them instead.
 */
#include <acs.h>

#include <stdio.h>
#include <string.h>

enum { UPDATES = 60, CELLS = 8, HIDDEN = 41 };

static void update_body(const acs_grid *grid, void *const *args)
{
    uint32_t *to = *(uint32_t **)args[0];
    const uint32_t *from = *(uint32_t **)args[1];
    (void)grid;
    *to = *to * 31 + *from * 7 + 1;
}

static const acs_kernel g_update = ACS_KERNEL_HOST_INIT("update", update_body);

int main(int argc, char **argv)
{
    static uint32_t cells[CELLS], truth[CELLS];
    const char *how = argc > 1 ? argv[1] : "";
    for (uint32_t i = 0; i < UPDATES; i++) {
        const uint32_t to_at = i == HIDDEN ? 7 : i % (CELLS - 1), from_at = i == HIDDEN ? 3 : to_at;
        uint32_t *to = &cells[to_at], *from = &cells[from_at];
        const int names = i != HIDDEN || strcmp(how, "right") == 0;
        truth[to_at] = truth[to_at] * 31 + truth[from_at] * 7 + 1;
        if (i == HIDDEN) {
            if (!ACS_LAUNCH(&g_update, 1, 1, 0, ACS_ARGS(to, from),
                            ACS_USES(ACS_INOUT(to, sizeof *to), ACS_IN(names ? from : to, sizeof *from))))
                return 2;
        } else if (!ACS_LAUNCH(&g_update, 1, 1, 0, ACS_ARGS(to, from), ACS_USES(ACS_INOUT(to, sizeof *to)))) {
            return 2;
        }
    }
    if (acs_sync(NULL) != ACS_OK || acs_close(acs_default()) != ACS_OK)
        return 2;
    if (strcmp(how, "print") == 0) {
        for (uint32_t i = 0; i < CELLS; i++)
            printf("%u\n", cells[i]);
        return 0;
    }
    return memcmp(cells, truth, sizeof cells) != 0 || strcmp(how, "always") == 0;
}
