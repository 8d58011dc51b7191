/*
 * Shared by the files of this folder, each of which uses those before it: spans.c (the bytes of a footprint), scramble.c
 * (other bytes in their place), image.c (copies of all memory), compare.c (what they tell), findings.c (reports of it),
 * checks.c (what is known of a context), trial.c (a launch once more, from scrambled bytes), hints.c (what a launch did not
 * need), correct.c (the footprint as it should be), launch_check.c (the check of one launch).
 */
#ifndef ACS_CHECKS_INTERNAL_H
#define ACS_CHECKS_INTERNAL_H

#include "checks/findings.h"
#include "checks/launch_check.h"

#include "base/tuning.h"

/* What is known of the launches of a call site. */
typedef struct acs_checked_site {
    const acs_site *site;
    const char *name;  /* of the kernel */
    uint32_t findings; /* set of 1 << acs_finding_kind */
    /* ACS_CHECK=all, while all launches have as many segments: bits of the first ones */
    uint32_t segments;
    uint64_t unneeded; /* no launch read or wrote it */
    uint64_t unread;   /* it is inout, and no launch read it or left bytes of it */
    uint64_t unwritten; /* it is inout, and no launch wrote it */
    uint64_t looks;    /* launches that were looked at */
} acs_checked_site;

/* The checks of a context. Guarded by the lock of program order: memory is unregistered when no launch is looked at. */
struct acs_checks {
    acs_registered *registered;
    uint32_t registered_count, registered_room;
    acs_checked_site sites[TUNE_CHECK_SITES];
    uint32_t site_count;
    uint64_t asked;   /* ops of which ACS_CHECK_EVERY has chosen some */
    uint64_t ops, checked, left_out; /* ops queued; of them those looked at, and those that could not be */
    uint64_t own;     /* ops that the checks have queued: trials, and copies of memory */
    bool reported;    /* a report was printed */
};

typedef struct acs_launch_check {
    acs_checked found;
    acs_context *context;
    acs_launch_params params; /* with the segments in a list: a footprint function is called once */
    acs_segment *named;    /* segments as the program names them */
    acs_segment *segments; /* as they are checked, segment_count of them */
    uint32_t segment_count;
    acs_spans spans;
    acs_image image;
    acs_checked_site *site; /* NULL: there are too many */
    bool decided; /* it may not run, so its out segments may keep their bytes */
    bool once;    /* it runs once: there are no trials */
} acs_launch_check;

/* checks.c */
/* What is known of the call site. NULL: there are too many. */
acs_checked_site *acs_checks_site(acs_checks *all, acs_label label);

/* trial.c */
/* How a trial ended. */
typedef enum acs_trial_result { ACS_TRIAL_SAME, ACS_TRIAL_DIFFERS, ACS_TRIAL_FAILED } acs_trial_result;
/* Queue the launch. @return as acs_launch. */
acs_op acs_trial_launch(const acs_launch_check *c);
/* Wait for all ops. False: the device is lost, or failed ops have left memory that copies would be skipped for. */
bool acs_trial_wait(acs_context *context);
/* Wait for the op, too. False: it failed, or is 0. */
bool acs_trial_ended_well(acs_context *context, acs_op op);
/* Launch once more, with scrambled bytes. */
acs_trial_result acs_trial_scrambled(acs_launch_check *c, const acs_scrambled *which);
/* The same, but of these bytes those from `first` up to `end`. Whether that changes what the kernel does. */
bool acs_trial_between(acs_launch_check *c, acs_scrambled which, uint64_t first, uint64_t end);
/* Whether the kernel does the same each time. If not, trials tell nothing. */
bool acs_trial_repeats(acs_launch_check *c);
/* Find where bytes of the set are read, in at most TUNE_CHECK_READS ranges. */
void acs_trial_find_reads(acs_launch_check *c, acs_scrambled set, acs_finding_kind kind);

/* hints.c */
/* See which segments the launch needs. Those that no launch of the site needed are told at close. */
void acs_hints_find(acs_launch_check *c);
void acs_hints_print(const acs_checked_site *site);

/* correct.c */
/*
 * Make the footprint with what was found, found.corrected, and see which finding it explains. NULL, if it is the same or
 * there is no memory. Trials change the copies of trials.
 */
void acs_correct_footprint(acs_launch_check *c);

#endif
