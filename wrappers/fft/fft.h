/*
 * What the parts of acs_fft share: plans and transforms as data, and the two machines that run them. Not installed.
 *
 * acs_fft.c checks arguments and makes footprints; host.c and cuda.c run a transform when ACS asks them to.
 */
#ifndef ACS_FFT_INTERNAL_H
#define ACS_FFT_INTERNAL_H

#include "acs_fft.h"
#include "common/wrap.h"

enum { ACS_FFT_DEVICES_MAX = 64 };

enum {
    ACS_FFT_CODE_DEVICE = ACS_WRAP_CODE_OTHER, /* the plan has no room for another device */
    ACS_FFT_CODE_BACKEND                       /* the plan was made for the host backends */
};

struct acs_fft_plan {
    acs_fft_params params;
    size_t in_bytes, out_bytes; /* of the whole batch */
    size_t work_bytes;          /* the work area that cuFFT asked for; 0 on the host backends */
    void *machine;              /* cuda.c: the handles of each device; NULL on the host backends */
};

/* The closure of an op. */
typedef struct acs_fft_args {
    acs_fft_plan *plan;
    const void *in;
    void *out;
    int64_t direction;
} acs_fft_args;

/* Elements of the last dimension on the complex side of a real transform. */
static inline size_t acs_fft_half(const acs_fft_params *p)
{
    return (size_t)p->n[p->rank - 1] / 2 + 1;
}

/* Runs on the CPU, on the calling thread. @return 0 or a code */
int acs_fft_host_run(const acs_fft_args *args);

/* Make the plan's handle on the device of `env`, and learn its work area. @return 0 or a code */
int acs_fft_cuda_make(const acs_call_env *env, acs_fft_plan *plan);
/* Issues to env->stream. @return 0 or a code */
int acs_fft_cuda_run(const acs_call_env *env, const acs_fft_args *args);
void acs_fft_cuda_destroy(acs_fft_plan *plan);
bool acs_fft_cuda_load(const char **why);

#endif
