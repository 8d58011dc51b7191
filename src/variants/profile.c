/*
 * Profiles (profile.h): finding and making kernels, versions, problems and mixes. Called by the book of a context under its
 * lock, and by the reader of files. Knows no device.
 */
#include "variants/profile.h"

#include <stdlib.h>
#include <string.h>

const char *const acs_company_names[ACS_COMPANIES] = {"memory", "itself"};

acs_status acs_companies_of(const char *list, uint32_t *companies)
{
    *companies = 0;
    for (const char *at = list; *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");
        uint32_t c = 0;
        while (c < ACS_COMPANIES &&
               (strlen(acs_company_names[c]) != length || strncmp(at, acs_company_names[c], length) != 0))
            c++;
        if (c == ACS_COMPANIES)
            return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_TUNE_BESIDE='%.60s': '%.*s' is neither memory nor itself", list,
                            (int)(length < 40 ? length : 40), at);
        *companies |= 1u << c;
        at += length;
    }
    return ACS_OK;
}

void acs_profile_init(acs_profile *profile, const char *model, uint32_t sms)
{
    memset(profile, 0, sizeof *profile);
    (void)snprintf(profile->model, sizeof profile->model, "%s", model);
    profile->sms = sms;
}

static void free_problems(acs_profile_kernel *kernel)
{
    acs_problem *problem, *next;
    HASH_ITER(hh, kernel->problems, problem, next)
    {
        HASH_DEL(kernel->problems, problem);
        free(problem->times);
        free(problem->picked);
        free(problem);
    }
}

void acs_profile_fini(acs_profile *profile)
{
    acs_profile_kernel *kernel, *next;
    HASH_ITER(hh, profile->kernels, kernel, next)
    {
        HASH_DEL(profile->kernels, kernel);
        free_problems(kernel);
        free(kernel);
    }
    while (profile->mixes) {
        acs_profile_mix *mix = profile->mixes;
        profile->mixes = mix->next;
        free(mix);
    }
}

acs_profile_kernel *acs_profile_kernel_get(acs_profile *profile, const char *name)
{
    acs_profile_kernel *kernel;
    char cut[ACS_PROFILE_KERNEL_BYTES];
    acs_profile_name(name, cut);
    HASH_FIND_STR(profile->kernels, cut, kernel);
    if (kernel || !(kernel = calloc(1, sizeof *kernel)))
        return kernel;
    strcpy(kernel->name, cut);
    HASH_ADD_STR(profile->kernels, name, kernel);
    if (kernel->hash_failed) {
        free(kernel);
        return NULL;
    }
    return kernel;
}

/* Give each problem room for one more version. False: no memory; problems that have the room keep it. */
static bool widen_problems(acs_profile_kernel *kernel)
{
    for (acs_problem *p = kernel->problems; p; p = p->hh.next) {
        acs_version_times *times = realloc(p->times, (kernel->count + 1) * sizeof *times);
        if (!times)
            return false;
        p->times = times;
        memset(&times[kernel->count], 0, sizeof *times);
    }
    return true;
}

uint32_t acs_profile_version_get(acs_profile_kernel *kernel, const char *name)
{
    for (uint32_t i = 0; i < kernel->count; i++)
        if (strcmp(kernel->version[i], name) == 0)
            return i;
    if (kernel->count == ACS_VERSIONS_MOST || !widen_problems(kernel))
        return ACS_VERSIONS_MOST;
    (void)snprintf(kernel->version[kernel->count], ACS_VARIANT_NAME_BYTES, "%s", name);
    return kernel->count++;
}

acs_problem *acs_profile_problem_get(acs_profile_kernel *kernel, const acs_problem_key *key)
{
    acs_problem *problem;
    HASH_FIND(hh, kernel->problems, key, sizeof *key, problem);
    if (problem || !(problem = calloc(1, sizeof *problem)))
        return problem;
    problem->key = *key;
    problem->changed = true;
    problem->times = calloc(kernel->count ? kernel->count : 1, sizeof *problem->times);
    problem->picked = calloc(ACS_VERSIONS_MOST, sizeof *problem->picked);
    if (problem->times && problem->picked) {
        HASH_ADD(hh, kernel->problems, key, sizeof problem->key, problem);
        if (!problem->hash_failed)
            return problem;
    }
    free(problem->times);
    free(problem->picked);
    free(problem);
    return NULL;
}

/* Whether a file has times of the version. */
static bool has_times(const acs_profile_kernel *kernel, uint32_t version)
{
    for (const acs_problem *p = kernel->problems; p; p = p->hh.next)
        for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++)
            if (p->profiled && p->times[version].us[step] > 0)
                return true;
    return false;
}

void acs_profile_name(const char *name, char plain[ACS_PROFILE_KERNEL_BYTES])
{
    size_t used = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c && used < ACS_PROFILE_KERNEL_BYTES - 1; c++) {
        const bool space = *c == ' ' || *c == '\t', first = used == 0 || plain[used - 1] == ' ';
        if (space && first)
            continue;
        plain[used++] = space ? ' ' : *c < ' ' || (*c == '#' && first) ? '_' : (char)*c;
    }
    while (used && plain[used - 1] == ' ')
        used--;
    plain[used] = '\0';
    if (!used)
        strcpy(plain, "_");
}

static bool set_has(const acs_variant_set *set, const char *name)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (strcmp(set->version[i].name, name) == 0)
            return true;
    return false;
}

acs_status acs_profile_meet(acs_profile_kernel *kernel, const acs_variant_set *set, const char *file)
{
    if (ACS_LIKELY(kernel->met == set))
        return ACS_OK;
    for (uint32_t i = 0; i < kernel->count; i++)
        if (file && !set_has(set, kernel->version[i]) && has_times(kernel, i))
            return ACS_FAIL(ACS_ERR_OPTION, 0, "%s: kernel '%.60s' has times of version '%s'; the program declares no such "
                            "version", file, kernel->name, kernel->version[i]);
    memset(kernel->declared, 0, sizeof kernel->declared);
    for (uint32_t number = 0; number < set->count; number++) {
        const uint32_t at = acs_profile_version_get(kernel, set->version[number].name);
        if (at == ACS_VERSIONS_MOST)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no room for version '%s' of kernel '%.60s'", set->version[number].name,
                            kernel->name);
        kernel->of_number[number] = (uint8_t)at;
        kernel->declared[at] = true;
    }
    kernel->met = set;
    for (acs_problem *p = kernel->problems; p; p = p->hh.next)
        p->changed = true;
    return ACS_OK;
}

static bool is_mix(const acs_profile_mix *mix, const acs_mix_model *models, uint32_t count)
{
    for (uint32_t i = 0; i < count && mix->count == count; i++)
        if (strcmp(mix->names[i], models[i].name) != 0 || mix->models[i].rate != models[i].rate)
            return false;
    return mix->count == count;
}

acs_profile_mix *acs_profile_mix_find(acs_profile *profile, const acs_mix_model *models, uint32_t count, bool make)
{
    acs_profile_mix **at = &profile->mixes;
    while (*at && !is_mix(*at, models, count))
        at = &(*at)->next;
    if (*at || !make || !(*at = calloc(1, sizeof **at)))
        return *at;
    (*at)->count = count;
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf((*at)->names[i], ACS_VARIANT_NAME_BYTES, "%s", models[i].name);
        (*at)->models[i] = (acs_mix_model){(*at)->names[i], models[i].rate};
    }
    return *at;
}
