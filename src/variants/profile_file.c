/*
 * The text of a profile (profile.h, docs/variants.md): written by tuning, read where a context first meets a kernel with
 * versions. cache_file.c reads lines and replaces files.
 */
#include "variants/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char g_head[] = "acs-variants 1";

enum { UNFIT_US = -1 /* time of a version that cannot run a problem */ };

/* ----------------------------------------------------------------------------------------------------------- writing */

static float in_file(float us)
{
    return isinf(us) ? (float)UNFIT_US : us;
}

static void write_times(const acs_profile_kernel *kernel, const acs_problem *p, FILE *file)
{
    for (uint32_t i = 0; i < kernel->count; i++) {
        const acs_version_times *t = &p->times[i];
        for (uint32_t step = ACS_SHARE_STEPS; step-- > 0;)
            if (t->us[step] > 0)
                fprintf(file, "time %s %u %.6g\n", kernel->version[i], (step + 1) * ACS_SHARE_STEP_PERCENT,
                        (double)in_file(t->us[step]));
        for (uint32_t c = 0; c < ACS_COMPANIES; c++)
            if (t->beside_us[c] > 0)
                fprintf(file, "beside %s %u %.6g %s\n", kernel->version[i],
                        (t->beside_step[c] + 1u) * ACS_SHARE_STEP_PERCENT, (double)t->beside_us[c],
                        acs_company_names[c]);
    }
}

static void write_kernel(const acs_profile_kernel *kernel, FILE *file)
{
    fprintf(file, "\nkernel %s\n", kernel->name);
    for (uint32_t i = 0; i < kernel->count; i++)
        fprintf(file, "version %s\n", kernel->version[i]);
    for (const acs_problem *p = kernel->problems; p; p = p->hh.next) {
        const acs_problem_key *k = &p->key;
        fprintf(file, "problem grid %u %u %u block %u %u %u shared %" PRIu64 " reads %" PRIu64 " writes %" PRIu64 "\n",
                k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], k->shared_bytes, k->reads,
                k->writes);
        if (p->profiled) /* times that launches brought back in passing are too few to keep */
            write_times(kernel, p, file);
    }
}

static void write_mix(const acs_profile_mix *mix, FILE *file)
{
    fprintf(file, "\nmix");
    for (uint32_t i = 0; i < mix->count; i++)
        fprintf(file, " %s %.17g", mix->names[i], mix->models[i].rate);
    fprintf(file, "\n");
    for (uint32_t i = 0; i < mix->count; i++)
        fprintf(file, "setting %s fit %u share %u\n", mix->names[i], mix->settings[i].fit, mix->settings[i].share);
    fprintf(file, "throughput %.6g\n", mix->throughput);
}

acs_status acs_profile_write(const acs_profile *profile, FILE *file)
{
    fprintf(file, "# Times of kernels' versions in us, by share of the GPU in percent (acs-tune). Lines may be edited.\n"
            "%s\ngpu \"%s\" sms %u\n", g_head, profile->model, profile->sms);
    for (const acs_profile_kernel *k = profile->kernels; k; k = k->hh.next)
        write_kernel(k, file);
    for (const acs_profile_mix *mix = profile->mixes; mix; mix = mix->next)
        if (mix->throughput > 0)
            write_mix(mix, file);
    return ACS_OK; /* acs_cache_store looks whether the stream failed */
}

/* ----------------------------------------------------------------------------------------------------------- reading */

typedef struct reading {
    acs_cache_lines in;
    acs_profile *profile;
    bool begun, ours;   /* the head was read; the line of the GPU, which is ours */
    acs_profile_kernel *kernel; /* the latest; NULL: none */
    acs_problem *problem;
    acs_profile_mix *mix;
    uint32_t settings;  /* of the latest mix */
} reading;

static acs_status twice(const reading *r, const char *line)
{
    return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: '%.*s' is there already", r->in.name, r->in.number,
                    (int)strcspn(line, "\r\n"), line);
}

static acs_status no_memory_for_line(const reading *r)
{
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "%s, line %d: no memory for the profile", r->in.name, r->in.number);
}

/* Whether the rest of a line behind `at` is empty; at 0: the line did not match. */
static bool ends(const char *line, int at)
{
    return at > 0 && acs_cache_line_is_empty(line + at);
}

static acs_status read_gpu(reading *r, const char *line)
{
    char model[128];
    unsigned sms;
    int at = 0;
    if (sscanf(line, "gpu \"%127[^\"]\" sms %u%n", model, &sms, &at) != 2 || !ends(line, at))
        return acs_cache_line_refuse(&r->in, line, "gpu \"NAME\" sms NUMBER");
    if (strcmp(model, r->profile->model) != 0 || sms != r->profile->sms)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s is the profile of another GPU: \"%s\" with %u multiprocessors, not \"%s\" "
                        "with %u; acs-tune makes one for this GPU", r->in.name, model, sms, r->profile->model,
                        r->profile->sms);
    r->ours = true;
    return ACS_OK;
}

static acs_status read_kernel(reading *r, char *line)
{
    char *name = line + strlen("kernel "), *comment = strstr(name, " #");
    name += strspn(name, " ");
    name[strcspn(name, "\r\n")] = '\0';
    if (comment)
        *comment = '\0';
    if (!*name || strlen(name) >= ACS_PROFILE_KERNEL_BYTES)
        return acs_cache_line_refuse(&r->in, line, "kernel NAME");
    const uint32_t before = HASH_COUNT(r->profile->kernels);
    r->kernel = acs_profile_kernel_get(r->profile, name);
    r->problem = NULL;
    if (r->kernel && HASH_COUNT(r->profile->kernels) == before)
        return twice(r, line);
    return r->kernel ? ACS_OK : no_memory_for_line(r);
}

static acs_status read_version(reading *r, char *line)
{
    char name[ACS_VARIANT_NAME_BYTES];
    int at = 0;
    if (!r->kernel || sscanf(line, "version %47s%n", name, &at) != 1 || !ends(line, at) ||
        !acs_variant_name_is_good(name))
        return acs_cache_line_refuse(&r->in, line, r->kernel ? "version NAME" : "kernel NAME");
    const uint32_t before = r->kernel->count, index = acs_profile_version_get(r->kernel, name);
    if (index == ACS_VERSIONS_MOST)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "%s, line %d: more than %d versions, or no memory for them", r->in.name,
                        r->in.number, ACS_VERSIONS_MOST);
    return r->kernel->count == before ? twice(r, line) : ACS_OK;
}

static acs_status read_problem(reading *r, char *line)
{
    static const char wanted[] = "problem grid X Y Z block X Y Z shared BYTES reads BYTES writes BYTES";
    acs_problem_key k = {0};
    int at = 0;
    if (!r->kernel || sscanf(line, "problem grid %u %u %u block %u %u %u shared %" SCNu64 " reads %" SCNu64 " writes %"
                             SCNu64 "%n", &k.grid[0], &k.grid[1], &k.grid[2], &k.block[0], &k.block[1], &k.block[2],
                             &k.shared_bytes, &k.reads, &k.writes, &at) != 9 || !ends(line, at))
        return acs_cache_line_refuse(&r->in, line, r->kernel ? wanted : "kernel NAME");
    const uint32_t before = HASH_COUNT(r->kernel->problems);
    r->problem = acs_profile_problem_get(r->kernel, &k);
    if (r->problem && HASH_COUNT(r->kernel->problems) == before)
        return twice(r, line);
    return r->problem ? ACS_OK : no_memory_for_line(r);
}

/* The version of a line `time` or `beside`, and the step of its share. False: no such version, or no such share. */
static bool find_time(const reading *r, const char *name, uint32_t percent, acs_version_times **times, uint32_t *step)
{
    uint32_t i = 0;
    while (r->problem && i < r->kernel->count && strcmp(r->kernel->version[i], name) != 0)
        i++;
    if (!r->problem || i == r->kernel->count || percent % ACS_SHARE_STEP_PERCENT || percent < ACS_SHARE_STEP_PERCENT ||
        percent > 100)
        return false;
    *times = &r->problem->times[i];
    *step = acs_share_step(percent);
    return true;
}

static acs_status read_time(reading *r, char *line)
{
    static const char wanted[] = "time VERSION SHARE MICROSECONDS, below a problem; SHARE is 10, 20 .. 100";
    char name[ACS_VARIANT_NAME_BYTES];
    uint32_t percent, step;
    float us;
    int at = 0;
    acs_version_times *times;
    if (sscanf(line, "time %47s %u %f%n", name, &percent, &us, &at) != 3 || !ends(line, at) ||
        !find_time(r, name, percent, &times, &step) || isinf(us) || !(us > 0 || us == (float)UNFIT_US))
        return acs_cache_line_refuse(&r->in, line, wanted);
    if (times->us[step] != 0)
        return twice(r, line);
    times->us[step] = us > 0 ? us : INFINITY;
    r->problem->changed = r->problem->profiled = true;
    return ACS_OK;
}

static acs_status read_beside(reading *r, char *line)
{
    static const char wanted[] = "beside VERSION SHARE MICROSECONDS memory|itself";
    char name[ACS_VARIANT_NAME_BYTES], company[16];
    uint32_t percent, step, c = 0;
    float us;
    int at = 0;
    acs_version_times *times;
    if (sscanf(line, "beside %47s %u %f %15s%n", name, &percent, &us, company, &at) != 4 || !ends(line, at) ||
        !find_time(r, name, percent, &times, &step) || isinf(us) || !(us > 0))
        return acs_cache_line_refuse(&r->in, line, wanted);
    while (c < ACS_COMPANIES && strcmp(company, acs_company_names[c]) != 0)
        c++;
    if (c == ACS_COMPANIES)
        return acs_cache_line_refuse(&r->in, line, wanted);
    if (times->beside_us[c] > 0)
        return twice(r, line);
    times->beside_us[c] = us;
    times->beside_step[c] = (uint8_t)step;
    r->problem->changed = true;
    return ACS_OK;
}

static acs_status read_mix(reading *r, char *line)
{
    acs_mix_model models[ACS_MIX_MODELS_MOST];
    char names[ACS_MIX_MODELS_MOST][ACS_VARIANT_NAME_BYTES];
    uint32_t count = 0;
    int at = 0, next = (int)strlen("mix");
    for (double rate; count < ACS_MIX_MODELS_MOST; count++, next += at) {
        at = 0;
        if (sscanf(line + next, " %47s %lf%n", names[count], &rate, &at) != 2 || !(rate > 0) || isinf(rate) ||
            !acs_variant_name_is_good(names[count]))
            break;
        models[count] = (acs_mix_model){names[count], rate};
    }
    bool again = false;
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            again |= strcmp(names[i], names[k]) == 0;
    if (!count || again || !acs_cache_line_is_empty(line + next))
        return acs_cache_line_refuse(&r->in, line, "mix MODEL RATE MODEL RATE .., each model once");
    r->mix = acs_profile_mix_find(r->profile, models, count, true);
    r->settings = 0;
    return r->mix ? ACS_OK : no_memory_for_line(r);
}

static acs_status read_setting(reading *r, char *line)
{
    char name[ACS_VARIANT_NAME_BYTES];
    acs_mix_setting s;
    int at = 0;
    if (!r->mix || r->settings == r->mix->count ||
        sscanf(line, "setting %47s fit %u share %u%n", name, &s.fit, &s.share, &at) != 3 || !ends(line, at) ||
        strcmp(name, r->mix->names[r->settings]) != 0 || s.fit > 100 || s.share < 1 || s.share > 100)
        return acs_cache_line_refuse(&r->in, line, "setting MODEL fit PERCENT share PERCENT, for each model of a mix");
    r->mix->settings[r->settings++] = s;
    return ACS_OK;
}

static acs_status read_throughput(reading *r, char *line)
{
    double throughput;
    int at = 0;
    if (!r->mix || r->settings < r->mix->count || sscanf(line, "throughput %lf%n", &throughput, &at) != 1 ||
        !ends(line, at) || !(throughput > 0))
        return acs_cache_line_refuse(&r->in, line, "throughput NUMBER, below the settings of a mix");
    r->mix->throughput = throughput;
    return ACS_OK;
}

static acs_status read_item(reading *r, char *line)
{
    static const struct {
        const char *word;
        acs_status (*read)(reading *r, char *line);
    } items[] = {{"kernel ", read_kernel}, {"version ", read_version}, {"problem ", read_problem}, {"time ", read_time},
                 {"beside ", read_beside}, {"mix ", read_mix}, {"setting ", read_setting},
                 {"throughput ", read_throughput}};
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
        if (strncmp(line, items[i].word, strlen(items[i].word)) == 0)
            return items[i].read(r, line);
    return acs_cache_line_refuse(&r->in, line, "kernel, version, problem, time, beside, mix, setting or throughput");
}

static acs_status read_line(reading *r, char *line)
{
    if (acs_cache_line_is_empty(line))
        return ACS_OK;
    for (char *tab = strchr(line, '\t'); tab; tab = strchr(tab, '\t'))
        *tab = ' ';
    line += strspn(line, " ");
    if (!r->begun) {
        r->begun = acs_cache_line_is(line, g_head);
        return r->begun ? ACS_OK : acs_cache_line_refuse(&r->in, line, g_head);
    }
    return r->ours ? read_item(r, line) : read_gpu(r, line);
}

acs_status acs_profile_read(acs_profile *profile, FILE *file, const char *name)
{
    reading r = {.in = {.file = file, .name = name}, .profile = profile};
    char line[ACS_CACHE_LINE_BYTES];
    while (acs_cache_line(&r.in, line))
        ACS_TRY(read_line(&r, line));
    return acs_cache_lines_end(&r.in, r.ours, r.begun ? "gpu \"NAME\" sms NUMBER" : g_head);
}

/* ------------------------------------------------------------------------------------------------------------- files */

acs_status acs_profile_path(const acs_profile *profile, char path[ACS_CACHE_PATH_BYTES])
{
    return acs_cache_path("variants", acs_cache_hash(profile->model) + profile->sms, path);
}

static acs_status write_profile(const void *what, FILE *file)
{
    return acs_profile_write(what, file);
}

acs_status acs_profile_store(const acs_profile *profile, const char *path)
{
    char copy[ACS_CACHE_PATH_BYTES]; /* the store cuts it at folders for a moment */
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return ACS_FAIL(ACS_ERR_OPTION, ENAMETOOLONG, "'%.60s...': the path is too long", path);
    return acs_cache_store(copy, write_profile, profile);
}
