/*
 * Versions of a kernel, and shares of a GPU. Included by acs.h only.
 *
 * A kernel that was tuned alone on a whole GPU is often the wrong one beside others. ConCo (Lu et al., ICS '25) compiles
 * versions of an operator for shares of the GPU (section 3.3), and chooses version and share for each model of a mix
 * (section 3.5). Here a program declares the versions of a kernel once. Its launches name the kernel, and the runtime
 * picks the version of each launch by how many run side by side (docs/variants.md).
 *
 *     static size_t tiles(const acs_footprint_input *in, acs_launch_shape *shape)
 *     {
 *         ACS_PARAMS(in, (int, n), (const float *, x), (float *, y));
 *         shape->grid = (acs_dim3){(uint32_t)(n + 1023) / 1024, 1, 1};
 *         return ACS_SHAPE_FITS;
 *     }
 *     static const acs_variant versions[] = {{"wide", &scale_wide, tiles, NULL}};
 *     acs_variants(&scale, versions, 1);
 *     ...
 *     ACS_LAUNCH(&scale, (n + 255) / 256, 256, 0, ACS_ARGS(n, x, y), ACS_USES(...));
 */
#ifndef ACS_VARIANTS_H
#define ACS_VARIANTS_H

#include "acs.h" /* a no-op where acs.h includes this file */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Grid and block of a launch, and its dynamic shared memory in bytes. */
typedef struct acs_launch_shape {
    acs_dim3 grid, block;
    uint64_t shared_bytes;
} acs_launch_shape;

/** What an acs_variant_shape returns. */
#define ACS_SHAPE_UNFIT 0 /**< the version cannot run this launch: another one does */
#define ACS_SHAPE_FITS 1

/**
 * Computes the shape in which a version runs a launch. Runs on the launching thread inside the call; must be pure and must
 * not call ACS (refused, ACS_ERR_STATE). A C++ exception may leave it, as with acs_footprint. It runs for the versions that
 * the library looks at, not for all of them at each launch. ACS_PARAMS gives it the arguments.
 * @param in     The launch as the program made it; in->user is acs_variant.user. Borrowed for the call.
 * @param[in,out] shape  On entry the shape that the program gave; to be changed to that of the version.
 * @return ACS_SHAPE_FITS, or ACS_SHAPE_UNFIT: then `shape` is ignored. ACS_FOOTPRINT_REFUSED: the arguments are not those
 *         that it expects, and the launch is refused.
 */
typedef size_t (*acs_variant_shape)(const acs_footprint_input *in, acs_launch_shape *shape);

/** One version of a kernel. It takes the same arguments and touches the same bytes. */
typedef struct acs_variant {
    const char *name;         /**< 1 to 47 characters of letters, digits and "_-.:"; not "base". Copied */
    const acs_kernel *kernel; /**< as for acs_launch; copied */
    acs_variant_shape shape; /**< NULL: the launch's own shape */
    const void *user;         /**< for `shape`; must stay valid while the version is declared */
} acs_variant;

/** Most versions of a kernel, without the kernel itself. */
#define ACS_VARIANTS_MOST 62

/**
 * Declare versions of a kernel, for all later launches that name it, in all contexts. The kernel itself, in the launch's own
 * shape, is the version "base" with number 0; variants[i] has number i + 1. A launch may pin its version (ACS_VARIANT). Else
 * the runtime picks one (ACS_VARIANTS, ACS_PROFILE), which is "base" in sections and loops that the GPU decides. Where the
 * GPU reads the grid a launch can pin no other one. The footprint is always that of the launch, computed from the launch's
 * own grid and arguments.
 *
 * If versions round differently, results depend on the choice. With ACS_VARIANTS=fixed the choice depends on the profile
 * alone, never on timing. ACS_SERIAL, ACS_DISABLE and ACS_CHECK choose so, too.
 *
 * @param kernel    Known as by acs_declare: by its function or handle, its host body, or its name.
 * @param variants  `count` versions; 0: the kernel has no other versions any more. Replaces what was declared before.
 * @retval ACS_ERR_ARGUMENT  A kernel without function, host body and name; a name that is missing, bad or there twice; too
 *         many versions. Nothing is changed, as after ACS_ERR_MEMORY.
 * Threads: any. Does not block.
 */
acs_status acs_variants(const acs_kernel *kernel, const acs_variant *variants, size_t count);

/**
 * The number of a kernel's version, for ACS_VARIANT; "base" has 0.
 * @retval ACS_ERR_ARGUMENT  The kernel has no such version; *number is unchanged.
 */
acs_status acs_variant_number(const acs_kernel *kernel, const char *name, uint32_t *number);

/** As ACS_VARIANT and ACS_SHARE. A number that cannot be gives attributes with which a launch is refused. */
static inline acs_attributes acs_make_variant(int64_t number)
{
    acs_attributes a = acs_no_attributes();
    a.variant = (uint8_t)(number < 0 || number > ACS_VARIANTS_MOST ? UINT8_MAX : number + 1);
    return a;
}
static inline acs_attributes acs_make_share(int64_t percent)
{
    acs_attributes a = acs_no_attributes();
    a.share = (uint8_t)(percent < 1 || percent > 100 ? UINT8_MAX : percent);
    return a;
}

/** Attributes of a launch that runs this version of its kernel: ACS_LAUNCH_WITH(context, ACS_VARIANT(1), ...). */
#define ACS_VARIANT(number) acs_make_variant(number)

/**
 * Attributes of a launch that takes at most this part of the GPU's multiprocessors, in percent: it goes to a stream of a
 * green context. 100: the whole GPU. The part is rounded to what the GPU can be divided into (acs_share_find). Different
 * launches of the same share may run on different multiprocessors, so that they do not crowd together; shares may overlap.
 *
 * On a device that cannot be partitioned such a launch runs on the whole device: acs_share_find says why, and
 * acs_statistics.shares_ignored counts it. Such launches go one by one, never in bundles. Inside a capture the share is
 * ignored, too, and for ops that a word on the device decides about.
 */
#define ACS_SHARE(percent) acs_make_share(percent)

/** What a share of a device comes to. */
typedef struct acs_share_info {
    size_t size;            /**< sizeof(acs_share_info), set by the caller */
    uint32_t device_sms;    /**< multiprocessors of the device */
    uint32_t sms;           /**< multiprocessors that a launch with this share gets */
    uint32_t step_sms;      /**< multiprocessors in the smallest part; 0: the device cannot be partitioned */
    uint32_t places;        /**< different sets of multiprocessors that launches of this share are spread over */
    char reason[128];       /**< why the device cannot be partitioned; empty: it can */
} acs_share_info;

/**
 * What a share of a device of the context comes to. May make the partition, which takes some ms once.
 * @param context  NULL: the default context.
 * @param percent  1 to 100.
 * @retval ACS_ERR_ARGUMENT  `size`, the device or the share is wrong; `*info` is unchanged.
 */
acs_status acs_share_find(acs_context *context, uint32_t device, uint32_t percent, acs_share_info *info);

/** How acs_measure runs a launch. All zero but `size`: alone, on the whole GPU. */
typedef struct acs_measure_params {
    size_t size;                     /**< sizeof(acs_measure_params) */
    uint32_t share;                  /**< percent of the GPU; 0: all of it */
    uint32_t runs;                   /**< runs that are timed, at most 1000; 0: as many as fit into 2 ms, 3 to 100 */
    const acs_launch_params *beside; /**< a launch that runs again and again meanwhile; NULL: none */
    uint32_t beside_share;           /**< percent of the GPU that it may take; 0: all of it */
    uint32_t flags;                  /**< 0 */
} acs_measure_params;

/** Times of a launch on the device, in microseconds. */
typedef struct acs_measured {
    size_t size;      /**< sizeof(acs_measured), set by the caller */
    double us;        /**< median of the runs */
    double least_us;  /**< the shortest */
    double beside_us; /**< time of one run of `beside` alone, before the runs; 0: none */
    uint32_t runs;    /**< runs that were timed */
    uint32_t share_ignored; /**< nonzero: the device cannot be partitioned, so the whole of it was used */
} acs_measured;

/**
 * Time a launch on the device. Waits for all ops of the context, runs the launch several times, and gives back the bytes
 * that it writes: afterwards they are as they were before. The version is that of launch->attributes.variant, else "base".
 * For tools that tune kernels; acs-tune uses it.
 *
 * Other threads must not use the context meanwhile. A launch with an unknown footprint (ACS_USES_ANY) is refused, since
 * what it writes could not be given back.
 * @retval ACS_ERR_ARGUMENT     The launch is not valid, or its footprint is not known.
 * @retval ACS_ERR_UNSUPPORTED  Several devices, a capture or a group; ACS_CHECK or ACS_SERIAL; the backend cannot time
 *                              kernels.
 * @retval ACS_ERR_MEMORY       No memory to keep the bytes; nothing was run.
 * @retval ACS_ERR_DEVICE       The device is lost.
 */
acs_status acs_measure(acs_context *context, const acs_launch_params *launch, const acs_measure_params *how,
                       acs_measured *result);

/**
 * One model of a mix: a part of the program whose launches get the same setting. The paper's model (ConCo, section 3.5).
 */
typedef struct acs_mix_model {
    const char *name;   /**< 1 to 47 characters, as of versions */
    double rate;        /**< requests per second in relation to the other models; above 0 */
} acs_mix_model;

/** What the launches of a model get: the C % and R % of the paper. */
typedef struct acs_mix_setting {
    uint32_t fit;   /**< versions are those that are best on this percentage of the GPU; 0: the runtime picks each */
    uint32_t share; /**< percentage of the GPU that its launches may take; 100: the whole GPU */
} acs_mix_setting;

/** Attributes of the launches of a model with this setting. */
static inline acs_attributes acs_mix_attributes(acs_mix_setting setting)
{
    acs_attributes a = acs_make_share(setting.share ? setting.share : 100);
    a.fit = (uint8_t)(setting.fit > 100 ? UINT8_MAX : setting.fit);
    return a;
}

/**
 * Runs the mix with these settings for a while.
 * @return requests per second of all models together; 0 or less: it failed, and the search ends.
 */
typedef double (*acs_mix_run)(void *user, const acs_mix_setting *settings);

/** How a plan is searched for. All zero but `size`: the defaults. */
typedef struct acs_mix_params {
    size_t size;        /**< sizeof(acs_mix_params) */
    uint32_t runs;      /**< most runs of the mix; 0: 40 for each model */
    uint32_t free_fit;  /**< 1: `fit` may be any percentage; 0: too; 2: it stays 100 (the paper's baseline 2) */
    uint64_t seed;      /**< of the random choices */
} acs_mix_params;

/**
 * Find settings for a mix of models, whose requests per second are as high as the search finds (simulated annealing, ConCo,
 * section 3.5). If the profile has a plan for models of these names and rates, that is the result, and nothing is run. Else
 * the mix is searched with ACS_TUNE=mix, as acs-tune --mix sets it, and the plan is written to the profile. Otherwise the
 * result is {0, 100} for each model: the runtime picks each version.
 * @param[out] best    `count` settings.
 * @param[out] throughput  Requests per second of the plan when it was found; 0: there is none. NULL: not wanted.
 * @retval ACS_ERR_ARGUMENT  No model, too many (16), a bad name or rate, a name that is there twice, or names that together
 *         do not fit into a line of 254 bytes with 26 for each rate.
 * @retval ACS_ERR_STATE     `run` failed, or the profile could not be written; `best` has the best settings so far.
 */
acs_status acs_mix_plan(acs_context *context, const acs_mix_model *models, size_t count, acs_mix_run run, void *user,
                        const acs_mix_params *params, acs_mix_setting *best, double *throughput);

#pragma GCC visibility pop
#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
