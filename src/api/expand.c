/*
 * Expansion of footprints (expand.h). Runs on the thread of the call, before the op has a place anywhere. Runs the
 * program's footprint functions, under no lock. Counts ops whose footprint stays unknown, and logs each of their call
 * sites once.
 */
#include "api/expand.h"

#include "api/declared.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

void acs_expansion_fini(acs_expansion *e)
{
    if (e->list != e->few)
        free(e->list);
    e->list = e->few;
}

/* --------------------------------------------------------------------------------------------------------------- log */

/* What was logged of a call site. */
typedef struct told_key {
    const acs_site *site;
    const char *name;
    uint64_t what; /* the segment; UINT64_MAX: the kernel itself */
} told_key;

typedef struct told {
    told_key key;
    int hash_failed;
    UT_hash_handle hh;
} told;

static pthread_mutex_t g_told_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the next one */
static told *g_told; /* hash table; entries stay until the process ends */

/* Whether it is not yet known to the log. Where memory is exhausted it is logged again. */
static bool is_first(told_key key)
{
    told *t;
    ACS_HOLD_MUTEX(&g_told_mutex);
    HASH_FIND(hh, g_told, &key, sizeof key, t);
    const bool first = !t;
    if (first && (t = calloc(1, sizeof *t)) != NULL) {
        t->key = key;
        HASH_ADD(hh, g_told, key, sizeof t->key, t);
        if (t->hash_failed)
            free(t);
    }
    return first;
}

static bool tells(const acs_draft *draft, uint64_t what)
{
    const acs_label label = acs_draft_label(draft);
    return acs_log_enabled(ACS_LOG_INFO) && is_first((told_key){label.site, label.name, what});
}

static const char *file_of(const acs_draft *draft)
{
    return draft->site && draft->site->file ? draft->site->file : "?";
}

static int line_of(const acs_draft *draft)
{
    return draft->site ? draft->site->line : 0;
}

static void note_undeclared(const acs_draft *draft)
{
    atomic_fetch_add_explicit(&draft->context->undeclared, 1, memory_order_relaxed); /* a counter */
    if (tells(draft, UINT64_MAX))
        acs_log(ACS_LOG_INFO, "'%s' at %s:%d: the kernel has no declared footprint (acs_declare), so it may touch anything",
                acs_draft_name(draft), file_of(draft), line_of(draft));
}

/* The argument that has this value, from 0; SIZE_MAX: none. */
static size_t argument_of(const acs_footprint_input *input, uint64_t value)
{
    for (size_t i = 0; input && i < input->arg_count; i++)
        if (input->arg_bytes[i] == sizeof value && memcmp(input->args[i], &value, sizeof value) == 0)
            return i;
    return SIZE_MAX;
}

static void note_unknown(const acs_draft *draft, const acs_footprint_input *input, const acs_segment *s, size_t i,
                         const char *reason)
{
    const size_t arg = argument_of(input, s->base);
    if (!tells(draft, i))
        return;
    const bool given = arg != SIZE_MAX;
    acs_log(ACS_LOG_INFO, "'%s' at %s:%d: segment %zu is the whole allocation at %#llx (%s %zu), which is not known: %s; so "
            "the op may %s anything", acs_draft_name(draft), file_of(draft), line_of(draft), i,
            (unsigned long long)s->base, given ? "argument" : "no argument, segment", given ? arg : i, reason,
            s->access == ACS_READ ? "read" : "touch");
}

/* --------------------------------------------------------------------------------------------------------- segments */

/* Make room for `more` segments behind those that there are. */
static acs_status reserve(acs_expansion *e, const acs_draft *draft, size_t more)
{
    const size_t wanted = e->count + more;
    if (wanted <= e->room)
        return ACS_OK;
    if (more > ACS_SEGMENTS_MOST || wanted > ACS_SEGMENTS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': %zu segments", acs_draft_name(draft), more);
    acs_segment *list = malloc(wanted * sizeof *list);
    if (!list)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%s': no memory for %zu segments", acs_draft_name(draft), wanted);
    if (e->count)
        memcpy(list, e->list, e->count * sizeof *list);
    acs_expansion_fini(e);
    e->list = list;
    e->room = wanted;
    return ACS_OK;
}

/* The allocation is not known: the op may touch any memory in this way. */
static void widen(acs_segment *s)
{
    *s = acs_make_segment(ACS_EXTENT_ALL, s->access == ACS_READ ? ACS_READ : ACS_UPDATE, 0, 0, 0, 0);
}

/*
 * acs_whole_find for a segment. With ACS_WHOLE_AT an allocation, live or freed, that begins elsewhere is not the one that is
 * meant.
 */
static acs_whole find_meant(const acs_draft *draft, const acs_segment *s, acs_block *block, const char **reason)
{
    const acs_whole found = s->base ? acs_whole_find(draft->context, s->base, block, reason) : ACS_WHOLE_UNKNOWN;
    if (found == ACS_WHOLE_UNKNOWN || s->row_bytes == ACS_WHOLE || s->base == (uint64_t)(uintptr_t)block->ptr)
        return found;
    *reason = "no allocation begins there, and the kernel may index the one behind it";
    return ACS_WHOLE_UNKNOWN;
}

/* Make the bytes of a segment with ACS_WHOLE or ACS_WHOLE_AT known. */
static acs_status find_whole(const acs_draft *draft, const acs_footprint_input *input, acs_segment *s, size_t i,
                             bool *unknown)
{
    acs_block block;
    const char *reason = NULL;
    const acs_whole found = find_meant(draft, s, &block, &reason);
    s->row_bytes = 0;
    if (!s->base)
        return ACS_OK;
    switch (found) {
    case ACS_WHOLE_FOUND:
        s->base = (uint64_t)(uintptr_t)block.ptr;
        s->row_bytes = block.bytes;
        return ACS_OK;
    case ACS_WHOLE_FREED:
        return acs_draft_refuse_freed(draft, s, (uint32_t)i, &block);
    case ACS_WHOLE_UNKNOWN:
        note_unknown(draft, input, s, i, reason);
        widen(s);
        *unknown = true;
    }
    return ACS_OK;
}

/* The op keeps the address: the block in which it lies stays where it is from now on. */
static acs_status pin(const acs_draft *draft, acs_segment *s)
{
    s->access = ACS_UPDATE;
    return draft->context->hooks && s->base ? draft->context->hooks->pin(draft->context, s->base, draft->no_wait) : ACS_OK;
}

/* Make a segment plain that is neither whole nor escapes: refuse what is wrong; so many bytes are any memory. */
static acs_status make_plain(acs_segment *s)
{
    acs_shape shape;
    const acs_status status = acs_shape_of(s, &shape);
    if (status != ACS_OK && status != ACS_NOT_READY)
        return status;
    if (s->extent == ACS_EXTENT_BYTES && status == ACS_OK)
        widen(s);
    s->row_bytes = 0;
    return ACS_OK;
}

static acs_status find_bytes(acs_expansion *e, const acs_draft *draft, const acs_footprint_input *input)
{
    bool unknown = false;
    for (size_t i = 0; i < e->count; i++) {
        acs_segment *s = &e->list[i];
        if (s->access == ACS_ESCAPE)
            ACS_TRY(pin(draft, s));
        if (s->extent == ACS_EXTENT_BYTES && (s->row_bytes | 1) == ACS_WHOLE_AT && s->rows == 1)
            ACS_TRY(find_whole(draft, input, s, i, &unknown));
        if (!acs_segment_is_plain(s))
            ACS_TRY(make_plain(s));
    }
    if (unknown)
        atomic_fetch_add_explicit(&draft->context->unknown_memory, 1, memory_order_relaxed); /* a counter */
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------ footprint functions */

static _Thread_local acs_context *tl_context; /* whose footprint function runs on this thread; NULL: none */
static _Thread_local bool tl_told_why; /* acs_params said why the footprint function that runs refuses */

/* A running call of a footprint function. An exception or pthread_exit may leave it, so it needs a cleanup. */
typedef struct footprint_call {
    acs_draft *draft;
    bool returned;
} footprint_call;

static void footprint_left(footprint_call *call)
{
    acs_inside_set(false);
    tl_context = NULL;
    if (!call->returned)
        acs_draft_take_back(call->draft);
}

static size_t run(acs_draft *draft, acs_footprint footprint, const acs_footprint_input *input, acs_segment *out, size_t room)
{
    __attribute__((cleanup(footprint_left))) footprint_call call = {draft, false};
    tl_told_why = false;
    tl_context = draft->context;
    acs_inside_set(true);
    const size_t count = footprint(input, out, room);
    call.returned = true;
    return count;
}

/* Add the segments of a footprint function; with more than there is room for it runs once more. */
static acs_status add_computed(acs_expansion *e, acs_draft *draft, acs_footprint footprint,
                               const acs_footprint_input *input)
{
    const size_t wanted = run(draft, footprint, input, e->list + e->count, e->room - e->count);
    if (wanted == ACS_FOOTPRINT_REFUSED)
        return tl_told_why ? ACS_ERR_ARGUMENT
                           : ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': its footprint function refuses the arguments",
                                      acs_draft_name(draft));
    if (wanted > e->room - e->count) {
        if (wanted > ACS_SEGMENTS_MOST)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': the footprint function returned %zu segments",
                            acs_draft_name(draft), wanted);
        ACS_TRY(reserve(e, draft, wanted));
        const size_t again = run(draft, footprint, input, e->list + e->count, wanted);
        if (again != wanted)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': the footprint function is not pure: %zu segments, then %zu",
                            acs_draft_name(draft), wanted, again);
    }
    e->count += wanted;
    return ACS_OK;
}

int acs_footprint_allocation(uint64_t address, uint64_t *first, uint64_t *bytes)
{
    uint64_t found[2];
    if (!tl_context || !acs_whole_find_known(tl_context, address, &found[0], &found[1]))
        return 0;
    if (first)
        *first = found[0];
    if (bytes)
        *bytes = found[1];
    return 1;
}

size_t acs_params(const acs_footprint_input *in, const acs_param *params, size_t count)
{
    const char *name = in->name ? in->name : "(unnamed op)";
    tl_told_why = true;
    if (in->arg_count != count) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': %zu arguments were given, its footprint function expects %zu", name,
                 in->arg_count, count);
        return ACS_FOOTPRINT_REFUSED;
    }
    for (size_t i = 0; i < count; i++) {
        if (in->arg_bytes[i] != params[i].bytes) {
            ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': argument %zu (from 0) is %u bytes, its footprint function expects %zu",
                     name, i, in->arg_bytes[i], params[i].bytes);
            return ACS_FOOTPRINT_REFUSED;
        }
        if (params[i].to)
            memcpy(params[i].to, in->args[i], params[i].bytes);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- expand */

/* Find the footprint function. *any: it was to be a declared one, and there is none. */
static acs_status find_footprint(const acs_draft *draft, const acs_uses *uses, const acs_launch_params *launch,
                                 acs_declaration *declaration, bool *any)
{
    *declaration = (acs_declaration){uses->footprint, uses->user};
    *any = uses->any != 0;
    if (uses->any != ACS_LOOK_UP)
        return ACS_OK;
    if (!launch)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': ACS_USES_DECLARED is for kernels: this op has no declaration",
                        acs_draft_name(draft));
    *any = !acs_declared_find(draft->context->backend, launch->kernel, launch->stub, declaration) && !uses->footprint;
    if (*any)
        note_undeclared(draft);
    return ACS_OK;
}

acs_status acs_expand(acs_expansion *e, acs_draft *draft, const acs_uses *uses, const acs_launch_params *launch,
                      const acs_footprint_input *input, acs_uses *plain)
{
    acs_declaration declaration;
    bool any;
    e->count = 0;
    e->room = TUNE_FOOTPRINT_SEGMENTS;
    if (uses->count > ACS_SEGMENTS_MOST || (uses->count && !uses->segments))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': %zu segments at %p", acs_draft_name(draft), uses->count,
                        (const void *)uses->segments);
    ACS_TRY(find_footprint(draft, uses, launch, &declaration, &any));
    ACS_TRY(reserve(e, draft, uses->count));
    if (uses->count)
        memcpy(e->list, uses->segments, uses->count * sizeof *e->list);
    e->count = uses->count;
    if (declaration.footprint) {
        acs_footprint_input in = input ? *input : (acs_footprint_input){.name = acs_draft_name(draft)};
        in.user = declaration.user;
        ACS_TRY(add_computed(e, draft, declaration.footprint, &in));
    }
    ACS_TRY(find_bytes(e, draft, input));
    *plain = (acs_uses){e->list, e->count, NULL, NULL, any};
    return ACS_OK;
}

acs_status acs_draft_expand(acs_draft *draft, const acs_uses *uses, uint32_t args, uint32_t arg_bytes)
{
    ACS_EXPANSION(expansion);
    acs_uses plain = *uses;
    if (!acs_uses_are_plain(uses))
        ACS_TRY(acs_expand(&expansion, draft, uses, NULL, NULL, &plain));
    return acs_draft_uses(draft, &plain, args, arg_bytes);
}

/* ---------------------------------------------------------------------------------------------------------- launches */

acs_status acs_expand_launch(acs_expansion *e, acs_draft *draft, const acs_launch_params *p, acs_uses *plain)
{
    enum { ARGS_MOST = ACS_ARG_BYTES_MAX / 8 }; /* 48 KiB of stack; a call with more arguments is refused */
    void *args[ARGS_MOST];
    uint32_t bytes[ARGS_MOST];
    const size_t count = p->args.count;
    const acs_label label = acs_draft_label(draft);
    uint32_t sum;
    ACS_TRY(acs_launch_measure(draft, p, &sum));
    if (count > ARGS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': %zu arguments are too many for a footprint function",
                        acs_draft_name(draft), count);
    for (size_t i = 0; i < count; i++) {
        args[i] = (void *)(uintptr_t)p->args.list[i].value;
        bytes[i] = p->args.list[i].size;
    }
    const acs_footprint_input input = {
        .name = label.name ? acs_label_name(label) : NULL,
        .grid = {p->grid.x, p->grid.y, p->grid.z},
        .block = {p->block.x, p->block.y, p->block.z},
        .shared_bytes = p->shared_bytes,
        .args = args,
        .arg_count = count,
        .arg_bytes = bytes,
        .grid_is_most = p->grid_from.word != NULL,
    };
    return acs_expand(e, draft, &p->uses, p, &input, plain);
}

acs_op acs_launch_expanded(acs_context *context, const acs_launch_params *p,
                           acs_op (*go)(acs_context *context, const acs_launch_params *params))
{
    ACS_EXPANSION(expansion);
    acs_launch_params expanded = *p;
    if (!p->kernel || (!p->kernel->function && !p->kernel->host)) {
        expanded.uses = (acs_uses){0};
        return go(context, &expanded); /* refused there */
    }
    acs_draft draft = {.context = context, .site = p->site ? p->site : &acs_unknown_site, .name = p->kernel->name,
                       .no_wait = p->no_wait != 0};
    if (acs_expand_launch(&expansion, &draft, p, &expanded.uses) != ACS_OK)
        return acs_draft_drop(&draft);
    return go(context, &expanded);
}
