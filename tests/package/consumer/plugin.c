/*
 * A plugin that uses ACS, with the archive or the shared library. two_copies.c loads it; it opens a context and closes it,
 * and says why where it could not. It keeps nothing, so that it can be unloaded.
 */
#include <acs.h>

#include <string.h>

__attribute__((visibility("default"))) acs_status plugin_open(char *text, size_t bytes);

acs_status plugin_open(char *text, size_t bytes)
{
    acs_options options;
    acs_context *context;
    acs_error error = {.size = sizeof error};
    acs_status status = acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    if (status == ACS_OK)
        status = acs_open(&options, &context);
    if (status == ACS_OK)
        return acs_close(context);
    acs_last_error(&error);
    strncpy(text, error.text, bytes - 1);
    text[bytes - 1] = 0;
    return status;
}
