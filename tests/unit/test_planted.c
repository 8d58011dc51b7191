/*
 * Wrong footprints, planted in launches of right kernels: ACS_CHECK=reads finds each of them, names the segment or the
 * bytes, gives a footprint that is right, and says nothing of the right ones. On the host and the sim backend; on blocks
 * of acs_malloc, of ACS_LAZY, and on registered memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"
#include "sanitizers.h"
#include "report_fixture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define READS "reads bytes outside its footprint"
#define OUTSIDE "outside its footprint"

/* Items of an array, of which the kernels use the first half; bytes of that half. */
enum { ITEMS = 512, USED = 256, BYTES = USED * sizeof(float) };
/* A tile in such an array. */
enum { ROWS = 8, COLUMNS = 16, PITCH_ITEMS = 32, ROW = COLUMNS * sizeof(float), PITCH = PITCH_ITEMS * sizeof(float) };

typedef struct arrays {
    float *x, *y, *z; /* read; written; read and written */
    int *lengths;     /* numbers of items, from 2 on */
    float **table;    /* pointers to x and y */
} arrays;

static void update_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1], *z = *(float **)args[2];
    (void)grid;
    for (int i = 0; i < USED; i++) {
        y[i] = 2 * x[i] + z[i];
        z[i] += x[i] + 1;
    }
}

static void tile_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1];
    (void)grid;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        y[i / COLUMNS * PITCH_ITEMS + i % COLUMNS] = 3 * x[i / COLUMNS * PITCH_ITEMS + i % COLUMNS];
}

/* y becomes the sum of as many items of x as the first length says. */
static void sum_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1];
    const int *lengths = *(int **)args[2];
    (void)grid;
    for (int i = 0; i < USED; i++)
        y[i] = 0;
    for (int i = 0; i < lengths[0]; i++)
        y[0] += x[i];
}

/* The same as update, but finds x and y in a table. */
static void through_table_body(const acs_grid *grid, void *const *args)
{
    float *const *table = *(float ***)args[0];
    (void)grid;
    for (int i = 0; i < USED; i++)
        table[1][i] = 5 * table[0][i];
}

static const acs_kernel g_update = ACS_KERNEL_HOST_INIT("update", update_body);
static const acs_kernel g_tile = ACS_KERNEL_HOST_INIT("tile", tile_body);
static const acs_kernel g_sum = ACS_KERNEL_HOST_INIT("sum", sum_body);
static const acs_kernel g_through_table = ACS_KERNEL_HOST_INIT("through table", through_table_body);

/* What is expected of a launch with the n-th footprint. */
typedef struct expected {
    const char *says;      /* the error tells so; NULL: there is none; "": there is no such footprint */
    const char *corrected; /* the footprint that the report gives; NULL: any one that is right */
} expected;

/* A footprint that a report gave, to launch with it. Without segments: launch with that of the table. */
static acs_segment g_proposed[8];
static size_t g_proposed_count;

/* The footprint of so many segments, or the one proposed. */
static acs_uses uses_of(const acs_segment *segments, size_t most)
{
    size_t count = 0;
    if (g_proposed_count)
        return ACS_USES_LIST(g_proposed, g_proposed_count);
    while (count < most && segments[count].row_bytes)
        count++;
    return ACS_USES_LIST(segments, count);
}

/* Launches with footprints: `n` is the number of the mistake; 0 is the right one. */
static expected launch_update(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_IN(a->x, BYTES), y = ACS_OUT(a->y, BYTES), z = ACS_INOUT(a->z, BYTES);
    static const char right[] = "ACS_USES(ACS_IN(a->x, 1024), ACS_OUT(a->y, 1024), ACS_INOUT(a->z, 1024))";
    const struct {
        acs_segment segments[4];
        expected expected;
    } footprints[] = {
        {{x, y, z}, {NULL, NULL}},
        {{y, z}, {READS ", from 'a->x' on, within 1024 bytes",
                  "ACS_USES(ACS_OUT(a->y, 1024), ACS_INOUT(a->z, 1024), ACS_IN(a->x, 1024))"}},
        {{x, z}, {"changed 1024 bytes " OUTSIDE ", from 'a->y' on, in 2048 bytes",
                  "ACS_USES(ACS_IN(a->x, 1024), ACS_INOUT(a->z, 1024), ACS_INOUT(a->y, 1024))"}},
        {{x, y}, {"bytes " OUTSIDE ", from 'a->z' on, in 2048 bytes", right}},
        {{x, y, ACS_IN(a->z, BYTES)}, {"changed all 1024 bytes of segment 2, which is in: is it inout?", right}},
        {{x, y, ACS_OUT(a->z, BYTES)},
         {"reads old bytes among all 1024 bytes of segment 2, which is out: is it inout?", right}},
        {{x, ACS_IN(a->y, BYTES), z}, {"changed all 1024 bytes of segment 1, which is in: is it inout?", NULL}},
        {{ACS_OUT(a->x, BYTES), y, z},
         {"reads old bytes among all 1024 bytes of segment 0, which is out: is it in, or inout?",
          "ACS_USES(ACS_INOUT(a->x, 1024), ACS_OUT(a->y, 1024), ACS_INOUT(a->z, 1024))"}},
        {{ACS_OUT(a->x, BYTES), ACS_IN(a->y, BYTES), z},
         {"of segment 1, which is in: is it inout? Segments 0 and 1 may be swapped.", NULL}},
        {{ACS_INOUT(a->x, BYTES), y, ACS_IN(a->z, BYTES)}, {"is it inout? Segments 0 and 2 may be swapped.", NULL}},
        {{ACS_IN(a->x, BYTES - 4), y, z},
         {READS " (segment 0 has 1020 bytes, found 1024), from 'a->x' + 1020 bytes on, within 4 bytes", right}},
        {{ACS_IN(a->x, BYTES - 1), y, z},
         {READS " (segment 0 has 1023 bytes, found 1024), from 'a->x' + 1023 bytes on, within 1 bytes", right}},
        {{ACS_IN(a->x, USED), y, z},
         {READS " (segment 0 has 256 bytes, found 1024), from 'a->x' + 256 bytes on, within 768", right}},
        {{ACS_IN(a->x + 1, BYTES), y, z},
         {READS " (segment 0 starts 4 bytes too late), from 'a->x' on, within 4 bytes",
          "ACS_USES(ACS_IN(a->x, 1028), ACS_OUT(a->y, 1024), ACS_INOUT(a->z, 1024))"}},
        {{ACS_IN(a->x + 64, BYTES / 4), y, z},
         {READS " (segment 0 starts 256 bytes too late and has 256 bytes, found 1024), from 'a->x' on, within 1024", right}},
        {{x, ACS_OUT(a->y, BYTES - 4), z},
         {"changed 4 bytes " OUTSIDE " (segment 1 has 1020 bytes, found 1024), from 'a->y' + 1020 bytes", right}},
        {{x, ACS_OUT(a->y, USED), z},
         {"changed 768 bytes " OUTSIDE " (segment 1 has 256 bytes, found 1024), from 'a->y' + 256 bytes", right}},
        {{x, ACS_OUT(a->y + 1, BYTES), z},
         {"changed 4 bytes " OUTSIDE " (segment 1 starts 4 bytes too late), from 'a->y' on, in 2048 bytes", right}},
        {{x, ACS_OUT(a->y + 1, BYTES - 4), z},
         {"changed 4 bytes " OUTSIDE " (segment 1 starts 4 bytes too late), from 'a->y' on, in 2048 bytes", right}},
        {{x, ACS_OUT(a->y + USED, BYTES), z},
         {"changed 1024 bytes " OUTSIDE " (segment 1 starts 1024 bytes too late), from 'a->y' on, in 2048 bytes", right}},
        {{x, ACS_OUT(a->y, BYTES + 4), z},
         {"did not write 4 of 1028 bytes of segment 1, which is out, from its byte 1024 on: is it inout?",
          "ACS_USES(ACS_IN(a->x, 1024), ACS_INOUT(a->y, 1028), ACS_INOUT(a->z, 1024))"}},
        {{x, y, ACS_INOUT(a->z, BYTES / 2)},
         {"bytes " OUTSIDE " (segment 2 has 512 bytes, found 1024), from 'a->z' + 512 bytes", right}},
        {{x, y, ACS_INOUT(a->z + 1, BYTES)},
         {"bytes " OUTSIDE " (segment 2 starts 4 bytes too late), from 'a->z' on, in 2048",
          "ACS_USES(ACS_IN(a->x, 1024), ACS_OUT(a->y, 1024), ACS_INOUT(a->z, 1028))"}},
        {{x, y, ACS_INOUT(a->z, BYTES - 4)},
         {"bytes " OUTSIDE " (segment 2 has 1020 bytes, found 1024), from 'a->z' + 1020 bytes", right}},
        {{ACS_IN(a->y, BYTES), ACS_OUT(a->x, BYTES), z}, {"changed all 1024 bytes of segment 0, which is in", NULL}},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return (expected){"", NULL};
    assert_true(ACS_LAUNCH_ON(context, &g_update, 1, 1, 0, ACS_ARGS(a->x, a->y, a->z),
                              uses_of(footprints[n].segments, 4)) > 0);
    return footprints[n].expected;
}

static expected launch_tile(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_TILE_IN(a->x, ROW, ROWS, PITCH), y = ACS_TILE_OUT(a->y, ROW, ROWS, PITCH);
    static const char right[] = "ACS_USES(ACS_TILE_IN(a->x, 64, 8, 128), ACS_TILE_OUT(a->y, 64, 8, 128))";
    const struct {
        acs_segment segments[2];
        expected expected;
    } footprints[] = {
        {{x, y}, {NULL, NULL}},
        {{ACS_TILE_IN(a->x, ROW, ROWS - 1, PITCH), y},
         {READS " (segment 0 has 7 rows, found 8), from 'a->x' + 896 bytes on, within 64 bytes", right}},
        {{ACS_TILE_IN(a->x + PITCH_ITEMS, ROW, ROWS - 1, PITCH), y},
         {READS " (segment 0 starts 128 bytes too late and has 7 rows, found 8), from 'a->x' on, within 64 bytes", right}},
        {{ACS_TILE_IN(a->x, ROW, ROWS, ROW), y},
         {READS " (segment 0 has 8 rows, found 15), from 'a->x' + 512 bytes on, within 448 bytes",
          "ACS_USES(ACS_TILE_IN(a->x, 64, 15, 64), ACS_TILE_OUT(a->y, 64, 8, 128))"}},
        {{ACS_TILE_IN(a->x, ROW, ROWS, PITCH + 4), y},
         {READS ", from 'a->x' + 128 bytes on, within 796 bytes", NULL}},
        {{ACS_TILE_IN(a->x, ROW - 4, ROWS, PITCH), y},
         {READS " (segment 0 has rows of 60 bytes, found 64), from 'a->x' + 60 bytes on, within 900 bytes", right}},
        {{x, ACS_TILE_OUT(a->y, ROW, ROWS, ROW)},
         {"changed 256 bytes " OUTSIDE " (segment 1 has pitch 64, found 128), in 4 pieces, from 'a->y' + 512 bytes", right}},
        {{x, ACS_TILE_OUT(a->y, ROW, ROWS - 1, PITCH)},
         {"changed 64 bytes " OUTSIDE " (segment 1 has 7 rows, found 8), from 'a->y' + 896 bytes", right}},
        {{x, ACS_TILE_OUT(a->y, ROW, ROWS, PITCH + 4)},
         {"changed 112 bytes " OUTSIDE " (segment 1 has pitch 132, found 128), in 7 pieces, from 'a->y' + 128", right}},
        {{x, ACS_TILE_OUT(a->y + 1, ROW, ROWS, PITCH)},
         {"changed 32 bytes " OUTSIDE " (segment 1 starts 4 bytes too late), in 8 pieces, from 'a->y' on", right}},
        {{x, ACS_TILE_OUT(a->y, ROW - 4, ROWS, PITCH)},
         {"changed 32 bytes " OUTSIDE " (segment 1 has rows of 60 bytes, found 64), in 8 pieces", right}},
        {{x, ACS_TILE_OUT(a->y, ROW, 2, ROW)},
         {"bytes " OUTSIDE " (segment 1 has 2 rows, found 8 and has pitch 64, found 128), in 7 pieces", right}},
        {{x, ACS_OUT(a->y, ROW)},
         {"bytes " OUTSIDE " (segment 1 is no run: found 8 rows of 64 bytes, pitch 128), in 7 pieces", right}},
        {{x, ACS_TILE_OUT(a->y, ROW + 4, ROWS, PITCH)},
         {"did not write 32 of 544 bytes of segment 1, which is out, from its byte 64 on: is it inout?",
          "ACS_USES(ACS_TILE_IN(a->x, 64, 8, 128), ACS_TILE_INOUT(a->y, 68, 8, 128))"}},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return (expected){"", NULL};
    assert_true(ACS_LAUNCH_ON(context, &g_tile, 1, 1, 0, ACS_ARGS(a->x, a->y), uses_of(footprints[n].segments, 2)) > 0);
    return footprints[n].expected;
}

static expected launch_sum(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_IN(a->x, BYTES), y = ACS_OUT(a->y, BYTES), lengths = ACS_IN(a->lengths, sizeof(int));
    const struct {
        acs_segment segments[3];
        expected expected;
    } footprints[] = {
        {{x, y, lengths}, {NULL, NULL}},
        {{x, y}, {READS ", from 'a->lengths' on, within 4 bytes", NULL}},
        {{ACS_IN(a->x, 100 * sizeof(float) - 4), y, lengths},
         {READS " (segment 0 has 396 bytes, found 400), from 'a->x' + 396 bytes on, within 4 bytes",
          "ACS_USES(ACS_IN(a->x, 400), ACS_OUT(a->y, 1024), ACS_IN(a->lengths, 4))"}},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return (expected){"", NULL};
    assert_true(ACS_LAUNCH_ON(context, &g_sum, 1, 1, 0, ACS_ARGS(a->x, a->y, a->lengths),
                              uses_of(footprints[n].segments, 3)) > 0);
    return footprints[n].expected;
}

static expected launch_through_table(acs_context *context, const arrays *a, int n)
{
    const acs_segment x = ACS_IN(a->x, BYTES), y = ACS_OUT(a->y, BYTES), table = ACS_IN(a->table, 2 * sizeof(float *));
    const struct {
        acs_segment segments[3];
        expected expected;
    } footprints[] = {
        {{table, x, y}, {NULL, NULL}},
        {{table, y}, {READS ", from 0x", NULL}},
        {{table, x}, {"changed 1024 bytes " OUTSIDE ", from 0x", NULL}},
    };
    enum { MOST = sizeof footprints / sizeof *footprints };
    if (n >= MOST)
        return (expected){"", NULL};
    assert_true(ACS_LAUNCH_ON(context, &g_through_table, 1, 1, 0, ACS_ARGS(a->table),
                              uses_of(footprints[n].segments, 3)) > 0);
    return footprints[n].expected;
}

static expected (*const g_launches[])(acs_context *, const arrays *, int) = {launch_update, launch_tile, launch_sum,
                                                                             launch_through_table};

enum { LAUNCHES = sizeof g_launches / sizeof *g_launches };

static acs_context *open_checking(int backend, int64_t check)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.backend = backend;
    options.check = check;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* Set all arrays to values that are neither 0 nor the same, by ops, since blocks may be lazy. */
static void fill(acs_context *context, const arrays *a)
{
    float values[ITEMS];
    float *const table[] = {a->x, a->y};
    const int lengths[] = {100, 200};
    for (int i = 0; i < ITEMS; i++)
        values[i] = (float)i * 0.25f + 1;
    assert_true(acs_memcpy(context, a->x, values, sizeof values) > 0);
    assert_true(acs_memcpy(context, a->y, values, sizeof values) > 0);
    assert_true(acs_memcpy(context, a->z, values, sizeof values) > 0);
    assert_true(acs_memcpy(context, a->lengths, lengths, sizeof lengths) > 0);
    assert_true(acs_memcpy(context, a->table, table, sizeof table) > 0);
    assert_int_equal(acs_sync(context), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------- what reports say */

/* Leave of a report the corrected footprint, from ACS_USES on; nothing if there is none. */
static void keep_corrected(char *report)
{
    const char *at = strstr(report, "footprint, corrected:");
    at = at ? strstr(at, "ACS_USES(") : NULL;
    const size_t bytes = at ? strcspn(at, "\n") : 0;
    if (at)
        memmove(report, at, bytes);
    report[bytes] = 0;
}

/* The address that an expression of the report gives. */
static char *parse_pointer(const arrays *a, const char *text)
{
    const struct {
        const char *name;
        void *address;
    } names[] = {{"a->x", a->x}, {"a->y", a->y}, {"a->z", a->z}, {"a->lengths", a->lengths}, {"a->table", a->table}};
    const char *plus = strstr(text, ") + ");
    if (strncmp(text, "(char *)0x", 10) == 0)
        return (char *)(uintptr_t)strtoull(text + 8, NULL, 16);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(text, names[i].name))
            return (char *)names[i].address + (plus ? strtoul(plus + 4, NULL, 10) : 0);
    fail_msg("'%s' is no pointer", text);
    return NULL;
}

/* Read the footprint of a report into g_proposed. */
static void parse_footprint(const arrays *a, const char *text)
{
    g_proposed_count = 0;
    for (const char *at = strstr(text + 1, "ACS_"); at; at = strstr(at + 1, "ACS_")) {
        char access[16], pointer[64];
        unsigned long row = 0, rows = 1, pitch = 0;
        const bool tile = strncmp(at, "ACS_TILE_", 9) == 0;
        const int read = sscanf(at + (tile ? 9 : 4), "%15[A-Z](%63[^,], %lu, %lu, %lu", access, pointer, &row, &rows,
                                &pitch);
        assert_int_equal(read == 5, tile);
        const acs_access what = !strcmp(access, "IN") ? ACS_READ : !strcmp(access, "OUT") ? ACS_WRITE : ACS_UPDATE;
        assert_true(g_proposed_count < sizeof g_proposed / sizeof *g_proposed);
        g_proposed[g_proposed_count++] = acs_make_segment(ACS_EXTENT_BYTES, what, (uintptr_t)parse_pointer(a, pointer), row,
                                                          tile ? rows : 1, tile ? pitch : 0);
    }
}

/* Launch with the footprint of the report: it is right. */
static void try_proposed(acs_context *context, const arrays *a, int launch, int n, const char *text)
{
    parse_footprint(a, text);
    fill(context, a);
    (void)g_launches[launch](context, a, n);
    g_proposed_count = 0;
    if (acs_sync(context) != ACS_OK)
        fail_msg("mistake %d of launch %d: %s is not right", n, launch, text);
}

/*
 * Of memory that threads may touch by themselves trials change what is written alone: no read beside it is found, and no
 * other footprint is tried.
 */
static expected in_shared_memory(expected e)
{
    const bool reads = e.says && strncmp(e.says, READS, sizeof READS - 1) == 0;
    if (reads || !e.says || !*e.says)
        return reads ? (expected){NULL, NULL} : e;
    return (expected){strstr(e.says, OUTSIDE) ? "bytes " OUTSIDE : e.says, NULL};
}

/* Launch with each footprint, from the same bytes. @return how many mistakes were found. */
static int find_all(acs_context *context, const arrays *a, int launch, bool shared)
{
    char text[4096];
    int mistakes = 0;
    capture report;
    for (int n = 0;; n++) {
        acs_error error = {.size = sizeof error};
        fill(context, a);
        capture_begin(&report);
        expected e = g_launches[launch](context, a, n);
        e = shared ? in_shared_memory(e) : e;
        capture_end(&report, text, sizeof text);
        keep_corrected(text);
        if (e.says && !*e.says)
            return mistakes;
        mistakes += e.says != NULL;
        assert_int_equal(acs_sync(context), e.says ? ACS_ERR_CHECK : ACS_OK);
        if (e.says && (acs_context_error(context, &error) != ACS_ERR_CHECK || !strstr(error.text, e.says)))
            fail_msg("mistake %d of launch %d: '%s' is not in '%s'", n, launch, e.says, error.text);
        if ((!e.says != !*text && !shared) || (e.corrected && strcmp(e.corrected, text) != 0))
            fail_msg("mistake %d of launch %d: corrected: %s, not %s", n, launch, text, e.corrected);
        assert_int_equal(acs_clear(context), ACS_OK);
        if (*text)
            try_proposed(context, a, launch, n, text);
    }
}

static arrays arrays_of(acs_context *context, int kind)
{
    const size_t bytes = ITEMS * sizeof(float);
    return (arrays){.x = (void *)block_of(context, kind, bytes),
                    .y = (void *)block_of(context, kind, bytes),
                    .z = (void *)block_of(context, kind, bytes),
                    .lengths = (void *)block_of(context, kind, 64),
                    .table = (void *)block_of(context, kind, 64)};
}

/* The checks run in one thread. The thread sanitizer, which takes long here, sees one of the combinations. */
enum { BACKENDS = UNDER_THREAD_SANITIZER ? 1 : 2, KINDS = UNDER_THREAD_SANITIZER ? 1 : 3 };

static void all_mistakes_are_found(void **state)
{
    static const int backends[] = {ACS_BACKEND_HOST, ACS_BACKEND_SIM};
    static const int kinds[] = {ACS_MEMORY_DEVICE, ACS_MEMORY_HOST, ACS_MEMORY_DEVICE | ACS_RELOCATABLE};
    (void)state;
    for (int b = 0; b < BACKENDS; b++)
        for (int k = 0; k < KINDS; k++) {
            acs_context *context = open_checking(backends[b], ACS_CHECK_READS);
            const arrays a = arrays_of(context, kinds[k]);
            int found = 0;
            for (int launch = 0; launch < LAUNCHES; launch++)
                found += find_all(context, &a, launch, kinds[k] == ACS_MEMORY_HOST);
            assert_int_equal(found, kinds[k] == ACS_MEMORY_HOST ? 27 : 41);
            assert_int_equal(acs_close(context), ACS_OK);
        }
}

static int write_three(void *closure)
{
    float *y = *(float **)closure;
    for (int i = 0; i < 3; i++)
        y[i] = -1;
    return 0;
}

static int call_three(const acs_call_env *env, void *closure)
{
    (void)env;
    return write_three(closure);
}

static acs_op call(acs_context *context, float *const *closure, acs_uses uses)
{
    static const acs_site site = {"call three", __FILE__, __LINE__};
    const acs_call_params params = {.size = sizeof params, .function = call_three, .closure = closure,
                                    .closure_bytes = sizeof *closure, .uses = uses, .site = &site};
    return acs_call(context, &params);
}

/* Host functions and library calls run once: only what they write is looked at. */
static void what_other_ops_write_unnamed_is_found(void **state)
{
    (void)state;
    for (int workers = 0; workers < 2; workers++) {
        acs_options options = host_options();
        acs_context *context = NULL;
        acs_error error = {.size = sizeof error};
        options.check = ACS_CHECK_WRITES;
        options.workers = workers;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        const arrays a = arrays_of(context, ACS_MEMORY_HOST);
        for (int items = 2; items <= 3; items++)
            for (int calls = 0; calls < 2; calls++) {
                fill(context, &a);
                const acs_uses uses = ACS_USES(ACS_OUT(a.y, (size_t)items * sizeof *a.y));
                const acs_op op = calls ? call(context, &a.y, uses)
                                        : acs_host(context, write_three, &a.y, sizeof a.y, uses);
                assert_true(op > 0);
                assert_int_equal(acs_sync(context), items == 2 ? ACS_ERR_CHECK : ACS_OK);
                if (items == 2) {
                    assert_int_equal(acs_context_error(context, &error), ACS_ERR_CHECK);
                    assert_int_equal(error.op, op);
                    assert_non_null(strstr(error.text, calls ? "call three" : "write_three"));
                    assert_non_null(strstr(error.text, "changed 4 bytes " OUTSIDE ", from 0x"));
                }
                assert_int_equal(acs_clear(context), ACS_OK);
            }
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* y becomes x, byte by byte, for which `mask` is not 0; without a mask all of it. */
static void copy_body(const acs_grid *grid, void *const *args)
{
    const unsigned char *x = *(unsigned char **)args[0], *mask = *(unsigned char **)args[2];
    unsigned char *y = *(unsigned char **)args[1];
    (void)grid;
    for (int i = 0; i < USED; i++)
        if (!mask || mask[i])
            y[i] = x[i];
}

static const acs_kernel g_copy = ACS_KERNEL_HOST_INIT("copy", copy_body);

static const unsigned char g_read_only[USED] = {1, 2, 3};

static acs_status launch_copy(acs_context *context, const unsigned char *x, unsigned char *y, const unsigned char *mask,
                              acs_uses uses)
{
    assert_true(ACS_LAUNCH_ON(context, &g_copy, 1, 1, 0, ACS_ARGS(x, y, mask), uses) > 0);
    const acs_status status = acs_sync(context);
    assert_int_equal(acs_clear(context), ACS_OK);
    return status;
}

/* Memory that a launch only reads may be read-only, or not be there at all if the kernel leaves it alone. */
static void memory_that_is_only_read_is_left_alone(void **state)
{
    (void)state;
    for (int64_t check = ACS_CHECK_WRITES; check <= ACS_CHECK_ALL; check++) {
        acs_context *context = open_checking(ACS_BACKEND_HOST, check);
        unsigned char *y = block_of(context, ACS_MEMORY_DEVICE, USED), *none = NULL;
        assert_int_equal(launch_copy(context, g_read_only, y, none, ACS_USES(ACS_IN(g_read_only, USED), ACS_OUT(y, USED),
                                                                             ACS_IN((void *)4096, 64))), ACS_OK);
        assert_memory_equal(y, g_read_only, USED);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* Bytes of any value are seen, wherever they lie in their words. */
static void reads_of_bytes_of_any_value_are_found(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE, USED), *y = block_of(context, ACS_MEMORY_DEVICE, USED);
    unsigned char *mask = block_of(context, ACS_MEMORY_DEVICE, USED), *none = NULL;
    for (int value = 0; value < 256; value += UNDER_THREAD_SANITIZER ? 15 : 1) {
        assert_true(acs_memset(context, x, value, USED) > 0);
        assert_int_equal(launch_copy(context, x, y, none, ACS_USES(ACS_OUT(y, USED))), ACS_ERR_CHECK);
        for (size_t lacks = 1; lacks < 8 && value > 1; lacks++)
            assert_int_equal(launch_copy(context, x, y, none, ACS_USES(ACS_IN(x, USED - lacks), ACS_OUT(y, USED))),
                             ACS_ERR_CHECK);
    }
    uint16_t halves[USED / 2]; /* numbers of two bytes, of which the last is not named */
    for (int i = 0; i < USED / 2; i++)
        halves[i] = (uint16_t)(9 + i);
    assert_true(acs_memcpy(context, x, halves, USED) > 0);
    assert_int_equal(launch_copy(context, x, y, none, ACS_USES(ACS_IN(x, USED - 2), ACS_OUT(y, USED))), ACS_ERR_CHECK);
    assert_true(acs_memset(context, mask, 1, USED) > 0);
    assert_true(acs_memset(context, x, 77, USED) > 0);
    assert_int_equal(launch_copy(context, x, y, mask, ACS_USES(ACS_IN(x, USED), ACS_OUT(y, USED))), ACS_ERR_CHECK);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Reads of whole numbers that are 0 or -1 are found, at even and at odd places. */
static void reads_of_zeros_are_found(void **state)
{
    static const int values[] = {0, -1, 1};
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    int *x = (void *)block_of(context, ACS_MEMORY_DEVICE, USED);
    unsigned char *y = block_of(context, ACS_MEMORY_DEVICE, USED), *none = NULL;
    for (int v = 0; v < 3; v++)
        for (size_t lacks = 1; lacks < 4; lacks++) {
            for (int i = 0; i < USED / 4; i++)
                assert_true(acs_memcpy(context, &x[i], &values[v], sizeof values[v]) > 0);
            const acs_uses uses = ACS_USES(ACS_IN(x, USED - 4 * lacks), ACS_OUT(y, USED));
            assert_int_equal(launch_copy(context, (void *)x, y, none, uses), ACS_ERR_CHECK);
        }
    assert_int_equal(acs_close(context), ACS_OK);
}

/* y becomes the mean of two neighbours in x. */
static void smooth_body(const acs_grid *grid, void *const *args)
{
    const float *x = *(float **)args[0];
    float *y = *(float **)args[1];
    (void)grid;
    for (int i = 0; i < USED; i++)
        y[i] = (x[i] + x[i + 1]) / 2;
}

static const acs_kernel g_smooth = ACS_KERNEL_HOST_INIT("smooth", smooth_body);

/* A read of 0 changes nothing here, so the first item looks as if it were not read. It stays in the footprint. */
static void what_is_declared_stays_though_its_read_is_hidden(void **state)
{
    (void)state;
    acs_context *context = open_checking(ACS_BACKEND_HOST, ACS_CHECK_READS);
    const arrays a = arrays_of(context, ACS_MEMORY_DEVICE);
    char text[4096];
    capture report;
    fill(context, &a);
    assert_true(acs_memset(context, a.x, 0, sizeof(float)) > 0);
    capture_begin(&report);
    assert_true(ACS_LAUNCH_ON(context, &g_smooth, 1, 1, 0, ACS_ARGS(a.x, a.y),
                              ACS_USES(ACS_IN(a.x, BYTES), ACS_OUT(a.y, BYTES))) > 0);
    capture_end(&report, text, sizeof text);
    keep_corrected(text);
    assert_string_equal(text, "ACS_USES(ACS_IN(a.x, 1028), ACS_OUT(a.y, 1024))");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_mistakes_are_found),
        cmocka_unit_test(what_other_ops_write_unnamed_is_found),
        cmocka_unit_test(memory_that_is_only_read_is_left_alone),
        cmocka_unit_test(reads_of_bytes_of_any_value_are_found),
        cmocka_unit_test(reads_of_zeros_are_found),
        cmocka_unit_test(what_is_declared_stays_though_its_read_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
