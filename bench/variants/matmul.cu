/*
 * The versions of products of matrices by tiles.
 */
#include "tile.cuh"

namespace variants {

#define MATMUL_FUNCTION(...) reinterpret_cast<const void *>(&tile_kernel<tile<__VA_ARGS__>, false>),
static const void *const functions[] = {VARIANTS_MATMUL(MATMUL_FUNCTION)};

function_list matmul_functions()
{
    return functions;
}

} // namespace variants
