/*
 * Scrambled bytes (scramble.h), word by word. A word may be a count, an index, a floating-point number, several small
 * numbers, or half of an address; that decides which word takes its place. Called by image.c.
 */
#include "checks/scramble.h"

#include "base/tuning.h"

#include <string.h>

/* Load up to 8 bytes from `at` on; those that are not there are 0. */
static uint64_t load(const acs_bytes *b, uint64_t at, uint64_t bytes)
{
    uint64_t value = 0;
    if (at < b->count)
        memcpy(&value, b->bytes + at, b->count - at < bytes ? b->count - at : bytes);
    return value;
}

/* The word, with each of its bytes nearer to 0; with `bits` also bytes that are 0 and 1 change. */
static uint32_t other_bytes(uint32_t word, uint32_t by, bool bits)
{
    uint32_t other = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t byte = word >> 8 * i & 0xff;
        other |= (byte > 1 ? byte - (byte > by ? by : 1) : bits ? 1 - byte : byte) << 8 * i;
    }
    return other;
}

static bool is_number(uint32_t word)
{
    const uint32_t exponent = word >> 23 & 0xff;
    return exponent >= TUNE_CHECK_EXPONENT_LEAST && exponent <= TUNE_CHECK_EXPONENT_MOST;
}

/* The word that takes the place of this one. `part`: other bytes of it are named, so it may be several small numbers. */
static uint32_t other_word(uint32_t word, uint64_t address, acs_scramble_level level, bool part)
{
    const uint32_t top = word >> 24, by = 1 + (acs_hash64(address) & 1);
    const bool bits = level == ACS_SCRAMBLE_BITS, upper = address & 4 && (word == 0 || word == UINT32_MAX);
    if (level == ACS_SCRAMBLE_ALL)
        return word ^ ((uint32_t)acs_hash64(address) | 0x01010101u);
    if (upper && !bits)
        return word; /* perhaps the upper half of a small 64-bit number */
    if (part)
        return other_bytes(word, by, bits);
    if (word <= 1)
        return bits ? 1 - word : word;
    if (bits && (word & 0xfefefefe) == 0)
        return word ^ 0x01010101u; /* truth values */
    if (is_number(word))
        return word ^ ((uint32_t)1 << (bits ? 31 : 22) | by);
    if (top == 0)
        return word > by + 1 ? word - by : word - 1;
    return top == 0xff ? word + 1 : other_bytes(word, by, bits);
}

/* Whether the word is half of an address. Addresses are multiples of 8 bytes. */
static bool is_of_address(const acs_bytes *b, uint64_t at, const acs_scramble_way *way)
{
    const uint64_t whole = (b->address + at) & 7 ? at - 4 : at; /* wraps round where the range begins within one */
    return whole + 8 <= b->count && way->is_address(way->user, load(b, whole, 8));
}

/* Scramble the bytes of the word at this address that lie from `first` up to `end`. Others of it may not be there. */
static void scramble_word(const acs_bytes *b, uint64_t address, uint64_t first, uint64_t end, unsigned char *to,
                          const acs_scramble_way *way)
{
    const uint64_t at = address - b->address; /* wraps round where the range begins within the word */
    const uint64_t skipped = address < b->address ? b->address - address : 0;
    const uint32_t word = (uint32_t)load(b, skipped ? 0 : at, 4 - skipped) << 8 * skipped;
    if (!skipped && way->level != ACS_SCRAMBLE_ALL && is_of_address(b, at, way))
        return;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < 4; i++)
        if (at + i >= first && at + i < end) /* at + i wraps back */
            bytes |= (uint32_t)0xff << 8 * i;
    const uint32_t change = word ^ other_word(word, address, way->level, bytes != UINT32_MAX);
    for (uint32_t i = 0; i < 4; i++)
        if (bytes >> 8 * i & 0xff)
            to[at + i] ^= (unsigned char)(change >> 8 * i);
}

void acs_scramble(const acs_bytes *bytes, uint64_t first, uint64_t end, unsigned char *to, const acs_scramble_way *way)
{
    for (uint64_t word = (bytes->address + first) & ~(uint64_t)3; word < bytes->address + end; word += 4)
        scramble_word(bytes, word, first, end, to, way);
}
