/*
 * Texts of a report: labels, times, numbers of bytes; and the length of a union of spans of time. Called by the other
 * files of this folder; keeps nothing.
 */
#include "report/causes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *const acs_method_names[ACS_METHOD_COUNT] = {"unknown", "launch", "replay", "resident"};

const char *acs_label_text(acs_label label, char text[ACS_CAUSE_TEXT])
{
    const acs_site site = acs_label_site(label);
    if (site.file)
        (void)snprintf(text, ACS_CAUSE_TEXT, "%.100s (%.100s:%d)", acs_label_name(label), site.file, site.line);
    else
        (void)snprintf(text, ACS_CAUSE_TEXT, "%.100s", acs_label_name(label));
    return text;
}

const char *acs_time_text(uint64_t ns, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)ns;
    uint32_t unit = 0;
    for (; value >= 999.5 && unit < 3; unit++)
        value /= 1000;
    (void)snprintf(text, 32, "%.*f %s", !unit || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, units[unit]);
    return text;
}

const char *acs_bytes_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    uint32_t unit = 0;
    uint64_t value = bytes;
    for (; value >= 1024 && value % 1024 == 0 && unit < 4; unit++)
        value /= 1024;
    if (value < 10240 || unit == 4)
        (void)snprintf(text, 32, "%" PRIu64 " %s", value, units[unit]);
    else
        (void)snprintf(text, 32, "%.1f %s", (double)value / 1024, units[unit + 1]);
    return text;
}

static int by_from(const void *a, const void *b)
{
    const acs_time_span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

uint64_t acs_time_spans_union(acs_time_span *spans, size_t count)
{
    uint64_t all = 0, end = 0;
    if (count)
        qsort(spans, count, sizeof *spans, by_from);
    for (size_t i = 0; i < count; i++) {
        const uint64_t from = spans[i].from > end ? spans[i].from : end;
        if (spans[i].to <= from)
            continue;
        all += spans[i].to - from;
        end = spans[i].to;
    }
    return all;
}
