/*
 * Launches operations, by ACS and by plain CUDA.
 */
#include <algorithm>
#include <cstdio>

#include "acs_context.h"
#include "memory.h"
#include "operators.h"

#if BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace variants {

acs_launch_params launch_of(const operation &o, const acs_attributes &attributes, launch_room &room)
{
    const family &f = family_of(o.family);
    acs_launch_params l = {};
    acs_launch_shape shape;

    bench::require(shape_for(f.versions[0], o.p, shape), "the first version of an operator does not fit");
    room.list[0] = acs_arg{&o.p, sizeof o.p, ACS_ARG_VALUE};
    const void *const pointers[5] = {&o.x, &o.w, &o.bias, &o.add, &o.y};
    for (int k = 0; k < 5; k++)
        room.list[k + 1] = acs_arg{pointers[k], sizeof(void *), ACS_ARG_POINTER};
    l.size = sizeof l;
    l.kernel = &f.kernel;
    l.grid = shape.grid;
    l.block = shape.block;
    l.shared_bytes = shape.shared_bytes;
    l.args = acs_args{room.list, 6};
    l.uses = acs_uses{o.segments.data(), o.segments.size(), nullptr, nullptr, 0};
    l.attributes = attributes;
    l.site = &f.site;
    return l;
}

acs_op queue(acs_context *context, const operation &o, const acs_attributes &attributes)
{
    launch_room room;
    const acs_launch_params l = launch_of(o, attributes, room);
    const acs_op op = acs_launch(context, &l);

    if (op == 0)
        bench::require(false, bench::acs_error_text(o.name.c_str()).c_str());
    return op;
}

#if BENCH_CUDA

void allow_shared_memory()
{
    for (int id = 0; id < FAMILIES; id++)
        for (const version &v : family_of(static_cast<family_id>(id)).versions) {
            cudaFuncAttributes a;
            bench::require_cuda(cudaFuncGetAttributes(&a, v.function), v.name.c_str());
            const int most = 227 * 1024 - static_cast<int>(a.sharedSizeBytes);
            (void)cudaFuncSetAttribute(v.function, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
        }
    (void)cudaGetLastError(); /* a GPU with less: launches that need more are refused */
}

void launch_plain(const operation &o, unsigned version_number, void *stream)
{
    const version &v = family_of(o.family).versions[version_number];
    acs_launch_shape s;
    operation &of = const_cast<operation &>(o); /* CUDA wants it so, and only reads */
    void *arguments[] = {&of.p, &of.x, &of.w, &of.bias, &of.add, &of.y};

    bench::require(shape_for(v, o.p, s), "a version does not fit");
    bench::require_cuda(cudaLaunchKernel(v.function, dim3(s.grid.x, s.grid.y, s.grid.z), dim3(s.block.x), arguments,
                                         s.shared_bytes, static_cast<cudaStream_t>(stream)),
                        o.name.c_str());
}

#else

void allow_shared_memory() {}

void launch_plain(const operation &, unsigned, void *) {}

#endif

} // namespace variants
