/*
 * Small copies and fills as kernels, so that they can be in bundles: the device cannot set nodes that copy. The host
 * part is copy.c, which alone decides on copies. They read and write exactly the given bytes.
 */
#include "device.h"

/* Copy one block's share: words that both sides have at equal offsets, and bytes before and behind. */
template <typename T> static __device__ void copy_by(unsigned char *dst, const unsigned char *src, uint32_t bytes)
{
    const uint32_t ahead = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(dst) & (sizeof(T) - 1));
    const uint32_t first = min(ahead, bytes), words = (bytes - first) / sizeof(T);
    const uint32_t rest = first + words * static_cast<uint32_t>(sizeof(T));
    const T *from = reinterpret_cast<const T *>(src + first);
    T *to = reinterpret_cast<T *>(dst + first);
    for (uint32_t i = threadIdx.x; i < first; i += blockDim.x)
        dst[i] = src[i];
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        to[i] = from[i];
    for (uint32_t i = rest + threadIdx.x; i < bytes; i += blockDim.x)
        dst[i] = src[i];
}

static __device__ uint32_t share(uint64_t bytes, uint64_t first)
{
    return first < bytes ? static_cast<uint32_t>(min(bytes - first, static_cast<uint64_t>(ACS_DEVICE_COPY_BYTES))) : 0;
}

static __device__ void copy_part(unsigned char *dst, const unsigned char *src, uint64_t bytes, uint32_t part)
{
    const uint64_t first = static_cast<uint64_t>(part) * ACS_DEVICE_COPY_BYTES;
    const uintptr_t differ = reinterpret_cast<uintptr_t>(dst) ^ reinterpret_cast<uintptr_t>(src);
    const uint32_t here = share(bytes, first);
    if (differ % sizeof(uint4) == 0)
        copy_by<uint4>(dst + first, src + first, here);
    else if (differ % sizeof(uint32_t) == 0)
        copy_by<uint32_t>(dst + first, src + first, here);
    else
        copy_by<unsigned char>(dst + first, src + first, here);
}

extern "C" __global__ void __launch_bounds__(ACS_DEVICE_COPY_THREADS)
    acs_device_copy(unsigned char *dst, const unsigned char *src, uint64_t bytes)
{
    copy_part(dst, src, bytes, blockIdx.x);
}

/* Copy rows of `bytes` bytes each, `pitch` bytes apart on both sides. */
extern "C" __global__ void __launch_bounds__(ACS_DEVICE_COPY_THREADS)
    acs_device_copy_rows(unsigned char *dst, const unsigned char *src, uint64_t bytes, uint64_t pitch)
{
    const uint32_t parts = static_cast<uint32_t>((bytes + ACS_DEVICE_COPY_BYTES - 1) / ACS_DEVICE_COPY_BYTES);
    const uint64_t at = blockIdx.x / parts * pitch;
    copy_part(dst + at, src + at, bytes, blockIdx.x % parts);
}

/* Fill with the lowest byte of `value`. */
extern "C" __global__ void __launch_bounds__(ACS_DEVICE_COPY_THREADS)
    acs_device_fill(unsigned char *dst, uint64_t bytes, uint64_t value)
{
    const uint64_t start = static_cast<uint64_t>(blockIdx.x) * ACS_DEVICE_COPY_BYTES;
    const uint32_t here = share(bytes, start), word = static_cast<uint32_t>(value & 0xff) * 0x01010101u;
    unsigned char *at = dst + start;
    const uint32_t ahead = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(at) & (sizeof(uint4) - 1));
    const uint32_t first = min(ahead, here), words = (here - first) / sizeof(uint4);
    const uint32_t rest = first + words * static_cast<uint32_t>(sizeof(uint4));
    for (uint32_t i = threadIdx.x; i < first; i += blockDim.x)
        at[i] = static_cast<unsigned char>(word);
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        reinterpret_cast<uint4 *>(at + first)[i] = make_uint4(word, word, word, word);
    for (uint32_t i = rest + threadIdx.x; i < here; i += blockDim.x)
        at[i] = static_cast<unsigned char>(word);
}
