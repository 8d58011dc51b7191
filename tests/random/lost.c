/*
 * Judges a run that lost its device (acs.h: ACS_ERR_DEVICE). What ran is not known then, but much is: an op that ended
 * well cannot have depended on one that did not; an op that was skipped, or failed by itself, has its cause before it;
 * the error names suspects that were issued; callbacks ran once; and bytes that no lost op may have written are those
 * of the ops that ended well. That every wait returned is shown by the run having come to its end. Called by main.c
 * instead of program_verify.
 */
#include "program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether an op of this kind can be skipped, or end with the device. */
static bool is_op(const step *s)
{
    return s->kind <= STEP_ALLOC && s->op;
}

static bool conflict(const program *p, const step *a, const step *b)
{
    footprint mine = {a->segments, a->segment_count, a->any}, theirs = {b->segments, b->segment_count, b->any};
    return (p->config.threads == 1 || p->config.baton || a->thread == b->thread) && footprint_conflict(&mine, &theirs);
}

/*
 * An op that ended well, or failed by itself, depends on no op that did not end well since the last clear; but one
 * chained on the GPU behind an op that was lost later may have been refused before that.
 */
static void check_causes(const program *p, verdict *v, uint32_t at, uint32_t since)
{
    const step *s = &p->steps[at];
    const step *cause = NULL;
    for (uint32_t i = since; i < at && !cause; i++) {
        const step *before = &p->steps[i];
        bool refused = s->error.status == ACS_ERR_LAUNCH || (s->error.status == ACS_ERR_HOST && s->kind == STEP_CALL);
        bool counts = before->error.status != ACS_OK && !(refused && before->error.status == ACS_ERR_DEVICE);
        if (is_op(before) && counts && before->op < s->op && conflict(p, s, before))
            cause = before;
    }
    if (s->error.status == ACS_ERR_SKIPPED && !cause)
        verdict_fail(v, "device lost: step %u (%s) was skipped, but nothing that it depends on failed", s->index,
                     step_name(s));
    else if (cause && s->error.status != ACS_ERR_SKIPPED && s->error.status != ACS_ERR_DEVICE)
        verdict_fail(v, "device lost: step %u (%s) ended with %s, though it depends on step %u, which ended with %s",
                     s->index, step_name(s), acs_status_name(s->error.status), cause->index,
                     acs_status_name(cause->error.status));
}

static void check_status(const program *p, verdict *v, const step *s)
{
    acs_status status = s->error.status;
    bool known = status == ACS_OK || status == ACS_ERR_SKIPPED || status == ACS_ERR_DEVICE ||
                 (status == ACS_ERR_LAUNCH && p->config.options.faults) ||
                 (status == ACS_ERR_MEMORY && p->config.options.faults && s->kind == STEP_CALL && s->scratch) ||
                 (status == ACS_ERR_HOST && s->fail);
    if (!known)
        verdict_fail(v, "device lost: step %u (%s) ended with %s", s->index, step_name(s), acs_status_name(status));
    else if (status == ACS_OK && s->fail)
        verdict_fail(v, "device lost: step %u (%s) was to report failure %d, and ended well", s->index, step_name(s),
                     s->fail);
}

static void check_callback(verdict *v, const step *s)
{
    if (s->callbacks != 1 || s->callback_op != s->target->op || s->callback_status != s->target->error.status)
        verdict_fail(v, "device lost: the callback of step %u ran %u times, told %s; its op ended with %s", s->index,
                     s->callbacks, acs_status_name(s->callback_status), acs_status_name(s->target->error.status));
}

/* A wait for one op returns what became of it. */
static void check_wait(verdict *v, const step *s)
{
    if (!(s->kind == STEP_QUERY && s->result == ACS_NOT_READY) && s->result != s->target->error.status)
        verdict_fail(v, "device lost: step %u (%s) returned %s, its op ended with %s", s->index, step_name(s),
                     acs_status_name(s->result), acs_status_name(s->target->error.status));
}

/* The error of the whole names the first suspect: an op that was lost. */
static void check_suspect(const program *p, verdict *v)
{
    acs_op suspect = p->lost.op;
    if (p->lost.status != ACS_ERR_DEVICE)
        verdict_fail(v, "device lost: the context's error is %s", acs_status_name(p->lost.status));
    for (uint32_t i = 0; suspect && i < p->step_count; i++)
        if (p->steps[i].op == suspect && is_op(&p->steps[i]) && p->steps[i].error.status != ACS_ERR_DEVICE)
            verdict_fail(v, "device lost: the suspect is step %u (%s), which ended with %s", i, step_name(&p->steps[i]),
                         acs_status_name(p->steps[i].error.status));
}

/* Ends and causes, then the bytes: what lost ops may have written is anything. */
static void check_steps(program *p, verdict *v)
{
    uint32_t since = 0;
    for (uint32_t i = 0; i < p->step_count && !v->failed; i++) {
        const step *s = &p->steps[i];
        if (is_op(s)) {
            check_status(p, v, s);
            check_causes(p, v, i, since);
        } else if (s->kind == STEP_CALLBACK && s->op) {
            check_callback(v, s);
        } else if ((s->kind == STEP_WAIT || s->kind == STEP_QUERY) && s->target->op) {
            check_wait(v, s);
        } else if (s->kind == STEP_CLEAR && s->result == ACS_OK) {
            since = i;
        } else if (s->kind == STEP_FREE && s->op) {
            program_forget_block(p, s->arena, i);
        }
    }
}

void program_verify_lost(program *p, verdict *v)
{
    check_suspect(p, v);
    check_steps(p, v);
    if (!v->failed)
        program_verify_bytes(p, v);
}
