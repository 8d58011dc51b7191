/*
 * Links between devices (see topology.h): what is possible, what a copy takes, and their text. Called by whoever places ops
 * or shows the machine. Never calls a device.
 */
#include "devices/topology.h"

#include <string.h>

static const char g_head[] = "acs-topology 1";

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

/* Written so that what is no number fails. */
static acs_status check_link(const acs_topology *t, uint32_t from, uint32_t to)
{
    const acs_route *there = &t->links[from][to], *back = &t->links[to][from];
    const char *const a = acs_topology_place(t, from), *const b = acs_topology_place(t, to);
    if (!(there->bandwidth >= 1e6 && there->bandwidth <= 1e14))
        return ACS_FAIL(ACS_ERR_CHECK, 0, "from %s to %s: %g GB/s cannot be", a, b, there->bandwidth / 1e9);
    if (!(there->latency >= 0 && there->latency <= 1))
        return ACS_FAIL(ACS_ERR_CHECK, 0, "from %s to %s: a latency of %g us cannot be", a, b, there->latency * 1e6);
    if (!(there->bandwidth <= 16 * back->bandwidth))
        return ACS_FAIL(ACS_ERR_CHECK, 0, "from %s to %s: %g GB/s, but %g GB/s back, cannot be", a, b,
                        there->bandwidth / 1e9, back->bandwidth / 1e9);
    return ACS_OK;
}

acs_status acs_topology_check(const acs_topology *t)
{
    for (uint32_t from = 0; from <= t->count; from++)
        for (uint32_t to = 0; to <= t->count; to++)
            if (from != to)
                ACS_TRY(check_link(t, from, to));
    return ACS_OK;
}

/* --------------------------------------------------------------------------------------------------------------- text */

acs_status acs_topology_write(const acs_topology *t, FILE *file)
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
    return well && fflush(file) == 0 ? ACS_OK : ACS_FAIL(ACS_ERR_STATE, 0, "the topology could not be written");
}

/* count + 1: none of ours. */
static uint32_t place_of(const acs_topology *t, const char *name)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (strcmp(t->id[i], name) == 0)
            return i;
    return strcmp(name, "host") == 0 ? t->count : t->count + 1;
}

/* A link's line; false: it is none. */
static bool read_link(acs_topology *t, const char *line, bool seen[ACS_DEVICES_MOST + 1][ACS_DEVICES_MOST + 1])
{
    char from[ACS_DEVICE_ID_BYTES], to[ACS_DEVICE_ID_BYTES], how[8], more[2];
    double bandwidth, latency;
    if (sscanf(line, "link %63s %63s %lf %lf %7s %1s", from, to, &bandwidth, &latency, how, more) != 5)
        return false;
    const bool peer = strcmp(how, "peer") == 0;
    const uint32_t a = place_of(t, from), b = place_of(t, to);
    if ((!peer && strcmp(how, "staged") != 0) || strcmp(from, to) == 0)
        return false;
    if (a > t->count || b > t->count)
        return true; /* of devices that are not ours */
    t->links[a][b] = (acs_route){bandwidth * 1e9, latency * 1e-6, peer};
    seen[a][b] = true;
    return true;
}

static bool says_nothing(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

acs_status acs_topology_read(acs_topology *t, FILE *file, const char *name)
{
    bool seen[ACS_DEVICES_MOST + 1][ACS_DEVICES_MOST + 1] = {{false}}, begun = false;
    char line[256];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        char id[ACS_DEVICE_ID_BYTES];
        const bool head = strncmp(line, g_head, sizeof g_head - 1) == 0 && says_nothing(line + sizeof g_head - 1);
        if (says_nothing(line) || (begun && (sscanf(line, "device %63s", id) == 1 || read_link(t, line, seen))))
            continue;
        if (begun || !head)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%s, line %d: '%.*s' is not '%s'", name, number,
                            (int)strcspn(line, "\r\n"), line, begun ? "link FROM TO GB/s us peer|staged" : g_head);
        begun = true;
    }
    for (uint32_t from = 0; from <= t->count; from++)
        for (uint32_t to = 0; to <= t->count; to++)
            if (from != to && !seen[from][to])
                return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%s says nothing of the link from %s to %s", name,
                                acs_topology_place(t, from), acs_topology_place(t, to));
    return acs_topology_check(t);
}
