/* Comparison of the copies of an image (compare.h). Called by launch_check.c. */
#include "checks/compare.h"

#include <string.h>

/* Bytes of one range whose access is the same. */
typedef struct stretch {
    const acs_memory_range *range;
    uint64_t first, end; /* places in it */
    uint8_t access;
} stretch;

/* Whether a word, or what the stretch has of it, is the same in two copies. */
static bool is_same(const stretch *s, acs_copy a, acs_copy b, uint64_t first, uint64_t end)
{
    return !memcmp(s->range->copies[a] + first, s->range->copies[b] + first, (size_t)(end - first));
}

/* The end of the word of memory that the place is in. */
static uint64_t word_end(const stretch *s, uint64_t place)
{
    const uint64_t end = ((s->range->first + place) | 3) + 1 - s->range->first;
    return end < s->end ? end : s->end;
}

static void add(acs_found_bytes *found, const stretch *s, uint64_t first, uint64_t end)
{
    const uint64_t address = s->range->first + first;
    if (!found->bytes)
        *found = (acs_found_bytes){.range = s->range, .first = address};
    found->pieces += !found->bytes || found->end != address;
    found->bytes += end - first;
    found->end = s->range->first + end;
}

/* Call `visit` for each stretch of a range. */
static void each_stretch(const acs_memory_range *range, const acs_spans *spans, size_t *at,
                         void (*visit)(const stretch *s, void *user), void *user)
{
    for (uint64_t address = range->first, until; address < range->end; address = until) {
        const uint8_t access = acs_spans_at(spans, at, address, &until);
        until = until < range->end ? until : range->end;
        visit(&(stretch){range, address - range->first, until - range->first, access}, user);
    }
}

/* Give what was found in each range, if anything was. */
static void each_range(const acs_image *image, const acs_spans *spans, void (*visit)(const stretch *s, void *user),
                       acs_found found, void *user)
{
    size_t at = 0;
    for (size_t i = 0; i < image->count; i++) {
        acs_found_bytes bytes = {0};
        each_stretch(&image->list[i], spans, &at, visit, &bytes);
        if (bytes.bytes)
            found(user, &bytes);
    }
}

/* ---------------------------------------------------------------------------------------------------------- changed */

/* Add the bytes of the stretch that differ between two copies. */
static void add_different(const stretch *s, acs_copy a, acs_copy b, acs_found_bytes *found)
{
    const unsigned char *x = s->range->copies[a], *y = s->range->copies[b];
    if (s->access & ACS_WRITE || is_same(s, a, b, s->first, s->end))
        return;
    for (uint64_t i = s->first; i < s->end; i++)
        if (x[i] != y[i])
            add(found, s, i, i + 1);
}

static void changed(const stretch *s, void *user)
{
    add_different(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, user);
}

static void changed_or_tried(const stretch *s, void *user)
{
    acs_found_bytes *found = user;
    const unsigned char *before = s->range->copies[ACS_COPY_BEFORE], *after = s->range->copies[ACS_COPY_AFTER];
    const unsigned char *given = s->range->copies[ACS_COPY_GIVEN], *trial = s->range->copies[ACS_COPY_TRIAL];
    if (s->access & ACS_WRITE || (is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, s->first, s->end) &&
                                  is_same(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, s->first, s->end)))
        return;
    for (uint64_t i = s->first; i < s->end; i++)
        if (before[i] != after[i] || given[i] != trial[i])
            add(found, s, i, i + 1);
}

void acs_compare_changed(const acs_image *image, const acs_spans *spans, bool trial, acs_found found, void *user)
{
    each_range(image, spans, trial ? changed_or_tried : changed, found, user);
}

/* -------------------------------------------------------------------------------------------------------- unwritten */

static bool is_unwritten(const stretch *s, uint64_t first, uint64_t end)
{
    return is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, first, end) &&
           is_same(s, ACS_COPY_GIVEN, ACS_COPY_TRIAL, first, end);
}

static void unwritten(const stretch *s, void *user)
{
    if ((s->access & ACS_UPDATE) != ACS_WRITE)
        return;
    for (uint64_t i = s->first, end; i < s->end; i = end) {
        end = word_end(s, i);
        if (is_unwritten(s, i, end) && !is_same(s, ACS_COPY_BEFORE, ACS_COPY_GIVEN, i, end))
            add(user, s, i, end);
    }
}

static void kept(const stretch *s, void *user)
{
    if ((s->access & ACS_UPDATE) != ACS_WRITE)
        return;
    for (uint64_t i = s->first, end; i < s->end; i = end) {
        end = word_end(s, i);
        if (is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, i, end))
            add(user, s, i, end);
    }
}

void acs_compare_kept(const acs_image *image, const acs_spans *spans, acs_found found, void *user)
{
    each_range(image, spans, kept, found, user);
}

void acs_compare_unwritten(const acs_image *image, const acs_spans *spans, acs_found found, void *user)
{
    each_range(image, spans, unwritten, found, user);
}

/* ---------------------------------------------------------------------------------------------------------- differs */

/* Whether the words of the stretch differ that the launch wrote. */
static void differs(const stretch *s, void *user)
{
    bool *different = user;
    if (*different || is_same(s, ACS_COPY_AFTER, ACS_COPY_TRIAL, s->first, s->end))
        return;
    for (uint64_t i = s->first, end; i < s->end && !*different; i = end) {
        end = word_end(s, i);
        const bool written = s->access & ACS_WRITE ? !is_unwritten(s, i, end)
                                                   : !is_same(s, ACS_COPY_BEFORE, ACS_COPY_AFTER, i, end);
        *different = written && !is_same(s, ACS_COPY_AFTER, ACS_COPY_TRIAL, i, end);
    }
}

bool acs_compare_differs(const acs_image *image, const acs_spans *spans)
{
    bool different = false;
    size_t at = 0;
    for (size_t i = 0; i < image->count && !different; i++)
        each_stretch(&image->list[i], spans, &at, differs, &different);
    return different;
}

/* -------------------------------------------------------------------------------------------------------------- use */

/* Add what was done to a row of the segment. */
static void add_use(const stretch *row, acs_use *use)
{
    for (uint64_t i = row->first, end; i < row->end; i = end) {
        end = word_end(row, i);
        use->scrambled |= !is_same(row, ACS_COPY_BEFORE, ACS_COPY_GIVEN, i, end);
        if (is_unwritten(row, i, end))
            use->kept = true;
        else
            use->written = true;
    }
}

acs_use acs_compare_use(const acs_image *image, const acs_segment *segment)
{
    acs_use use = {false, false, false};
    for (uint64_t row = 0; row < segment->rows; row++) {
        const uint64_t first = segment->base + row * segment->pitch_bytes, end = first + segment->row_bytes;
        for (uint64_t at = first; at < end;) {
            const acs_memory_range *range = acs_image_at(image, at);
            const uint64_t until = range->end < end ? range->end : end;
            add_use(&(stretch){range, at - range->first, until - range->first, segment->access}, &use);
            at = until;
        }
    }
    return use;
}
