/*
 * Other bytes in the place of those that an op should not need. They differ in most words, but so that a kernel that reads
 * them does not fault. A floating-point number keeps its order of magnitude. A whole number, which may be a count or an
 * index, comes one or two nearer to 0. An address, and the upper half of a small 64-bit number, stay as they are. Pure.
 */
#ifndef ACS_CHECK_SCRAMBLE_H
#define ACS_CHECK_SCRAMBLE_H

#include "base/base.h"

/* Bytes of memory: those at `address` and behind it. */
typedef struct acs_bytes {
    uint64_t address;
    const unsigned char *bytes;
    uint64_t count;
} acs_bytes;

/* Whether the value is an address that a kernel may follow. */
typedef bool (*acs_is_address)(const void *user, uint64_t value);

/* How much. */
typedef enum acs_scramble_level {
    ACS_SCRAMBLE_NUMBERS, /* a word that is 0 or 1 stays: of a list that becomes longer a kernel may follow the rest */
    ACS_SCRAMBLE_BITS,    /* such words become 1 and 0, even where they may be the upper half of a 64-bit number; and
                             floating-point numbers get the other sign */
    ACS_SCRAMBLE_ALL      /* each byte becomes any other one, whatever it may be */
} acs_scramble_level;

typedef struct acs_scramble_way {
    acs_scramble_level level;
    acs_is_address is_address;
    const void *user;
} acs_scramble_way;

/*
 * Scramble `to`, a copy of bytes->bytes, from `first` up to `end`, which count from its beginning. A word becomes the same
 * one each time.
 */
void acs_scramble(const acs_bytes *bytes, uint64_t first, uint64_t end, unsigned char *to, const acs_scramble_way *way);

#endif
