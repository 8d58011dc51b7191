/*
 * Repeats: parts of the program that it passes again and again. It names them by acs_repeat_begin and acs_repeat_end, or
 * they are found (ACS_REPEATS=auto). Ops that a pass queues are compared with those of earlier passes, where they enter.
 * Those that come again go in as one op, a replay (window/replay.h); all others go the usual way. Called through the
 * hooks of src/api.
 *
 * Ops that share memory which one of them writes are a *strand*. What a strand queues from one wait to the next is a
 * *fragment*. A *piece* is a sequence of ops that covers fragments which recur. A replay belongs to a piece, and leaves
 * out the ops that the fragment does not have.
 *
 * A replay takes its numbers and enters the window when its first op is matched. It is held there until it is sealed:
 * at the end of its piece, when its strand queues something else, at the end of the pass, and when a thread waits for
 * one of its ops.
 *
 * RPT-1  at most one pass of a repeat is under way, and a thread is in one pass at most. A named pass is one thread's; all
 *        threads share an automatic one.
 * RPT-2  an unsealed replay has at least one op, a record, and a number for each of its ops.
 * RPT-3  no op was queued since a replay was opened that conflicts with its strand.
 * RPT-4  a strand of which the window sees all memory is its repeat's only one.
 * RPT-5  by what the window sees of them no two strands of a repeat conflict.
 */
#ifndef ACS_REPEAT_H
#define ACS_REPEAT_H

#include "api/draft.h"
#include "window/replay.h"

typedef struct acs_repeat acs_repeat;
typedef struct acs_repeats acs_repeats;

/* Part of acs_open and acs_close; at close all ops have ended. */
acs_status acs_repeats_open(acs_context *context);
void acs_repeats_close(acs_context *context);

/*
 * Take a launch into a replay, in a context whose only mode is ACS_MODE_REPEATS. 0: it goes the usual way. May wait
 * for room, as any launch.
 */
acs_op acs_repeats_launch(acs_context *context, const acs_launch_params *params);
/*
 * The draft is about to be queued. Take it into a replay, give its record back, and return its number. 0: it goes the
 * usual way, and is learnt.
 */
acs_op acs_repeats_queue(acs_draft *draft);
/* acs_draft_push behind replays that it conflicts with, which are sealed. 0: the FIFO is full. */
acs_op acs_repeats_push(acs_draft *draft);
/*
 * Seal the replay with this op, of any thread, since the thread needs the op to go on; UINT64_MAX: all. An op that is in
 * no replay needs none: it sealed what it depends on when it was queued. But if the window is full, all are sealed: they
 * take places there. 0: the thread needs room. All are sealed if nothing runs, since then no other op makes room.
 * `waits`: the program begins to wait for that op, or for all.
 */
void acs_repeats_flush(acs_context *context, acs_op op, bool waits);
/*
 * A worker finds nothing to do. If no kernel has entered a replay since a worker last looked, TUNE_WORKER_NAP_US ago or
 * longer, the program has stopped launching: seal what automatic passes hold back. @return whether something stays held
 * back.
 */
bool acs_repeats_idle(acs_context *context);
/* Add to the statistics. */
void acs_repeats_count(acs_context *context, acs_statistics *statistics);
/* Write the lines of ACS_STATS=1: why most kernels of passes did not recur. All ops have ended. */
void acs_repeats_report(const acs_context *context);

#endif
