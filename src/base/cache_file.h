/*
 * Text files that are kept between runs, below the user's cache folder: measurements. Their lines, their paths, and how a
 * new one takes the place of an old one.
 */
#ifndef ACS_CACHE_FILE_H
#define ACS_CACHE_FILE_H

#include "base/base.h"

#include <stdio.h>

enum { ACS_CACHE_PATH_BYTES = 4096, ACS_CACHE_LINE_BYTES = 256 };

/* A file that is being read. */
typedef struct acs_cache_lines {
    FILE *file;
    const char *name; /* for errors */
    int number;       /* of the latest line */
} acs_cache_lines;

/* The next line; false: there is none. Of one that is too long the end is cut off and replaced by dots. */
bool acs_cache_line(acs_cache_lines *lines, char line[ACS_CACHE_LINE_BYTES]);
/* The line is empty, or a comment. */
bool acs_cache_line_is_empty(const char *line);
/* The line is `head`, and nothing else. */
bool acs_cache_line_is(const char *line, const char *head);
/* ACS_ERR_OPTION: the file and the line's number; `wanted` could stand there instead. */
acs_status acs_cache_line_refuse(const acs_cache_lines *lines, const char *line, const char *wanted);
/* After the last line. ACS_ERR_OPTION: reading failed, or `head` was not found (`begun` is false). */
acs_status acs_cache_lines_end(const acs_cache_lines *lines, bool begun, const char *head);

/* Of a text: FNV-1a, the same in all versions of the library. */
uint64_t acs_cache_hash(const char *text);
/*
 * "<folder>/acs/<name>-<hash>": below $XDG_CACHE_HOME, or $HOME/.cache. ACS_ERR_UNSUPPORTED: there is no such folder.
 */
acs_status acs_cache_path(const char *name, uint64_t hash, char path[ACS_CACHE_PATH_BYTES]);

typedef acs_status (*acs_cache_writer)(const void *what, FILE *file);
/*
 * Make the path's folders, write the file beside its place, then move it there: a reader finds a whole file or none. Only
 * its owner may read it. ACS_ERR_STATE: it could not be written, why; or the writer's error. Nothing has changed then.
 */
acs_status acs_cache_store(char path[ACS_CACHE_PATH_BYTES], acs_cache_writer write, const void *what);

#endif
