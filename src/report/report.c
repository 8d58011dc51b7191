/*
 * Opens the files of ACS_TRACE and ACS_REPORT, has the context recorded, and has both written at its end. Called
 * while a context opens and closes. Owns the context's recorder. The files are opened twice: at the begin to find out
 * that they can be written, at the end to write them. Pipes are opened at the end only.
 */
#include "report/report.h"

#include "report/writing.h"

#include "api/threads.h"
#include "base/options.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's name: of a second context of the process it ends with ".2", and so on. */
static void name_file(const acs_context *context, const char *path, char text[ACS_OPTION_TEXT_BYTES + 24])
{
    if (context->recorded_as > 1)
        (void)snprintf(text, ACS_OPTION_TEXT_BYTES + 24, "%s.%u", path, context->recorded_as);
    else
        (void)snprintf(text, ACS_OPTION_TEXT_BYTES + 24, "%s", path);
}

/* Look that the file can be written. ACS_OK where none is asked for; *has tells. */
static acs_status try_file(const acs_context *context, const char *option, const char *path, bool *has)
{
    char text[ACS_OPTION_TEXT_BYTES + 24];
    if (!*path)
        return ACS_OK;
    struct stat is;
    name_file(context, path, text);
    /* A pipe that is opened and closed ends for its reader. What a file holds stays, if another option keeps the context
     * from opening. */
    const bool pipe = stat(text, &is) == 0 && S_ISFIFO(is.st_mode) && access(text, W_OK) == 0;
    FILE *file = pipe ? NULL : fopen(text, "ae");
    if (!pipe && !file)
        return acs_options_no_file(&context->options, option, text, errno);
    *has = true;
    if (file)
        (void)fclose(file);
    return ACS_OK;
}

/* The page must not replace the trace. */
static bool one_file(const acs_options *o)
{
    return *o->trace && strcmp(o->trace, o->report) == 0;
}

acs_status acs_report_open(acs_context *context)
{
    static _Atomic(uint32_t) contexts;
    const acs_options *o = &context->options;
    bool has = false;
    if (ACS_LIKELY(!*o->trace && !*o->report))
        return ACS_OK;
    context->recorded_as = atomic_fetch_add_explicit(&contexts, 1, memory_order_relaxed) + 1; /* relaxed: a counter */
    if (one_file(o))
        ACS_TRY(acs_options_cannot(o, "ACS_REPORT", 0, "it names the file of ACS_TRACE"));
    ACS_TRY(try_file(context, "ACS_TRACE", o->trace, &has));
    ACS_TRY(try_file(context, "ACS_REPORT", o->report, &has));
    if (!has)
        return ACS_OK;
    context->backend->records_times = true;
    if (context->backend->ops->times_begin)
        ACS_TRY(context->backend->ops->times_begin(context->backend, o));
    const bool simulated = o->backend == ACS_BACKEND_SIM;
    return acs_recorder_create(&(acs_recorder_config){.core = &context->core,
                                                      .ops = (uint64_t)o->trace_ops,
                                                      .percent = (uint32_t)o->trace_sample,
                                                      .now_ns = simulated ? acs_context_now_ns : NULL,
                                                      .user = context},
                               &context->recorder);
}

/* ------------------------------------------------------------------------------------------------------------ write */

static void write_page(FILE *file, const acs_told *told)
{
    for (uint32_t i = 0; acs_page_head[i]; i++)
        (void)fprintf(file, "%s", acs_page_head[i]);
    acs_data_write(file, told);
    for (uint32_t i = 0; acs_page_tail[i]; i++)
        (void)fprintf(file, "%s", acs_page_tail[i]);
}

static void write_file(const acs_context *context, const char *option, const char *path,
                       void (*write)(FILE *, const acs_told *), const acs_told *told)
{
    char text[ACS_OPTION_TEXT_BYTES + 24];
    if (!*path)
        return;
    name_file(context, path, text);
    FILE *file = fopen(text, "we");
    if (file)
        write(file, told);
    const bool bad = !file || ferror(file);
    if ((file && fclose(file) != 0) || bad)
        acs_log_always(ACS_LOG_ERROR, "%s: '%s' is not whole: %s", option, text, strerror(errno));
}

static void find_surroundings(const acs_context *context, acs_surroundings *around)
{
    acs_capacity has = {0};
    *around = (acs_surroundings){.options = &context->options,
                                 .devices = context->backend->devices,
                                 .on_cpu = context->backend->ops->id == ACS_BACKEND_HOST,
                                 .in_order = context->options.serial || context->options.disable};
    if (!around->on_cpu && context->backend->ops->capacity &&
        context->backend->ops->capacity(context->backend, 0, &has) == ACS_OK) {
        around->sms = has.sms;
        around->sm_threads = has.threads;
    }
}

static acs_status tell_all(const acs_context *context, const acs_recording *recording, const char *way)
{
    static const char *const backends[] = {"auto", "cuda", "host", "sim"};
    const acs_options *o = &context->options;
    acs_surroundings around;
    acs_analysis analysis;
    acs_causes causes;
    find_surroundings(context, &around);
    ACS_TRY(acs_analysis_make(recording, (uint64_t)o->window, around.in_order, &analysis));
    acs_status status = acs_causes_make(&analysis, &around, &causes);
    if (status == ACS_OK) {
        const acs_told told = {.analysis = &analysis,
                               .causes = &causes,
                               .around = &around,
                               .backend = backends[context->backend->ops->id],
                               .times = way};
        write_file(context, "ACS_TRACE", o->trace, acs_timeline_write, &told);
        if (!one_file(o))
            write_file(context, "ACS_REPORT", o->report, write_page, &told);
        acs_causes_free(&causes);
    }
    acs_analysis_free(&analysis);
    return status;
}

/* Add the times that the device tells. */
static acs_status add_device_times(const acs_context *context, acs_recording *recording, const char **way)
{
    const acs_backend_ops *ops = context->backend->ops;
    acs_device_times times = {.way = "exact"};
    if (ops->times_take)
        ACS_TRY(ops->times_take(context->backend, &times));
    const acs_status status = acs_recording_add_times(recording, &times);
    free(times.list);
    *way = times.way;
    return status;
}

void acs_report_write(acs_context *context)
{
    acs_recorder *recorder = context->recorder;
    acs_recording recording;
    if (ACS_LIKELY(!recorder))
        return;
    context->recorder = NULL;
    acs_status status = acs_recorder_take(recorder, &recording);
    acs_recorder_destroy(recorder);
    if (status == ACS_OK) {
        const char *way;
        status = add_device_times(context, &recording, &way);
        status = status == ACS_OK ? tell_all(context, &recording, way) : status;
        acs_recording_free(&recording);
    }
    if (status != ACS_OK)
        acs_log_always(ACS_LOG_ERROR, "ACS_TRACE, ACS_REPORT: nothing was written: %s", acs_error_thread()->text);
}

void acs_report_close(acs_context *context)
{
    acs_recorder_destroy(context->recorder);
    context->recorder = NULL;
}
