/*
 * Where the links of a set of devices are kept between runs (see topology.h). Called where devices are opened. Whoever
 * reads finds a whole file or none: a new one is written beside it and takes its place.
 */
#include "devices/topology.h"

#include "base/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a of each id, added up: the same for any order. */
static uint64_t set_hash(const acs_topology *t)
{
    uint64_t sum = t->count;
    for (uint32_t i = 0; i < t->count; i++) {
        uint64_t hash = UINT64_C(14695981039346656037);
        for (const char *c = t->id[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
        sum += hash * 2 + 1;
    }
    return sum;
}

acs_status acs_topology_path(const acs_topology *t, char path[ACS_TOPOLOGY_PATH_BYTES])
{
    const char *cache = acs_environment_folder("XDG_CACHE_HOME"), *home = acs_environment_folder("HOME");
    const bool named = cache && *cache == '/'; /* the specification says to ignore what is relative */
    if (!named && !(home && *home == '/'))
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "neither XDG_CACHE_HOME nor HOME names a folder");
    int length = snprintf(path, ACS_TOPOLOGY_PATH_BYTES, "%s%s/acs/topology-%016llx", named ? cache : home,
                          named ? "" : "/.cache", (unsigned long long)set_hash(t));
    if (length >= ACS_TOPOLOGY_PATH_BYTES)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "the cache folder's path is too long");
    return ACS_OK;
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
    (void)fclose(file); /* was read */
    return status;
}

/* All folders of a path, as far as they lack. */
static bool make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            *slash = '/';
            return false;
        }
    }
    return true;
}

static acs_status failed(const char *what, const char *path)
{
    return ACS_FAIL(ACS_ERR_STATE, errno, "%s %s: %s", what, path, strerror(errno));
}

static acs_status store_as(const acs_topology *t, char path[ACS_TOPOLOGY_PATH_BYTES])
{
    char fresh[ACS_TOPOLOGY_PATH_BYTES + 16];
    if (!make_folders(path))
        return failed("making the folders of", path);
    (void)snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int descriptor = mkostemp(fresh, O_CLOEXEC); /* 0600 */
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (!file) {
        acs_status status = failed("writing", fresh);
        if (descriptor >= 0) {
            (void)close(descriptor);
            (void)unlink(fresh);
        }
        return status;
    }
    acs_status status = acs_topology_write(t, file);
    if (fclose(file) != 0 && status == ACS_OK)
        status = failed("writing", fresh);
    if (status == ACS_OK && rename(fresh, path) != 0)
        status = failed("replacing", path);
    if (status != ACS_OK)
        (void)unlink(fresh);
    return status;
}

/* Under each name the whole text: who reads it passes by devices that are not its own. */
acs_status acs_topology_store(const acs_topology *t)
{
    char path[ACS_TOPOLOGY_PATH_BYTES];
    acs_topology first = *t;
    for (first.count = 1; first.count <= t->count; first.count++) {
        ACS_TRY(acs_topology_path(&first, path));
        ACS_TRY(store_as(t, path));
    }
    return ACS_OK;
}
