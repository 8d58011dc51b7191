/*
 * The file that keeps the costs of a GPU between runs (costs.h). Called where a device is opened, and by acs-info. It
 * never replaces a file itself; cache_file.c does.
 */
#include "bundles/costs.h"

#include "base/cache_file.h"

#include <errno.h>
#include <string.h>

acs_status acs_costs_path(const acs_costs_gpu *gpu, char path[ACS_CACHE_PATH_BYTES])
{
    return acs_cache_path("costs", acs_cache_hash(gpu->id), path);
}

acs_status acs_costs_load(acs_costs *costs, const acs_costs_gpu *gpu)
{
    char path[ACS_CACHE_PATH_BYTES];
    if (acs_costs_path(gpu, path) != ACS_OK)
        return ACS_NOT_READY;
    FILE *file = fopen(path, "re");
    if (!file)
        return ACS_NOT_READY;
    acs_status status = acs_costs_read(costs, gpu, file, path);
    (void)fclose(file); /* read only: an error loses nothing */
    return status;
}

acs_status acs_costs_open(acs_costs *costs, const acs_costs_gpu *gpu, const char *path)
{
    char name[ACS_OPTION_TEXT_BYTES + 16];
    (void)snprintf(name, sizeof name, "ACS_COSTS: '%s'", path);
    FILE *file = fopen(path, "re");
    if (!file)
        return ACS_FAIL(ACS_ERR_OPTION, errno, "%s cannot be read: %s", name, strerror(errno));
    acs_status status = acs_costs_read(costs, gpu, file, name);
    (void)fclose(file); /* read only: an error loses nothing */
    return status;
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
