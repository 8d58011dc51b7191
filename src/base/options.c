/*
 * Options: reads them from the environment, checks them, dumps them and writes docs/options.md, all from the rows of
 * acs_options.def. Called by programs (acs_options_init, acs_options_dump) and by acs_open; the only file of the
 * library that reads the environment. Keeps no state: the values are in the caller's struct.
 */
#include "base/options.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { KIND_NUMBER, KIND_CHOICE, KIND_TEXT };

struct row {
    enum kind kind;
    const char *field;
    const char *env;
    size_t offset;     /* offset of the field in acs_options */
    size_t bytes;      /* size of the field */
    int64_t number;    /* default of a number or a choice */
    int64_t min, max;  /* NUMBER only */
    const char *text;  /* default of a text */
    const char *words; /* unit of a number, "name0|name1" of a choice, form of a text */
    const char *help;
};

static const struct row g_rows[] = {
#define ACS_OPT_PLACE_(field) offsetof(acs_options, field), sizeof(((acs_options *)0)->field)
#define ACS_OPT_NUMBER(field, env, def, lo, hi, unit, help)                                                            \
    {KIND_NUMBER, #field, env, ACS_OPT_PLACE_(field), def, lo, hi, "", unit, help},
#define ACS_OPT_CHOICE(field, env, def, names, help)                                                                   \
    {KIND_CHOICE, #field, env, ACS_OPT_PLACE_(field), def, 0, 0, "", names, help},
#define ACS_OPT_TEXT(field, env, def, form, help)                                                                      \
    {KIND_TEXT, #field, env, ACS_OPT_PLACE_(field), 0, 0, 0, def, form, help},
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_CHOICE
#undef ACS_OPT_TEXT
#undef ACS_OPT_PLACE_
};

#define ROW_COUNT (sizeof g_rows / sizeof g_rows[0])

/* Text built piece by piece in room that may be too small; `used` counts the bytes of the whole text. */
struct sink {
    char *text;
    size_t bytes;
    size_t used;
};

ACS_PRINTF(2, 3) static void sink_add(struct sink *sink, const char *format, ...)
{
    size_t room = sink->used < sink->bytes ? sink->bytes - sink->used : 0;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(room ? sink->text + sink->used : NULL, room, format, args);
    va_end(args);
    if (length > 0)
        sink->used += (size_t)length;
}

/* ------------------------------------------------------------------------------------------------------ one value */

/* The `index`th of the names in "name0|name1|...", or NULL; its length goes to `length`. */
static const char *choice_name(const char *names, int64_t index, size_t *length)
{
    for (;; names += *length + 1) {
        *length = strcspn(names, "|");
        if (index-- == 0)
            return names;
        if (names[*length] == 0)
            return NULL;
    }
}

static int64_t choice_count(const struct row *row)
{
    int64_t count = 1;
    for (const char *p = row->words; *p; p++)
        count += *p == '|';
    return count;
}

/* By memcpy: a row knows the place of a field, not its type. Numbers are 64 bits wide, choices 32. */
static int64_t integer_get(const struct row *row, const acs_options *options)
{
    const char *place = (const char *)options + row->offset;
    if (row->kind == KIND_NUMBER) {
        int64_t number;
        memcpy(&number, place, sizeof number);
        return number;
    }
    int32_t choice;
    memcpy(&choice, place, sizeof choice);
    return choice;
}

/* Store a value that is in range: parse checked it, or it is the default of the table. */
static void integer_set(const struct row *row, acs_options *options, int64_t value)
{
    char *place = (char *)options + row->offset;
    int32_t choice = (int32_t)value;
    if (row->kind == KIND_NUMBER)
        memcpy(place, &value, sizeof value);
    else
        memcpy(place, &choice, sizeof choice);
}

/* Store a text that fits, and clear the rest of the field, so that fields can be compared as bytes. */
static void text_set(const struct row *row, acs_options *options, const char *text)
{
    char *place = (char *)options + row->offset;
    size_t length = strlen(text);
    memcpy(place, text, length);
    memset(place + length, 0, row->bytes - length);
}

static void set_default(const struct row *row, acs_options *options)
{
    if (row->kind == KIND_TEXT)
        text_set(row, options, row->text);
    else
        integer_set(row, options, row->number);
}

static bool parse_number(const struct row *row, const char *text, int64_t *value)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '-')
        return false; /* strtoll would skip spaces */
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != 0 || number < row->min || number > row->max)
        return false;
    *value = number;
    return true;
}

/* Accept whole names only, as written: a prefix or another case could become ambiguous with a later name. */
static bool parse_choice(const struct row *row, const char *text, int64_t *value)
{
    size_t length;
    const char *name;
    for (int64_t i = 0; (name = choice_name(row->words, i, &length)) != NULL; i++) {
        if (strlen(text) == length && memcmp(text, name, length) == 0) {
            *value = i;
            return true;
        }
    }
    return false;
}

/* Store the value that `text` names. False: it is no value of this option, and nothing was stored. */
static bool parse(const struct row *row, const char *text, acs_options *options)
{
    int64_t value = 0;
    if (row->kind == KIND_TEXT) {
        if (strlen(text) >= row->bytes)
            return false;
        text_set(row, options, text);
        return true;
    }
    if (!(row->kind == KIND_NUMBER ? parse_number(row, text, &value) : parse_choice(row, text, &value)))
        return false;
    integer_set(row, options, value);
    return true;
}

/* Whether a field, which the program may have written, has a valid value. Checked before printing, too. */
static bool in_range(const struct row *row, const acs_options *options)
{
    if (row->kind == KIND_TEXT)
        return memchr((const char *)options + row->offset, 0, row->bytes) != NULL;
    int64_t value = integer_get(row, options);
    return row->kind == KIND_NUMBER ? value >= row->min && value <= row->max
                                    : value >= 0 && value < choice_count(row);
}

static void value_print(const struct row *row, const acs_options *options, struct sink *sink)
{
    size_t length;
    const char *place = (const char *)options + row->offset;
    if (row->kind == KIND_TEXT)
        sink_add(sink, "%.*s", (int)strnlen(place, row->bytes), place);
    else if (row->kind == KIND_CHOICE && in_range(row, options)) {
        const char *name = choice_name(row->words, integer_get(row, options), &length);
        sink_add(sink, "%.*s", (int)length, name);
    } else
        sink_add(sink, "%lld", (long long)integer_get(row, options));
}

/* Print the valid values in words, as the end of a sentence "... must be". */
static void range_print(const struct row *row, struct sink *sink)
{
    const char *space = *row->words ? " " : "";
    if (row->kind == KIND_NUMBER)
        sink_add(sink, "a whole number from %lld to %lld%s%s", (long long)row->min, (long long)row->max, space,
                 row->words);
    else if (row->kind == KIND_CHOICE)
        sink_add(sink, "one of %s", row->words);
    else
        sink_add(sink, "a %s, at most %zu characters", row->words, row->bytes - 1);
}

/* ---------------------------------------------------------------------------------------------------- whole structs */

/* Set all defaults. Clears padding and the rest of texts, too, so that a struct never has stale bytes of the stack. */
static void set_defaults(acs_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    for (size_t i = 0; i < ROW_COUNT; i++)
        set_default(&g_rows[i], options);
}

/*
 * The option's value in the environment, or NULL. Options that name files are ignored in a set-user-ID program, whose
 * caller must not choose the files that it writes or shows in an error.
 */
static const char *variable_of(const struct row *row)
{
    bool names_file = row->kind == KIND_TEXT && (strcmp(row->words, "path") == 0 || strcmp(row->env, "ACS_LEDGER") == 0);
    return names_file ? secure_getenv(row->env) : getenv(row->env);
}

static void range_say(const struct row *row, char *range, size_t bytes)
{
    range_print(row, &(struct sink){range, bytes, 0});
}

/* Whether the option only decides what is written about a run. A bad value of such an option does not stop the run. */
static bool is_lenient(const struct row *row)
{
    static const char *const lenient[] = {"ACS_LOG", "ACS_STATS", "ACS_MEMORY_LOG", "ACS_DOT",
                                          "ACS_TRACE", "ACS_REPORT", "ACS_TRACE_OPS", "ACS_TRACE_SAMPLE", "ACS_TRACE_TIMES"};
    for (size_t i = 0; i < sizeof lenient / sizeof lenient[0]; i++)
        if (strcmp(row->env, lenient[i]) == 0)
            return true;
    return false;
}

/* Warn once per variable and process, since programs may read the environment often. */
static void say_default_used(const struct row *row, const char *text)
{
    static _Atomic(uint64_t) said; /* a bit for each row */
    _Static_assert(ROW_COUNT <= 64, "a row has a bit");
    uint64_t bit = UINT64_C(1) << (row - g_rows);
    char range[192];
    if (atomic_fetch_or_explicit(&said, bit, memory_order_relaxed) & bit) /* relaxed: guards no other data */
        return;
    range_say(row, range, sizeof range);
    acs_log_always(ACS_LOG_WARN, "%s is \"%.64s\"; it must be %s; the default is used", row->env, text, range);
}

#define NAME_MAX_LENGTH 32

/* Number of edits (insert, delete, replace) that turn one name into the other; only the first characters count. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b)
{
    /* Wagner and Fischer's table, one row at a time: `diagonal` is the cell above and to the left. */
    unsigned row[NAME_MAX_LENGTH + 1];
    size_t b_length = strnlen(b, NAME_MAX_LENGTH);
    if (a_length > NAME_MAX_LENGTH)
        a_length = NAME_MAX_LENGTH;

    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = (unsigned)acs_min(replaced, acs_min(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

/* The known variable nearest to a name. */
static const char *nearest_known(const char *name, size_t length)
{
    const char *nearest = NULL;
    unsigned least = UINT32_MAX;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        unsigned d = edit_distance(name, length, g_rows[i].env);
        if (d < least) {
            least = d;
            nearest = g_rows[i].env;
        }
    }
    return nearest;
}

/* Whether a variable is an option, or one of this project's tools. */
static bool is_known(const char *name, size_t length)
{
    static const char *const tools[] = {"ACS_LIBRARY", "ACS_GGML", "ACS_TEST_BROWSER", "ACS_TEST_TIMES"};
    for (size_t i = 0; i < ROW_COUNT + sizeof tools / sizeof tools[0]; i++) {
        const char *known = i < ROW_COUNT ? g_rows[i].env : tools[i - ROW_COUNT];
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return true;
    }
    return false;
}

/* Warn of each unknown ACS_* variable, once per process. Of names with one sum only the first is told. */
static void say_unknown(void)
{
    static _Atomic(uint64_t) said; /* a bit for each sum */
    for (char **entry = environ; entry && *entry; entry++) {
        const size_t length = strcspn(*entry, "=");
        unsigned sum = 0;
        if (strncmp(*entry, "ACS_", 4) != 0 || is_known(*entry, length))
            continue;
        for (size_t i = 0; i < length; i++)
            sum = 31 * sum + (unsigned char)(*entry)[i];
        const uint64_t bit = UINT64_C(1) << sum % 64;
        if (!(atomic_fetch_or_explicit(&said, bit, memory_order_relaxed) & bit)) /* relaxed: guards no other data */
            acs_log_always(ACS_LOG_WARN, "unknown variable %.*s is ignored; the nearest known is %s",
                           (int)(length < 64 ? length : 64), *entry, nearest_known(*entry, length));
    }
}

/* Read the environment over `options`. Returns the first row whose variable has a bad value, or NULL. */
static const struct row *read_environment(acs_options *options)
{
    /* Reading goes on after a bad value, so that the struct is complete and the log level known when it is reported. */
    const struct row *bad = NULL;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const char *text = variable_of(&g_rows[i]);
        if (!text || parse(&g_rows[i], text, options))
            continue;
        if (is_lenient(&g_rows[i]))
            say_default_used(&g_rows[i], text);
        else if (!bad)
            bad = &g_rows[i];
    }
    say_unknown();
    return bad;
}

/*
 * Refuse a struct larger than ours. It is from a newer header, and this library would silently ignore its new options.
 */
static acs_status size_check(size_t size)
{
    if (size < sizeof(size_t) || size > sizeof(acs_options))
        return ACS_FAIL(ACS_ERR_OPTION, 0, "acs_options.size is %zu; it must be set, and at most %zu", size,
                        sizeof(acs_options));
    return ACS_OK;
}

acs_status acs_options_init(acs_options *options, size_t size)
{
    if (!options)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "options is NULL");
    ACS_TRY(size_check(size));

    acs_options full;
    set_defaults(&full);
    const struct row *bad = read_environment(&full);
    full.size = size;
    memcpy(options, &full, size);
    if (!bad)
        return ACS_OK;

    char range[192];
    range_say(bad, range, sizeof range);
    acs_log_set_level(full.log); /* no context will be opened with these options, so the level is set here */
    return ACS_FAIL(ACS_ERR_OPTION, 0, "%s is \"%.64s\"; it must be %s", bad->env, getenv(bad->env), range);
}

acs_status acs_options_check(const acs_options *options)
{
    char value[ACS_OPTION_TEXT_BYTES], range[192];
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &g_rows[i];
        if (in_range(row, options))
            continue;
        value_print(row, options, &(struct sink){value, sizeof value, 0});
        range_print(row, &(struct sink){range, sizeof range, 0});
        return ACS_FAIL(ACS_ERR_OPTION, 0, "option %s (%s) is %.32s; it must be %s", row->field, row->env, value,
                        range);
    }
    return ACS_OK;
}

acs_status acs_options_adopt(acs_options *to, const acs_options *from)
{
    size_t size = from->size;
    ACS_TRY(size_check(size));
    set_defaults(to);
    /* Field by field: a struct of an older header has only the first fields. */
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &g_rows[i];
        if (row->offset + row->bytes <= size)
            memcpy((char *)to + row->offset, (const char *)from + row->offset, row->bytes);
    }
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------ dump and refusals */

static bool same_value(const struct row *row, const acs_options *a, const acs_options *b)
{
    const char *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
    return row->kind == KIND_TEXT ? strncmp(x, y, row->bytes) == 0 : integer_get(row, a) == integer_get(row, b);
}

/*
 * Where a value came from. Found by comparing with default and environment, not recorded, since the program may have
 * changed any field of its struct.
 */
static const char *source_of(const struct row *row, const acs_options *options)
{
    acs_options other;
    const char *text = variable_of(row);
    if (text && parse(row, text, &other) && same_value(row, options, &other))
        return "environment";
    set_default(row, &other);
    return same_value(row, options, &other) ? "default" : "program";
}

acs_status acs_options_cannot(const acs_options *options, const char *variable, int native, const char *text)
{
    static _Atomic(uint64_t) said; /* a bit for each row */
    size_t i = 0;
    while (i < ROW_COUNT && strcmp(g_rows[i].env, variable) != 0)
        i++;
    if (i == ROW_COUNT || strcmp(source_of(&g_rows[i], options), "environment") != 0)
        return ACS_FAIL(ACS_ERR_OPTION, native, "%s: %s", variable, text);
    if (!(atomic_fetch_or_explicit(&said, UINT64_C(1) << i, memory_order_relaxed) >> i & 1)) /* guards no other data */
        acs_log_always(ACS_LOG_WARN, "%s: %s; the program runs without it", variable, text);
    return ACS_OK;
}

acs_status acs_options_no_file(const acs_options *options, const char *variable, const char *path, int error)
{
    char text[2 * ACS_OPTION_TEXT_BYTES];
    (void)snprintf(text, sizeof text, "'%s' cannot be written: %s", path, strerror(error));
    return acs_options_cannot(options, variable, error, text);
}

size_t acs_options_dump(const acs_options *options, char *text, size_t bytes)
{
    struct sink sink = {text, bytes, 0};
    acs_options full;

    if (bytes > 0)
        text[0] = 0;
    if (!options || acs_options_adopt(&full, options) != ACS_OK)
        return 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        sink_add(&sink, "%s=", g_rows[i].env);
        value_print(&g_rows[i], &full, &sink);
        sink_add(&sink, " (%s)\n", source_of(&g_rows[i], &full));
    }
    return sink.used;
}

/* --------------------------------------------------------------------------------------------------- documentation */

static void markdown_values(const struct row *row, struct sink *sink)
{
    size_t length;
    const char *name;
    if (row->kind == KIND_NUMBER)
        sink_add(sink, "%lld to %lld%s%s", (long long)row->min, (long long)row->max, *row->words ? " " : "",
                 row->words);
    else if (row->kind == KIND_TEXT)
        sink_add(sink, "%s", row->words);
    else
        for (int64_t i = 0; (name = choice_name(row->words, i, &length)) != NULL; i++)
            sink_add(sink, "%s`%.*s`", i ? ", " : "", (int)length, name);
}

size_t acs_options_markdown(char *text, size_t bytes)
{
    struct sink sink = {text, bytes, 0};
    acs_options defaults;

    set_defaults(&defaults);
    sink_add(&sink, "# Options\n\n"
                    "Generated from `include/acs_options.def`; `build/<preset>/tools/options_doc` writes it.\n\n"
                    "Each option is an environment variable and a field of `acs_options`. A context opened without "
                    "options reads the\nenvironment; `acs_options_init` fills a struct from it, which the program may "
                    "change before `acs_open`. A value out of\nrange is an error that names it. `ACS_LOG=info` shows the "
                    "options that are not default, and where they\ncame from.\n\n"
                    "A bad value of `ACS_LOG`, `ACS_STATS`, `ACS_DOT`, `ACS_MEMORY_LOG`, `ACS_REPORT`\n"
                    "or an option that begins with `ACS_TRACE` in the environment is no error. "
                    "These options change no\nresult: a warning is written to standard error once, whatever `ACS_LOG` "
                    "says, and the default is used. So it is with a file\nthat one of them names and "
                    "that cannot be written. Two more things are told there once: a default\ncontext that cannot be opened, "
                    "and an unknown `ACS_*` variable, with the nearest known name. Programs\n"
                    "that run with another user's rights (set-user-ID) do not take `ACS_DOT`, "
                    "`ACS_LEDGER`, `ACS_MEMORY_LOG`,\n`ACS_PROFILE`, `ACS_REPORT`, `ACS_TOPOLOGY` and "
                    "`ACS_TRACE`, which name files, from the "
                    "environment, nor files that `acs-info --measure` and `acs-tune`\nkeep below `XDG_CACHE_HOME` or "
                    "`HOME`.\n\n"
                    "| variable | field | values | default | meaning |\n"
                    "| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &g_rows[i];
        sink_add(&sink, "| `%s` | `%s` | ", row->env, row->field);
        markdown_values(row, &sink);
        sink_add(&sink, row->kind == KIND_TEXT && !*row->text ? " | (empty" : " | `");
        value_print(row, &defaults, &sink);
        sink_add(&sink, row->kind == KIND_TEXT && !*row->text ? ")" : "`");
        sink_add(&sink, " | %s |\n", row->help);
    }
    return sink.used;
}

/* ------------------------------------------------------------------------------------- variables of other libraries */

const char *acs_environment(const char *name)
{
    return getenv(name);
}

const char *acs_environment_folder(const char *name)
{
    return secure_getenv(name);
}
