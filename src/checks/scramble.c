/* Scrambled bytes (scramble.h). Called by image.c. */
#include "checks/scramble.h"

#include <string.h>

/* Exponents of floating-point numbers from 2^-40 to 2^40. As integers these are too large for an index. */
enum { EXPONENT_LEAST = 87, EXPONENT_MOST = 167 };

/* Load up to 8 bytes from `at` on; those that are not there are 0. */
static uint64_t load(const acs_bytes *b, uint64_t at, uint64_t bytes)
{
    uint64_t value = 0;
    if (at < b->count)
        memcpy(&value, b->bytes + at, b->count - at < bytes ? b->count - at : bytes);
    return value;
}

/* The bits of a word that change. */
static uint32_t bits_of(uint32_t word, uint64_t address)
{
    const uint32_t exponent = word >> 23 & 0xff, top = word >> 24;
    const uint32_t low = 1 + (uint32_t)(acs_hash64(address) % 3);
    if (exponent >= EXPONENT_LEAST && exponent <= EXPONENT_MOST)
        return (uint32_t)1 << 22 | low;
    return top == 0 || top == 0xff ? low : low * 0x01010101u;
}

/* Whether the word is half of an address. Addresses are multiples of 8 bytes. */
static bool is_of_address(const acs_bytes *b, uint64_t at, acs_is_address is_address, const void *user)
{
    const uint64_t whole = (b->address + at) & 7 ? at - 4 : at; /* wraps round where the range begins within one */
    return whole + 8 <= b->count && is_address(user, load(b, whole, 8));
}

/* Scramble the bytes of the word at `at` that lie from `first` up to `end`: `at` may lie before the first one. */
static void scramble_word(const acs_bytes *b, uint64_t word_address, uint64_t first, uint64_t end, unsigned char *to,
                          acs_is_address is_address, const void *user)
{
    const uint64_t at = word_address - b->address; /* wraps round where the range begins within the word */
    const uint64_t skipped = word_address < b->address ? b->address - word_address : 0;
    uint32_t word = (uint32_t)load(b, skipped ? 0 : at, 4 - skipped) << 8 * skipped, bits, kept = 0;
    if (!skipped && is_of_address(b, at, is_address, user))
        return;
    bits = bits_of(word, word_address);
    for (uint32_t i = 0; i < 4; i++)
        if (at + i >= first && at + i < end) /* at + i wraps back */
            kept |= bits & (uint32_t)0xff << 8 * i;
    for (uint32_t i = 0; i < 4; i++) {
        if (at + i < first || at + i >= end)
            continue;
        if (!kept) /* none of the bits is in these bytes */
            kept = (uint32_t)1 << 8 * i;
        to[at + i] ^= (unsigned char)(kept >> 8 * i);
    }
}

void acs_scramble(const acs_bytes *bytes, uint64_t first, uint64_t end, unsigned char *to, acs_is_address is_address,
                  const void *user)
{
    for (uint64_t word = (bytes->address + first) & ~(uint64_t)3; word < bytes->address + end; word += 4)
        scramble_word(bytes, word, first, end, to, is_address, user);
}
