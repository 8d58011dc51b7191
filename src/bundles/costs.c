/*
 * The figures of the cost model, their text, and the file that keeps them between runs (costs.h). Called where a device
 * is opened, and by acs-info. Never calls a device, nor replaces a file itself; cache_file.c does.
 */
#include "bundles/costs.h"

#include "base/cache_file.h"
#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

static const char g_head[] = "acs-costs 1";

const acs_costs acs_costs_table = {
#define ACS_TUNE_GROUP(title)
#define ACS_TUNE(name, value, unit, effect, origin)
#define ACS_TUNE_COST(field, name, value, unit, effect, origin) .field = (name),
#include "base/tuning.def"
#undef ACS_TUNE_GROUP
#undef ACS_TUNE
};

static const char *const g_names[ACS_COST_ROWS] = {
#define ACS_TUNE_GROUP(title)
#define ACS_TUNE(name, value, unit, effect, origin)
#define ACS_TUNE_COST(field, name, value, unit, effect, origin) #field,
#include "base/tuning.def"
#undef ACS_TUNE_GROUP
#undef ACS_TUNE
};

const char *acs_cost_name(uint32_t row)
{
    return g_names[row];
}

/* The struct has no other fields than rows. */
uint32_t *acs_cost_at(acs_costs *costs, uint32_t row)
{
    return (uint32_t *)(void *)costs + row;
}

uint32_t acs_cost_value(const acs_costs *costs, uint32_t row)
{
    return ((const uint32_t *)(const void *)costs)[row];
}

/* ------------------------------------------------------------------------------------------------------------ writing */

acs_status acs_costs_write(const acs_costs_measured *m, FILE *file)
{
    static const char about[] = "# ROW VALUE: the costs of issuing kernels on this GPU, in ns; overlap_most: bundles";
    bool well = fprintf(file, "%s\n%s\ngpu %s %s\n", g_head, about, m->gpu.id, m->gpu.name) > 0;
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++)
        well = fprintf(file, "%-16s %-8u%s%s\n", g_names[row], acs_cost_value(&m->costs, row), *m->note[row] ? " # " : "",
                       m->note[row]) > 0 && well;
    return well && fflush(file) == 0 ? ACS_OK : ACS_FAIL(ACS_ERR_STATE, 0, "the costs could not be written");
}

/* ------------------------------------------------------------------------------------------------------------ reading */

/* The state of reading a file. */
typedef struct reading {
    acs_cache_lines in;
    const acs_costs_gpu *gpu;
    acs_costs costs;
    bool begun, named; /* whether the head was read, and a line of a GPU */
    bool ours, found;  /* whether the last GPU line is of our GPU; whether any was */
    int line[ACS_COST_ROWS]; /* number of the line that has the row, of our GPU; 0: none yet */
} reading;

/* The text without white space around it. */
static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Read a line `gpu ID NAME`. False: the line is not one. */
static bool read_gpu(reading *r, char *line)
{
    char id[ACS_DEVICE_ID_BYTES];
    int at = 0;
    const bool begins = strncmp(line, "gpu ", 4) == 0; /* a row's name may begin with it, too */
    if (!begins || sscanf(line + 4, "%63s %n", id, &at) != 1 || !at)
        return false;
    const char *name = trimmed(line + 4 + at);
    r->named = true;
    r->ours = strcmp(id, r->gpu->id) == 0 || (strcmp(id, "any") == 0 && strcmp(name, r->gpu->name) == 0);
    r->found |= r->ours;
    return true;
}

static uint32_t row_of(const char *name)
{
    uint32_t row = 0;
    while (row < ACS_COST_ROWS && strcmp(g_names[row], name) != 0)
        row++;
    return row;
}

static acs_status keep_row(reading *r, const char *name, long long value)
{
    const uint32_t row = row_of(name);
    if (row == ACS_COST_ROWS)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: there is no row '%s'", r->in.name, r->in.number, name);
    if (value < 1 || value > ACS_COST_MOST)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: %s is %lld; it must be from 1 to %d", r->in.name, r->in.number,
                        name, value, ACS_COST_MOST);
    if (!r->ours)
        return ACS_OK;
    if (r->line[row])
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: %s is in line %d, too", r->in.name, r->in.number, name,
                        r->line[row]);
    r->line[row] = r->in.number;
    *acs_cost_at(&r->costs, row) = (uint32_t)value;
    return ACS_OK;
}

static acs_status read_row(reading *r, const char *line)
{
    char name[32], digits[16];
    int at = 0;
    const bool row = sscanf(line, "%31s %15[-0-9] %n", name, digits, &at) == 2 && at && acs_cache_line_is_empty(line + at);
    if (!row || !r->named)
        return acs_cache_line_refuse(&r->in, line, r->named ? "ROW VALUE" : "gpu ID NAME");
    return keep_row(r, name, strtoll(digits, NULL, 10));
}

static acs_status read_line(reading *r, char *line)
{
    if (acs_cache_line_is_empty(line))
        return ACS_OK;
    if (r->begun)
        return read_gpu(r, line) ? ACS_OK : read_row(r, line);
    r->begun = acs_cache_line_is(line, g_head);
    return r->begun ? ACS_OK : acs_cache_line_refuse(&r->in, line, g_head);
}

acs_status acs_costs_read(acs_costs *costs, const acs_costs_gpu *gpu, FILE *file, const char *name)
{
    reading r = {.in = {.file = file, .name = name}, .gpu = gpu, .costs = *costs};
    char line[ACS_CACHE_LINE_BYTES];
    while (acs_cache_line(&r.in, line))
        ACS_TRY(read_line(&r, line));
    ACS_TRY(acs_cache_lines_end(&r.in, r.begun, g_head));
    if (!r.found)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s is of another GPU: it says nothing of %s (%s)", name, gpu->id, gpu->name);
    *costs = r.costs;
    return ACS_OK;
}

/* -------------------------------------------------------------------------------------------------------------- files */

typedef struct wanted {
    acs_costs *costs;
    const acs_costs_gpu *gpu;
} wanted;

static acs_status read_wanted(void *to, FILE *file, const char *name)
{
    const wanted *w = to;
    return acs_costs_read(w->costs, w->gpu, file, name);
}

acs_status acs_costs_path(const acs_costs_gpu *gpu, char path[ACS_CACHE_PATH_BYTES])
{
    return acs_cache_path("costs", acs_cache_hash(gpu->id), path);
}

acs_status acs_costs_load(acs_costs *costs, const acs_costs_gpu *gpu)
{
    char path[ACS_CACHE_PATH_BYTES];
    if (acs_costs_path(gpu, path) != ACS_OK)
        return ACS_NOT_READY;
    return acs_cache_read(path, NULL, read_wanted, &(wanted){costs, gpu});
}

acs_status acs_costs_open(acs_costs *costs, const acs_costs_gpu *gpu, const char *path)
{
    return acs_cache_read(path, "ACS_COSTS", read_wanted, &(wanted){costs, gpu});
}

static acs_status write_costs(const void *what, FILE *file)
{
    return acs_costs_write(what, file);
}

acs_status acs_costs_store(const acs_costs_measured *measured)
{
    char path[ACS_CACHE_PATH_BYTES];
    ACS_TRY(acs_costs_path(&measured->gpu, path));
    return acs_cache_store(path, write_costs, measured);
}
