/*
 * acs-info: what this installation of ACS is and what it can do here: version and build, the backends that open or why
 * they do not, the one that `auto` takes, the GPUs with links, and each option with its value and source; as text
 * or as JSON. Run by people, and for reports of defects; it queues no op, but for a measurement where it is asked for one.
 * status: 0; 1 where a program that sets nothing would get an error from acs_open, as with a bad value of a variable, or
 * nothing could be measured or kept; 2 for a bad command line.
 */
#include "acs_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char g_usage[] =
    "usage: acs-info [--json] [--measure]\n"
    "Shows version and build of ACS, the backends that work here or why they do not, the GPUs and the links between\n"
    "them, and each option with its value and where the value comes from.\n"
    "  --json     the same for programs, as one JSON object\n"
    "  --measure  measure the links between the GPUs and the host, and keep the figures, for these GPUs and for the first\n"
    "             of them. Nothing else should use the GPUs meanwhile. ACS_DEVICES=N: the first N alone\n"
    "  --help     this text\n"
    "Exit status: 0; 1 if acs_open would fail, as with a variable that has a bad value, or --measure measured or kept\n"
    "nothing; 2 for a bad command line.\n";

/* Every option's variable, from the library's own table. */
static const char *const g_variables[] = {
#define ACS_OPT_NUMBER(field, env, def, lo, hi, unit, help) env,
#define ACS_OPT_CHOICE(field, env, def, names, help) env,
#define ACS_OPT_TEXT(field, env, def, form, help) env,
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_CHOICE
#undef ACS_OPT_TEXT
};
#define VARIABLES INFO_COUNT(g_variables)
_Static_assert(VARIABLES <= INFO_OPTIONS_MOST, "INFO_OPTIONS_MOST is too small");

static void *must(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "acs-info: no memory\n");
    exit(1);
}

static void error_text(char text[ACS_ERROR_TEXT_BYTES])
{
    acs_error error = {.size = sizeof error};
    text[0] = 0;
    if (acs_last_error(&error) != ACS_OK)
        memcpy(text, error.text, sizeof error.text);
}

/* ------------------------------------------------------------------------------------------------------- environment */

static bool is_option(const char *name, size_t length)
{
    for (size_t i = 0; i < VARIABLES; i++)
        if (strlen(g_variables[i]) == length && memcmp(g_variables[i], name, length) == 0)
            return true;
    return false;
}

static void find_unknown(info *to)
{
    for (char **at = environ; *at && to->unknown_count < INFO_UNKNOWN_MOST; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, "ACS_", 4) == 0 && !is_option(*at, length))
            to->unknown[to->unknown_count++] = must(strndup(*at, length));
    }
    for (uint32_t i = 0; i < to->unknown_count; i++)
        (void)unsetenv(to->unknown[i]); /* the report names them, so the library need not */
}

/*
 * The library names the first bad value only, and opens nothing as long as there is one. So each variable is tried alone,
 * and the bad ones stay out of this process's environment: the rest can then be looked at.
 */
static void read_environment(info *to)
{
    char *values[VARIABLES] = {NULL};
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(g_variables[i]);
        if (value)
            values[i] = must(strdup(value));
        (void)unsetenv(g_variables[i]);
    }
    for (size_t i = 0; i < VARIABLES; i++) {
        acs_options options;
        if (!values[i])
            continue;
        (void)setenv(g_variables[i], values[i], 1);
        if (acs_options_init(&options, sizeof options) != ACS_OK) {
            error_text(to->bad[to->bad_count++]);
            free(values[i]);
            values[i] = NULL;
        }
        (void)unsetenv(g_variables[i]);
    }
    for (size_t i = 0; i < VARIABLES; i++) {
        if (values[i])
            must(setenv(g_variables[i], values[i], 1) == 0 ? values[i] : NULL);
        free(values[i]);
    }
}

/* Cut "NAME=value (source)\n" lines into their parts. A value may hold anything, so its end is looked for from behind. */
static void read_options(info *to)
{
    acs_options options;
    if (acs_options_init(&options, sizeof options) != ACS_OK)
        return; /* no variable is bad by now */
    size_t bytes = acs_options_dump(&options, NULL, 0) + 1;
    to->dump = must(malloc(bytes));
    (void)acs_options_dump(&options, to->dump, bytes);
    char *rest = to->dump;
    for (char *line; to->option_count < INFO_OPTIONS_MOST && (line = strtok_r(rest, "\n", &rest)) != NULL;) {
        char *value = strchr(line, '='), *source = strrchr(line, '('), *end = strrchr(line, ')');
        if (!value || !source || !end || source - 1 <= value)
            continue;
        *value = source[-1] = *end = 0;
        to->options[to->option_count++] = (info_option){line, value + 1, source + 1};
    }
}

/* ---------------------------------------------------------------------------------------------------------- backends */

static const char *backend_name(int backend)
{
    static const char *const names[] = {"auto", "cuda", "host", "sim"};
    return backend >= 0 && backend < (int)INFO_COUNT(names) ? names[backend] : NULL;
}

/* Open a context and close it; quietly, whatever ACS_LOG and ACS_STATS say, so that the output stays what it is. */
static void try_open(info_open *to, int backend)
{
    acs_options options;
    acs_context *context;
    to->asked = backend_name(backend);
    acs_status status = acs_options_init(&options, sizeof options);
    options.backend = backend;
    options.log = ACS_LOG_OFF;
    options.stats = 0;
    if (status == ACS_OK)
        status = acs_open(&options, &context);
    if (status != ACS_OK) {
        error_text(to->why);
        return;
    }
    to->opened = backend_name(acs_context_backend(context));
    (void)acs_close(context); /* nothing ran, so nothing failed */
}

static void read_backends(info *to)
{
    acs_options options;
    try_open(&to->backends[0], ACS_BACKEND_CUDA);
    try_open(&to->backends[1], ACS_BACKEND_HOST);
    try_open(&to->backends[2], ACS_BACKEND_SIM);
    try_open(&to->automatic, ACS_BACKEND_AUTO);
    if (to->bad_count > 0)
        memcpy(to->program.why, to->bad[0], sizeof to->program.why);
    else if (acs_options_init(&options, sizeof options) == ACS_OK)
        try_open(&to->program, options.backend);
}

/* -------------------------------------------------------------------------------------------------------------- main */

/* Of a command line that is refused: the first word that is no option, or is there twice, or is not alone. */
static const char *first_wrong(char **words, bool *json, bool *measure)
{
    for (char **word = words + 1; *word; word++) {
        bool *const flag = strcmp(*word, "--json") == 0 ? json : strcmp(*word, "--measure") == 0 ? measure : NULL;
        if (!flag || *flag)
            return *word;
        *flag = true;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------- ledger */

static void add_line(void *user, const acs_ledger_line *line)
{
    info *to = user;
    if (to->ledger_count < INFO_LEDGER_MOST)
        to->ledger[to->ledger_count++] = *line;
}

void info_read_ledger(info *to, const char *option)
{
    char name[ACS_OPTION_TEXT_BYTES] = "/acs";
    if (option && *option == '/')
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(option, ":"), option);
    acs_status status = acs_ledger_each(name, add_line, to);
    if (status == ACS_NOT_READY)
        (void)snprintf(to->ledger_why, sizeof to->ledger_why, "no program has joined %s yet", name);
    else if (status != ACS_OK)
        error_text(to->ledger_why);
    else if (to->ledger_count == 0)
        (void)snprintf(to->ledger_why, sizeof to->ledger_why, "no program is in %s", name);
}

/* 0: ACS_DEVICES says nothing, or that a context has all; a bad value was taken out. */
static uint32_t asked_devices(void)
{
    acs_options options;
    return getenv("ACS_DEVICES") && acs_options_init(&options, sizeof options) == ACS_OK ? (uint32_t)options.devices : 0;
}

static void release(info *it)
{
    for (uint32_t i = 0; i < it->unknown_count; i++)
        free((void *)(uintptr_t)it->unknown[i]); /* strndup's, const only for the readers */
    free(it->dump);
    free(it);
}

int main(int count, char **words)
{
    bool json = false, measure = false;
    if (count == 2 && strcmp(words[1], "--help") == 0)
        return fputs(g_usage, stdout) < 0 || fflush(stdout) != 0;
    const char *wrong = first_wrong(words, &json, &measure);
    if (wrong) {
        fprintf(stderr, "acs-info: '%s' is not understood\n%s", wrong, g_usage);
        return 2;
    }
    info *it = must(calloc(1, sizeof *it));
    find_unknown(it);
    read_environment(it);
    read_options(it);
    read_backends(it);
    info_read_gpus(it);
    info_read_links(it, asked_devices(), measure);
    info_read_ledger(it, getenv("ACS_LEDGER"));
    if (json)
        info_print_json(it);
    else
        info_print_text(it);
    bool failed = !it->program.opened || (measure && *it->links_why);
    failed |= fflush(stdout) != 0 || ferror(stdout);
    release(it);
    return failed;
}
