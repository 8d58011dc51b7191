/* See sections.h. */
#include "sections.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------------- generating */

static bool may_be_decided(const step *s)
{
    return s->kind == STEP_KERNEL || s->kind == STEP_MEMCPY || s->kind == STEP_MEMSET || s->kind == STEP_HOST ||
           s->kind == STEP_CALL;
}

static section_place section_add(program *p, dice *d, section_place around, int words)
{
    section *s = &p->sections[p->section_count];
    *s = (section){.around = around, .arena = words, .offset = 4 * dice_below(d, SECTION_WORDS),
                   .unless = dice_percent(d, 40)};
    return (section_place){(int)p->section_count++, false};
}

static uint32_t depth_of(const program *p, section_place at)
{
    uint32_t depth = 0;
    for (; at.index >= 0; at = p->sections[at.index].around)
        depth++;
    return depth;
}

/* A fill that writes one of the words, or an op that fails to. */
static void write_word(program *p, dice *d, step *s, int words)
{
    span *work = program_alloc(p, sizeof *work);
    *work = (span){words, 4 * dice_below(d, SECTION_WORDS), 4, 1, 0, ACS_WRITE, ACS_EXTENT_BYTES};
    s->kind = s->fail ? s->kind : STEP_MEMSET;
    s->work = s->given = work;
    s->work_count = s->given_count = s->computed_from = 1;
    s->computed = s->any = false;
    s->value = dice_percent(d, 50) ? 0 : (int)dice_below(d, 256);
}

/* Begin or end sections before the step, as the dice say. */
static section_place move_on(program *p, dice *d, section_place at, int words)
{
    const bool lasting = mix_hash(p->config.seed + 0x10e6) % 4 == 0; /* longer than one decision has targets */
    if (at.index >= 0 && dice_percent(d, lasting ? 2 : 20))
        at = p->sections[at.index].around;
    else if (at.index >= 0 && !at.other && dice_percent(d, lasting ? 2 : 15))
        at.other = true;
    else if (depth_of(p, at) < SECTION_DEPTH && dice_percent(d, at.index < 0 ? 20 : lasting ? 1 : 10))
        at = section_add(p, d, at, words);
    return at;
}

/* Where a program repeats itself, so do its sections. */
void sections_generate(program *p, const int *words)
{
    section_place at[8];
    for (uint32_t i = 0; i < 8; i++)
        p->arenas[words[i]].words |= words[i] > 0;
    for (uint32_t i = 0; i < 8; i++)
        at[i] = (section_place){-1, false};
    p->sections = program_alloc(p, (p->step_count + 1) * sizeof *p->sections);
    for (uint32_t i = 0; i < p->step_count; i++)
        p->steps[i].section.index = -1;
    for (uint32_t i = 0; i < p->step_count && program_decides(&p->config); i++) {
        step *s = &p->steps[i];
        const uint32_t turn = p->period ? i % p->period : i;
        dice d = {p->config.seed ^ mix_hash(turn + 0x5ec7105)};
        section_place *here = &at[s->thread];
        const int own = words[p->config.threads == 1 || p->config.baton ? 0 : s->thread];
        if (turn == 0) /* so that each round begins alike */
            for (uint32_t t = 0; t < 8; t++)
                at[t] = (section_place){-1, false};
        *here = s->kind == STEP_ALLOC ? (section_place){-1, false} : move_on(p, &d, *here, own);
        s->section = *here;
        const bool word = may_be_decided(s) && !step_repeats(s) && dice_percent(&d, 12);
        if (word)
            write_word(p, &d, s, own);
        if (s->kind == STEP_KERNEL && dice_percent(&d, 15)) {
            s->counted = true;
            s->count = (span){own, 4 * dice_below(&d, SECTION_WORDS), 4, 1, 0, ACS_READ, ACS_EXTENT_BYTES};
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- running */

/* The first section of a context makes memory, which may have been made to fail. Programs try again. */
static acs_status begin_section(const program *p, acs_context *context, const uint32_t *word, bool unless)
{
    acs_status status = ACS_ERR_MEMORY;
    for (int tries = 0; status == ACS_ERR_MEMORY && tries < (p->config.options.faults ? 1000 : 1); tries++)
        status = unless ? acs_unless_op(context, word, NULL) : acs_if_op(context, word, NULL);
    return status;
}

bool sections_begin(const program *p, acs_context *context)
{
    static const uint32_t unread = 0;
    const bool first = p->config.options.faults && program_decides(&p->config);
    return !first || (begin_section(p, context, &unread, false) == ACS_OK && acs_end_if(context) == ACS_OK);
}

static bool enter(section_stack *stack, const program *p, acs_context *context, int index)
{
    const section *s = &p->sections[index];
    const uint32_t *word = (const uint32_t *)(const void *)(p->arenas[s->arena].real + s->offset);
    stack->list[stack->depth++] = (section_place){index, false};
    return begin_section(p, context, word, s->unless) == ACS_OK;
}

bool sections_move(section_stack *stack, const program *p, acs_context *context, section_place to)
{
    section_place path[SECTION_DEPTH];
    uint32_t length = depth_of(p, to), common = 0;
    bool fine = true;
    for (uint32_t i = length; i-- > 0; to = p->sections[to.index].around)
        path[i] = to;
    while (common < length && common < stack->depth && stack->list[common].index == path[common].index &&
           (common + 1 == stack->depth || stack->list[common].other == path[common].other))
        common++;
    for (; stack->depth > common; stack->depth--)
        fine = fine && acs_end_if(context) == ACS_OK;
    for (uint32_t i = common ? common - 1 : 0; i < length && fine; i++) {
        if (i == stack->depth)
            fine = enter(stack, p, context, path[i].index);
        if (fine && path[i].other && !stack->list[i].other)
            fine = acs_else(context) == ACS_OK;
        stack->list[i].other = path[i].other;
    }
    return fine;
}

void sections_count(acs_launch_params *launch, const program *p, const step *s)
{
    launch->grid = (acs_dim3){4, 1, 1};
    launch->grid_from = (acs_grid_from){p->arenas[s->count.arena].real + s->count.offset, SECTION_ITEMS};
}

/* ----------------------------------------------------------------------------------------------------------- oracle */

void sections_reset(program *p)
{
    for (uint32_t i = 0; i < p->section_count; i++)
        memset(p->sections[i].decided, 0, sizeof p->sections[i].decided);
}

static uint32_t word_of(const program *p, int where, uint32_t offset)
{
    uint32_t word;
    memcpy(&word, p->arenas[where].truth + offset, sizeof word);
    return word;
}

typedef struct judging {
    program *p;
    sections_failed *failed;
    void *user;
} judging;

/* The word is read when the first op of a branch comes; behind acs_else the other branch's decision is, if there is one. */
static section_fate judge_branch(const judging *j, section_place at)
{
    if (at.index < 0)
        return SECTION_RUNS;
    section *s = &j->p->sections[at.index];
    if (!s->decided[at.other]) {
        const section_fate around = judge_branch(j, s->around);
        const bool holds = (word_of(j->p, s->arena, s->offset) != 0) != s->unless;
        const bool first = s->decided[0] ? s->runs[0] : holds;
        const bool reads_failed = s->decided[0] ? s->failed[0] : j->failed(j->user, s->arena, s->offset);
        s->decided[at.other] = true;
        s->failed[at.other] = around == SECTION_FAILED || reads_failed;
        s->runs[at.other] = around == SECTION_RUNS && (at.other ? !first : holds);
    }
    return s->failed[at.other] ? SECTION_FAILED : s->runs[at.other] ? SECTION_RUNS : SECTION_OFF;
}

bool sections_writes_word(const program *p, const step *s)
{
    bool writes = false;
    for (uint32_t i = 0; i < s->work_count && s->work[i].arena >= 0; i++)
        writes = writes || p->arenas[s->work[i].arena].words;
    return writes;
}

bool sections_decide(const step *s)
{
    return may_be_decided(s) && (s->section.index >= 0 || s->counted);
}

section_fate sections_judge(program *p, const step *s, sections_failed *failed, void *user)
{
    const judging j = {p, failed, user};
    if (s->kind == STEP_REFUSED)
        (void)judge_branch(&j, s->section); /* a refused launch decides, too */
    if (!may_be_decided(s))
        return SECTION_RUNS;
    const section_fate fate = judge_branch(&j, s->section);
    if (!s->counted || fate == SECTION_FAILED)
        return fate;
    if (failed(user, s->count.arena, s->count.offset))
        return SECTION_FAILED;
    return word_of(p, s->count.arena, s->count.offset) != 0 ? fate : SECTION_OFF;
}
