/*
 * Links between devices (see topology.h): what is possible, what a copy takes, their text, and the file that keeps them
 * between runs. Called where devices are opened, where ops are placed and where the machine is shown. Never calls a
 * device, nor replaces a file itself; cache_file.c does.
 */
#include "devices/topology.h"

#include "base/cache_file.h"

#include <locale.h>
#include <string.h>

enum { WHY_BYTES = 256 };

static const char g_head[] = "acs-topology 1";

/* A file that is being read. */
typedef struct reading {
    acs_topology *t;
    acs_cache_lines in;
    int links[ACS_DEVICES_MOST + 1][ACS_DEVICES_MOST + 1]; /* number of the line that gives the link; 0: none */
} reading;

void acs_topology_id(char id[ACS_DEVICE_ID_BYTES], const char uuid[16])
{
    size_t used = (size_t)snprintf(id, ACS_DEVICE_ID_BYTES, "GPU");
    for (size_t i = 0; i < 16; i++) {
        const char *dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        used += (size_t)snprintf(id + used, ACS_DEVICE_ID_BYTES - used, "%s%02x", dash, (unsigned)(unsigned char)uuid[i]);
    }
}

const char *acs_topology_place(const acs_topology *t, uint32_t place)
{
    return place < t->count ? t->id[place] : "host";
}

double acs_topology_seconds(const acs_topology *t, uint32_t from, uint32_t to, uint64_t bytes)
{
    const acs_route *link = &t->links[from][to];
    return from == to || bytes == 0 ? 0 : link->latency + (double)bytes / link->bandwidth;
}

/* -------------------------------------------------------------------------------------------------------------- check */

/* Whether the figures of one direction are possible. The comparisons are written so that NaN fails. */
static bool figures_can_be(const acs_topology *t, uint32_t from, uint32_t to, char why[WHY_BYTES])
{
    const acs_route *link = &t->links[from][to];
    const bool bandwidth = link->bandwidth >= 1e6 && link->bandwidth <= 1e14;
    if (bandwidth && link->latency >= 0 && link->latency <= 1)
        return true;
    (void)snprintf(why, WHY_BYTES, "from %s to %s: %s%g %s cannot be", acs_topology_place(t, from),
                   acs_topology_place(t, to), bandwidth ? "a latency of " : "",
                   bandwidth ? link->latency * 1e6 : link->bandwidth / 1e9, bandwidth ? "us" : "GB/s");
    return false;
}

static bool proportion_can_be(const acs_topology *t, uint32_t from, uint32_t to, char why[WHY_BYTES])
{
    const double there = t->links[from][to].bandwidth, back = t->links[to][from].bandwidth;
    if (there <= 16 * back)
        return true;
    (void)snprintf(why, WHY_BYTES, "from %s to %s: %g GB/s, but %g GB/s back, cannot be", acs_topology_place(t, from),
                   acs_topology_place(t, to), there / 1e9, back / 1e9);
    return false;
}

/* Find the first link that is not possible, and why. False: all are. */
static bool find_impossible(const acs_topology *t, uint32_t *from, uint32_t *to, char why[WHY_BYTES])
{
    for (int both = 0; both < 2; both++)
        for (*from = 0; *from <= t->count; ++*from)
            for (*to = 0; *to <= t->count; ++*to)
                if (*from != *to && !(both ? proportion_can_be : figures_can_be)(t, *from, *to, why))
                    return true;
    return false;
}

acs_status acs_topology_check(const acs_topology *t)
{
    uint32_t from, to;
    char why[WHY_BYTES];
    return find_impossible(t, &from, &to, why) ? ACS_FAIL(ACS_ERR_CHECK, 0, "%s", why) : ACS_OK;
}

/* --------------------------------------------------------------------------------------------------------------- text */

/* Use decimal points in this thread, whatever the program's locale, until leave_text. */
static locale_t enter_text(locale_t *before)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    *before = uselocale(plain); /* 0, without memory: the locale stays as it is */
    return plain;
}

static void leave_text(locale_t plain, locale_t before)
{
    (void)uselocale(before);
    if (plain)
        freelocale(plain);
}

static bool write_text(const acs_topology *t, FILE *file)
{
    static const char about[] = "# link FROM TO: GB/s (10^9 bytes), us of a small copy, and whether as peers";
    bool well = fprintf(file, "%s\n%s\n", g_head, about) > 0;
    for (uint32_t i = 0; i < t->count; i++)
        well = fprintf(file, "device %s\n", t->id[i]) > 0 && well;
    for (uint32_t from = 0; from <= t->count; from++)
        for (uint32_t to = 0; to <= t->count; to++) {
            const acs_route *link = &t->links[from][to];
            if (from != to)
                well = fprintf(file, "link %s %s %.6g %.6g %s\n", acs_topology_place(t, from), acs_topology_place(t, to),
                               link->bandwidth / 1e9, link->latency * 1e6, link->peer ? "peer" : "staged") > 0 && well;
        }
    return well && fflush(file) == 0;
}

acs_status acs_topology_write(const acs_topology *t, FILE *file)
{
    locale_t before, plain = enter_text(&before);
    const bool well = write_text(t, file);
    leave_text(plain, before);
    return well ? ACS_OK : ACS_FAIL(ACS_ERR_STATE, 0, "the topology could not be written");
}

/* The place of that name; count + 1: there is none. */
static uint32_t named_place(const acs_topology *t, const char *name)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (strcmp(t->id[i], name) == 0)
            return i;
    return strcmp(name, "host") == 0 ? t->count : t->count + 1;
}

/* Read the line of a link. False: it is none. */
static bool read_link(reading *r, const char *line)
{
    char from[ACS_DEVICE_ID_BYTES], to[ACS_DEVICE_ID_BYTES], how[8], more[2];
    double bandwidth, latency;
    if (sscanf(line, "link %63s %63s %lf %lf %7s %1s", from, to, &bandwidth, &latency, how, more) != 5)
        return false;
    const bool peer = strcmp(how, "peer") == 0;
    const uint32_t a = named_place(r->t, from), b = named_place(r->t, to);
    if ((!peer && strcmp(how, "staged") != 0) || strcmp(from, to) == 0)
        return false;
    if (a > r->t->count || b > r->t->count)
        return true; /* of other devices */
    r->t->links[a][b] = (acs_route){bandwidth * 1e9, latency * 1e-6, peer};
    r->links[a][b] = r->in.number;
    return true;
}

static acs_status read_lines(reading *r)
{
    char line[ACS_CACHE_LINE_BYTES];
    bool begun = false; /* whether the head was read */
    while (acs_cache_line(&r->in, line)) {
        char id[ACS_DEVICE_ID_BYTES];
        if (acs_cache_line_is_empty(line) || (begun && (sscanf(line, "device %63s", id) == 1 || read_link(r, line))))
            continue;
        if (begun || !acs_cache_line_is(line, g_head))
            return acs_cache_line_refuse(&r->in, line, begun ? "link FROM TO GB/s us peer|staged" : g_head);
        begun = true;
    }
    return acs_cache_lines_end(&r->in, begun, g_head);
}

acs_status acs_topology_read(acs_topology *t, FILE *file, const char *name)
{
    reading r = {.t = t, .in = {.file = file, .name = name}};
    char why[WHY_BYTES];
    uint32_t from, to;
    locale_t before, plain = enter_text(&before);
    const acs_status status = read_lines(&r);
    leave_text(plain, before);
    ACS_TRY(status);
    for (from = 0; from <= t->count; from++)
        for (to = 0; to <= t->count; to++)
            if (from != to && !r.links[from][to])
                return ACS_FAIL(ACS_ERR_OPTION, 0, "%s says nothing of the link from %s to %s", name,
                                acs_topology_place(t, from), acs_topology_place(t, to));
    if (find_impossible(t, &from, &to, why))
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: %s", name, r.links[from][to], why);
    return ACS_OK;
}

/* -------------------------------------------------------------------------------------------------------------- files */

/* The sum of a hash of each id, which is the same for any order. */
static uint64_t set_hash(const acs_topology *t)
{
    uint64_t sum = t->count;
    for (uint32_t i = 0; i < t->count; i++)
        sum += acs_cache_hash(t->id[i]) * 2 + 1;
    return sum;
}

acs_status acs_topology_path(const acs_topology *t, char path[ACS_TOPOLOGY_PATH_BYTES])
{
    return acs_cache_path("topology", set_hash(t), path);
}

static acs_status read_links(void *to, FILE *file, const char *name)
{
    return acs_topology_read(to, file, name);
}

acs_status acs_topology_load(acs_topology *t)
{
    char path[ACS_TOPOLOGY_PATH_BYTES];
    return acs_topology_path(t, path) == ACS_OK ? acs_cache_read(path, NULL, read_links, t) : ACS_NOT_READY;
}

acs_status acs_topology_open(acs_topology *t, const char *path)
{
    return acs_cache_read(path, "ACS_TOPOLOGY", read_links, t);
}

static acs_status write_links(const void *what, FILE *file)
{
    return acs_topology_write(what, file);
}

/* Each file has the whole text; a reader skips devices that are not its own. */
acs_status acs_topology_store(const acs_topology *t)
{
    char path[ACS_TOPOLOGY_PATH_BYTES];
    acs_topology first = *t;
    for (first.count = 1; first.count <= t->count; first.count++) {
        ACS_TRY(acs_topology_path(&first, path));
        ACS_TRY(acs_cache_store(path, write_links, t));
    }
    return ACS_OK;
}
