/*
 * Call-site macros of acs.h for C++17, host code and .cu files. Included by acs.h only.
 *
 *   acs_op op = ACS_LAUNCH(kernel<float, 4>, grid, block, shared_bytes, ACS_ARGS(n, 2.0, x, y), ACS_USES(ACS_IN(x, bytes)));
 *
 * kernel: a __global__ function, template arguments with commas included, an acs::kernel or an acs_kernel (pointer or
 * reference). For a function and an acs::kernel the arguments are converted to the parameter types, and the compiler
 * checks their number. An acs_kernel has no types: there an argument keeps its own, and a temporary of type int, double,
 * bool or char, such as 3 or 2.0, does not compile; write ACS_VAL(float, 3). Temporaries of other types, such as 3u, are
 * passed as they are, and so are variables. In .cu files each thread resolves the cudaKernel_t of a function
 * once per call site, and again when the call site launches another function.
 * grid, block: an integer, an acs_dim3, or anything with x, y, z; grid also ACS_GRID_AT or ACS_GRID_FOR, which the GPU
 * reads. Without the last argument the footprint is that of the kernel's declaration (acs_declare.hpp).
 */
#ifndef ACS_LAUNCH_HPP
#define ACS_LAUNCH_HPP

#include "acs.h" /* a no-op where acs.h includes this file */

#if __cplusplus < 201703L
#error "acs.h needs C++17 or newer: compile with -std=c++17"
#endif

#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

#include "acs_declare.hpp"

namespace acs {

/**
 * An acs_kernel that knows the types of its parameters, said once for all its launches: a handle, or a host body.
 *
 *   static const acs::kernel<int, float, float *> scale = ACS_KERNEL_HOST_INIT("scale", body);
 *   static const acs::kernel saxpy{"saxpy", saxpy_gpu, saxpy_cpu}; // the types are those of the __global__ function
 */
template <class... P> struct kernel : acs_kernel {
    constexpr kernel(const char *text, const void *gpu, acs_host_body body, uint32_t of_kind, uint32_t no_flags)
        : acs_kernel{text, gpu, body, of_kind, no_flags}
    {
    }
    kernel(const char *text, void (*gpu)(P...), acs_host_body body)
        : kernel(text, reinterpret_cast<const void *>(gpu), body, ACS_KERNEL_FUNCTION, 0)
    {
    }
    constexpr explicit kernel(const acs_kernel &other) : acs_kernel(other) {}
};

namespace detail {

template <class T> acs_dim3 dim(const T &v)
{
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
        const auto wide = static_cast<unsigned long long>(v); /* too large or negative: refused by the launch */
        return acs_dim3{wide > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(wide), 1, 1};
    } else {
        return acs_dim3{static_cast<uint32_t>(v.x), static_cast<uint32_t>(v.y), static_cast<uint32_t>(v.z)};
    }
}

/* A grid that the GPU reads, or one that is known. */
template <class T> acs_read_grid read_grid(const T &v)
{
    if constexpr (std::is_same_v<T, acs_read_grid>)
        return v;
    else
        return acs_read_grid{dim(v), acs_grid_from{nullptr, 0}};
}

/* References to the arguments, alive until the end of the launching expression. */
template <class... A> struct arg_refs {
    std::tuple<A &&...> refs;
    const char *text; /* as written */
};
template <class... A> arg_refs<A...> make_args(const char *text, A &&...a)
{
    return {std::tuple<A &&...>(std::forward<A>(a)...), text};
}

inline acs_uses make_uses(std::initializer_list<acs_segment> list)
{
    return acs_uses{list.begin(), list.size(), nullptr, nullptr, 0};
}

template <class T> acs_arg make_arg(const T &value)
{
    static_assert(std::is_trivially_copyable_v<T>, "a kernel argument must be trivially copyable");
    return acs_arg{&value, static_cast<uint32_t>(sizeof(T)), arg_type<T>::value};
}

inline acs_op queue(acs_context *context, const acs_site *site, const acs_attributes &attributes,
                    const acs_kernel *kernel, const void *stub, const acs_read_grid &grid, acs_dim3 block,
                    uint64_t shared_bytes, acs_args args, const char *text, const acs_uses &uses)
{
    acs_launch_params p{};
    p.size = sizeof p;
    p.kernel = kernel;
    p.grid = grid.most;
    p.grid_from = grid.from;
    p.block = block;
    p.shared_bytes = shared_bytes;
    p.args = args;
    p.args_text = text;
    p.uses = uses;
    p.attributes = attributes;
    p.site = site;
    p.stub = stub;
    return acs_launch(context, &p);
}

template <class... V, size_t... I>
acs_op queue_values(acs_context *context, const acs_site *site, const acs_attributes &attributes,
                    const acs_kernel *kernel, const void *stub, const acs_read_grid &grid, acs_dim3 block,
                    uint64_t shared_bytes, const std::tuple<V...> &values, const char *text, const acs_uses &uses,
                    std::index_sequence<I...>)
{
    const acs_arg list[sizeof...(V) + 1] = {make_arg(std::get<I>(values))..., acs_arg{}};
    return queue(context, site, attributes, kernel, stub, grid, block, shared_bytes, acs_args{list, sizeof...(V)}, text,
                 uses);
}

/* The kernel's name: the text of a launch up to the first comma outside all brackets. */
template <size_t N> struct site_name {
    char text[N];
};
template <size_t N> constexpr site_name<N> first_argument(const char (&text)[N])
{
    site_name<N> name{};
    int depth = 0;
    for (size_t i = 0; i + 1 < N; i++) {
        const char c = text[i];
        if (c == ',' && depth == 0)
            break;
        depth += c == '<' || c == '(' || c == '[' || c == '{';
        depth -= c == '>' || c == ')' || c == ']' || c == '}';
        name.text[i] = c;
    }
    return name;
}

/* The acs_kernel of a __global__ function. In .cu files it asks the CUDA runtime for the function's cudaKernel_t. */
inline acs_kernel kernel_of(const void *function)
{
    acs_kernel k{nullptr, function, nullptr, ACS_KERNEL_FUNCTION, 0};
#ifdef __CUDACC__
    cudaKernel_t handle = nullptr;
    if (function && cudaGetKernel(&handle, function) == cudaSuccess && handle) {
        k.function = static_cast<const void *>(handle);
        k.kind = ACS_KERNEL_HANDLE;
    } else {
        (void)cudaGetLastError(); /* no driver, or not a kernel: the backend says what is wrong */
    }
#endif
    return k;
}

/* Last kernel that this thread launched from a call site. It saves a lookup in the CUDA runtime. */
struct site_cache {
    const void *function;
    acs_kernel kernel;
};

/* Arguments become the parameters' types. */
template <class... P, class... A, class G, class B>
acs_op launch_typed(acs_context *context, const acs_site *site, const acs_attributes &attributes, const acs_kernel *kernel,
                    const void *stub, const G &grid, const B &block, uint64_t shared_bytes, arg_refs<A...> args,
                    const acs_uses &uses)
{
    static_assert(sizeof...(P) == sizeof...(A), "ACS_ARGS: wrong number of arguments for this kernel");
    const std::tuple<std::remove_cv_t<P>...> values(std::move(args.refs));
    return queue_values(context, site, attributes, kernel, stub, read_grid(grid), dim(block), shared_bytes, values,
                        args.text, uses, std::index_sequence_for<P...>{});
}

template <class... P, class... A, class G, class B>
acs_op launch(acs_context *context, const acs_site *site, site_cache &cache, const acs_attributes &attributes,
              void (*kernel)(P...), const G &grid, const B &block, uint64_t shared_bytes, arg_refs<A...> args,
              const acs_uses &uses = uses_of_type<P...>())
{
    const void *function = reinterpret_cast<const void *>(kernel);
    if (cache.function != function || !function)
        cache = site_cache{function, kernel_of(function)};
    return launch_typed<P...>(context, site, attributes, &cache.kernel, function, grid, block, shared_bytes,
                              std::move(args), uses);
}

template <class... P, class... A, class G, class B>
acs_op launch(acs_context *context, const acs_site *site, site_cache &, const acs_attributes &attributes,
              const acs::kernel<P...> *kernel, const G &grid, const B &block, uint64_t shared_bytes, arg_refs<A...> args,
              const acs_uses &uses = uses_of_type<P...>())
{
    return launch_typed<P...>(context, site, attributes, kernel, nullptr, grid, block, shared_bytes, std::move(args), uses);
}

/* Whether an argument's type was chosen. A literal, and a result of the usual conversions, has one of these by the way. */
template <class A> constexpr bool has_chosen_type()
{
    constexpr bool by_the_way = std::is_same_v<A, int> || std::is_same_v<A, double> || std::is_same_v<A, bool> ||
                                std::is_same_v<A, char>;
    return !by_the_way; /* a variable's A is a reference, that of ACS_VAL const */
}

template <class... A, class G, class B>
acs_op launch(acs_context *context, const acs_site *site, site_cache &, const acs_attributes &attributes,
              const acs_kernel *kernel, const G &grid, const B &block, uint64_t shared_bytes, arg_refs<A...> args,
              const acs_uses &uses = uses_of_type<>())
{
    static_assert((has_chosen_type<A>() && ...),
                  "ACS_ARGS: the types of this kernel's parameters are not known, so a number written in place keeps "
                  "its own: write ACS_VAL(float, 3), or make the kernel an acs::kernel<types...>");
    const std::tuple<std::decay_t<A>...> values(std::move(args.refs));
    return queue_values(context, site, attributes, kernel, nullptr, read_grid(grid), dim(block), shared_bytes, values,
                        args.text, uses, std::index_sequence_for<A...>{});
}

/* An acs_kernel or acs::kernel by reference. */
template <class K, class... Rest, class = std::enable_if_t<std::is_base_of_v<acs_kernel, K>>>
acs_op launch(acs_context *context, const acs_site *site, site_cache &cache, const acs_attributes &attributes,
              const K &kernel, Rest &&...rest)
{
    return launch(context, site, cache, attributes, &kernel, std::forward<Rest>(rest)...);
}

} // namespace detail
} // namespace acs

#define ACS_KERNEL_SITE_(spelling)                                                                                       \
    ([]() -> const acs_site * {                                                                                        \
        static constexpr auto acs_name_here_ = ::acs::detail::first_argument(spelling);                                  \
        static const acs_site acs_site_here_ = {acs_name_here_.text, __FILE__, __LINE__};                              \
        return &acs_site_here_;                                                                                        \
    }())
#define ACS_SITE_(...)                                                                                                 \
    ([]() -> const acs_site * {                                                                                        \
        static const acs_site acs_site_here_ = {__VA_ARGS__, __FILE__, __LINE__};                                      \
        return &acs_site_here_;                                                                                        \
    }())
#define ACS_HERE_(text) (std::initializer_list<acs_op_params>{acs_op_params{ACS_SITE_(text), 0}}.begin())
#define ACS_SITE_CACHE_()                                                                                              \
    ([]() -> ::acs::detail::site_cache & {                                                                             \
        static thread_local ::acs::detail::site_cache acs_cache_here_{};                                               \
        return acs_cache_here_;                                                                                        \
    }())

#define ACS_DIM3_(v) (::acs::detail::dim(v))
/** An argument of exactly this type. */
#define ACS_VAL(type, value) (static_cast<std::add_const_t<type> &&>(static_cast<type>(value)))
/** Arguments of a kernel, in order. */
#define ACS_ARGS(...) (::acs::detail::make_args(#__VA_ARGS__, __VA_ARGS__))
#define ACS_NO_ARGS (::acs::detail::make_args(nullptr))
/** The segments of an op, any number. */
#define ACS_USES(...) (::acs::detail::make_uses({__VA_ARGS__}))
/** A list of segments that was made at run time: (v.data(), v.size()). Copied by the call; borrowed until then. */
#define ACS_USES_LIST(pointer, count) (acs_uses{(pointer), static_cast<size_t>(count), nullptr, nullptr, 0})
/** Segments computed by a footprint function from the argument bytes. */
#define ACS_USES_FN(function, user) (acs_uses{nullptr, 0, (function), (user), 0})
/** No footprint: the op may touch anything. */
#define ACS_USES_ANY (acs_uses{nullptr, 0, nullptr, nullptr, 1})
/** The op touches nothing that others touch. */
#define ACS_USES_NONE (acs_uses{nullptr, 0, nullptr, nullptr, 0})
/** A launch: the footprint that was declared for the kernel (acs_declare). */
#define ACS_USES_DECLARED (acs_uses{nullptr, 0, nullptr, nullptr, ACS_LOOK_UP})

/* `spelling` is the text of the arguments before macros in them are expanded: it has the name that the program wrote. */
#define ACS_LAUNCH_TEXT_(spelling, context, attributes, ...)                                                              \
    (::acs::detail::launch((context), ACS_KERNEL_SITE_(spelling), ACS_SITE_CACHE_(), (attributes), __VA_ARGS__))
/** Queue a kernel on a context, with attributes: (context, attributes, kernel, grid, block, shared_bytes, args, uses).
 *  `uses` may be left out, here and below: then it is ACS_USES_DECLARED, or what the types of the parameters say. */
#define ACS_LAUNCH_WITH(context, attributes, ...)                                                                      \
    ACS_LAUNCH_TEXT_(#__VA_ARGS__, context, attributes, __VA_ARGS__)
/** Queue a kernel on a context: (context, kernel, grid, block, shared_bytes, args, uses). */
#define ACS_LAUNCH_ON(context, ...) ACS_LAUNCH_TEXT_(#__VA_ARGS__, context, acs_attributes{}, __VA_ARGS__)
/** Queue a kernel on the default context: (kernel, grid, block, shared_bytes, args, uses). */
#define ACS_LAUNCH(...) ACS_LAUNCH_TEXT_(#__VA_ARGS__, nullptr, acs_attributes{}, __VA_ARGS__)

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
