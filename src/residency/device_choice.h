/*
 * Several devices: what a context knows of them, and the choice of a device for each op (devices/placement.h). It
 * depends on where the bytes that the op reads are valid, and on memory that does not move. Private to src/residency and
 * src/library. Called under the lock of relocatable blocks, except for counting. NULL in a context with one device.
 */
#ifndef ACS_DEVICE_CHOICE_H
#define ACS_DEVICE_CHOICE_H

#include "base/tuning.h"
#include "api/draft.h"
#include "devices/placement.h"
#include "residency/relocatable.h"

#define ACS_ANY_PLACE UINT32_MAX

/* Bytes of a block that the op which is being bound writes. */
typedef struct acs_written_part {
    acs_relocatable *block;
    acs_part part;
} acs_written_part;

/* When an op is expected to end, in the placement's seconds of idle period number `idles`. */
typedef struct acs_expected_end {
    acs_op op;
    uint64_t idles;
    double end;
} acs_expected_end;

/* A failed copy of the library: the part of the block of that number that was to go to the place. */
typedef struct acs_failed_copy {
    uint64_t block;
    acs_part part;
    uint32_t place;
} acs_failed_copy;

struct acs_device_choice {
    uint32_t count;          /* number of devices; the host is place number `count` */
    acs_topology topology;
    acs_placement placement;
    uint64_t bytes;          /* bytes of all blocks that can move */
    uint64_t placed[ACS_DEVICES_MOST];         /* ops placed on each device */
    unsigned char apart_ended[ACS_CACHE_LINE]; /* keeps apart what other threads write */
    _Atomic(uint64_t) ended[ACS_DEVICES_MOST]; /* ops of those that have ended; written by steps */
    unsigned char apart_behind[ACS_CACHE_LINE];
    _Atomic(uint64_t) transfers, transferred;  /* counters: copies between places, and their bytes */
    /* Expected ends of the latest ops, at their number modulo TUNE_DEVICE_ENDS. */
    acs_expected_end ends[TUNE_DEVICE_ENDS];
    _Atomic(acs_op) waited;  /* latest op that a thread has waited for */
    acs_op seen;             /* latest such op that the placement knows of */
    /* The following of the op that is being bound. */
    double end;              /* when it is expected to end */
    /* Number of the idle period: times that no op was under way, at which the placement's seconds start again. */
    uint64_t idles;
    acs_written_part *parts;
    uint32_t part_count, part_capacity;
    acs_failed_copy *failed; /* failed copies since acs_device_choice_take_failed; guarded by the core's lock */
    uint32_t failed_count, failed_room;
};

/* An op that is being placed. */
typedef struct acs_device_choice_op {
    acs_placement_op op;
    acs_placement_read reads[TUNE_DEVICE_READS];
    uint64_t bytes; /* bytes that it names */
} acs_device_choice_op;

/* Open the choice once the backend is open; does nothing for one device. ACS_ERR_OPTION, ACS_ERR_MEMORY. */
acs_status acs_device_choice_open(acs_context *context);
void acs_device_choice_close(acs_context *context);

/* The place of memory that does not move: a device, or the host, which also stands for unknown memory. */
uint32_t acs_device_choice_place(acs_context *context, uint64_t address);
/* Keep the allowed devices that reach memory of the device. ACS_ERR_UNSUPPORTED: none; names the op and its segment. */
acs_status acs_device_choice_restrict(const acs_draft *draft, acs_device_choice_op *op, uint32_t device,
                                      uint32_t segment);
/*
 * The op reads `bytes` that are valid at the places. They are added to a read from number `others` on with the same
 * places, since they would come in one copy.
 */
void acs_device_choice_reads(acs_device_choice_op *op, uint32_t others, uint64_t bytes, acs_place_set places);
/* Note which ops have ended, before an op is placed; the placement counts seconds since devices were idle. */
void acs_device_choice_refresh(acs_device_choice *choice);
/* Choose the device on which the op runs, and count it as placed. */
uint32_t acs_device_choice_choose(const acs_draft *draft, acs_device_choice_op *op);
/* Count an op of the library as placed on the device; count an op as ended. */
void acs_device_choice_add(acs_context *context, acs_record *record, uint32_t device);
void acs_device_choice_ended(acs_context *context, const acs_record *record, acs_status status);
/* The op that was bound is in program order. A thread has waited for an op: without the lock. */
void acs_device_choice_queued(acs_context *context, acs_op op);
void acs_device_choice_waited(acs_context *context, acs_op op);
/*
 * Take the copies that failed since the last call, for the caller to free; returns their number. Takes the core's lock.
 */
uint32_t acs_device_choice_take_failed(acs_context *context, acs_failed_copy **copies);
/* The op will not run: it no longer counts as placed. The lock is needed only if it was. */
void acs_device_choice_drop(acs_context *context, acs_record *record);
/* The place of the set from which bytes come to another place soonest. */
uint32_t acs_device_choice_nearest(const acs_context *context, acs_place_set places, uint32_t to, uint64_t bytes);

/* For acs_stats, and for the report that ACS_STATS writes. */
void acs_device_choice_count(acs_context *context, acs_statistics *statistics);
void acs_device_choice_report(acs_context *context, const acs_statistics *statistics);

/* One plus the device that acs_on set for this thread and context; 0: none. */
uint32_t acs_device_choice_hint(const acs_context *context);

#endif
