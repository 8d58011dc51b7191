/*
 * Text files with measurements, kept between runs in the user's cache folder: reading their lines, finding their paths,
 * replacing a file by a new one. Used by devices/topology and variants/profile_file, which know the contents.
 */
#ifndef ACS_CACHE_FILE_H
#define ACS_CACHE_FILE_H

#include "base/base.h"

#include <stdio.h>

enum { ACS_CACHE_PATH_BYTES = 4096, ACS_CACHE_LINE_BYTES = 256 };

/* A file that is being read. */
typedef struct acs_cache_lines {
    FILE *file;
    const char *name; /* the file's name in errors */
    int number;       /* number of the latest line, from 1 */
} acs_cache_lines;

/* Read the next line; false: there is none. The end of a line that is too long is replaced by dots. */
bool acs_cache_line(acs_cache_lines *lines, char line[ACS_CACHE_LINE_BYTES]);
/* Whether the line is empty, or a comment. */
bool acs_cache_line_is_empty(const char *line);
/* Whether the line is `head` alone, but for space and a comment. */
bool acs_cache_line_is(const char *line, const char *head);
/* Refuse a line: ACS_ERR_OPTION, with file, line number and `wanted`, an example of a valid line. */
acs_status acs_cache_line_refuse(const acs_cache_lines *lines, const char *line, const char *wanted);
/* After the last line. ACS_ERR_OPTION: reading failed, or `head` was not found (`begun` is false). */
acs_status acs_cache_lines_end(const acs_cache_lines *lines, bool begun, const char *head);

typedef acs_status (*acs_cache_reader)(void *to, FILE *file, const char *name);
/*
 * Open a file and read it. `option`: the variable that names it, which errors name, too; ACS_ERR_OPTION if it cannot be
 * opened. NULL: ACS_NOT_READY then.
 */
acs_status acs_cache_read(const char *path, const char *option, acs_cache_reader read, void *to);

/* Hash of a text (FNV-1a), the same in all versions of the library. */
uint64_t acs_cache_hash(const char *text);
/*
 * The path "<folder>/acs/<name>-<hash>", where the folder is $XDG_CACHE_HOME or $HOME/.cache. ACS_ERR_UNSUPPORTED:
 * neither is set, or the path is too long.
 */
acs_status acs_cache_path(const char *name, uint64_t hash, char path[ACS_CACHE_PATH_BYTES]);

typedef acs_status (*acs_cache_writer)(const void *what, FILE *file);
/*
 * Make the path's folders, write the file beside its place, then move it there: a reader finds a whole file or none.
 * Only the file's owner may read it. On failure an older file stays: ACS_ERR_STATE with the reason, or the writer's
 * error.
 */
acs_status acs_cache_store(char path[ACS_CACHE_PATH_BYTES], acs_cache_writer write, const void *what);

#endif
