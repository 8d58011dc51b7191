/*
 * Versions of a kernel in C++17, such as the instances of a template (acs_variants). To be included beside acs.h.
 *
 *   template <int TILE> __global__ void scale(int n, const float *x, float *y);
 *
 *   ACS_KERNEL_VARIANTS(scale<1>, {{"tile4", scale<4>, [](acs_launch_shape &shape, int n, const float *, float *) {
 *       shape.grid.x = (n + 1023) / 1024;
 *       return n % 4 == 0;
 *   }}});
 *   ...
 *   ACS_LAUNCH(scale<1>, (n + 255) / 256, 256, 0, ACS_ARGS(n, x, y), ACS_USES(...));
 */
#ifndef ACS_VARIANTS_HPP
#define ACS_VARIANTS_HPP

#include "acs.h"

#include <functional>
#include <initializer_list>
#include <new>
#include <string>
#include <vector>

namespace acs {

/** A version of a __global__ function. */
template <class... P> struct variant {
    const char *name; /**< as acs_variant.name */
    void (*function)(P...);
    /**
     * Changes the shape of a launch, on entry the program's, to that of the version. False: the version cannot run the
     * launch. Runs in the call that launches; must be pure and must not call ACS. Empty: the launch's own shape.
     */
    std::function<bool(acs_launch_shape &, P...)> shape;
};

namespace detail {

/* A version that was declared. It stays until the process ends, since a launch may be inside its shape. */
template <class... P> struct kept_variant : kept_function {
    explicit kept_variant(const variant<P...> &v)
        : kept_function{nullptr}, name(v.name ? v.name : ""), shape(v.shape),
          kernel(kernel_by_stub(reinterpret_cast<const void *>(v.function)))
    {
    }
    std::string name;
    std::function<bool(acs_launch_shape &, P...)> shape;
    acs_kernel kernel;
};

template <class... P, size_t... I>
bool shape_of(const kept_variant<P...> &v, const acs_footprint_input *in, acs_launch_shape *shape, std::index_sequence<I...>)
{
    return v.shape(*shape, argument<std::remove_cv_t<P>>(in->args[I]).value()...);
}

template <class... P> size_t variant_shape(const acs_footprint_input *in, acs_launch_shape *shape)
{
    const auto &v = *static_cast<const kept_variant<P...> *>(in->user);
    const size_t refused = check<std::remove_cv_t<P>...>(in);
    if (refused || !v.shape)
        return refused ? refused : ACS_SHAPE_FITS;
    return shape_of(v, in, shape, std::index_sequence_for<P...>{}) ? ACS_SHAPE_FITS : ACS_SHAPE_UNFIT;
}

template <class T> struct as_is {
    using type = T;
};

} // namespace detail

/**
 * Declare versions of a __global__ function, as acs_variants does. They replace earlier ones; copies of the shapes stay
 * until the process ends. Any thread.
 * @return as acs_variants.
 */
template <class... P>
acs_status variants(void (*kernel)(P...), std::initializer_list<variant<typename detail::as_is<P>::type...>> list)
{
    std::vector<acs_variant> rows;
    const acs_kernel base = detail::kernel_by_stub(reinterpret_cast<const void *>(kernel));
    for (const variant<P...> &v : list) {
        auto *kept = new (std::nothrow) detail::kept_variant<P...>(v);
        if (!kept)
            return ACS_ERR_MEMORY;
        detail::keep(kept);
        rows.push_back(acs_variant{kept->name.c_str(), &kept->kernel, detail::variant_shape<P...>,
                                   static_cast<const void *>(kept)});
    }
    return acs_variants(&base, rows.data(), rows.size());
}

} // namespace acs

/** At namespace scope: acs::variants(kernel, {...}) before main. */
#define ACS_KERNEL_VARIANTS(kernel, ...)                                                                               \
    [[maybe_unused]] static const acs_status ACS_CAT_(acs_variants_, __COUNTER__) = ::acs::variants(kernel, __VA_ARGS__)

#endif
