/*
 * Options: read once per acs_open, before any thread of the context exists, and never changed. The only file that
 * reads the environment is options.c.
 */
#ifndef ACS_OPTIONS_H
#define ACS_OPTIONS_H

#include "base/base.h"

/* Check every range; name the option, its value and the range in the error. */
acs_status acs_options_check(const acs_options *options);
/* Copy a program's struct, of this or an older header, over the defaults. */
acs_status acs_options_adopt(acs_options *to, const acs_options *from);
/*
 * What the option of this variable asks for cannot be had, and `text` says why. ACS_OK if the environment asked for it: the
 * program runs without it, and a warning was written once, whatever the level is. Otherwise ACS_ERR_OPTION.
 */
acs_status acs_options_cannot(const acs_options *options, const char *variable, int native, const char *text);
/* The same for a file that cannot be written; `error` is the errno. */
acs_status acs_options_no_file(const acs_options *options, const char *variable, const char *path, int error);
/* docs/options.md, generated. Returns bytes needed without the final 0, as snprintf. */
size_t acs_options_markdown(char *text, size_t bytes);

/* Value of a variable that is not an option of ACS, such as CUDA's; NULL if it is not set. */
const char *acs_environment(const char *name);
/* The same for a variable that names a folder: also NULL in a set-user-ID program. */
const char *acs_environment_folder(const char *name);

#endif
