/*
 * Other bytes in the place of those that an op should not need. They differ in each word, but little enough that a
 * kernel that reads them does not fault: a small number stays small, since it may be an index; a floating-point number
 * keeps its order of magnitude; an address stays as it is. Pure.
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

/*
 * Scramble `to`, a copy of bytes->bytes, from `first` up to `end`, which count from its beginning. Each word that is
 * not an address has another value then, always the same one for the same word and address.
 */
void acs_scramble(const acs_bytes *bytes, uint64_t first, uint64_t end, unsigned char *to, acs_is_address is_address,
                  const void *user);

#endif
