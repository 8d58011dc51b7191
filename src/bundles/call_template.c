/*
 * Templates of library calls (call_template.h): keys of closures, and the pointers that each word of captured work may
 * depend on. Called by the CUDA backend on launching and issuing threads. Makes no CUDA call, takes no lock, keeps
 * nothing.
 */
#include "bundles/call_template.h"

#include <string.h>

enum { LOW_BITS = 255 };

static uint64_t word_at(const unsigned char *bytes, uint32_t word)
{
    uint64_t value;
    memcpy(&value, bytes + 8 * (size_t)word, sizeof value);
    return value;
}

/* ------------------------------------------------------------------------------------------------------------ closures */

/* The number of a pointer's base, added if it is new. ACS_CALL_BASES: there are too many. */
static uint32_t base_of(uint64_t pointer, uint64_t *base, uint32_t *count)
{
    uint32_t i = 0;
    while (i < *count && base[i] != pointer)
        i++;
    if (i == *count && i < ACS_CALL_BASES - 1) /* one base is for scratch memory */
        base[(*count)++] = pointer;
    return i < *count ? i : ACS_CALL_BASES;
}

uint32_t acs_call_bases(const void *closure, uint32_t bytes, uint64_t pointers, uint64_t base[ACS_CALL_BASES])
{
    uint32_t count = 0;
    for (uint64_t left = pointers; left; left &= left - 1) {
        const uint32_t word = (uint32_t)__builtin_ctzll(left);
        if (word >= bytes / 8)
            break;
        const uint64_t pointer = word_at(closure, word);
        if (pointer)
            (void)base_of(pointer, base, &count);
    }
    return count;
}

static uint64_t hash_of(const acs_call_key *key)
{
    uint64_t hash = key->bytes;
    for (uint32_t word = 0; word < ACS_CALL_CLOSURE / 8 && 8 * word < key->bytes; word++) {
        hash = (hash ^ word_at(key->closure, word)) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
    }
    return hash;
}

bool acs_call_key_make(const void *closure, size_t bytes, uint64_t pointers, acs_call_key *key)
{
    uint64_t base[ACS_CALL_BASES];
    uint32_t count = 0;
    if (bytes > ACS_CALL_CLOSURE || (bytes < 64 * 8 && pointers >> bytes / 8))
        return false;
    key->bytes = (uint32_t)bytes;
    memset(key->closure + bytes / 8 * 8, 0, bytes % 8 ? 8 : 0); /* the last word is hashed whole */
    if (bytes)
        memcpy(key->closure, closure, bytes);
    for (uint64_t left = pointers; left; left &= left - 1) {
        const uint32_t word = (uint32_t)__builtin_ctzll(left);
        const uint64_t pointer = word_at(key->closure, word);
        const uint32_t number = pointer ? base_of(pointer, base, &count) : 0;
        if (number == ACS_CALL_BASES)
            return false;
        const uint64_t stands_for = pointer ? (pointer & LOW_BITS) | (uint64_t)(number + 1) << 8 : 0;
        memcpy(key->closure + 8 * (size_t)word, &stands_for, sizeof stands_for);
    }
    key->hash = hash_of(key);
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- templates */

static void list_open_words(acs_call_template *t)
{
    t->open = 0;
    for (uint32_t i = 0; i < t->latest.words; i++)
        if (t->latest.follows[i])
            t->open_words[t->open++] = (uint16_t)i;
}

void acs_call_template_begin(acs_call_template *made, const acs_call_work *capture)
{
    made->latest = *capture;
    memset(made->moves, 0, sizeof made->moves);
    list_open_words(made);
}

static bool same_step(const acs_call_step *a, const acs_call_step *b)
{
    return a->kind == b->kind && a->first == b->first && a->count == b->count &&
           memcmp(a->what, b->what, sizeof a->what) == 0;
}

static bool same_work(const acs_call_work *a, const acs_call_work *b)
{
    if (a->bases != b->bases || a->steps != b->steps || a->words != b->words)
        return false;
    for (uint32_t i = 0; i < a->steps; i++)
        if (!same_step(&a->step[i], &b->step[i]))
            return false;
    return true;
}

/* The bases that explain a word's new value, out of those that it may follow. */
static uint16_t explained(const acs_call_work *before, const acs_call_work *now, uint32_t word)
{
    uint16_t left = 0;
    for (uint32_t b = 0; b < before->bases; b++)
        if (before->follows[word] >> b & 1 &&
            before->word[word] + (now->base[b] - before->base[b]) == now->word[word])
            left |= (uint16_t)(1u << b);
    return left;
}

bool acs_call_template_refine(const acs_call_template *known, const acs_call_work *capture, acs_call_template *made)
{
    const acs_call_work *before = &known->latest;
    if (!same_work(before, capture))
        return false;
    made->latest = *capture;
    for (uint32_t i = 0; i < capture->words; i++) {
        made->latest.follows[i] = explained(before, capture, i);
        if (before->follows[i] ? !made->latest.follows[i] : before->word[i] != capture->word[i])
            return false;
    }
    for (uint32_t b = 0; b < ACS_CALL_BASES; b++)
        made->moves[b] = known->moves[b] + (b < capture->bases && before->base[b] != capture->base[b]);
    list_open_words(made);
    return true;
}

/*
 * Compute how far each base has moved since the latest capture. False: a base has moved that moved too seldom in
 * captures (CALL-2).
 */
static bool find_shifts(const acs_call_template *known, const uint64_t *base, uint64_t shift[ACS_CALL_BASES])
{
    for (uint32_t b = 0; b < known->latest.bases; b++) {
        shift[b] = base[b] - known->latest.base[b];
        if (shift[b] && known->moves[b] < ACS_CALL_MOVES)
            return false;
    }
    return true;
}

bool acs_call_template_fill(const acs_call_template *known, const uint64_t *base, uint64_t *words)
{
    uint64_t shift[ACS_CALL_BASES];
    if (!find_shifts(known, base, shift))
        return false;
    memcpy(words, known->latest.word, known->latest.words * sizeof *words);
    for (uint32_t i = 0; i < known->open; i++) {
        const uint32_t word = known->open_words[i];
        uint32_t left = known->latest.follows[word];
        const uint64_t by = shift[__builtin_ctz(left)];
        while (left &= left - 1)
            if (shift[__builtin_ctz(left)] != by)
                return false;
        words[word] += by;
    }
    return true;
}

bool acs_call_template_uses(const acs_call_template *known, uint32_t base)
{
    for (uint32_t i = 0; i < known->open; i++)
        if (known->latest.follows[known->open_words[i]] >> base & 1)
            return true;
    return false;
}
