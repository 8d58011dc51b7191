/*
 * A program that uses ACS and loads a plugin that uses ACS too.
 *   two_copies <plugin> refused <file> <file>   both have a copy: neither may open, and the errors name the two files
 *   two_copies <plugin> allowed                 both use the same libacs.so
 * Before the plugin is loaded and after it is unloaded the program may open. Exit status 0, or 1 with what was wrong.
 */
#include <acs.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef acs_status (*open_fn)(char *text, size_t bytes);

static acs_status open_here(char *text, size_t bytes)
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
    snprintf(text, bytes, "%s", error.text);
    return status;
}

/* Whether an open ended as it must; `names` is NULL where it must succeed, else the two files. */
static int check(const char *when, open_fn open, char **names)
{
    char text[ACS_ERROR_TEXT_BYTES] = "";
    acs_status status = open(text, sizeof text);
    int right = names ? status == ACS_ERR_STATE && strstr(text, names[0]) && strstr(text, names[1]) : status == ACS_OK;
    printf("%s: %s %s\n", when, acs_status_name(status), text);
    if (!right)
        fprintf(stderr, "two_copies: %s: that is wrong\n", when);
    return !right;
}

int main(int count, char **words)
{
    open_fn open_there;
    int refused = count == 5 && strcmp(words[2], "refused") == 0;
    if (!refused && !(count == 3 && strcmp(words[2], "allowed") == 0)) {
        fprintf(stderr, "usage: two_copies PLUGIN refused FILE FILE | two_copies PLUGIN allowed\n");
        return 1;
    }
    char **names = refused ? words + 3 : NULL;
    int bad = check("alone", open_here, NULL);
    void *plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    void *symbol = plugin ? dlsym(plugin, "plugin_open") : NULL;
    if (!symbol) {
        fprintf(stderr, "two_copies: %s\n", dlerror());
        return 1;
    }
    memcpy(&open_there, &symbol, sizeof symbol);
    bad |= check("the plugin", open_there, names);
    bad |= check("beside the plugin", open_here, names);
    if (dlclose(plugin) != 0) {
        fprintf(stderr, "two_copies: %s\n", dlerror());
        return 1;
    }
    bad |= check("after it was unloaded", open_here, NULL);
    /* Without exit handlers: the thread sanitizer keeps those of the CUDA runtime in the plugin, whose code is gone. */
    fflush(stdout);
    _exit(bad);
}
