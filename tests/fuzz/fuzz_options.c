/*
 * A target over the environment's options: variables and their values from bytes, compared with a parser of its own, which
 * knows the rows of acs_options.def and the rules of acs.h. Entry of a fuzzer and of the replayer.
 *
 *   1 byte      how much smaller than the whole struct the one of an older header is
 *   1 byte      room that acs_options_dump is given
 *   then variables: one byte which, one byte length (0: the value is as many sevens as the next byte
 *               says), the value's bytes
 */
#include "acs.h"

#include "base/options.h"
#include "replay.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER, CHOICE, TEXT, VALUE_MOST = 256, UNKNOWN_NAMES = 2 };

typedef struct row {
    int kind;
    const char *name, *names;
    int64_t low, high, number;
    size_t offset, bytes;
} row;

static const row g_rows[] = {
#define PLACE(field) offsetof(acs_options, field), sizeof(((acs_options *)0)->field)
#define ACS_OPT_NUMBER(field, env, def, lo, hi, unit, help) {NUMBER, env, NULL, lo, hi, def, PLACE(field)},
#define ACS_OPT_CHOICE(field, env, def, names, help) {CHOICE, env, names, 0, 0, def, PLACE(field)},
#define ACS_OPT_TEXT(field, env, def, form, help) {TEXT, env, def, 0, 0, 0, PLACE(field)},
#include "acs_options.def"
};

enum { ROWS = sizeof g_rows / sizeof *g_rows };

static const char *const g_unknown[UNKNOWN_NAMES] = {"ACS_WINDOWS", "ACS_"};
static char g_values[ROWS + UNKNOWN_NAMES][VALUE_MOST];
static bool g_set[ROWS + UNKNOWN_NAMES];

static const char *name_of(uint32_t i)
{
    return i < ROWS ? g_rows[i].name : g_unknown[i - ROWS];
}

static void fail(const char *what, const char *name, const char *value)
{
    fprintf(stderr, "FUZZ: %s: %s=\"%s\"\n", what, name, value);
    abort();
}

/* ------------------------------------------------------------------------------------------------- a parser of its own */

static bool parse_number(const row *r, const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-');
    __extension__ __int128 sum = 0;
    if (!*digits)
        return false;
    for (const char *c = digits; *c; c++) {
        if (*c < '0' || *c > '9')
            return false;
        sum = sum > INT64_MAX ? sum : sum * 10 + (*c - '0');
    }
    sum = *text == '-' ? -sum : sum;
    *value = (int64_t)sum;
    return sum >= r->low && sum <= r->high;
}

static bool parse_choice(const row *r, const char *text, int64_t *value)
{
    char names[256];
    char *rest = names;
    snprintf(names, sizeof names, "%s", r->names);
    *value = 0;
    for (char *name = strsep(&rest, "|"); name; name = strsep(&rest, "|"), ++*value)
        if (strcmp(name, text) == 0)
            return true;
    return false;
}

/* The row's field must be what the variable says, or the default where it says nothing right. */
static bool check_row(const row *r, const char *text, const acs_options *o)
{
    int64_t value = r->number, got = 0;
    bool good = true;
    if (r->kind == TEXT) {
        good = !text || strlen(text) < r->bytes;
        if (strcmp((const char *)o + r->offset, text && good ? text : r->names) != 0)
            fail("a text is not the variable's", r->name, text ? text : "");
        return good;
    }
    if (text)
        good = r->kind == NUMBER ? parse_number(r, text, &value) : parse_choice(r, text, &value);
    if (!good)
        value = r->number;
    if (r->kind == NUMBER)
        memcpy(&got, (const char *)o + r->offset, sizeof got);
    else
        got = *(const int32_t *)(const void *)((const char *)o + r->offset);
    if (got != value)
        fail("a value is not the variable's", r->name, text ? text : "");
    return good;
}

/* Of options that say what is written about a run: a bad value is told, and the default used. */
static bool is_excused(const row *r)
{
    static const char *const names[] = {"ACS_LOG", "ACS_STATS", "ACS_MEMORY_LOG", "ACS_DOT",
                                        "ACS_TRACE", "ACS_REPORT", "ACS_TRACE_OPS", "ACS_TRACE_SAMPLE", "ACS_TRACE_TIMES"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(r->name, names[i]) == 0)
            return true;
    return false;
}

static void check_dump(const acs_options *o, size_t room)
{
    char text[8192], part[256];
    size_t whole = acs_options_dump(o, text, sizeof text), cut;
    memset(part, 0x5a, sizeof part);
    cut = acs_options_dump(o, part, room);
    if (whole != strlen(text) || cut != whole || acs_options_dump(o, NULL, 0) != whole)
        fail("the dump's length depends on the room", "", text);
    if (room && (strlen(part) != (whole < room ? whole : room - 1) || strncmp(part, text, strlen(part)) != 0))
        fail("the dump is not cut but another", "", part);
    for (size_t i = room; i < sizeof part; i++)
        if (part[i] != 0x5a)
            fail("the dump wrote behind its room", "", text);
}

static void check(size_t smaller, size_t room)
{
    acs_options whole, part;
    bool good = true;
    const char *first_bad = NULL;
    acs_error error = {.size = sizeof error};
    acs_status status = acs_options_init(&whole, sizeof whole);
    for (uint32_t i = 0; i < ROWS; i++) {
        const char *text = g_set[i] ? g_values[i] : NULL;
        if (!check_row(&g_rows[i], text, &whole) && !is_excused(&g_rows[i])) {
            first_bad = first_bad ? first_bad : g_rows[i].name;
            good = false;
        }
    }
    if (status != (good ? ACS_OK : ACS_ERR_OPTION))
        fail("acs_options_init disagrees", "status", acs_status_name(status));
    if (!good && (acs_last_error(&error) != ACS_ERR_OPTION || strncmp(error.text, first_bad, strlen(first_bad)) != 0))
        fail("the error names another variable", first_bad, error.text);
    if (acs_options_check(&whole) != ACS_OK)
        fail("what was read is not in range", "", "");
    check_dump(&whole, room);
    memset(&part, 0x5a, sizeof part);
    if (acs_options_init(&part, sizeof part - smaller) != status || part.size != sizeof part - smaller)
        fail("a smaller struct has another status", "", "");
    for (size_t i = sizeof part - smaller; i < sizeof part; i++)
        if (((const unsigned char *)&part)[i] != 0x5a)
            fail("acs_options_init wrote behind the struct", "", "");
    if (memcmp((const char *)&part + sizeof part.size, (const char *)&whole + sizeof part.size,
               sizeof part - smaller - sizeof part.size) != 0)
        fail("a smaller struct has other values", "", "");
}

/* -------------------------------------------------------------------------------------------------------------- input */

/* One variable from the bytes; returns how many it took. A value ends at its first zero. */
static size_t decode(const uint8_t *data, size_t bytes)
{
    if (bytes < 3)
        return bytes;
    uint32_t which = data[0] % (ROWS + UNKNOWN_NAMES);
    size_t length = data[1], used = 2 + length;
    char *value = g_values[which];
    if (length == 0) {
        memset(value, '7', data[2]);
        value[data[2]] = 0;
        used = 3;
    } else {
        used = used < bytes ? used : bytes;
        memcpy(value, data + 2, used - 2);
        value[used - 2] = 0;
    }
    if (which < ROWS && strcmp(g_rows[which].name, "ACS_LOG") == 0 && strcmp(value, "off") != 0)
        strcpy(value, strcmp(value, "error") == 0 ? "off" : "x"); /* valid ones would write a line for each error */
    g_set[which] = true;
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    memset(g_set, 0, sizeof g_set);
    for (size_t at = 2; at < bytes;)
        at += decode(data + at, bytes - at);
    for (uint32_t i = 0; i < ROWS + UNKNOWN_NAMES; i++)
        if (g_set[i])
            setenv(name_of(i), g_values[i], 1);
        else
            unsetenv(name_of(i));
    if (bytes >= 2)
        check(data[0] % (sizeof(acs_options) - sizeof(size_t)), data[1]);
    return 0;
}

void replay_print(const uint8_t *data, size_t bytes)
{
    (void)LLVMFuzzerTestOneInput(data, bytes);
    for (uint32_t i = 0; i < ROWS + UNKNOWN_NAMES; i++)
        if (g_set[i])
            fprintf(stderr, "%s=\"%s\"\n", name_of(i), g_values[i]);
}
