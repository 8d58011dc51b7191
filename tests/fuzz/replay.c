/*
 * Runs kept inputs through a target without libFuzzer, so that corpus and regressions are tests with every compiler and
 * sanitizer. An input that crashes, or does not end within half an hour, is reported by name.
 *
 *   replay_api [--print] [--corpus <corpus.txt>] <input or directory>...   runs them
 *   replay_api --unpack <corpus.txt> <directory>                           writes each input to a file there
 *   replay_api --merge <corpus.txt> <directory>                            adds the files there that are new
 *
 * Exit status: 0 all ran, 1 a failure, 2 nothing to run.
 */
#include "replay.h"

#include "corpus.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_MOST = 1800 };

static char g_path[4096];
static bool g_print;

/* Only what a signal handler may do. */
static void too_long(int signal)
{
    static const char text[] = "this input does not end: ";
    ssize_t ignored = write(2, text, sizeof text - 1);
    (void)signal;
    ignored += write(2, g_path, strlen(g_path));
    ignored += write(2, "\n", 1);
    _exit(ignored ? 1 : 1);
}

/* A crash names its input too: sanitizers print theirs before. */
static void died(int number)
{
    static const char text[] = "the input is ";
    ssize_t ignored = write(2, text, sizeof text - 1);
    ignored += write(2, g_path, strlen(g_path));
    ignored += write(2, "\n", 1);
    (void)ignored;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static unsigned run(const uint8_t *data, size_t bytes)
{
    if (g_print) {
        fprintf(stderr, "%s (%zu bytes)\n", g_path, bytes);
        replay_print(data, bytes);
    }
    alarm(SECONDS_MOST);
    (void)LLVMFuzzerTestOneInput(data, bytes);
    alarm(0);
    return 1;
}

static unsigned run_file(void)
{
    static uint8_t data[INPUT_MOST];
    return run(data, corpus_read_file(g_path, data));
}

static unsigned run_corpus(const char *path)
{
    static uint8_t data[INPUT_MOST];
    unsigned ran = 0;
    corpus c;
    corpus_load(&c, path);
    for (size_t i = 0; i < c.count; i++) {
        long bytes = corpus_input(&c, i, data);
        snprintf(g_path, sizeof g_path, "%s:%zu", path, i + 1);
        if (bytes >= 0)
            ran += run(data, (size_t)bytes);
    }
    corpus_free(&c);
    return ran;
}

static unsigned run_path(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    unsigned ran = 0;
    if (count < 0) { /* not a directory */
        snprintf(g_path, sizeof g_path, "%s", path);
        return run_file();
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            snprintf(g_path, sizeof g_path, "%s/%s", path, entries[i]->d_name);
            ran += run_file();
        }
        free(entries[i]);
    }
    free(entries);
    return ran;
}

int main(int argc, char **argv)
{
    unsigned ran = 0;
    if (argc == 4 && strcmp(argv[1], "--unpack") == 0)
        return corpus_unpack(argv[2], argv[3]), 0;
    if (argc == 4 && strcmp(argv[1], "--merge") == 0)
        return corpus_merge(argv[2], argv[3]), 0;
    (void)signal(SIGALRM, too_long);
    (void)signal(SIGABRT, died);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--print") == 0)
            g_print = true;
        else if (strcmp(argv[i], "--corpus") == 0 && i + 1 < argc)
            ran += run_corpus(argv[++i]);
        else
            ran += run_path(argv[i]);
    }
    printf("%u inputs\n", ran);
    return ran ? 0 : 2;
}
