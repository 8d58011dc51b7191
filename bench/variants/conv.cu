/*
 * The versions of convolutions: NCHW, one image.
 */
#include "tile.cuh"

namespace variants {

#define CONV_FUNCTION(...) reinterpret_cast<const void *>(&tile_kernel<tile<__VA_ARGS__>, true>),
static const void *const functions[] = {VARIANTS_CONV(CONV_FUNCTION)};

function_list conv_functions()
{
    return functions;
}

} // namespace variants
