/*
 * The functions of all versions, in the order of versions.h; each file of kernels defines its own. Without nvcc all are
 * NULL (no_kernels.cpp).
 */
#ifndef VARIANTS_FUNCTIONS_H
#define VARIANTS_FUNCTIONS_H

namespace variants {

using function_list = const void *const *;

function_list conv_functions();
function_list matmul_functions(); /* without VARIANTS_VECTOR */
function_list vector_functions();
function_list pool_functions();
function_list average_functions();
function_list softmax_functions();
function_list layer_norm_functions();
function_list element_functions();
function_list embedding_functions();
function_list interaction_functions();

} // namespace variants

#endif
