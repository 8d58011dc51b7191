/*
 * Files in the user's cache folder (cache_file.h). Called by devices/topology and variants/profile_file.
 * Never knows what the files contain.
 */
#include "base/cache_file.h"

#include "base/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_BYTES = 80 };

/* ---------------------------------------------------------------------------------------------------------- reading */

bool acs_cache_line_is_empty(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

bool acs_cache_line_is(const char *line, const char *head)
{
    const size_t length = strlen(head);
    return strncmp(line, head, length) == 0 && acs_cache_line_is_empty(line + length);
}

/* A line of ACS_CACHE_LINE_BYTES and more can only be a comment. */
bool acs_cache_line(acs_cache_lines *lines, char line[ACS_CACHE_LINE_BYTES])
{
    int c;
    if (!fgets(line, ACS_CACHE_LINE_BYTES, lines->file))
        return false;
    lines->number++;
    if (strlen(line) < ACS_CACHE_LINE_BYTES - 1 || line[ACS_CACHE_LINE_BYTES - 2] == '\n')
        return true;
    while ((c = fgetc(lines->file)) != EOF && c != '\n')
        continue;
    memcpy(line + ACS_CACHE_LINE_BYTES - 4, "...", 4);
    return true;
}

acs_status acs_cache_line_refuse(const acs_cache_lines *lines, const char *line, const char *wanted)
{
    const size_t length = strcspn(line, "\r\n");
    return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: '%.*s' is not '%s'", lines->name, lines->number,
                    (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), line, wanted);
}

/* Reading fails where the path is a folder, which opening does not notice. */
acs_status acs_cache_lines_end(const acs_cache_lines *lines, bool begun, const char *head)
{
    if (ferror(lines->file))
        return ACS_FAIL(ACS_ERR_OPTION, errno, "%s cannot be read: %s", lines->name, strerror(errno));
    return begun ? ACS_OK : ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: the file ends, but there is no '%s'", lines->name,
                                     lines->number + 1, head);
}

acs_status acs_cache_read(const char *path, const char *option, acs_cache_reader read, void *to)
{
    char name[ACS_CACHE_PATH_BYTES + 32];
    (void)snprintf(name, sizeof name, option ? "%s: '%s'" : "%s%s", option ? option : "", path);
    FILE *file = fopen(path, "re");
    if (!file)
        return option ? ACS_FAIL(ACS_ERR_OPTION, errno, "%s cannot be read: %s", name, strerror(errno)) : ACS_NOT_READY;
    const acs_status status = read(to, file, name);
    (void)fclose(file); /* read only: an error loses nothing */
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- storing */

uint64_t acs_cache_hash(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

acs_status acs_cache_path(const char *name, uint64_t hash, char path[ACS_CACHE_PATH_BYTES])
{
    const char *cache = acs_environment_folder("XDG_CACHE_HOME"), *home = acs_environment_folder("HOME");
    const bool named = cache && *cache == '/'; /* the specification says to ignore a relative path */
    if (!named && !(home && *home == '/'))
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "neither XDG_CACHE_HOME nor HOME names a folder");
    int length = snprintf(path, ACS_CACHE_PATH_BYTES, "%s%s/acs/%s-%016llx", named ? cache : home, named ? "" : "/.cache",
                          name, (unsigned long long)hash);
    if (length >= ACS_CACHE_PATH_BYTES)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "the cache folder's path is too long");
    return ACS_OK;
}

/* Make the folders of a path that do not exist. */
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

static acs_status store_failed(const char *what, const char *path)
{
    return ACS_FAIL(ACS_ERR_STATE, errno, "%s %s: %s", what, path, strerror(errno));
}

/* Make a file of this pattern, which only its owner may read. NULL: store_failed set the error. */
static FILE *make_beside(char *pattern)
{
    const int descriptor = mkostemp(pattern, O_CLOEXEC); /* 0600 */
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file)
        return file;
    (void)store_failed("writing", pattern);
    if (descriptor >= 0) {
        (void)close(descriptor);
        (void)unlink(pattern);
    }
    return NULL;
}

acs_status acs_cache_store(char path[ACS_CACHE_PATH_BYTES], acs_cache_writer write, const void *what)
{
    char fresh[ACS_CACHE_PATH_BYTES + 16];
    if (!make_folders(path))
        return store_failed("making the folders of", path);
    (void)snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    FILE *file = make_beside(fresh);
    if (!file)
        return ACS_ERR_STATE;
    acs_status status = write(what, file);
    if (fclose(file) != 0 && status == ACS_OK)
        status = store_failed("writing", fresh);
    if (status == ACS_OK && rename(fresh, path) != 0)
        status = store_failed("replacing", path);
    if (status != ACS_OK)
        (void)unlink(fresh);
    return status;
}
