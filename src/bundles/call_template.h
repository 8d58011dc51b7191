/*
 * Templates of library calls: the work that a call issued when it was captured, with the addresses in it that follow
 * from the call's pointers. A later call that differs in its pointers alone issues the same work at other addresses, so
 * the library need not be asked again. Pure data; called by the CUDA backend (call.c).
 *
 * The arguments of the captured work are words of 8 bytes. A word is a constant, or it is one of the call's pointers (a
 * *base*) plus a constant. Which base that is shows as pointers change: each capture strikes out the bases that do not
 * explain the word's new value. Where several bases are left, they must agree for a call to be predicted.
 *
 * CALL-1  A prediction for the bases of the latest capture is that capture.
 * CALL-2  A base may differ from the latest capture only once it did so in ACS_CALL_MOVES captures that were predicted.
 */
#ifndef ACS_CALL_TEMPLATE_H
#define ACS_CALL_TEMPLATE_H

#include "base/base.h"

enum {
    ACS_CALL_CLOSURE = 256, /* bytes of a closure, at most */
    ACS_CALL_BASES = 12,    /* distinct pointers of a call, its scratch memory among them */
    ACS_CALL_STEPS = 8,     /* kernels and fills of a call */
    ACS_CALL_WORDS = 512,   /* words of all its steps */
    ACS_CALL_WHAT = 12,
    ACS_CALL_MOVES = 2
};

/* What calls of one template have in common, and what may differ. */
typedef struct acs_call_key {
    uint64_t hash;
    uint32_t bytes;
    unsigned char closure[ACS_CALL_CLOSURE]; /* pointers replaced: by which they equal, and by their lowest 8 bits */
} acs_call_key;

/* One kernel or fill. */
typedef struct acs_call_step {
    uint32_t kind;                /* the owner's */
    uint32_t first, count;        /* its words */
    uint64_t what[ACS_CALL_WHAT]; /* the owner's: the same in all calls of a template */
} acs_call_step;

typedef struct acs_call_work {
    uint32_t bases, steps, words;
    uint64_t base[ACS_CALL_BASES];
    acs_call_step step[ACS_CALL_STEPS];
    uint64_t word[ACS_CALL_WORDS];
    uint16_t follows[ACS_CALL_WORDS]; /* bit b: the word may be base b plus a constant; 0: it is a constant */
} acs_call_work;

typedef struct acs_call_template {
    acs_call_work latest;
    uint32_t moves[ACS_CALL_BASES]; /* captures in which the base differed from the one before */
    uint32_t open;
    uint16_t open_words[ACS_CALL_WORDS]; /* words that are no constants */
} acs_call_template;

/*
 * The distinct pointers of a closure, NULL left out, in the order in which they appear; `pointers` as in
 * acs_call_params.
 */
uint32_t acs_call_bases(const void *closure, uint32_t bytes, uint64_t pointers, uint64_t base[ACS_CALL_BASES]);
/* False: the closure is too large, has too many pointers, or does not hold all of them. */
bool acs_call_key_make(const void *closure, size_t bytes, uint64_t pointers, acs_call_key *key);

/* From the first capture. */
void acs_call_template_begin(acs_call_template *made, const acs_call_work *capture);
/* What a further capture adds, in a template of its own. False: no template explains both. */
bool acs_call_template_refine(const acs_call_template *known, const acs_call_work *capture, acs_call_template *made);
/* The words of a call with these bases. False: they are not known for certain. */
bool acs_call_template_fill(const acs_call_template *known, const uint64_t *base, uint64_t *words);
/* Whether a word may follow this base. */
bool acs_call_template_uses(const acs_call_template *known, uint32_t base);

#endif
