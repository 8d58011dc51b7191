/*
 * Groups (see group.h): which threads hold one, the ops in them, and calls that are refused meanwhile. Called by the
 * calls that queue ops, and by the group's own. Never queues an op; group_submit.c does.
 */
#include "groups/group_internal.h"
#include "api/draft.h"
#include "api/failures.h"
#include "capture/capture.h"
#include "debug/debug_options.h"
#include "residency/relocatable.h"

#include <stdlib.h>

enum { OPS_DEFAULT = 1024 };

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and each group's `next` and `thread` */
static acs_group *g_groups;
static uint64_t g_number;
/* Number of groups that this thread began and did not end; a thread without any takes no lock. */
static _Thread_local uint32_t tl_open;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

/* ------------------------------------------------------------------------------------------------------------ forks */

ACS_HELD_OVER_FORKS(&g_mutex)

/* Groups belong to the parent, like their contexts. */
static void in_child(void)
{
    g_groups = NULL;
    tl_open = 0;
    pthread_mutex_unlock(&g_mutex);
}

static void watch_group_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child); /* on failure children cannot make groups, which is all */
}

/* ------------------------------------------------------------------------------------------------------------- list */

/* The group that this thread holds in the context; NULL: in any context. */
static acs_group *find_mine(const acs_context *context)
{
    ACS_HOLD_MUTEX(&g_mutex);
    acs_group *group = g_groups;
    while (group && (group->thread != acs_thread_number() || (context && group->context != context)))
        group = group->next;
    return group;
}

acs_group *acs_group_mine(acs_context *context)
{
    return tl_open ? find_mine(context) : NULL;
}

uint64_t acs_group_number(acs_context *context)
{
    const acs_group *group = acs_group_on(context);
    return group ? group->number : 0;
}

void acs_group_set_thread(acs_group *group, uint64_t thread)
{
    ACS_HOLD_MUTEX(&g_mutex);
    group->thread = thread;
}

void acs_group_destroy(acs_group *group)
{
    pthread_mutex_lock(&g_mutex);
    acs_group **at = &g_groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    /* The count of another thread stays too high, which costs it a search. */
    tl_open -= group->thread == acs_thread_number();
    pthread_mutex_unlock(&g_mutex);
    /* Relaxed: its thread alone looks for it. */
    atomic_fetch_sub_explicit(&group->context->modes, ACS_MODE_SECTION, memory_order_relaxed);
    acs_record_pool_destroy(group->records);
    free(group->ops);
    free(group->frees);
    free(group);
}

/* ------------------------------------------------------------------------------------------------------------ begin */

static acs_status make(acs_context *context, uint32_t most, acs_group **made)
{
    acs_group *group = calloc(1, sizeof *group);
    if (!group)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a group");
    group->ops = calloc(most, sizeof *group->ops);
    if (!group->ops || acs_record_pool_create(most, &group->records) != ACS_OK) {
        free(group->ops);
        free(group);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a group of %u ops", most);
    }
    group->context = context;
    group->most = most;
    *made = group;
    return ACS_OK;
}

acs_status acs_group_begin(acs_context *context, size_t ops_most)
{
    acs_group *group = NULL;
    ACS_ENTER(context);
    if (tl_open && find_mine(NULL))
        return ACS_FAIL(ACS_ERR_STATE, 0, "this thread holds a group; acs_group_submit or acs_group_cancel comes first");
    if (acs_capture_on(context))
        return ACS_FAIL(ACS_ERR_STATE, 0, "the ops of this thread are being captured; acs_stream_after ends that");
    if (ops_most > ACS_GROUP_OPS_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "a group of %zu ops: at most %d can be held", ops_most, ACS_GROUP_OPS_MAX);
    ACS_TRY(make(context, ops_most ? (uint32_t)ops_most : OPS_DEFAULT, &group));
    pthread_once(&g_once, watch_group_forks);
    pthread_mutex_lock(&g_mutex);
    group->thread = acs_thread_number();
    group->number = ++g_number;
    group->next = g_groups;
    g_groups = group;
    pthread_mutex_unlock(&g_mutex);
    tl_open++;
    /* Relaxed: as in acs_group_destroy. */
    atomic_fetch_add_explicit(&context->modes, ACS_MODE_SECTION, memory_order_relaxed);
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------- hold */

acs_status acs_group_no_wait(const char *function)
{
    return acs_fail(ACS_ERR_STATE, 0, function,
                    "%s: the ops of this thread are held in a group; acs_group_submit comes first", function);
}

acs_status acs_group_check_op(acs_op op, const char *function)
{
    if (!(op & ACS_OP_HELD))
        return ACS_OK;
    return acs_fail(ACS_ERR_STATE, 0, function,
                    "%s: op %llu was held in a group, and means nothing outside: acs_group_report tells the numbers",
                    function, (unsigned long long)(op & ~ACS_OP_HELD));
}

static bool can_be_held(acs_op_kind kind)
{
    return kind == ACS_KIND_KERNEL || kind == ACS_KIND_MEMCPY || kind == ACS_KIND_MEMSET || kind == ACS_KIND_HOST ||
           kind == ACS_KIND_CALL;
}

/* A refused op leaves a hole in program order, so the context keeps the error. A refused wait leaves none. */
static bool refuse_op(const acs_draft *draft, acs_op_kind kind)
{
    (void)acs_group_no_wait(acs_draft_name(draft));
    acs_draft_blame(draft);
    if (kind != ACS_KIND_OBSERVE || draft->gives)
        (void)acs_failures_refuse(draft->context, draft->site);
    return false;
}

bool acs_group_begin_op(acs_draft *draft, acs_op_kind kind)
{
    const acs_group *group = draft->group;
    if (!can_be_held(kind))
        return refuse_op(draft, kind);
    draft->record = acs_record_acquire(group->records);
    draft->records = group->records;
    if (draft->record)
        return true;
    ACS_FAIL(ACS_ERR_FULL, 0, "the group holds %u ops, as many as acs_group_begin was asked for", group->most);
    acs_draft_blame(draft);
    if (!draft->no_wait) /* a caller that does not ask for ACS_ERR_FULL does not look for it */
        acs_failures_keep(draft->context);
    return false;
}

acs_op acs_group_hold(acs_draft *draft)
{
    acs_group *group = draft->group;
    group->ops[group->count++] = draft->record; /* there are as many places as records */
    draft->record = NULL;
    return group->count | ACS_OP_HELD;
}

/* ------------------------------------------------------------------------------------------------------------- free */

static acs_status add_free(acs_group *group, void *ptr, const acs_site *site)
{
    for (uint32_t i = 0; i < group->free_count; i++)
        if (group->frees[i].ptr == ptr)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p was freed before, in the same group", ptr);
    if (!ACS_GROW(group->frees, group->free_room, group->free_count + 1))
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for an acs_free that is held");
    group->frees[group->free_count++] = (acs_held_free){ptr, site};
    return ACS_OK;
}

/* Whether a live block begins there, as far as can be told now. */
static bool is_block(acs_context *context, const void *ptr)
{
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    acs_allocation allocation;
    acs_block block;
    if (!context->pooled)
        return acs_allocations_find(context->allocations, address, &allocation) && allocation.base == address &&
               allocation.state == ACS_ALLOCATION_LIVE;
    if (acs_memory_find(context->memory, address, &block) == ACS_PLACE_BLOCK)
        return block.ptr == ptr;
    acs_memory *addresses = acs_context_addresses(context);
    return addresses && acs_memory_find(addresses, address, &block) == ACS_PLACE_BLOCK && block.ptr == ptr;
}

/* Note a free: blocks that the group may plan are marked, others are added to a list. */
static acs_status hold_free(acs_context *context, acs_group *group, void *ptr, const acs_site *site)
{
    if (!is_block(context, ptr))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p is not the start of a block of acs_malloc of this context", ptr);
    acs_relocatable *m = context->relocatables ? acs_relocatable_at(context, (uint64_t)(uintptr_t)ptr) : NULL;
    if (!m || m->group != group->number)
        return add_free(group, ptr, site);
    if (m->dying)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p was freed before, in the same group", ptr);
    m->dying = true; /* no other thread names it */
    return ACS_OK;
}

acs_op acs_group_free(acs_context *context, void *ptr, const acs_site *site)
{
    acs_group *group = acs_group_mine(context);
    if (context->relocatables)
        acs_relocatables_enter(context);
    acs_status status = hold_free(context, group, ptr, site);
    if (context->relocatables)
        acs_relocatables_leave(context);
    if (status == ACS_OK)
        return group->count | ACS_OP_HELD;
    (void)acs_failures_refuse(context, site);
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- cancel */

void acs_group_free_blocks(acs_group *group)
{
    acs_context *context = group->context;
    acs_relocatables *r = context->relocatables;
    acs_block block;
    if (!r)
        return;
    ACS_HOLD_BLOCKS(context);
    for (acs_relocatable *m = r->first.next, *next; m != &r->first; m = next) {
        next = m->next;
        if (m->group != group->number)
            continue;
        m->group = 0;
        if (m->dying && acs_lazy_free_locked(context, (void *)(uintptr_t)m->canonical, &block) == ACS_OK)
            acs_memory_event(context, true, &block, acs_fifo_last(context->core.fifo), ACS_RECORDER_NOW(context->recorder));
    }
}

acs_status acs_group_cancel(acs_context *context)
{
    ACS_ENTER(context);
    acs_group *group = acs_group_on(context);
    if (!group)
        return ACS_FAIL(ACS_ERR_STATE, 0, "this thread holds no group of the context");
    acs_group_free_blocks(group);
    tl_open--;
    acs_group_set_thread(group, 0);
    for (uint32_t i = 0; i < group->free_count; i++)
        (void)acs_free_op(context, group->frees[i].ptr, &(acs_op_params){group->frees[i].site, 0});
    acs_group_destroy(group);
    return ACS_OK;
}

void acs_groups_fini(acs_context *context)
{
    for (;;) {
        pthread_mutex_lock(&g_mutex);
        acs_group *group = g_groups;
        while (group && group->context != context)
            group = group->next;
        pthread_mutex_unlock(&g_mutex);
        if (!group)
            return;
        acs_log(ACS_LOG_WARN, "acs_close: a thread held a group of %u ops, which never ran", group->count);
        acs_group_free_blocks(group);
        acs_group_destroy(group);
    }
}
