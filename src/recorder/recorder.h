/*
 * The recorder: what a context's ops, callers and blocks do, and when. It keeps the newest of each, in memory that is
 * taken at the begin. A follower of the core's trace (scheduler/trace.h) for ops; other modules tell it of waits and
 * blocks. Recording calls neither the device nor the C library's allocator.
 *
 * RCD-1  ops are written under the core's lock; waits and blocks under the recorder's.
 * RCD-2  an op's times are written only while its place is its own: acs_recorder.count - number < capacity.
 */
#ifndef ACS_RECORDER_H
#define ACS_RECORDER_H

#include "base/inside.h"
#include "recorder/recording.h"
#include "scheduler/backend.h"
#include "scheduler/core.h"

typedef struct acs_recorder acs_recorder;

typedef struct acs_recorder_config {
    acs_core *core;   /* outlives the recorder's use */
    uint64_t ops;     /* most ops that are kept */
    uint32_t percent; /* share of the ops that are recorded, in runs of TUNE_RECORD_RUN; 1 to 100 */
    /* Time of the context where it is not real; NULL: real time. Called under the core's lock. */
    uint64_t (*now_ns)(void *user);
    void *user;
} acs_recorder_config;

/* Begin to record. The core holds no op. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_recorder_create(const acs_recorder_config *config, acs_recorder **recorder);
void acs_recorder_destroy(acs_recorder *recorder);

/* A time for the functions below, and for records (acs_record.entered). Any thread; takes nanoseconds. */
uint64_t acs_recorder_now(const acs_recorder *recorder);
/* The same where there may be no recorder: 0 then. */
#define ACS_RECORDER_NOW(recorder) (ACS_UNLIKELY((recorder) != NULL) ? acs_recorder_now(recorder) : 0)
/* Whether the op of this number is recorded. */
bool acs_recorder_takes(const acs_recorder *recorder, acs_op seq);
/* The call queues the record now, probably as the op of this number. */
static inline void acs_recorder_enter(const acs_recorder *recorder, acs_record *record, acs_op seq)
{
    const bool taken = acs_recorder_takes(recorder, seq);
    record->entered = taken ? acs_recorder_now(recorder) : 0;
    record->thread = taken ? (uint32_t)acs_thread_number() : 0;
    record->began = record->ended = 0;
}
/* A caller waited since `began`. Any thread. `newest`: the newest op that was queued then. */
void acs_recorder_waited(acs_recorder *recorder, acs_recorded_wait_type type, acs_op op, acs_op newest,
                         uint64_t began);
/* Add a block event; its `ended` and `thread` are set here. Any thread. */
void acs_recorder_block(acs_recorder *recorder, const acs_recorded_block *event);

/* Stop, and hand over what was recorded. No op is under way. ACS_ERR_MEMORY: *recording is untouched. */
acs_status acs_recorder_take(acs_recorder *recorder, acs_recording *recording);
void acs_recording_free(acs_recording *recording);

/* device_times.c: add what the device tells of the ops' times. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_recording_add_times(acs_recording *recording, const acs_device_times *times);

#endif
