/*
 * What the parts of acs_nccl share: communicators and groups as data, and the two machines that run them. Not installed.
 *
 * acs_nccl.c checks arguments and makes footprints; host.c and cuda.c run a group when ACS asks them to.
 */
#ifndef ACS_NCCL_INTERNAL_H
#define ACS_NCCL_INTERNAL_H

#include "acs_nccl.h"
#include "common/wrap.h"

#include <pthread.h>

struct acs_nccl_comm {
    pthread_mutex_t lock;   /* guards `handle`; held while a group is issued */
    void *handle;           /* an ncclComm_t; NULL: one rank, and no op on a GPU yet */
    int ranks, rank, device; /* device: of the handle */
    bool adopted;           /* the handle is the program's */
};

/* The closure of an op: this, and the parts behind it. */
typedef struct acs_nccl_args {
    acs_nccl_comm *comm;
    uint64_t count;
    acs_nccl_part parts[];
} acs_nccl_args;

enum { ACS_NCCL_CODE_DEVICE = ACS_WRAP_CODE_OTHER /* the communicator is of another device */ };

/* Bytes of an element. */
static inline size_t acs_nccl_size(acs_nccl_type type)
{
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return sizes[type];
}

/* Runs a group of one rank on the CPU, on the calling thread. */
void acs_nccl_host_run(const acs_nccl_args *args);

/* Issues to env->stream. @return 0 or a code */
int acs_nccl_cuda_run(const acs_call_env *env, const acs_nccl_args *args);
/* Fill in what NCCL says of comm->handle. @return 0 or a code */
int acs_nccl_cuda_describe(acs_nccl_comm *comm);
void acs_nccl_cuda_destroy(acs_nccl_comm *comm);
bool acs_nccl_cuda_load(const char **why);
const char *acs_nccl_cuda_text(int status);

#endif
