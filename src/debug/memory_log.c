/*
 * ACS_MEMORY_LOG: a line of CSV for each acs_malloc and acs_free, which acs-memory can replay (bench/memory); and the
 * report of blocks that were never freed. Called by malloc.c, group.c and parts.c. Writes through stdio, whose lock
 * keeps lines whole.
 */
#include "debug/debug_options.h"

#include "base/options.h"
#include "base/tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { NAME_MOST = 200 };

acs_status acs_memory_log_open(acs_context *context)
{
    const char *path = context->options.memory_log;
    if (!*path)
        return ACS_OK;
    context->memory_log = fopen(path, "we");
    if (context->memory_log && fputs("event,block,bytes,memory,op,file,line\n", context->memory_log) >= 0 &&
        fflush(context->memory_log) == 0)
        return ACS_OK;
    const int error = errno;
    if (context->memory_log)
        (void)fclose(context->memory_log);
    context->memory_log = NULL;
    return acs_options_no_file(&context->options, "ACS_MEMORY_LOG", path, error);
}

/* A file's name as a field, with characters replaced that would end it. */
static const char *field(const acs_site *site, char *text)
{
    (void)snprintf(text, NAME_MOST, "%s", site && site->file ? site->file : "");
    for (char *c = text; *c; c++)
        if (*c == ',' || *c == '"' || *c == '\n' || *c == '\r')
            *c = '_';
    return text;
}

static void record_block(acs_context *context, bool freed, const acs_block *block, acs_op last, uint64_t began)
{
    const acs_memory_counts counts = acs_memory_count(context->memory, block->kind);
    acs_recorder_block(context->recorder, &(acs_recorded_block){.began = began,
                                                                .block = block->id,
                                                                .base = (uint64_t)(uintptr_t)block->ptr,
                                                                .bytes = block->bytes,
                                                                .live = counts.live,
                                                                .reserved = counts.reserved,
                                                                .site = block->site,
                                                                .newest = last,
                                                                .freed = freed});
}

static void log_block(acs_context *context, bool freed, const acs_block *block, acs_op last)
{
    char name[NAME_MOST], line[NAME_MOST + 120];
    (void)snprintf(line, sizeof line, "%s,%" PRIu64 ",%zu,%s,%" PRIu64 ",%s,%d\n", freed ? "free" : "malloc", block->id,
                   block->bytes, acs_memory_is_device(block->kind) ? "device" : "host", last, field(block->site, name),
                   block->site ? block->site->line : 0);
    (void)fputs(line, context->memory_log); /* errors are reported at the end */
}

void acs_memory_event(acs_context *context, bool freed, const acs_block *block, acs_op last, uint64_t began)
{
    if (ACS_UNLIKELY(context->memory_log != NULL))
        log_block(context, freed, block, last);
    if (ACS_UNLIKELY(context->recorder != NULL))
        record_block(context, freed, block, last, began);
}

void acs_memory_log_close(acs_context *context)
{
    FILE *file = context->memory_log;
    bool bad = file && ferror(file);
    context->memory_log = NULL;
    if (file && (fclose(file) != 0 || bad))
        acs_log_always(ACS_LOG_ERROR, "ACS_MEMORY_LOG: '%s' is not whole: %s", context->options.memory_log, strerror(errno));
}

/* ------------------------------------------------------------------------------------------------------------- leaks */

typedef struct leaks {
    struct {
        const acs_site *site;
        uint64_t blocks, bytes;
    } sites[TUNE_LEAK_SITES]; /* the last one stands for all further sites */
    uint32_t count;
    uint64_t blocks, bytes;
} leaks;

static bool same_place(const acs_site *a, const acs_site *b)
{
    return a == b || (a && b && a->file && b->file && a->line == b->line && strcmp(a->file, b->file) == 0);
}

static void add_leak(void *user, const acs_block *block)
{
    leaks *l = user;
    uint32_t i = 0;
    while (i < l->count && !same_place(l->sites[i].site, block->site))
        i++;
    if (i == l->count && l->count < TUNE_LEAK_SITES)
        l->sites[l->count++].site = block->site;
    if (i == TUNE_LEAK_SITES)
        i--;
    l->sites[i].blocks++;
    l->sites[i].bytes += block->bytes;
    l->blocks++;
    l->bytes += block->bytes;
}

void acs_memory_log_leaks(acs_context *context)
{
    leaks l = {0};
    if (!acs_log_enabled(ACS_LOG_WARN))
        return;
    if (context->pooled)
        acs_memory_each(context->memory, add_leak, &l);
    else
        acs_allocations_each(context->allocations, add_leak, &l);
    if (acs_context_addresses(context))
        acs_memory_each(acs_context_addresses(context), add_leak, &l);
    if (l.blocks)
        acs_log(ACS_LOG_WARN, "acs_close: %" PRIu64 " blocks of %" PRIu64 " bytes were not freed", l.blocks, l.bytes);
    for (uint32_t i = 0; i < l.count; i++)
        acs_log(ACS_LOG_WARN, "  %" PRIu64 " of %" PRIu64 " bytes by acs_malloc at %s:%d%s", l.sites[i].blocks,
                l.sites[i].bytes, l.sites[i].site && l.sites[i].site->file ? l.sites[i].site->file : "?",
                l.sites[i].site ? l.sites[i].site->line : 0, i + 1 == TUNE_LEAK_SITES ? " and other places" : "");
}
