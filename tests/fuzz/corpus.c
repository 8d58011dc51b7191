/*
 * Reads, unpacks and extends tests/fuzz/corpus.txt. The replayer calls it. REPLAY_TARGET is the target that the program is
 * built for; lines of other targets are kept as they are.
 */
#include "corpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char g_target[] = REPLAY_TARGET " ";

static void fail(const char *path, size_t line, const char *why)
{
    fprintf(stderr, "%s:%zu: %s\n", path, line, why);
    exit(1);
}

static FILE *opened(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void closed(FILE *file, const char *path)
{
    if (ferror(file) | fclose(file)) {
        perror(path);
        exit(1);
    }
}

static void add_line(corpus *c, char *line)
{
    c->lines = realloc(c->lines, (c->count + 1) * sizeof *c->lines);
    if (!c->lines || !line)
        fail(c->path, c->count + 1, "no memory");
    c->lines[c->count++] = line;
}

void corpus_load(corpus *c, const char *path)
{
    FILE *file = opened(path, "r");
    char *line = NULL;
    size_t room = 0;
    *c = (corpus){.path = path};
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        add_line(c, line);
        line = NULL;
        room = 0;
    }
    free(line);
    closed(file, path);
}

void corpus_free(corpus *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->lines[i]);
    free(c->lines);
}

long corpus_input(const corpus *c, size_t i, uint8_t data[INPUT_MOST])
{
    const char *hex = c->lines[i] + sizeof g_target - 1;
    if (strncmp(c->lines[i], g_target, sizeof g_target - 1) != 0)
        return -1;
    size_t digits = strspn(hex, "0123456789abcdef");
    if (hex[digits] || digits % 2 || digits / 2 > INPUT_MOST)
        fail(c->path, i + 1, "must be a target, a space, and bytes as pairs of hexadecimal digits");
    for (size_t k = 0; k < digits / 2; k++) {
        char pair[] = {hex[2 * k], hex[2 * k + 1], 0};
        data[k] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return (long)(digits / 2);
}

void corpus_unpack(const char *path, const char *directory)
{
    static uint8_t data[INPUT_MOST];
    char name[4096];
    corpus c;
    corpus_load(&c, path);
    for (size_t i = 0; i < c.count; i++) {
        long bytes = corpus_input(&c, i, data);
        if (bytes < 0)
            continue;
        snprintf(name, sizeof name, "%s/%zu", directory, i + 1);
        FILE *file = opened(name, "wb");
        fwrite(data, 1, (size_t)bytes, file);
        closed(file, name);
    }
    corpus_free(&c);
}

size_t corpus_read_file(const char *path, uint8_t data[INPUT_MOST])
{
    FILE *file = opened(path, "rb");
    size_t bytes = fread(data, 1, INPUT_MOST, file);
    closed(file, path);
    return bytes;
}

static char *line_of_file(const char *path)
{
    static uint8_t data[INPUT_MOST];
    size_t bytes = corpus_read_file(path, data), at = sizeof g_target - 1;
    char *line = malloc(sizeof g_target + 2 * bytes);
    if (!line)
        return NULL;
    memcpy(line, g_target, sizeof g_target);
    for (size_t i = 0; i < bytes; i++, at += 2)
        snprintf(line + at, 3, "%02x", data[i]);
    return line;
}

static void add_directory(corpus *c, const char *directory)
{
    char name[4096];
    struct dirent **entries;
    int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0) {
        perror(directory);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", directory, entries[i]->d_name);
            add_line(c, line_of_file(name));
        }
        free(entries[i]);
    }
    free(entries);
}

/* Remarks first, in their order; then by target, length and text. */
static int compare(const void *one, const void *other)
{
    const char *a = *(char *const *)one, *b = *(char *const *)other;
    size_t target_a = strcspn(a, " "), target_b = strcspn(b, " ");
    int by_target = strncmp(a, b, target_a > target_b ? target_a : target_b);
    if (by_target)
        return by_target;
    if (strlen(a) != strlen(b))
        return strlen(a) < strlen(b) ? -1 : 1;
    return strcmp(a, b);
}

void corpus_merge(const char *path, const char *directory)
{
    corpus c;
    size_t remarks = 0, before, after = 0;
    corpus_load(&c, path);
    before = c.count;
    while (remarks < c.count && c.lines[remarks][0] == '#')
        remarks++;
    add_directory(&c, directory);
    qsort(c.lines + remarks, c.count - remarks, sizeof *c.lines, compare);
    FILE *file = opened(path, "w");
    for (size_t i = 0; i < c.count; i++) {
        if (i > remarks && strcmp(c.lines[i], c.lines[i - 1]) == 0)
            continue;
        fprintf(file, "%s\n", c.lines[i]);
        after++;
    }
    closed(file, path);
    printf("%zu inputs added\n", after - before);
    corpus_free(&c);
}
