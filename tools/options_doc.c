/*
 * Writes docs/options.md to standard output, from the same rows that the library parses. Run by hand after a change of
 * include/acs_options.def; a test compares the committed file with what this writes.
 */
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t length = acs_options_markdown(NULL, 0);
    char *text = malloc(length + 1);
    if (!text)
        return 1;
    acs_options_markdown(text, length + 1);
    int failed = fputs(text, stdout) < 0;
    free(text);
    return failed || fflush(stdout) != 0;
}
