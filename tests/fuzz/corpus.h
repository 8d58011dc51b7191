/*
 * The kept inputs of all fuzz targets as one text file, tests/fuzz/corpus.txt: a line for each input, its target's name, a
 * space, and its bytes in hexadecimal. Lines that begin with # are remarks and come first; the others are sorted by target,
 * then by length, then by text. Each function ends the program with status 1 where a file cannot be read or written.
 */
#ifndef FUZZ_CORPUS_H
#define FUZZ_CORPUS_H

#include <stddef.h>
#include <stdint.h>

enum { INPUT_MOST = 1 << 16 }; /* bytes of an input, at most */

typedef struct corpus {
    const char *path;
    char **lines;
    size_t count;
} corpus;

void corpus_load(corpus *c, const char *path);
void corpus_free(corpus *c);
/* The number of bytes of the input in line i, or -1 where the line is a remark or of another target. */
long corpus_input(const corpus *c, size_t i, uint8_t data[INPUT_MOST]);
/* Writes each input of this target to a file of its own, whose name is the line's number. */
void corpus_unpack(const char *path, const char *directory);
/* Adds each file of a directory as an input of this target, unless the corpus has it. */
void corpus_merge(const char *path, const char *directory);

/* Bytes of a file, at most INPUT_MOST. */
size_t corpus_read_file(const char *path, uint8_t data[INPUT_MOST]);

#endif
