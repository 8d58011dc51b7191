/*
 * Several devices: what of a context knows which there are, and chooses one for each op (devices/placement.h), by where
 * the bytes that it reads are valid and by memory that does not move. Private to src/residency; under the lock of
 * relocatable blocks, but for what is counted. A context with one device has none of it.
 */
#ifndef ACS_DEVICE_CHOICE_H
#define ACS_DEVICE_CHOICE_H

#include "base/tuning.h"
#include "devices/placement.h"
#include "residency/relocatable.h"

#define ACS_ANY_PLACE UINT32_MAX

/* Bytes that the op which is being bound writes, of a block. */
typedef struct acs_written_part {
    acs_relocatable *block;
    acs_part part;
} acs_written_part;

/* When an op is expected to end, in the placement's seconds since it was idle for so many times. */
typedef struct acs_expected_end {
    acs_op op;
    uint64_t idles;
    double end;
} acs_expected_end;

/* A copy of the runtime's own that failed: what of which block, by its number, was to go to which place. */
typedef struct acs_failed_copy {
    uint64_t block;
    acs_part part;
    uint32_t place;
} acs_failed_copy;

struct acs_device_choice {
    uint32_t count;          /* of devices; the host is place number `count` */
    acs_topology topology;
    acs_placement placement;
    uint64_t bytes;          /* of all blocks that may be anywhere */
    uint64_t placed[ACS_DEVICES_MOST];         /* ops */
    unsigned char apart_ended[ACS_CACHE_LINE]; /* others write what follows */
    _Atomic(uint64_t) ended[ACS_DEVICES_MOST]; /* of them */
    unsigned char apart_behind[ACS_CACHE_LINE];
    _Atomic(uint64_t) transfers, transferred;  /* copies between places, and their bytes; counters */
    acs_expected_end ends[TUNE_DEVICE_ENDS]; /* of the latest ops, at their number modulo so many */
    _Atomic(acs_op) waited;  /* the latest that somebody has waited for; */
    acs_op seen;             /* and of which the placement knows */
    /* of the op that is being bound */
    double end;              /* when it is expected to end */
    uint64_t idles;          /* times that nothing was under way: the placement's seconds begin anew then */
    acs_written_part *parts;
    uint32_t part_count, part_capacity;
    acs_failed_copy *failed; /* since acs_device_choice_take_failed; guarded by the core's lock */
    uint32_t failed_count;
};

/* What is known of an op before it is placed. */
typedef struct acs_device_choice_op {
    acs_placement_op op;
    acs_placement_read reads[TUNE_DEVICE_READS];
    uint64_t bytes; /* that it names */
} acs_device_choice_op;

/* Behind the backend, with several devices; else there is nothing to do. ACS_ERR_OPTION, ACS_ERR_MEMORY. */
acs_status acs_device_choice_open(acs_context *context);
void acs_device_choice_close(acs_context *context);

/* The place of memory that does not move: a device, or the host, which stands also for what is not known. */
uint32_t acs_device_choice_place(acs_context *context, uint64_t address);
/*
 * Of the allowed devices those that reach memory of the device. ACS_ERR_UNSUPPORTED: none; names the op and its
 * segment.
 */
acs_status acs_device_choice_restrict(const acs_draft *draft, acs_device_choice_op *op, uint32_t device,
                                      uint32_t segment);
/*
 * The op reads so much that is valid there. What lies at the same places, of reads from `others` on, would come in one.
 */
void acs_device_choice_reads(acs_device_choice_op *op, uint32_t others, uint64_t bytes, acs_place_set places);
/* What has ended, before an op is looked at: when it can begin is told in seconds since devices were idle. */
void acs_device_choice_refresh(acs_device_choice *choice);
/* Where the op runs. It counts as placed. */
uint32_t acs_device_choice_choose(const acs_draft *draft, acs_device_choice_op *op);
/* Counts, too: an op of the runtime's own, that will run there; an op ended. */
void acs_device_choice_add(acs_context *context, acs_record *record, uint32_t device);
void acs_device_choice_ended(acs_context *context, const acs_record *record, acs_status status);
/* The op that was bound is in program order. Somebody has waited for one: without the lock. */
void acs_device_choice_queued(acs_context *context, acs_op op);
void acs_device_choice_waited(acs_context *context, acs_op op);
/* The copies that failed since the last call, to be freed, and how many. Takes the core's lock. */
uint32_t acs_device_choice_take_failed(acs_context *context, acs_failed_copy **copies);
/* It will not run. Without the lock only where it is not counted. */
void acs_device_choice_drop(acs_context *context, acs_record *record);
/* The place of a set from which bytes come to another soonest. */
uint32_t acs_device_choice_nearest(const acs_context *context, acs_place_set places, uint32_t to, uint64_t bytes);

/* For acs_stats, and lines of the report that ACS_STATS writes. */
void acs_device_choice_count(acs_context *context, acs_statistics *statistics);
void acs_device_choice_report(acs_context *context, const acs_statistics *statistics);

/* The device that acs_on says for this thread and context, and one; 0: none. */
uint32_t acs_device_choice_hint(const acs_context *context);

#endif
