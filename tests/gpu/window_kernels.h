/* Kernels of test_gpu_issue.c and bench_gpu_issue.c, which are C and so cannot hold any. */
#ifndef GPU_WINDOW_KERNELS_H
#define GPU_WINDOW_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WINDOW_KERNELS = 32 };

/*
 * Kernel number n: words[self] becomes a mix of itself, of words[ups[0..count)] and of n; spins for `ns` first.
 * (uint32_t *words, const uint16_t *ups, uint32_t self, uint32_t count, uint32_t ns)
 */
const void *window_kernel(int n);
/* Waits until the flag is not 0, at most 5 s. (volatile uint32_t *flag) */
const void *window_kernel_wait(void);
/* The same on the host. */
uint32_t window_mix(uint32_t old, uint32_t in, uint32_t salt);

#ifdef __cplusplus
}
#endif
#endif
