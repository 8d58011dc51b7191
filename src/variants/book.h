/*
 * The book of a context: its profile, which problems its launches are, and which version each launch gets. One mutex guards
 * it, below all others. Called by launch.c and the tuner; timed launches report to it. Defined in book.c.
 */
#ifndef ACS_VARIANT_BOOK_H
#define ACS_VARIANT_BOOK_H

#include "api/context.h"
#include "variants/choice.h"
#include "variants/strands.h"

struct acs_variant_book {
    acs_context *context;
    pthread_mutex_t mutex;   /* guards the profile; nothing is called under it but malloc */
    acs_profile profile;
    acs_strands strands;     /* of the launches so far */
    char file[ACS_CACHE_PATH_BYTES]; /* the profile's; empty: there is no place for one */
    bool asked;              /* ACS_PROFILE names the file */
    _Atomic(bool) looked;    /* the file was read, or there is none; set under the mutex */
    bool times;              /* the backend times kernels */
    /* tuning: problems and versions measured by this context, and since when; of the thread that launches */
    uint32_t tuned, measurements;
    uint64_t tuning_since_ns;
};

/* What the book says of a launch: numbers of the set's versions. */
typedef struct acs_book_entry {
    acs_profile_kernel *kernel;
    acs_problem *problem;         /* NULL: too many problems; the base version runs */
    uint8_t at[ACS_SHARE_STEPS];  /* the best for each share */
    bool learns;                  /* times are wanted: acs_book_trial */
} acs_book_entry;

/* Open and close the book. ACS_ERR_OPTION: ACS_PROFILE names a file that is no profile of this GPU. */
acs_status acs_variant_book_open(acs_context *context);
void acs_variant_book_close(acs_context *context);
/* Read the file that acs-tune keeps, once. A wrong one is logged. */
void acs_variant_book_look(acs_variant_book *book);

/* Find the entry of a launch. ACS_ERR_OPTION: the profile does not fit the set; ACS_ERR_MEMORY. */
acs_status acs_book_find(acs_variant_book *book, const acs_variant_set *set, const char *name, const acs_problem_key *key,
                         acs_book_entry *entry);
/* A launch comes: how many run side by side then, this one among them. */
uint32_t acs_book_side_by_side(acs_variant_book *book, const acs_segment *segments, size_t count);
/* Count a launch that runs this version, by its number in the set. */
void acs_book_picked(const acs_book_entry *entry, uint32_t number);
/*
 * Begin to time a launch at this step of shares, if that is wanted and none is being timed. `fits`: by number, the
 * versions that can run it. *number: the version to run. NULL: none.
 */
acs_timing *acs_book_trial(acs_variant_book *book, const acs_variant_set *set, const acs_book_entry *entry,
                           const bool *fits, uint32_t step, uint32_t *number);
/* The launch of a trial was refused. `unfit`: its version counts as one that cannot run. */
void acs_book_trial_refused(acs_timing *trial, bool unfit);

/* Sums over all problems, for statistics: launches whose version was picked, launches that were timed. */
void acs_book_count(acs_variant_book *book, uint64_t *picked, uint64_t *trials);
/* Write a line for each problem to the report of ACS_STATS=1. */
void acs_book_report(acs_variant_book *book);

#endif
