/*
 * Call-site macros of acs.h for C11 (gcc and clang: statement expressions, __typeof__). Included by acs.h only.
 *
 *   acs_op op = ACS_LAUNCH(kernel, grid, block, shared_bytes, ACS_ARGS(n, 2.0f, x, y), ACS_USES(ACS_IN(x, bytes), ...));
 *
 * kernel: an acs_kernel pointer, or a __global__ function with C linkage. grid, block: an integer or an acs_dim3; grid also
 * ACS_GRID_AT or ACS_GRID_FOR, which the GPU reads.
 * ACS_ARGS copies each argument as its own C type: write ACS_VAL(float, 2.0) where the kernel wants another type. Or
 * launch from a function that has the kernel's parameters: C converts what it is called with. Arrays become pointers.
 * ACS_ARGS takes at most 32 arguments, acs_launch() any number. ACS_USES takes any number of segments. Without the last
 * argument the footprint is that of acs_declare.
 */
#ifndef ACS_LAUNCH_H
#define ACS_LAUNCH_H

#include "acs.h" /* a no-op where acs.h includes this file */

#define ACS_SITE_(text)                                                                                                \
    (__extension__({                                                                                                   \
        static const acs_site acs_site_here_ = {(text), __FILE__, __LINE__};                                           \
        &acs_site_here_;                                                                                               \
    }))
#define ACS_HERE_(text) (&(acs_op_params){ACS_SITE_(text), 0})

/* Arguments: one compound literal of the argument's decayed type each, alive until the end of the enclosing block. */
#define ACS_VAL(type, value) ((type)(value))
#define ACS_ARG_DECAY_(x) __typeof__((void)0, (x))
#define ACS_ARG_TYPE_(x) (__builtin_classify_type(x) == 5 ? ACS_ARG_POINTER : ACS_ARG_VALUE)
#define ACS_ARG_(x) {(ACS_ARG_DECAY_(x)[1]){x}, (uint32_t)sizeof(ACS_ARG_DECAY_(x)), ACS_ARG_TYPE_(x)},

#define ACS_CAT_(a, b) ACS_CAT2_(a, b)
#define ACS_CAT2_(a, b) a##b
#define ACS_COUNT_(...)                                                                                                \
    ACS_COUNT_PICK_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12,   \
                    11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ACS_COUNT_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20,     \
                        a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, n, ...)                            \
    n
#define ACS_EACH_1_(a) ACS_ARG_(a)
#define ACS_EACH_2_(a, ...) ACS_ARG_(a) ACS_EACH_1_(__VA_ARGS__)
#define ACS_EACH_3_(a, ...) ACS_ARG_(a) ACS_EACH_2_(__VA_ARGS__)
#define ACS_EACH_4_(a, ...) ACS_ARG_(a) ACS_EACH_3_(__VA_ARGS__)
#define ACS_EACH_5_(a, ...) ACS_ARG_(a) ACS_EACH_4_(__VA_ARGS__)
#define ACS_EACH_6_(a, ...) ACS_ARG_(a) ACS_EACH_5_(__VA_ARGS__)
#define ACS_EACH_7_(a, ...) ACS_ARG_(a) ACS_EACH_6_(__VA_ARGS__)
#define ACS_EACH_8_(a, ...) ACS_ARG_(a) ACS_EACH_7_(__VA_ARGS__)
#define ACS_EACH_9_(a, ...) ACS_ARG_(a) ACS_EACH_8_(__VA_ARGS__)
#define ACS_EACH_10_(a, ...) ACS_ARG_(a) ACS_EACH_9_(__VA_ARGS__)
#define ACS_EACH_11_(a, ...) ACS_ARG_(a) ACS_EACH_10_(__VA_ARGS__)
#define ACS_EACH_12_(a, ...) ACS_ARG_(a) ACS_EACH_11_(__VA_ARGS__)
#define ACS_EACH_13_(a, ...) ACS_ARG_(a) ACS_EACH_12_(__VA_ARGS__)
#define ACS_EACH_14_(a, ...) ACS_ARG_(a) ACS_EACH_13_(__VA_ARGS__)
#define ACS_EACH_15_(a, ...) ACS_ARG_(a) ACS_EACH_14_(__VA_ARGS__)
#define ACS_EACH_16_(a, ...) ACS_ARG_(a) ACS_EACH_15_(__VA_ARGS__)
#define ACS_EACH_17_(a, ...) ACS_ARG_(a) ACS_EACH_16_(__VA_ARGS__)
#define ACS_EACH_18_(a, ...) ACS_ARG_(a) ACS_EACH_17_(__VA_ARGS__)
#define ACS_EACH_19_(a, ...) ACS_ARG_(a) ACS_EACH_18_(__VA_ARGS__)
#define ACS_EACH_20_(a, ...) ACS_ARG_(a) ACS_EACH_19_(__VA_ARGS__)
#define ACS_EACH_21_(a, ...) ACS_ARG_(a) ACS_EACH_20_(__VA_ARGS__)
#define ACS_EACH_22_(a, ...) ACS_ARG_(a) ACS_EACH_21_(__VA_ARGS__)
#define ACS_EACH_23_(a, ...) ACS_ARG_(a) ACS_EACH_22_(__VA_ARGS__)
#define ACS_EACH_24_(a, ...) ACS_ARG_(a) ACS_EACH_23_(__VA_ARGS__)
#define ACS_EACH_25_(a, ...) ACS_ARG_(a) ACS_EACH_24_(__VA_ARGS__)
#define ACS_EACH_26_(a, ...) ACS_ARG_(a) ACS_EACH_25_(__VA_ARGS__)
#define ACS_EACH_27_(a, ...) ACS_ARG_(a) ACS_EACH_26_(__VA_ARGS__)
#define ACS_EACH_28_(a, ...) ACS_ARG_(a) ACS_EACH_27_(__VA_ARGS__)
#define ACS_EACH_29_(a, ...) ACS_ARG_(a) ACS_EACH_28_(__VA_ARGS__)
#define ACS_EACH_30_(a, ...) ACS_ARG_(a) ACS_EACH_29_(__VA_ARGS__)
#define ACS_EACH_31_(a, ...) ACS_ARG_(a) ACS_EACH_30_(__VA_ARGS__)
#define ACS_EACH_32_(a, ...) ACS_ARG_(a) ACS_EACH_31_(__VA_ARGS__)

/** Arguments of a kernel, in order. For a kernel without arguments: ACS_NO_ARGS. */
#define ACS_ARGS(...)                                                                                                  \
    ((acs_args){(acs_arg[]){ACS_CAT_(ACS_CAT_(ACS_EACH_, ACS_COUNT_(__VA_ARGS__)), _)(__VA_ARGS__)},                   \
                ACS_COUNT_(__VA_ARGS__)})
#define ACS_NO_ARGS ((acs_args){NULL, 0})

/** The segments of an op, any number. */
#define ACS_USES(...)                                                                                                  \
    ((acs_uses){(acs_segment[]){__VA_ARGS__}, sizeof((acs_segment[]){__VA_ARGS__}) / sizeof(acs_segment), NULL, NULL, 0})
/** A list of `count` segments that was made at run time. Copied by the call; borrowed until then. */
#define ACS_USES_LIST(pointer, count) ((acs_uses){(pointer), (count), NULL, NULL, 0})
/** Segments computed by a footprint function from the argument bytes. */
#define ACS_USES_FN(function, user) ((acs_uses){NULL, 0, (function), (user), 0})
/** No footprint: the op may touch anything. */
#define ACS_USES_ANY ((acs_uses){NULL, 0, NULL, NULL, 1})
/** The op touches nothing that others touch. */
#define ACS_USES_NONE ((acs_uses){NULL, 0, NULL, NULL, 0})
/** A launch: the footprint that was declared for the kernel (acs_declare). */
#define ACS_USES_DECLARED ((acs_uses){NULL, 0, NULL, NULL, ACS_LOOK_UP})

static inline acs_dim3 acs_dim3_same_(acs_dim3 d)
{
    return d;
}
static inline acs_dim3 acs_dim3_of_(uint64_t x)
{
    acs_dim3 d = {x > UINT32_MAX ? UINT32_MAX : (uint32_t)x, 1, 1}; /* too large stays too large: refused by the launch */
    return d;
}
static inline acs_dim3 acs_read_most_(acs_read_grid g)
{
    return g.most;
}
static inline acs_grid_from acs_read_from_(acs_read_grid g)
{
    return g.from;
}
static inline acs_grid_from acs_read_none_dim3_(acs_dim3 d)
{
    acs_grid_from none = {NULL, 0};
    (void)d;
    return none;
}
static inline acs_grid_from acs_read_none_(uint64_t x)
{
    acs_grid_from none = {NULL, 0};
    (void)x;
    return none;
}
#define ACS_DIM3_(v) _Generic((v), acs_dim3 : acs_dim3_same_, acs_read_grid : acs_read_most_, default : acs_dim3_of_)(v)
#define ACS_GRID_FROM_(v) _Generic((v), acs_read_grid : acs_read_from_, acs_dim3 : acs_read_none_dim3_,                \
                                   default : acs_read_none_)(v)

static inline acs_kernel acs_kernel_copy_(const acs_kernel *kernel)
{
    acs_kernel none = {NULL, NULL, NULL, ACS_KERNEL_NONE, 0};
    return kernel ? *kernel : none;
}
static inline acs_kernel acs_kernel_function_(const void *function)
{
    acs_kernel kernel = {NULL, function, NULL, ACS_KERNEL_FUNCTION, 0};
    return kernel;
}
#define ACS_KERNEL_OF_(k)                                                                                              \
    _Generic((k), acs_kernel * : acs_kernel_copy_, const acs_kernel * : acs_kernel_copy_,                              \
             default : acs_kernel_function_)((const void *)(uintptr_t)(k))

#define ACS_LAUNCH_AS_(context, attrs, k, name_, text_, grid_, block_, shared_, args_, uses_)                          \
    acs_launch((context), &(acs_launch_params){.size = sizeof(acs_launch_params),                                      \
                                               .kernel = &(acs_kernel[1]){ACS_KERNEL_OF_(k)}[0],                       \
                                               .grid = ACS_DIM3_(grid_),                                               \
                                               .block = ACS_DIM3_(block_),                                             \
                                               .shared_bytes = (shared_),                                              \
                                               .args = args_,                                                          \
                                               .uses = uses_,                                                          \
                                               .attributes = (attrs),                                                  \
                                               .site = ACS_SITE_(name_),                                               \
                                               .no_wait = 0,                                                           \
                                               .grid_from = ACS_GRID_FROM_(grid_),                                     \
                                               .args_text = text_,                                                     \
                                               .stub = NULL})
/* (grid, block, shared_bytes, args) or the same and uses; another number names a macro that there is not. */
#define ACS_LAUNCH_4_(context, attrs, k, name, text, grid, block, shared, args)                                        \
    ACS_LAUNCH_AS_(context, attrs, k, name, text, grid, block, shared, args, ACS_USES_DECLARED)
#define ACS_LAUNCH_5_(context, attrs, k, name, text, grid, block, shared, args, uses)                                  \
    ACS_LAUNCH_AS_(context, attrs, k, name, text, grid, block, shared, args, uses)
#define ACS_LAUNCH_OF_(context, attrs, k, name, text, ...)                                                             \
    ACS_CAT_(ACS_CAT_(ACS_LAUNCH_, ACS_COUNT_(__VA_ARGS__)), _)(context, attrs, k, name, text, __VA_ARGS__)
#define ACS_NO_ATTRIBUTES_ acs_no_attributes()
/**
 * Queue a kernel on a context, with attributes (an acs_attributes, or ACS_ON): (context, attributes, kernel, grid, block,
 * shared_bytes, args, uses). Without `uses`: ACS_USES_DECLARED. See acs_launch.
 */
#define ACS_LAUNCH_WITH(context, attrs, k, ...)                                                                        \
    ACS_LAUNCH_OF_(context, attrs, k, #k, "ACS_LAUNCH(" #__VA_ARGS__ ")", __VA_ARGS__)
/** Queue a kernel on a context: (context, kernel, grid, block, shared_bytes, args, uses). */
#define ACS_LAUNCH_ON(context, k, ...)                                                                                 \
    ACS_LAUNCH_OF_(context, ACS_NO_ATTRIBUTES_, k, #k, "ACS_LAUNCH(" #__VA_ARGS__ ")", __VA_ARGS__)
/** Queue a kernel on the default context: (kernel, grid, block, shared_bytes, args, uses). */
#define ACS_LAUNCH(k, ...)                                                                                             \
    ACS_LAUNCH_OF_(NULL, ACS_NO_ATTRIBUTES_, k, #k, "ACS_LAUNCH(" #__VA_ARGS__ ")", __VA_ARGS__)

/*
 * Footprint functions. ACS_PARAMS makes a variable of each (type, name) with the launch's argument of that place. If the
 * number of arguments or the size of one differs, it returns ACS_FOOTPRINT_REFUSED, and the launch's error says so:
 *
 *   static size_t saxpy_uses(const acs_footprint_input *in, acs_segment *out, size_t capacity)
 *   {
 *       ACS_PARAMS(in, (int, n), (float, a), (const float *, x), (float *, y));
 *       return ACS_SEGMENTS(out, capacity, ACS_IN(x, n * sizeof *x), ACS_INOUT(y, ACS_WHOLE));
 *   }
 */
#define ACS_PARAM_VARIABLE_(type, name) __attribute__((unused)) type name;
#define ACS_PARAM_ROW_(type, name) {(void *)(uintptr_t)&name, sizeof(name)},
#include "acs_params.h"

/** What a footprint function returns: stores the segments if there is room, and returns their number. */
#define ACS_SEGMENTS(out, capacity, ...)                                                                               \
    acs_store_segments_((out), (capacity), (const acs_segment[]){__VA_ARGS__},                                         \
                        sizeof((const acs_segment[]){__VA_ARGS__}) / sizeof(acs_segment))
static inline size_t acs_store_segments_(acs_segment *out, size_t capacity, const acs_segment *list, size_t count)
{
    for (size_t i = 0; count <= capacity && i < count; i++)
        out[i] = list[i];
    return count;
}

/* The functions of acs.h that end in _op, with the call site. acs.h says what each does. */
#define acs_memcpy(context, dst, src, bytes)                                                                           \
    acs_memcpy_op((context), (dst), (src), (bytes), ACS_HERE_("acs_memcpy"))
#define acs_memset(context, dst, value, bytes)                                                                         \
    acs_memset_op((context), (dst), (value), (bytes), ACS_HERE_("acs_memset"))
#define acs_host(context, function, closure, closure_bytes, uses)                                                      \
    acs_host_op((context), (function), (closure), (closure_bytes), uses, ACS_HERE_("acs_host(" #function ")"))
#define acs_malloc(context, bytes, kind, ptr)                                                                           \
    acs_malloc_op((context), (bytes), (kind), (ptr), ACS_HERE_("acs_malloc"))
#define acs_free(context, ptr) acs_free_op((context), (ptr), ACS_HERE_("acs_free"))
#define acs_if(context, word) acs_if_op((context), (word), ACS_SITE_("acs_if(" #word ")"))
#define acs_unless(context, word) acs_unless_op((context), (word), ACS_SITE_("acs_unless(" #word ")"))

#endif
