/*
 * A profile: the times of kernels' versions on one model of GPU, for each problem and share, and plans for mixes. It comes
 * from a file that acs-tune writes, and from launches that are timed. Pure data and files, under the owner's lock.
 *
 * A *problem* of a kernel is what its versions' times depend on: the launch's shape, and how many bytes it reads and writes.
 *
 * The file is text, one item per line, which people may edit: docs/variants.md describes it.
 *
 * PROF-1  the times of a problem are indexed by the names of its kernel's versions, in their order in the profile.
 */
#ifndef ACS_PROFILE_H
#define ACS_PROFILE_H

#include "base/cache_file.h"
#include "base/hash.h"
#include "variants/sets.h"

#include <stdatomic.h>

enum { ACS_PROFILE_KERNEL_BYTES = 128, ACS_MIX_MODELS_MOST = 16 };

/* Shares of a device that versions are compared at: 10 %, 20 % ... 100 %. */
enum { ACS_SHARE_STEPS = 10, ACS_SHARE_STEP_PERCENT = 100 / ACS_SHARE_STEPS };

/* The step of a share in percent, rounded: an index of times. */
static inline uint32_t acs_share_step(uint32_t percent)
{
    const uint32_t steps = (percent + ACS_SHARE_STEP_PERCENT / 2) / ACS_SHARE_STEP_PERCENT;
    return steps < 1 ? 0 : steps > ACS_SHARE_STEPS ? ACS_SHARE_STEPS - 1 : steps - 1;
}

/* What a version is run beside, in measurements of interference. */
typedef enum acs_company { ACS_COMPANY_MEMORY, ACS_COMPANY_ITSELF, ACS_COMPANIES } acs_company;
extern const char *const acs_company_names[ACS_COMPANIES];
/* The companies of a list as ACS_TUNE_BESIDE has it: a bit for each. ACS_ERR_OPTION: one is unknown. */
acs_status acs_companies_of(const char *list, uint32_t *companies);

typedef struct acs_problem_key {
    uint32_t grid[3], block[3];
    uint64_t shared_bytes, reads, writes; /* bytes */
} acs_problem_key;

/* The times of a version in microseconds, for each share. 0: not measured; INFINITY: it cannot run there. */
typedef struct acs_version_times {
    float us[ACS_SHARE_STEPS];
    float beside_us[ACS_COMPANIES]; /* at `beside_step`, in company */
    uint8_t beside_step[ACS_COMPANIES];
    uint8_t tries[ACS_SHARE_STEPS]; /* launches timed at each share, while the program runs */
} acs_version_times;

typedef struct acs_problem {
    acs_problem_key key;
    acs_version_times *times;     /* of each version of the kernel; PROF-1 */
    uint8_t at[ACS_SHARE_STEPS];  /* the best version for each share, as an index of the kernel's versions */
    bool profiled;                /* it has times of a file: launches are not timed to learn */
    bool trial;                   /* a launch of it is being timed */
    bool changed;                 /* `at` does not reflect all times yet */
    _Atomic(uint64_t) *picked;    /* launches that ran each version */
    int hash_failed;
    UT_hash_handle hh;
} acs_problem;

typedef struct acs_profile_kernel {
    char name[ACS_PROFILE_KERNEL_BYTES];
    uint32_t count;               /* versions */
    char version[ACS_VERSIONS_MOST][ACS_VARIANT_NAME_BYTES];
    const acs_variant_set *met;   /* the set that the next one is of; NULL: none yet */
    uint8_t of_number[ACS_VERSIONS_MOST]; /* index in `version` of each of the set's versions */
    bool declared[ACS_VERSIONS_MOST];     /* whether the set has that version; others are never picked */
    const void *owner;            /* of the set; kernels of one name have one profile kernel each */
    acs_problem *problems;        /* hash table */
    int hash_failed;
    UT_hash_handle hh;
} acs_profile_kernel;

/* A plan for a mix of models (ConCo, section 3.5). */
typedef struct acs_profile_mix {
    uint32_t count;
    acs_mix_model models[ACS_MIX_MODELS_MOST]; /* their names are in `names` */
    char names[ACS_MIX_MODELS_MOST][ACS_VARIANT_NAME_BYTES];
    acs_mix_setting settings[ACS_MIX_MODELS_MOST];
    double throughput;            /* requests per second; 0: there is no plan */
    struct acs_profile_mix *next;
} acs_profile_mix;

typedef struct acs_profile {
    char model[128];              /* of the GPU */
    uint32_t sms;
    acs_profile_kernel *kernels;  /* hash table */
    acs_profile_mix *mixes;
} acs_profile;

void acs_profile_init(acs_profile *profile, const char *model, uint32_t sms);
void acs_profile_fini(acs_profile *profile);

/* The kernel of that name; made if there is none. NULL: no memory. */
acs_profile_kernel *acs_profile_kernel_get(acs_profile *profile, const char *name);
/* The index of a version's name in the kernel; added if it is new. ACS_VERSIONS_MOST: no room, or no memory. */
uint32_t acs_profile_version_get(acs_profile_kernel *kernel, const char *name);
/* The problem with that key; made if there is none. NULL: no memory. */
acs_problem *acs_profile_problem_get(acs_profile_kernel *kernel, const acs_problem_key *key);
/*
 * Learn which of the kernel's versions the set's numbers are. `file`: the profile's name, if the program asked for it: then
 * ACS_ERR_OPTION if it has times of a version that the set does not have. NULL: such times are left aside.
 */
acs_status acs_profile_meet(acs_profile_kernel *kernel, const acs_variant_set *set, const char *file);
/* A kernel's name as profiles have it: printable, without space at its ends, runs of spaces or comments. */
void acs_profile_name(const char *name, char plain[ACS_PROFILE_KERNEL_BYTES]);
/* The mix of these models; made if `make`. NULL: there is none, or no memory. */
acs_profile_mix *acs_profile_mix_find(acs_profile *profile, const acs_mix_model *models, uint32_t count, bool make);

/*
 * profile_file.c. Reading adds to the profile. ACS_ERR_OPTION, with file and line: the file cannot be read, is no
 * profile, is of another model of GPU, or a line is wrong. The profile may then have part of the file.
 */
acs_status acs_profile_read(acs_profile *profile, FILE *file, const char *name);
acs_status acs_profile_write(const acs_profile *profile, FILE *file);
/* Where the profile of this model lies in the user's cache folder; as acs_cache_path. */
acs_status acs_profile_path(const acs_profile *profile, char path[ACS_CACHE_PATH_BYTES]);
/* Replace the file at a path: as acs_cache_store. */
acs_status acs_profile_store(const acs_profile *profile, const char *path);

#endif
