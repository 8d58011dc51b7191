/*
 * Writes docs/tuning.md to standard output, from the same rows that the library is compiled with. Run by hand after a
 * change of src/base/tuning.def; a test compares the committed file with what this writes. Refuses a row that nobody
 * could read: a sentence of more than 25 words, or an origin of no known form.
 */
#include "base/tuning.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 25 };

typedef struct row {
    const char *name; /* NULL: a group, whose title is the effect */
    const char *formula;
    long value;
    const char *unit, *effect, *origin;
} row;

static const row g_rows[] = {
#define ACS_TUNE_GROUP(title) {NULL, NULL, 0, NULL, title, NULL},
#define ACS_TUNE(name, value, unit, effect, origin) {#name, #value, name, unit, effect, origin},
#include "base/tuning.def"
#undef ACS_TUNE_GROUP
#undef ACS_TUNE
};

static const char g_head[] =
    "# Tuning\n\n"
    "Generated from `src/base/tuning.def`; `build/<preset>/tools/tuning_doc` writes it.\n\n"
    "The constants of judgement: with other numbers the library would be as correct, but slower, larger or later. They are\n"
    "compiled in; what a program or its user may set is in [options.md](options.md).\n"
    "\n"
    "*Origin* says what shows that the number is right: an experiment or a result\n"
    "([bench/experiments](../bench/experiments/README.md), [bench/results](../bench/results/README.md)), a measurement of\n"
    "which nothing was kept, a limit that somebody else has set, or nothing: a guess. Where only the rule was measured and\n"
    "not the number, that is said.\n";

/* ------------------------------------------------------------------------------------------------------------ check */

/* Words of the longest sentence. */
static int longest_sentence(const char *text)
{
    int words = 0, longest = 0;
    for (const char *c = text; *c; c++) {
        const bool ends = c[1] == '\0' || (*c != ' ' && c[1] == ' ');
        words += ends;
        longest = words > longest ? words : longest;
        if (ends && *c == '.')
            words = 0;
    }
    return longest;
}

static bool is_known(const char *origin)
{
    static const char *const forms[] = {"guess; ", "bench/experiments, ", "bench/results, ", "measured by ", "limit: "};
    bool known = strcmp(origin, "guess") == 0;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        known |= strncmp(origin, forms[i], strlen(forms[i])) == 0;
    return known;
}

static bool is_readable(const row *r)
{
    const bool is_short = longest_sentence(r->effect) <= WORDS_MOST, known = !r->name || is_known(r->origin);
    if (!is_short)
        fprintf(stderr, "tuning_doc: %s: a sentence has more than %d words: %s\n", r->name, WORDS_MOST, r->effect);
    if (!known)
        fprintf(stderr, "tuning_doc: %s: this is no form of an origin: %s\n", r->name, r->origin);
    return is_short && known;
}

/* ------------------------------------------------------------------------------------------------------------ print */

static bool is_number(const char *formula)
{
    return formula[strspn(formula, "0123456789")] == '\0';
}

static void print_row(const row *r)
{
    if (!r->name) {
        printf("\n## %s\n\n| constant | value | unit | effect | origin |\n| --- | --- | --- | --- | --- |\n", r->effect);
        return;
    }
    printf("| `%s` | %ld", r->name, r->value);
    if (!is_number(r->formula))
        printf(" = `%s`", r->formula);
    printf(" | %s | %s | %s |\n", r->unit, r->effect, r->origin);
}

int main(void)
{
    bool readable = true;
    fputs(g_head, stdout);
    for (size_t i = 0; i < sizeof g_rows / sizeof g_rows[0]; i++) {
        readable &= is_readable(&g_rows[i]);
        print_row(&g_rows[i]);
    }
    return fflush(stdout) != 0 || ferror(stdout) || !readable;
}
