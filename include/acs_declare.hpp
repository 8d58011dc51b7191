/*
 * Declared footprints in C++17: what a kernel touches, from its parameters, once for all its launches (acs_declare).
 * Included by acs.h only.
 *
 *   ACS_KERNEL_USES(saxpy, [](int n, float, const float *x, float *y) {
 *       return acs::uses(ACS_IN(x, n * sizeof *x), ACS_INOUT(y, n * sizeof *y));
 *   });
 *   ...
 *   ACS_LAUNCH(saxpy, blocks, 256, 0, ACS_ARGS(n, 2.0f, x, y));
 */
#include "acs.h" /* before the guard: acs.h includes this file, for acs_launch.hpp; a no-op then */

#ifndef ACS_DECLARE_HPP
#define ACS_DECLARE_HPP

#include <array>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#ifdef __CUDACC__
#define ACS_BOTH_SIDES_ __host__ __device__
#else
#define ACS_BOTH_SIDES_
#endif

namespace acs {

/**
 * Parameters of kernels that say what the kernel does with the allocation into which they point, all of it (ACS_WHOLE): it
 * reads it; it reads and writes it; it writes every byte and reads none. A kernel with such a parameter needs no
 * declaration. One pointer each; they convert from pointers and to pointers, on the host and on the device.
 */
template <class T> struct in {
    const T *pointer;
    in() = default;
    ACS_BOTH_SIDES_ in(const T *p) : pointer(p) {}
    ACS_BOTH_SIDES_ operator const T *() const { return pointer; }
    static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0);
};
template <class T> struct inout {
    T *pointer;
    inout() = default;
    ACS_BOTH_SIDES_ inout(T *p) : pointer(p) {}
    ACS_BOTH_SIDES_ operator T *() const { return pointer; }
    static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0);
};
template <class T> struct out {
    T *pointer;
    out() = default;
    ACS_BOTH_SIDES_ out(T *p) : pointer(p) {}
    ACS_BOTH_SIDES_ operator T *() const { return pointer; }
    static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0);
};

/** For acs::declare_by_type: a struct that holds no pointers. Specialise it for structs without acs_pointers. */
template <class T> inline constexpr bool no_pointers = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/** What a footprint lambda returns: the segments. Others with data() and size() do as well, such as a std::vector. */
template <class... S> std::array<acs_segment, sizeof...(S)> uses(const S &...segments)
{
    return {segments...};
}

namespace detail {

/* acs_arg.type of an argument of type T. A struct names the places of its pointers in T::acs_pointers. */
template <class T, class = void> struct arg_type {
    static constexpr uint32_t value = std::is_pointer_v<T> ? ACS_ARG_POINTER : ACS_ARG_VALUE;
    static constexpr bool is_known = false;
};
template <class T> struct arg_type<T, std::void_t<decltype(T::acs_pointers)>> {
    static constexpr uint32_t value = static_cast<uint32_t>(ACS_ARG_POINTERS) | T::acs_pointers;
    static constexpr bool is_known = true;
};

/* How a parameter is used, by its type alone; `says`: its type exists to say so. */
template <class T> struct by_type {
    static constexpr acs_access access = ACS_UPDATE;
    static constexpr bool says = false;
};
template <class T> struct by_type<const T *> {
    static constexpr acs_access access = ACS_READ;
    static constexpr bool says = false;
};
template <class T> struct by_type<in<T>> {
    static constexpr acs_access access = ACS_READ;
    static constexpr bool says = true;
};
template <class T> struct by_type<inout<T>> {
    static constexpr acs_access access = ACS_UPDATE;
    static constexpr bool says = true;
};
template <class T> struct by_type<out<T>> {
    static constexpr acs_access access = ACS_WRITE;
    static constexpr bool says = true;
};

template <class T> constexpr bool says_all()
{
    using pointed = std::remove_pointer_t<T>;
    static_assert(!std::is_pointer_v<T> || !std::is_pointer_v<pointed>,
                  "a table of pointers: its type does not say what they lead to; use acs::declare, or acs_declare");
    static_assert(std::is_pointer_v<T> || arg_type<T>::is_known || no_pointers<T>,
                  "a struct parameter needs acs_pointers, the places of its pointers (0: none), or acs::no_pointers");
    return true;
}

inline size_t store(acs_segment *to, size_t capacity, const acs_segment *list, size_t count)
{
    if (count && count <= capacity)
        std::memcpy(to, list, count * sizeof *list);
    return count;
}

/* An argument's bytes as a value. */
template <class T> class argument {
public:
    static_assert(std::is_trivially_copyable_v<T>, "a kernel argument must be trivially copyable");
    explicit argument(const void *from) { std::memcpy(bytes, from, sizeof(T)); }
    const T &value() const { return *std::launder(reinterpret_cast<const T *>(bytes)); }

private:
    alignas(T) unsigned char bytes[sizeof(T)];
};

template <class... P> size_t check(const acs_footprint_input *in)
{
    const acs_param params[sizeof...(P) + 1] = {{nullptr, sizeof(P)}..., {nullptr, 0}};
    return acs_params(in, params, sizeof...(P));
}

/* ----------------------------------------------------------------------------------------------- footprints by types */

/* Add a segment for each pointer that a parameter holds. */
template <class T> void add_by_type(const void *bytes, acs_segment *list, size_t &count)
{
    const uint32_t words = std::is_pointer_v<T> ? 1u : arg_type<T>::is_known ? arg_type<T>::value >> 2 : 0u;
    for (uint32_t word = 0; word < 30 && (word + 1) * 8 <= sizeof(T); word++) {
        uint64_t address;
        if (!(words >> word & 1))
            continue;
        std::memcpy(&address, static_cast<const unsigned char *>(bytes) + word * sizeof address, sizeof address);
        list[count++] = acs_make_segment(ACS_EXTENT_BYTES, by_type<T>::access, address, ACS_WHOLE, 1, 0);
    }
}

template <class T> constexpr size_t most_by_type()
{
    return sizeof(T) / 8 < 30 ? sizeof(T) / 8 : 30;
}

template <class... P, size_t... I>
size_t segments_by_type(const acs_footprint_input *in, acs_segment *to, size_t capacity, std::index_sequence<I...>)
{
    acs_segment list[(most_by_type<P>() + ... + 1)];
    size_t count = 0;
    (add_by_type<P>(in->args[I], list, count), ...);
    return store(to, capacity, list, count);
}

template <class... P> size_t footprint_by_type(const acs_footprint_input *in, acs_segment *to, size_t capacity)
{
    static_assert((says_all<P>() && ... && true));
    const size_t refused = check<P...>(in);
    return refused ? refused : segments_by_type<P...>(in, to, capacity, std::index_sequence_for<P...>{});
}

/* The footprint of a launch that names none: the declared one. Without it what the parameters say, if one of them does. */
template <class... P> acs_uses uses_of_type()
{
    if constexpr ((by_type<std::remove_cv_t<P>>::says || ... || false))
        return acs_uses{nullptr, 0, footprint_by_type<std::remove_cv_t<P>...>, nullptr, ACS_LOOK_UP};
    else
        return acs_uses{nullptr, 0, nullptr, nullptr, ACS_LOOK_UP};
}

/* ------------------------------------------------------------------------------------------------ footprints by lambdas */

template <class F, class... P, size_t... I>
size_t segments_of(const F &function, const acs_footprint_input *in, acs_segment *to, size_t capacity,
                   std::index_sequence<I...>)
{
    const auto list = function(argument<P>(in->args[I]).value()...);
    return store(to, capacity, list.data(), list.size());
}

template <class F, class... P> size_t footprint_of(const acs_footprint_input *in, acs_segment *to, size_t capacity)
{
    const size_t refused = check<P...>(in);
    return refused ? refused
                   : segments_of<F, P...>(*static_cast<const F *>(in->user), in, to, capacity,
                                          std::index_sequence_for<P...>{});
}

/* Lambdas stay until the process ends, since a launch may be inside one that was replaced. */
struct kept_function {
    kept_function *next;
};
template <class F> struct kept : kept_function {
    F function;
    explicit kept(F f) : kept_function{nullptr}, function(std::move(f)) {}
};
inline void keep(kept_function *function)
{
    static std::mutex mutex;
    static kept_function *list;
    const std::lock_guard<std::mutex> guard(mutex);
    function->next = list;
    list = function;
}

template <class... P, class F> acs_status declare(const acs_kernel &kernel, F function)
{
    auto *k = new (std::nothrow) kept<F>(std::move(function));
    if (!k)
        return ACS_ERR_MEMORY;
    const acs_status status = acs_declare(&kernel, footprint_of<F, std::remove_cv_t<P>...>, &k->function);
    if (status == ACS_OK)
        keep(k);
    else
        delete k;
    return status;
}

/* The parameters of a lambda that has no template parameters. */
template <class R, class F, class... P> acs_status declare_typed(const acs_kernel &kernel, F function, R (F::*)(P...) const)
{
    return declare<std::decay_t<P>...>(kernel, std::move(function));
}

inline acs_kernel kernel_by_stub(const void *function)
{
    return acs_kernel{nullptr, function, nullptr, ACS_KERNEL_FUNCTION, 0};
}

} // namespace detail

/**
 * Declare what a __global__ function touches: the lambda gets a launch's arguments and returns acs::uses(...). It runs in
 * the call that launches, must be pure and must not call ACS. Replaces an earlier declaration; a copy of the lambda stays
 * until the process ends. Any thread; a template kernel is declared for each of its instances: acs::declare(k<float>, ...).
 * @return as acs_declare. ACS_ERR_MEMORY: no memory for the copy.
 */
template <class... P, class F> acs_status declare(void (*kernel)(P...), F function)
{
    return detail::declare<P...>(detail::kernel_by_stub(reinterpret_cast<const void *>(kernel)), std::move(function));
}
/** The same for a kernel by handle, host body or name. The lambda names the types of all parameters. */
template <class F> acs_status declare(const acs_kernel &kernel, F function)
{
    return detail::declare_typed(kernel, std::move(function), &F::operator());
}

/**
 * Declare a __global__ function by the types of its parameters: `const T *` is read, `T *` is read and written, each the
 * whole allocation (ACS_WHOLE), as acs::in and acs::inout say. So const must be true of what the kernel does, and no
 * pointer may lead to further ones in memory. A table of pointers (`T **`) and a struct whose pointers are not known do not
 * compile.
 * @return as acs_declare.
 */
template <class... P> acs_status declare_by_type(void (*kernel)(P...))
{
    const acs_kernel k = detail::kernel_by_stub(reinterpret_cast<const void *>(kernel));
    return acs_declare(&k, detail::footprint_by_type<std::remove_cv_t<P>...>, nullptr);
}

} // namespace acs

/** At namespace scope: acs::declare(kernel, lambda) before main. For a kernel of a .cu file or an acs_kernel. */
#define ACS_KERNEL_USES(kernel, ...)                                                                                   \
    [[maybe_unused]] static const acs_status ACS_CAT_(acs_declared_, __COUNTER__) = ::acs::declare(kernel, __VA_ARGS__)

/* Footprint functions, as in C: see acs_launch.h. */
#define ACS_PARAM_VARIABLE_(type, name) [[maybe_unused]] type name;
#define ACS_PARAM_ROW_(type, name) {const_cast<void *>(static_cast<const volatile void *>(&name)), sizeof(name)},
#include "acs_params.h"

/** What a footprint function returns: stores the segments if there is room, and returns their number. */
#define ACS_SEGMENTS(out, capacity, ...)                                                                               \
    ([](acs_segment *acs_to_, size_t acs_room_, std::initializer_list<acs_segment> acs_list_) {                        \
        return ::acs::detail::store(acs_to_, acs_room_, acs_list_.begin(), acs_list_.size());                          \
    }((out), (capacity), {__VA_ARGS__}))

#endif
