/*
 * The image of a context's memory (image.h). Copies are ops of the context, but obey no section of the program's. Called
 * by launch_check.c and trial.c.
 */
#include "checks/image.h"

#include "api/draft.h"
#include "api/failures.h"
#include "api/wait.h"
#include "residency/relocatable.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- ranges */

static void add_range(acs_image *image, acs_memory_range range)
{
    if (range.first == range.end || image->no_memory)
        return;
    image->no_memory = !ACS_GROW(image->list, image->room, (uint64_t)image->count + 1);
    if (!image->no_memory)
        image->list[image->count++] = range;
}

static void add_block(void *user, const acs_block *block)
{
    const uint64_t first = (uint64_t)(uintptr_t)block->ptr;
    add_range(user, (acs_memory_range){.first = first, .end = first + block->bytes, .site = block->site,
                                       .shared = !acs_memory_is_device(block->kind)});
}

/* A lazy block is one by its own address. The memory in which its contents are is none: see remove_hidden. */
static void add_lazy(void *user, const acs_relocatable *block)
{
    if (block->filled)
        add_range(user, (acs_memory_range){.first = block->canonical, .end = block->canonical + block->bytes,
                                           .site = block->site});
}

static void remove_hidden(void *user, const acs_relocatable *block)
{
    acs_image *image = user;
    for (size_t i = 0; i < image->count; i++)
        if (image->list[i].first == block->at || image->list[i].first == block->host)
            image->list[i].end = image->list[i].first; /* take_apart leaves it out */
}

static int by_address(const void *a, const void *b)
{
    const acs_memory_range *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (int)x->origin - (int)y->origin;
}

/* Sort the ranges. What lies in several of them belongs to the one that begins first, of those to a block. */
static void take_apart(acs_image *image)
{
    uint64_t end = 0;
    size_t kept = 0;
    if (image->count)
        qsort(image->list, image->count, sizeof *image->list, by_address);
    for (size_t i = 0; i < image->count; i++) {
        acs_memory_range range = image->list[i];
        range.first = range.first < end ? end : range.first;
        if (range.first >= range.end)
            continue;
        end = range.end;
        image->list[kept++] = range;
    }
    image->count = kept;
}

/* Whether devices reach the byte. The driver takes an address that it does not know for one of the process. */
static bool is_reached(acs_context *context, uint64_t address)
{
    const acs_error before = *acs_error_thread();
    acs_backend *backend = context->backend;
    if (!backend->ops->reaches)
        return true;
    acs_error_hush(true);
    const bool reached = backend->ops->reaches(backend, address) == ACS_OK;
    acs_error_hush(false);
    *acs_error_thread() = before;
    return reached;
}

/*
 * Add what the spans name as written, beside the ranges that there are. The rest of such memory may be read-only, and
 * is never scrambled.
 */
static void add_named(acs_image *image, const acs_spans *spans)
{
    const size_t known = image->count;
    size_t r = 0;
    for (size_t i = 0; i < spans->count; i++) {
        const bool written = spans->list[i].access & ACS_WRITE;
        uint64_t first = spans->list[i].first;
        const uint64_t end = written ? spans->list[i].end : first;
        while (r < known && image->list[r].end <= first)
            r++;
        for (size_t at = r; first < end; at++) {
            const bool more = at < known && image->list[at].first < end;
            const uint64_t until = more ? image->list[at].first : end, behind = more ? image->list[at].end : end;
            if (first < until && is_reached(image->context, first) && is_reached(image->context, until - 1))
                add_range(image, (acs_memory_range){.first = first, .end = until, .origin = ACS_ORIGIN_NAMED});
            first = behind; /* add_range may have moved the list */
        }
    }
    take_apart(image);
}

static bool make_copies(acs_image *image)
{
    size_t bytes = 0;
    for (size_t i = 0; i < image->count; i++)
        bytes += ACS_COPIES * (image->list[i].end - image->list[i].first);
    image->bytes = malloc(bytes ? bytes : 1);
    image->byte_count = bytes;
    unsigned char *next = image->bytes;
    for (size_t i = 0; next && i < image->count; i++)
        for (int copy = 0; copy < ACS_COPIES; copy++, next += image->list[i].end - image->list[i].first)
            image->list[i].copies[copy] = next;
    return image->bytes != NULL;
}

bool acs_image_find(acs_image *image, acs_context *context, const acs_registered *registered, size_t registered_count,
                    const acs_spans *spans)
{
    *image = (acs_image){.context = context};
    if (context->pooled)
        acs_memory_each(context->memory, add_block, image);
    else
        acs_allocations_each(context->allocations, add_block, image);
    acs_relocatables_each_lazy(context, remove_hidden, image);
    acs_relocatables_each_lazy(context, add_lazy, image);
    for (size_t i = 0; i < registered_count; i++)
        add_range(image, (acs_memory_range){.first = registered[i].first, .end = registered[i].end,
                                            .origin = ACS_ORIGIN_REGISTERED});
    take_apart(image);
    add_named(image, spans);
    if (!image->no_memory && make_copies(image))
        return true;
    acs_image_free(image);
    return false;
}

void acs_image_free(acs_image *image)
{
    if (image->bytes) /* copies of what failed ops have left were skipped: that does not concern the memory's next user */
        acs_core_forget_block(&image->context->core, (uint64_t)(uintptr_t)image->bytes, image->byte_count);
    free(image->list);
    free(image->bytes);
    *image = (acs_image){0};
}

const acs_memory_range *acs_image_at(const acs_image *image, uint64_t address)
{
    size_t low = 0, high = image->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (image->list[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < image->count && image->list[low].first <= address ? &image->list[low] : NULL;
}

/* ----------------------------------------------------------------------------------------------------------- copies */

/* Queue a copy of the runtime's own, which obeys no section of the program's. @return its number; 0: refused. */
static acs_op queue_copy(acs_context *context, void *to, const void *from, uint64_t bytes)
{
    static const acs_site site = {"ACS_CHECK", NULL, 0};
    const acs_segment segments[] = {ACS_IN(from, bytes), ACS_OUT(to, bytes)};
    const acs_uses uses = {segments, 2, NULL, NULL, 0};
    acs_draft draft = {.context = context, .site = &site, .own = true};
    if (!acs_draft_begin(&draft, ACS_KIND_MEMCPY))
        return 0;
    draft.record->u.copy.dst = to;
    draft.record->u.copy.src = from;
    draft.record->u.copy.bytes = bytes;
    draft.record->u.copy.rows = 1;
    const bool fits = acs_draft_uses(&draft, &uses, 0, 0) == ACS_OK && acs_draft_bind(&draft) == ACS_OK;
    return fits ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
}

/* Copy the bytes of a shared range that the op may write, between memory, which no op uses now, and a copy of it. */
static void copy_written(const acs_memory_range *range, const acs_spans *spans, void *to, const void *from)
{
    size_t at = 0;
    for (uint64_t address = range->first, until; address < range->end; address = until) {
        const uint8_t access = acs_spans_at(spans, &at, address, range->end, &until);
        const uint64_t place = address - range->first;
        if (access & ACS_WRITE)
            memcpy((char *)to + place, (const char *)from + place, (size_t)(until - address));
    }
}

static bool copy_all(acs_image *image, const acs_spans *spans, acs_copy copy, bool load)
{
    acs_op last = 0;
    bool good = true;
    for (size_t i = 0; good && i < image->count; i++) {
        acs_memory_range *range = &image->list[i];
        if (range->shared && !load) {
            copy_written(range, spans, (void *)(uintptr_t)range->first, range->copies[copy]);
            continue;
        }
        void *memory = (void *)(uintptr_t)range->first, *bytes = range->copies[copy];
        range->copied = queue_copy(image->context, load ? bytes : memory, load ? memory : bytes,
                                   range->end - range->first);
        good = range->copied != 0;
        last = good ? range->copied : last;
    }
    if (last)
        acs_context_wait(image->context, ACS_WAIT_FOR_ALL, last);
    for (size_t i = 0; good && i < image->count; i++)
        good = acs_failures_of(image->context, image->list[i].copied, NULL) == ACS_OK;
    return good;
}

bool acs_image_load(acs_image *image, acs_copy to)
{
    return copy_all(image, NULL, to, true);
}

bool acs_image_store(acs_image *image, const acs_spans *spans, acs_copy from)
{
    return copy_all(image, spans, from, false);
}

/* --------------------------------------------------------------------------------------------------------- scramble */

/* Whether it lies in the image, or where devices and hosts have their heaps. */
static bool is_address(const void *user, uint64_t value)
{
    const uint64_t top = value >> 40;
    return top == 0x7f || top == 0x55 || top == 0x56 || (value >> 30 != 0 && acs_image_at(user, value) != NULL);
}

static void scramble_range(const acs_image *image, const acs_memory_range *range, const acs_spans *spans,
                           const acs_scrambled *which)
{
    const acs_bytes before = {range->first, range->copies[ACS_COPY_BEFORE], range->end - range->first};
    const uint64_t end = range->end < which->end ? range->end : which->end;
    const acs_scramble_way way = {which->level, is_address, image};
    size_t at = 0;
    for (uint64_t address = range->first > which->first ? range->first : which->first, until; address < end;
         address = until) {
        const uint8_t access = acs_spans_at(spans, &at, address, end, &until);
        if (acs_scramble_set_of(access) & which->set && (!range->shared || access & ACS_WRITE))
            acs_scramble(&before, address - range->first, until - range->first, range->copies[ACS_COPY_GIVEN], &way);
    }
}

void acs_image_scramble(const acs_image *image, const acs_spans *spans, const acs_scrambled *which)
{
    for (size_t i = 0; i < image->count; i++) {
        const acs_memory_range *range = &image->list[i];
        unsigned char *given = range->copies[ACS_COPY_GIVEN], *before = range->copies[ACS_COPY_BEFORE];
        memcpy(given, range->shared ? (void *)(uintptr_t)range->first : before, (size_t)(range->end - range->first));
        if (range->shared)
            copy_written(range, spans, given, before);
        scramble_range(image, range, spans, which);
    }
}
