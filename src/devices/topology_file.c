/*
 * The file that keeps the links of a set of devices between runs (see topology.h). Called where devices are opened.
 * cache_file.c replaces the file.
 */
#include "devices/topology.h"

#include "base/cache_file.h"

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

acs_status acs_topology_load(acs_topology *t)
{
    char path[ACS_TOPOLOGY_PATH_BYTES];
    if (acs_topology_path(t, path) != ACS_OK)
        return ACS_NOT_READY;
    FILE *file = fopen(path, "re");
    if (!file)
        return ACS_NOT_READY;
    acs_status status = acs_topology_read(t, file, path);
    (void)fclose(file); /* was only read */
    return status;
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
