/*
 * What acs-info prints, as text for people and as JSON for programs. Called once, with everything found out; asks
 * nothing itself, but for what this build was compiled with, which is what the library beside it was compiled with.
 */
#include "acs_info.h"

#include <stdio.h>
#include <string.h>

#ifdef ACS_HAVE_CUDA
#include <cuda_runtime_api.h>
enum { BUILD_CUDA = CUDART_VERSION };
#else
enum { BUILD_CUDA = 0 };
#endif

#ifdef __clang__
static const char g_compiler[] = "clang " __clang_version__;
#else
static const char g_compiler[] = "gcc " __VERSION__;
#endif

/* CUDA's numbers: 13020 is 13.2. */
#define CUDA_MAJOR(version) ((version) / 1000)
#define CUDA_MINOR(version) ((version) % 1000 / 10)

/* -------------------------------------------------------------------------------------------------------------- text */

static void text_row(const char *name, const char *value)
{
    printf("  %-14s %s\n", name, value);
}

static void text_cuda(const char *name, int version, const char *none)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", CUDA_MAJOR(version), CUDA_MINOR(version));
    text_row(name, version ? text : none);
}

static void text_open(const char *name, const info_open *open)
{
    if (!open->opened)
        printf("  %-14s not available: %s\n", name, open->why);
    else
        text_row(name, open->opened == open->asked ? "available" : open->opened);
}

static void text_gpus(const info *from)
{
    puts("\nGPUs");
    if (from->runtime_cuda) {
        char none[96] = "none";
        if (*from->driver)
            snprintf(none, sizeof none, "%s, which does not answer", from->driver);
        text_cuda("CUDA runtime", from->runtime_cuda, "");
        if (*from->driver && from->driver_cuda)
            text_row("driver", from->driver);
        text_cuda(from->driver_cuda ? "driver's CUDA" : "driver", from->driver_cuda, none);
    }
    if (from->gpu_count == 0)
        printf("  %-14s %s\n", "none", from->gpus_why);
    for (uint32_t i = 0; i < from->gpu_count; i++) {
        const info_gpu *gpu = &from->gpus[i];
        if (*gpu->why)
            printf("  %-14u says nothing of itself: %s\n", i, gpu->why);
        else
            printf("  %-14u %s, %d SMs, %.1f GiB, compute capability %d.%d, %s\n", i, gpu->name, gpu->processors,
                   (double)gpu->memory_bytes / (1 << 30), gpu->major, gpu->minor, gpu->uuid);
    }
}

/* A row for each place that copies begin at; devices by their index. */
static void text_links(const info *from)
{
    const acs_topology *t = &from->links;
    if (from->gpu_count == 0 && !*from->links_why)
        return;
    puts("\nLinks");
    if (*from->links_why)
        text_row(t->count ? "not kept" : "none known", from->links_why);
    if (*from->links_kept)
        text_row("kept in", from->links_kept);
    for (uint32_t a = 0; t->count > 0 && a <= t->count; a++)
        for (uint32_t b = 0; b <= t->count; b++) {
            char name[32];
            if (a == b)
                continue;
            snprintf(name, sizeof name, a < t->count ? "%u to " : "host to ", a);
            snprintf(name + strlen(name), sizeof name - strlen(name), b < t->count ? "%u" : "host", b);
            printf("  %-14s %.1f GB/s, %.1f us%s\n", name, t->links[a][b].bandwidth / 1e9, t->links[a][b].latency * 1e6,
                   t->links[a][b].peer ? ", peers" : "");
        }
}

static void text_ledger(const info *from)
{
    puts("\nLedger");
    if (*from->ledger_why)
        text_row("none", from->ledger_why);
    for (uint32_t i = 0; i < from->ledger_count; i++) {
        const acs_ledger_line *line = &from->ledger[i];
        printf("  %-14s process %lld, device %s: %.1f MiB reserved, %.1f of them in use", line->program,
               (long long)line->pid, line->device, (double)line->reserved / (1 << 20), (double)line->obtained / (1 << 20));
        if (line->wanted)
            printf("; waits for %.1f more", (double)line->wanted / (1 << 20));
        putchar('\n');
    }
}

static void text_options(const info *from)
{
    int name_width = 0, value_width = 0;
    for (uint32_t i = 0; i < from->option_count; i++) {
        int name = (int)strlen(from->options[i].name), value = (int)strlen(from->options[i].value);
        name_width = name > name_width ? name : name_width;
        value_width = value > value_width ? value : value_width;
    }
    puts("\nOptions");
    for (uint32_t i = 0; i < from->option_count; i++)
        printf("  %-*s  %-*s  %s\n", name_width, from->options[i].name, value_width, from->options[i].value,
               from->options[i].source);
    for (uint32_t i = 0; i < from->bad_count; i++)
        printf("  error: %s\n", from->bad[i]);
    for (uint32_t i = 0; i < from->unknown_count; i++)
        printf("  warning: %s is set, but no option has this name\n", from->unknown[i]);
}

void info_print_text(const info *from)
{
    printf("ACS %s\n", ACS_VERSION_STRING);
    text_row("compiler", g_compiler);
    text_row("build", ACS_INFO_BUILD);
    if (*ACS_INFO_SANITIZE)
        text_row("sanitizers", ACS_INFO_SANITIZE);
    text_cuda("CUDA toolkit", BUILD_CUDA, "no CUDA");

    puts("\nBackends");
    for (size_t i = 0; i < INFO_BACKENDS; i++)
        text_open(from->backends[i].asked, &from->backends[i]);
    text_open("auto takes", &from->automatic);
    if (from->program.opened)
        text_row("acs_open takes", from->program.opened);
    else
        printf("  %-14s none: %s\n", "acs_open takes", from->program.why);
    text_gpus(from);
    text_links(from);
    text_ledger(from);
    text_options(from);
}

/* -------------------------------------------------------------------------------------------------------------- JSON */

/* A string, or null. Bytes above 127 are handed on: they are UTF-8 where the environment is. */
static void json_text(const char *text)
{
    if (!text) {
        fputs("null", stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 32 || c == 127)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* `"name": "value"`, behind `before`. */
static void json_pair(const char *before, const char *name, const char *value)
{
    printf("%s\"%s\": ", before, name);
    json_text(value);
}

static void json_cuda(const char *before, const char *name, int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", CUDA_MAJOR(version), CUDA_MINOR(version));
    json_pair(before, name, version ? text : NULL);
}

static void json_open(const char *before, const info_open *open)
{
    json_pair(before, "asked", open->asked);
    json_pair(", ", "opened", open->opened);
    json_pair(", ", "why_not", open->opened ? NULL : open->why);
    putchar('}');
}

static void json_gpus(const info *from)
{
    json_pair(",\n  ", "driver", *from->driver ? from->driver : NULL);
    json_cuda(",\n  ", "driver_cuda", from->driver_cuda);
    json_cuda(",\n  ", "runtime_cuda", from->runtime_cuda);
    printf(",\n  \"gpus\": [");
    for (uint32_t i = 0; i < from->gpu_count; i++) {
        const info_gpu *gpu = &from->gpus[i];
        printf("%s\n    {\"index\": %u", i ? "," : "", i);
        json_pair(", ", "name", *gpu->why ? NULL : gpu->name);
        json_pair(", ", "why_not", *gpu->why ? gpu->why : NULL);
        printf(", \"sms\": %d, \"memory_bytes\": %llu, \"compute_capability\": \"%d.%d\"", gpu->processors,
               (unsigned long long)gpu->memory_bytes, gpu->major, gpu->minor);
        json_pair(", ", "uuid", *gpu->why ? NULL : gpu->uuid);
        putchar('}');
    }
    putchar(']');
    json_pair(",\n  ", "why_no_gpu", from->gpu_count ? NULL : from->gpus_why);
}

static void json_links(const info *from)
{
    const acs_topology *t = &from->links;
    bool any = false;
    printf(",\n  \"links\": [");
    for (uint32_t a = 0; t->count > 0 && a <= t->count; a++)
        for (uint32_t b = 0; b <= t->count; b++) {
            if (a == b)
                continue;
            json_pair(any ? ",\n    {" : "\n    {", "from", acs_topology_place(t, a));
            json_pair(", ", "to", acs_topology_place(t, b));
            printf(", \"bytes_per_s\": %.6g, \"latency_s\": %.6g, \"peer\": %s}", t->links[a][b].bandwidth,
                   t->links[a][b].latency, t->links[a][b].peer ? "true" : "false");
            any = true;
        }
    putchar(']');
    json_pair(",\n  ", "links_kept", *from->links_kept ? from->links_kept : NULL);
    json_pair(",\n  ", "links_remark", *from->links_why ? from->links_why : NULL);
}

static void json_ledger(const info *from)
{
    printf(",\n  \"ledger\": [");
    for (uint32_t i = 0; i < from->ledger_count; i++) {
        const acs_ledger_line *line = &from->ledger[i];
        json_pair(i ? ",\n    {" : "\n    {", "program", line->program);
        json_pair(", ", "device", line->device);
        printf(", \"pid\": %lld, \"reserved_bytes\": %llu, \"obtained_bytes\": %llu, \"wanted_bytes\": %llu}",
               (long long)line->pid, (unsigned long long)line->reserved, (unsigned long long)line->obtained,
               (unsigned long long)line->wanted);
    }
    putchar(']');
    json_pair(",\n  ", "ledger_remark", *from->ledger_why ? from->ledger_why : NULL);
}

static void json_options(const info *from)
{
    printf(",\n  \"options\": [");
    for (uint32_t i = 0; i < from->option_count; i++) {
        json_pair(i ? ",\n    {" : "\n    {", "name", from->options[i].name);
        json_pair(", ", "value", from->options[i].value);
        json_pair(", ", "source", from->options[i].source);
        putchar('}');
    }
    printf("],\n  \"errors\": [");
    for (uint32_t i = 0; i < from->bad_count; i++) {
        fputs(i ? ", " : "", stdout);
        json_text(from->bad[i]);
    }
    printf("],\n  \"unknown\": [");
    for (uint32_t i = 0; i < from->unknown_count; i++) {
        fputs(i ? ", " : "", stdout);
        json_text(from->unknown[i]);
    }
    putchar(']');
}

void info_print_json(const info *from)
{
    json_pair("{\n  ", "version", ACS_VERSION_STRING);
    json_pair(",\n  ", "compiler", g_compiler);
    json_pair(",\n  ", "build", ACS_INFO_BUILD);
    json_pair(",\n  ", "sanitizers", *ACS_INFO_SANITIZE ? ACS_INFO_SANITIZE : NULL);
    json_cuda(",\n  ", "toolkit_cuda", BUILD_CUDA);
    printf(",\n  \"backends\": [");
    for (size_t i = 0; i < INFO_BACKENDS; i++)
        json_open(i ? ",\n    {" : "\n    {", &from->backends[i]);
    printf("],\n  \"auto\": ");
    json_open("{", &from->automatic);
    printf(",\n  \"acs_open\": ");
    json_open("{", &from->program);
    json_gpus(from);
    json_links(from);
    json_ledger(from);
    json_options(from);
    puts("\n}");
}
