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
                   .unless = dice_percent(d, 40), .before = -1};
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

/*
 * Begin or end sections before the step, as the dice say. An iteration ends where the loop says.
 */
static section_place move_on(program *p, dice *d, section_place at, int words)
{
    const bool lasting = mix_hash(p->config.seed + 0x10e6) % 4 == 0; /* longer than one decision has targets */
    const bool inside = at.index >= 0 && !p->sections[at.index].left;
    if (inside && dice_percent(d, lasting ? 2 : 20))
        at = p->sections[at.index].around;
    else if (inside && !at.other && dice_percent(d, lasting ? 2 : 15))
        at.other = true;
    else if (depth_of(p, at) < SECTION_DEPTH && dice_percent(d, at.index < 0 ? 20 : lasting ? 1 : 10))
        at = section_add(p, d, at, words);
    return at;
}

/* Failures end loops early, and a loop's steps are those of one thread. */
static bool may_loop(const random_config *config)
{
    return config->threads == 1 && !config->failing && !config->options.faults;
}

/* Lay a loop over the steps from `at` on, if they may be in one. @return its first iteration's index; -1: there is none. */
static int loop_add(program *p, dice *d, uint32_t at, section_place around, int words)
{
    const uint32_t length = 1 + dice_below(d, 6), count = 1 + dice_below(d, 8), all = length * count;
    const uint32_t room = p->period ? p->period - at % p->period : p->step_count - at; /* a program's rounds begin alike */
    bool fits = all <= room && at + all <= p->step_count && depth_of(p, around) + 1 < SECTION_DEPTH;
    for (uint32_t i = at; fits && i < at + all; i++)
        fits = may_be_decided(&p->steps[i]);
    if (!fits)
        return -1;
    const int first = section_add(p, d, around, words).index;
    for (uint32_t k = 0; k < count; k++) {
        section *s = &p->sections[first + (int)k];
        *s = p->sections[first];
        s->unless = true;
        s->before = k ? first + (int)k - 1 : -1;
        s->first = at + k * length;
        s->length = length;
        s->left = count - k;
    }
    p->section_count += count - 1;
    return first;
}

/* The place of a step: in the iteration that begins there, or where the dice say. `loop`: the iteration's index, or -1. */
static section_place place_next(program *p, dice *d, uint32_t at, section_place here, int words, int *loop)
{
    const section *now = *loop >= 0 ? &p->sections[*loop] : NULL;
    const bool ends = now && at == now->first + now->length;
    if (ends && now->left == 1)
        here = now->around;
    if (ends)
        *loop = now->left > 1 ? *loop + 1 : -1;
    else if (!now && may_loop(&p->config) && dice_percent(d, 6))
        *loop = loop_add(p, d, at, here, words);
    now = *loop >= 0 ? &p->sections[*loop] : NULL;
    return now && at == now->first ? (section_place){*loop, false} : move_on(p, d, here, words);
}

/* Where a program repeats itself, so do its sections. */
void sections_generate(program *p, const int *words)
{
    section_place at[8];
    for (uint32_t i = 0; i < 8; i++)
        p->arenas[words[i]].words |= words[i] > 0;
    for (uint32_t i = 0; i < 8; i++)
        at[i] = (section_place){-1, false};
    int loop = -1;
    p->sections = program_alloc(p, (2 * p->step_count + 1) * sizeof *p->sections); /* a step begins at most two */
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
        *here = place_next(p, &d, i, *here, own, &loop);
        if (s->kind == STEP_ALLOC)
            *here = (section_place){-1, false};
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

/* ------------------------------------------------------------------------------------------------------------- loops */

/* The first iteration of the loop that begins at this step; NULL: none does. */
static const section *loop_at(const program *p, uint32_t at)
{
    for (uint32_t i = 0; i < p->section_count; i++)
        if (p->sections[i].left && p->sections[i].before < 0 && p->sections[i].first == at)
            return &p->sections[i];
    return NULL;
}

uint32_t sections_loop_end(const program *p, uint32_t at)
{
    const section *first = loop_at(p, at);
    return first ? at + first->left * first->length : at;
}

typedef struct looping {
    program *p;
    section_stack *stack;
    const section *first;
    section_step *run;
    void *user;
    bool failed;
} looping;

static int loop_body(acs_context *context, uint32_t iteration, void *user)
{
    looping *l = user;
    const section *s = l->first + iteration;
    const section_place own = {(int)(s - l->p->sections), false};
    l->stack->list[l->stack->depth++] = own;
    for (uint32_t i = s->first; i < s->first + s->length; i++) {
        l->failed |= !sections_move(l->stack, l->p, context, l->p->steps[i].section);
        l->run(l->user, &l->p->steps[i]);
    }
    l->failed |= !sections_move(l->stack, l->p, context, own);
    l->stack->depth--;
    return 0;
}

bool sections_loop(section_stack *stack, program *p, acs_context *context, uint32_t at, section_step *run, void *user)
{
    looping l = {p, stack, loop_at(p, at), run, user, false};
    const acs_loop_params loop = {
        .size = sizeof loop,
        .stop = (const uint32_t *)(const void *)(p->arenas[l.first->arena].real + l.first->offset),
        .most = l.first->left,
        .body = loop_body,
        .user = &l};
    const bool moved = sections_move(stack, p, context, l.first->around);
    return acs_loop(context, &loop) == ACS_OK && moved && !l.failed;
}

/* The iteration that the step lies in; -1: none. */
static int iteration_of(const program *p, const step *s)
{
    section_place at = s->section;
    while (at.index >= 0 && !p->sections[at.index].left)
        at = p->sections[at.index].around;
    return at.index;
}

bool sections_missed(const program *p, const step *s)
{
    return !s->op && may_be_decided(s) && iteration_of(p, s) >= 0;
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
        const section_fate around = judge_branch(j, s->before >= 0 ? (section_place){s->before, false} : s->around);
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

uint32_t sections_blocks(const program *p, const step *s)
{
    const uint32_t items = word_of(p, s->count.arena, s->count.offset);
    return items / SECTION_ITEMS + (items % SECTION_ITEMS != 0);
}

section_fate sections_judge(program *p, const step *s, sections_failed *failed, void *user)
{
    const judging j = {p, failed, user};
    if (s->kind == STEP_REFUSED)
        (void)judge_branch(&j, s->section); /* a refused launch decides, too */
    if (s->kind == STEP_NOTHING) /* an iteration is decided also without it */
        (void)judge_branch(&j, (section_place){iteration_of(p, s), false});
    if (!may_be_decided(s))
        return SECTION_RUNS;
    const section_fate fate = judge_branch(&j, s->section);
    if (!s->counted || fate == SECTION_FAILED)
        return fate;
    if (failed(user, s->count.arena, s->count.offset))
        return SECTION_FAILED;
    return word_of(p, s->count.arena, s->count.offset) != 0 ? fate : SECTION_OFF;
}
