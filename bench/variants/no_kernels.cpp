/*
 * Without nvcc: versions have shapes, which are tested, and no functions.
 */
#include "functions.h"
#include "versions.h"

namespace variants {

static const void *const nothing[64] = {};

function_list conv_functions()
{
    return nothing;
}

function_list matmul_functions()
{
    return nothing;
}

function_list vector_functions()
{
    return nothing;
}

function_list pool_functions()
{
    return nothing;
}

function_list average_functions()
{
    return nothing;
}

function_list softmax_functions()
{
    return nothing;
}

function_list layer_norm_functions()
{
    return nothing;
}

function_list element_functions()
{
    return nothing;
}

function_list embedding_functions()
{
    return nothing;
}

function_list interaction_functions()
{
    return nothing;
}

} // namespace variants
