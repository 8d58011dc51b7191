/*
 * Templates of library calls: the work that a captured call issued, with the addresses in it that depend on the call's
 * pointers. A later call that differs only in its pointers issues the same work at other addresses, without its
 * library. Pure data; called by the CUDA backend (call.c).
 *
 * The arguments of the captured work are words of 8 bytes. A word is a constant, or one of the call's pointers (a
 * *base*) plus a constant. Each capture strikes out the bases that do not explain the word's new value. Where several
 * bases are left, a call is predicted only if they agree.
 *
 * CALL-1  A prediction for the bases of the latest capture is that capture.
 * CALL-2  A base may differ from the latest capture only once it did so in ACS_CALL_MOVES captures that were
 *         predicted.
 */
#ifndef ACS_CALL_TEMPLATE_H
#define ACS_CALL_TEMPLATE_H

#include "base/base.h"

enum {
    ACS_CALL_CLOSURE = 256, /* most bytes of a closure */
    ACS_CALL_BASES = 12,    /* most distinct pointers of a call, scratch memory included */
    ACS_CALL_STEPS = 8,     /* most kernels and fills of a call */
    ACS_CALL_WORDS = 512,   /* most words of all its steps together */
    ACS_CALL_WHAT = 12,
    ACS_CALL_MOVES = 2
};

/* The part of a call that all calls of one template share. */
typedef struct acs_call_key {
    uint64_t hash;
    uint32_t bytes;
    /* the closure; each pointer is replaced by the number of its base and its lowest 8 bits */
    unsigned char closure[ACS_CALL_CLOSURE];
} acs_call_key;

/* One kernel or fill. */
typedef struct acs_call_step {
    uint32_t kind;                /* kind, for the backend */
    uint32_t first, count;        /* words of this step in acs_call_work.word */
    uint64_t what[ACS_CALL_WHAT]; /* constant properties, for the backend; equal in all calls of a template */
} acs_call_step;

typedef struct acs_call_work {
    uint32_t bases, steps, words;
    uint64_t base[ACS_CALL_BASES];
    acs_call_step step[ACS_CALL_STEPS];
    uint64_t word[ACS_CALL_WORDS];
    uint16_t follows[ACS_CALL_WORDS]; /* bit b: the word may be base b plus a constant; 0: a constant */
} acs_call_work;

typedef struct acs_call_template {
    acs_call_work latest;
    uint32_t moves[ACS_CALL_BASES]; /* captures in which the base differed from the capture before */
    uint32_t open;
    uint16_t open_words[ACS_CALL_WORDS]; /* indices of the words that are no constants */
} acs_call_template;

/*
 * List the distinct pointers of a closure in the order in which they appear, without NULL. `pointers`: as in
 * acs_call_params.
 */
uint32_t acs_call_bases(const void *closure, uint32_t bytes, uint64_t pointers, uint64_t base[ACS_CALL_BASES]);
/* False: the closure is too large, has too many pointers, or does not hold all of them. */
bool acs_call_key_make(const void *closure, size_t bytes, uint64_t pointers, acs_call_key *key);

/* Make a template of the first capture. */
void acs_call_template_begin(acs_call_template *made, const acs_call_work *capture);
/* Make a template that explains `known` and a further capture. False: none does. */
bool acs_call_template_refine(const acs_call_template *known, const acs_call_work *capture, acs_call_template *made);
/* Compute the words of a call with these bases. False: they are not known for certain. */
bool acs_call_template_fill(const acs_call_template *known, const uint64_t *base, uint64_t *words);
/* Whether a word may follow this base. */
bool acs_call_template_uses(const acs_call_template *known, uint32_t base);

#endif
