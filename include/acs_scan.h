/*
 * What the headers that acs-scan writes are made of: spans of integers, and the bytes that a kernel's accesses touch.
 * Included by those headers; docs/scan.md describes them. C11 and C++17.
 *
 * A launch computes its footprint with the values of its arguments, its grid and its block. Each quantity of the
 * kernel, such as an index, is a span: from its least to its greatest value among all threads and all passes of loops.
 * What has no known limit is unlimited, and an access with such an offset touches the whole allocation.
 */
#ifndef ACS_SCAN_H
#define ACS_SCAN_H

#include "acs.h"

#include <string.h>

/** The integers from low to high; none where low > high. INT64_MIN and INT64_MAX: unlimited. */
typedef struct acs_span {
    int64_t low, high;
} acs_span;

static inline acs_span acs_span_of(int64_t low, int64_t high)
{
    acs_span s;
    s.low = low;
    s.high = high;
    return s;
}
static inline acs_span acs_span_point(int64_t value)
{
    return acs_span_of(value, value);
}
static inline acs_span acs_span_any(void)
{
    return acs_span_of(INT64_MIN, INT64_MAX);
}
static inline int acs_span_is_empty(acs_span a)
{
    return a.low > a.high;
}
static inline int acs_span_is_point(acs_span a)
{
    return a.low == a.high && a.low != INT64_MIN && a.low != INT64_MAX;
}
static inline int acs_span_is_limited(acs_span a)
{
    return a.low != INT64_MIN && a.high != INT64_MAX;
}
static inline int64_t acs_span_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t acs_span_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline acs_span acs_span_add(acs_span a, acs_span b)
{
    acs_span sum = acs_span_any();
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (a.low == INT64_MIN || b.low == INT64_MIN || __builtin_add_overflow(a.low, b.low, &sum.low))
        sum.low = INT64_MIN;
    if (a.high == INT64_MAX || b.high == INT64_MAX || __builtin_add_overflow(a.high, b.high, &sum.high))
        sum.high = INT64_MAX;
    return sum;
}
static inline acs_span acs_span_negative(acs_span a)
{
    if (acs_span_is_empty(a))
        return a;
    return acs_span_of(a.high == INT64_MAX ? INT64_MIN : -a.high, a.low == INT64_MIN ? INT64_MAX : -a.low);
}
static inline acs_span acs_span_multiply(acs_span a, acs_span b)
{
    const int64_t left[2] = {a.low, a.high}, right[2] = {b.low, b.high};
    acs_span product = acs_span_of(INT64_MAX, INT64_MIN);
    int i;
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if ((a.low == 0 && a.high == 0) || (b.low == 0 && b.high == 0))
        return acs_span_point(0);
    if (!acs_span_is_limited(a) || !acs_span_is_limited(b))
        return a.low >= 0 && b.low >= 0 ? acs_span_of(0, INT64_MAX) : acs_span_any();
    for (i = 0; i < 4; i++) {
        int64_t one;
        if (__builtin_mul_overflow(left[i & 1], right[i >> 1], &one))
            return acs_span_any();
        product.low = acs_span_least(product.low, one);
        product.high = acs_span_most(product.high, one);
    }
    return product;
}
static inline acs_span acs_span_union(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_is_empty(a) ? b : a;
    return acs_span_of(acs_span_least(a.low, b.low), acs_span_most(a.high, b.high));
}
/** Whether all of a span lies between two numbers. */
static inline int acs_span_inside(acs_span a, int64_t low, int64_t high)
{
    return acs_span_is_empty(a) || (a.low >= low && a.high <= high);
}
/** The part of `a` from low.low to high.high; either may be acs_span_any(). All of `a` where not `holds`. */
static inline acs_span acs_span_limit(acs_span a, int holds, acs_span low, acs_span high)
{
    if (!holds || acs_span_is_empty(low) || acs_span_is_empty(high))
        return a;
    return acs_span_of(acs_span_most(a.low, low.low), acs_span_least(a.high, high.high));
}

/*
 * A value as its type reads it: where it does not fit, any value of the type. One of 32 bits or more is then unlimited: as
 * an index it would reach beyond every allocation.
 */
static inline acs_span acs_span_read(acs_span a, int64_t least, int64_t most)
{
    if (acs_span_inside(a, least, most))
        return a;
    return acs_span_of(most < INT32_MAX || least == 0 ? least : INT64_MIN, most < INT32_MAX ? most : INT64_MAX);
}
static inline acs_span acs_span_divide(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (b.low < 1 || !acs_span_is_limited(a))
        return a.low >= 0 && b.low >= 1 ? acs_span_of(a.low / b.high, INT64_MAX) : acs_span_any();
    return acs_span_of(a.low / (a.low >= 0 ? b.high : b.low), a.high / (a.high >= 0 ? b.low : b.high));
}
/* Rounded down, by a positive number. */
static inline acs_span acs_span_floor(acs_span a, acs_span b)
{
    int64_t by = b.low;
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (!acs_span_is_point(b) || by < 1 || !acs_span_is_limited(a))
        return acs_span_any();
    return acs_span_of(a.low / by - (a.low % by < 0), a.high / by - (a.high % by < 0));
}
static inline acs_span acs_span_remainder(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (b.low < 1 || b.high == INT64_MAX)
        return acs_span_any();
    if (acs_span_is_point(b) && acs_span_is_limited(a) && a.low >= 0 && a.low / b.low == a.high / b.low)
        return acs_span_of(a.low % b.low, a.high % b.low);
    if (a.low >= 0)
        return acs_span_of(0, acs_span_least(a.high, b.high - 1));
    return acs_span_of(1 - b.high, a.high <= 0 ? 0 : acs_span_least(a.high, b.high - 1));
}
static inline acs_span acs_span_and(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (acs_span_is_point(a) && acs_span_is_point(b))
        return acs_span_point(a.low & b.low);
    if (a.low >= 0 || b.low >= 0)
        return acs_span_of(0, a.low < 0 ? b.high : b.low < 0 ? a.high : acs_span_least(a.high, b.high));
    return acs_span_any();
}
static inline acs_span acs_span_or(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (acs_span_is_point(a) && acs_span_is_point(b))
        return acs_span_point(a.low | b.low);
    if (a.low >= 0 && b.low >= 0) /* a | b <= a + b */
        return acs_span_of(acs_span_most(a.low, b.low), acs_span_add(a, b).high);
    return acs_span_any();
}
static inline acs_span acs_span_shift_right(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    if (a.low < 0 || !acs_span_is_limited(a) || b.low < 0 || b.high > 63)
        return acs_span_any();
    return acs_span_of(a.low >> b.high, a.high >> b.low);
}
static inline acs_span acs_span_minimum(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    return acs_span_of(acs_span_least(a.low, b.low), acs_span_least(a.high, b.high));
}
static inline acs_span acs_span_maximum(acs_span a, acs_span b)
{
    if (acs_span_is_empty(a) || acs_span_is_empty(b))
        return acs_span_of(1, 0);
    return acs_span_of(acs_span_most(a.low, b.low), acs_span_most(a.high, b.high));
}
static inline acs_span acs_span_absolute(acs_span a)
{
    if (acs_span_is_empty(a) || a.low >= 0)
        return a;
    return a.high <= 0 ? acs_span_negative(a) : acs_span_of(0, acs_span_most(acs_span_negative(a).high, a.high));
}
/** The passes of a loop for which low <= step * pass + rest <= high may hold. */
static inline acs_span acs_span_passes(acs_span passes, int holds, acs_span step, acs_span rest, acs_span low,
                                       acs_span high)
{
    acs_span room;
    if (!holds || !acs_span_is_point(step) || step.low == 0 || acs_span_is_empty(rest) || acs_span_is_empty(low) ||
        acs_span_is_empty(high))
        return passes;
    room = step.low > 0 ? acs_span_add(acs_span_point(high.high), acs_span_negative(rest))
                        : acs_span_add(rest, acs_span_negative(acs_span_point(low.low)));
    if (high.high == INT64_MAX && step.low > 0)
        return passes;
    if (low.low == INT64_MIN && step.low < 0)
        return passes;
    if (room.high == INT64_MAX)
        return passes;
    room = acs_span_floor(acs_span_point(room.high), step.low > 0 ? step : acs_span_negative(step));
    return acs_span_of(passes.low, acs_span_most(passes.low, acs_span_least(passes.high, room.high)));
}
/**
 * Whether a loop that ends where its counter equals `end` gets there by this step. `first`: the counter one step before
 * it is compared for the first time.
 */
static inline int acs_span_ends(acs_span first, acs_span step, acs_span end)
{
    const int64_t by = step.low;
    if (!acs_span_is_point(step) || by == 0 || acs_span_is_empty(first) || acs_span_is_empty(end) ||
        !acs_span_is_limited(first) || !acs_span_is_limited(end))
        return 0;
    first = acs_span_add(first, step);
    if (by > 0 ? first.high > end.low : first.low < end.high)
        return 0;
    if (by == 1 || by == -1)
        return 1;
    return acs_span_is_point(first) && acs_span_is_point(end) && (end.low - first.low) % by == 0;
}

/* ------------------------------------------------------------------------------------------------------- footprints */

/**
 * `rows` rows of `bytes` bytes, `pitch` apart, from `low` behind an address. rows 0: none. whole: all of the allocation that
 * begins at it, or anything where none does.
 */
typedef struct acs_scan_shape {
    int64_t low, bytes, rows, pitch;
    int whole;
} acs_scan_shape;

/** What is known of one address among the arguments. */
typedef struct acs_scan_pointer {
    uint64_t address;
    acs_scan_shape reads, writes;
} acs_scan_pointer;

/** A term of an access's offset: a coefficient times a quantity. */
typedef struct acs_scan_term {
    acs_span coefficient, quantity;
} acs_scan_term;

/** Whether the arguments have the sizes of the kernel's parameters. */
static inline int acs_scan_fits(const acs_footprint_input *in, const uint32_t *sizes, size_t count)
{
    size_t i;
    if (in->arg_count != count)
        return 0;
    for (i = 0; i < count; i++)
        if (in->arg_bytes[i] != sizes[i])
            return 0;
    return 1;
}
/** Bytes of an argument as a number. */
static inline int64_t acs_scan_number(const acs_footprint_input *in, size_t argument, size_t offset, size_t bytes,
                                      int is_signed)
{
    const char *at;
    int64_t value = 0;
    at = (const char *)in->args[argument] + offset;
    if (bytes == 8) {
        memcpy(&value, at, 8);
    } else if (bytes == 4) {
        int32_t narrow;
        memcpy(&narrow, at, 4);
        value = narrow;
    } else if (bytes == 2) {
        uint16_t narrow;
        memcpy(&narrow, at, 2);
        value = is_signed ? (int16_t)narrow : narrow;
    } else {
        unsigned char narrow;
        memcpy(&narrow, at, 1);
        value = is_signed ? (signed char)narrow : narrow;
    }
    return value;
}
static inline uint64_t acs_scan_address(const acs_footprint_input *in, size_t argument, size_t offset)
{
    uint64_t address = 0;
    memcpy(&address, (const char *)in->args[argument] + offset, sizeof address);
    return address;
}

static inline void acs_scan_whole(acs_scan_shape *shape)
{
    shape->whole = 1;
}

/* Both as one run of bytes. */
static inline void acs_scan_join_runs(acs_scan_shape *to, const acs_scan_shape *more)
{
    const int64_t end = to->low + (to->rows - 1) * to->pitch + to->bytes;
    const int64_t end_of_more = more->low + (more->rows - 1) * more->pitch + more->bytes;
    to->low = acs_span_least(to->low, more->low);
    to->bytes = acs_span_most(end, end_of_more) - to->low;
    to->rows = 1;
    to->pitch = 0;
}

/* Add the bytes of `more`. Where both are rows of one pitch, the rows that hold both; else one run. */
static inline void acs_scan_join(acs_scan_shape *to, const acs_scan_shape *more)
{
    const int64_t pitch = to->rows > 1 ? to->pitch : more->pitch;
    const int same = to->rows == 1 ? to->bytes <= pitch : more->rows == 1 || more->pitch == pitch;
    if (to->whole)
        return;
    if (!to->rows) {
        *to = *more;
        return;
    }
    if (same && pitch > 0 && more->bytes <= pitch) {
        const int64_t apart = more->low - to->low;
        int64_t row = apart / pitch, column = apart % pitch;
        int64_t first, left, right;
        if (column > pitch / 2) { /* a column to the left, one row further down */
            column -= pitch;
            row++;
        } else if (column < -(pitch / 2)) {
            column += pitch;
            row--;
        }
        first = acs_span_least(row, 0);
        left = acs_span_least(column, 0);
        right = acs_span_most(column + more->bytes, to->bytes);
        if (right - left <= pitch) {
            const int64_t last = acs_span_most(row + more->rows, to->rows);
            to->low += first * pitch + left;
            to->bytes = right - left;
            to->rows = last - first;
            to->pitch = pitch;
            return;
        }
    }
    acs_scan_join_runs(to, more);
}

/**
 * An access of `bytes` bytes at start + the sum of the terms, behind an address. Where one term makes rows that do not
 * overlap, they are the rows of the shape. Not `holds`: the offset may be any.
 */
static inline void acs_scan_touch(acs_scan_shape *to, int holds, acs_span start, const acs_scan_term *terms,
                                  size_t count, int64_t bytes)
{
    acs_scan_shape more;
    acs_span sum = start;
    int64_t stride = 0, rows = 1, rest;
    size_t i;
    for (i = 0; holds && i < count; i++)
        if (acs_span_is_empty(terms[i].quantity))
            return; /* no thread gets here */
    for (i = 0; i < count; i++) {
        const acs_span c = terms[i].coefficient, q = terms[i].quantity;
        sum = acs_span_add(sum, acs_span_multiply(c, q));
        if (acs_span_is_point(c) && acs_span_is_limited(q) && q.high > q.low && acs_span_absolute(c).low > stride) {
            stride = acs_span_absolute(c).low;
            rows = q.high - q.low + 1;
        }
    }
    if (!holds || acs_span_is_empty(start) || !acs_span_inside(sum, -(INT64_C(1) << 60), INT64_C(1) << 60)) {
        acs_scan_whole(to);
        return;
    }
    rest = sum.high - sum.low - (rows - 1) * stride + bytes; /* bytes of a row */
    more.low = sum.low;
    more.whole = 0;
    if (rows > 1 && rest < stride) {
        more.bytes = rest;
        more.rows = rows;
        more.pitch = stride;
    } else {
        more.bytes = sum.high - sum.low + bytes;
        more.rows = 1;
        more.pitch = 0;
    }
    acs_scan_join(to, &more);
}

/* Whether all bytes of `inner` are certainly bytes of `outer`. */
static inline int acs_scan_holds(const acs_scan_shape *outer, const acs_scan_shape *inner)
{
    if (outer->whole || !inner->rows)
        return outer->whole || !inner->whole;
    if (inner->whole || !outer->rows)
        return 0;
    if (outer->rows == 1)
        return inner->low >= outer->low &&
               inner->low + (inner->rows - 1) * inner->pitch + inner->bytes <= outer->low + outer->bytes;
    return inner->low == outer->low && inner->bytes <= outer->bytes && inner->rows <= outer->rows &&
           (inner->rows == 1 || inner->pitch == outer->pitch);
}

/* `elsewhere`: it is known that no allocation begins at the address. */
static inline acs_segment acs_scan_segment(uint64_t address, const acs_scan_shape *shape, acs_access access,
                                           int elsewhere)
{
    if (shape->whole && elsewhere)
        return acs_make_segment(ACS_EXTENT_ALL, access, 0, 0, 0, 0);
    if (shape->whole)
        return acs_make_segment(ACS_EXTENT_BYTES, access, address, ACS_WHOLE_AT, 1, 0);
    return acs_make_segment(ACS_EXTENT_BYTES, access, address + (uint64_t)shape->low, (uint64_t)shape->bytes,
                            (uint64_t)shape->rows, (uint64_t)shape->pitch);
}

static inline size_t acs_scan_add(acs_segment *out, size_t capacity, size_t at, acs_segment segment)
{
    if (at < capacity)
        out[at] = segment;
    return at + 1;
}

/** How many sets of numbers a kernel's ranges are kept of. */
#define ACS_SCAN_KEPT 16u

/**
 * The ranges of `count` pointers for these numbers: kept ones, else `compute` makes them. If another thread is looking, they
 * are computed and not kept.
 */
static inline void acs_scan_ranges(int *busy, int64_t *keys, const int64_t *numbers, size_t length, acs_scan_pointer *kept,
                                   acs_scan_pointer *p, size_t count, void (*compute)(const int64_t *, acs_scan_pointer *))
{
    uint64_t hash = 0;
    size_t i;
    if (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE)) {
        memset(p, 0, count * sizeof *p);
        compute(numbers, p);
        return;
    }
    for (i = 0; i < length; i++)
        hash = (hash ^ (uint64_t)numbers[i]) * UINT64_C(0x9e3779b97f4a7c15);
    i = (size_t)(hash >> 60) % ACS_SCAN_KEPT;
    keys += i * (length + 1);
    kept += i * count;
    if (!keys[length] || memcmp(keys, numbers, length * sizeof *keys) != 0) {
        memset(kept, 0, count * sizeof *kept);
        compute(numbers, kept);
        memcpy(keys, numbers, length * sizeof *keys);
        keys[length] = 1;
    }
    memcpy(p, kept, count * sizeof *p);
    __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
}

/** acs_scan_ranges for an array of pointers, with the numbers that `compute` gets, of which there is one at least. */
#define ACS_SCAN_RANGES(p, compute, ...)                                                                               \
    do {                                                                                                               \
        const int64_t acs_scan_n_[] = {__VA_ARGS__};                                                                   \
        enum { ACS_SCAN_COUNT_ = sizeof acs_scan_n_ / sizeof(int64_t), ACS_SCAN_POINTERS_ = sizeof(p) / sizeof *(p) };  \
        static int64_t acs_scan_keys_[ACS_SCAN_KEPT * (ACS_SCAN_COUNT_ + 1)];                                          \
        static acs_scan_pointer acs_scan_kept_[ACS_SCAN_KEPT * ACS_SCAN_POINTERS_];                                    \
        static int acs_scan_busy_;                                                                                     \
        acs_scan_ranges(&acs_scan_busy_, acs_scan_keys_, acs_scan_n_, ACS_SCAN_COUNT_, acs_scan_kept_, p,              \
                        ACS_SCAN_POINTERS_, compute);                                                                  \
    } while (0)

/*
 * Only the part of the bytes that lies in the allocation of the address, from `first` to `end` behind it, where ACS knows
 * that without the driver. A range may be larger than what the kernel touches, and no access leaves the array. But an
 * address that is not the first of its allocation may be one before an array in the next one. So a range that lies
 * elsewhere stays, and one that reaches across an end is unknown.
 */
static inline void acs_scan_clip(acs_scan_shape *shape, int64_t first, int64_t end)
{
    const int64_t last = shape->low + (shape->rows - 1) * shape->pitch + shape->bytes;
    if (shape->whole || !shape->rows || (shape->low >= first && last <= end) || shape->low >= end || last <= first)
        return;
    if (first != 0) {
        acs_scan_whole(shape);
    } else if (shape->low >= 0) { /* else the address may also be the end of the allocation before this one */
        shape->bytes = end - shape->low;
        shape->rows = 1;
        shape->pitch = 0;
    }
}

/** The segments of all addresses, behind `at` others. Addresses that are NULL have none. */
static inline size_t acs_scan_end(acs_scan_pointer *pointers, size_t count, acs_segment *out, size_t capacity,
                                  size_t at)
{
    size_t i;
    for (i = 0; i < count; i++) {
        acs_scan_pointer *p = &pointers[i];
        uint64_t first, bytes;
        int elsewhere = 0;
        if (!p->address)
            continue;
        if (acs_footprint_allocation(p->address, &first, &bytes)) {
            elsewhere = first != p->address;
            acs_scan_clip(&p->reads, (int64_t)(first - p->address), (int64_t)(first + bytes - p->address));
            acs_scan_clip(&p->writes, (int64_t)(first - p->address), (int64_t)(first + bytes - p->address));
        }
        if (p->writes.whole || p->writes.rows)
            at = acs_scan_add(out, capacity, at, acs_scan_segment(p->address, &p->writes, ACS_UPDATE, elsewhere));
        if ((p->reads.whole || p->reads.rows) && !acs_scan_holds(&p->writes, &p->reads))
            at = acs_scan_add(out, capacity, at, acs_scan_segment(p->address, &p->reads, ACS_READ, elsewhere));
    }
    return at;
}

/** The kernel stores an address: its block of acs_malloc stays where it is from then on. Other memory does so anyhow. */
static inline size_t acs_scan_keep(acs_segment *out, size_t capacity, size_t at, uint64_t address)
{
    return acs_scan_add(out, capacity, at, acs_make_segment(ACS_EXTENT_BYTES, ACS_ESCAPE, address, 0, 1, 0));
}

/** The segments of several footprint functions; of those that refuse the arguments none. */
static inline size_t acs_scan_all(const acs_footprint *all, size_t count, const acs_footprint_input *in, acs_segment *out,
                                  size_t capacity)
{
    size_t at = 0, i;
    int fits = 0;
    for (i = 0; i < count; i++) {
        const size_t one = all[i](in, at < capacity ? out + at : out, at < capacity ? capacity - at : 0);
        if (one == ACS_FOOTPRINT_REFUSED)
            continue;
        at += one;
        fits = 1;
    }
    return fits ? at : ACS_FOOTPRINT_REFUSED;
}

/** A kernel's mangled name and its footprint function. */
typedef struct acs_scan_entry {
    const char *name;
    acs_footprint footprint;
} acs_scan_entry;

/** Declare the footprints of a list that ends with NULL: acs_declare. */
static inline void acs_scan_declare(const acs_scan_entry *entries)
{
    for (; entries->name; entries++) {
        acs_kernel kernel;
        memset(&kernel, 0, sizeof kernel);
        kernel.name = entries->name;
        (void)acs_declare(&kernel, entries->footprint, NULL); /* without memory for it, launches may touch anything */
    }
}

#endif
