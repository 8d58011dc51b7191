/**
 * @file acs_nccl.h
 * Collective operations of NCCL as ops of ACS: all-reduce, broadcast, reduce-scatter, all-gather, send, receive, and groups
 * of them. NCCL is opened at run time. On the host backends a communicator of one rank copies.
 *
 *     acs_nccl_comm *comm;
 *     acs_nccl_comm_adopt(my_nccl_comm, &comm);        // or acs_nccl_comm_alone(&comm): one rank
 *     acs_nccl_all_reduce(context, comm, ACS_NCCL_F32, ACS_NCCL_SUM, gradients, gradients, count);
 *
 * **State and order.** All ranks must issue the operations of a communicator in the same order. So a communicator is a token
 * that each of its ops updates: its ops run one after the other, in program order, whatever memory they touch. Operations
 * that may run together go in one group. Other ops run beside them. If all ranks call in the same order, as with plain
 * NCCL, they also issue in the same order.
 *
 * **Several communicators.** Their ops are not ordered among each other. NCCL needs that each rank can make progress on all
 * of them at once; where that is in doubt, use one communicator.
 *
 * **Footprint.** The communicator is updated. What is sent is `in` and what is received is `out`, with the sizes below. In
 * place, where NCCL allows it, the whole is `inout`. Other overlaps are an error of the program, and are not looked for.
 *
 * **Workspace.** NCCL has buffers of its own in the communicator. Ops ask for no scratch memory.
 *
 * **Captures.** Ops become nodes of the graph, one behind the other. Then all ranks must launch their graphs in the same
 * order as other work of the communicator.
 *
 * Errors and threads: acs_wrap.h. What fails while an op is issued is ACS_ERR_HOST with a code for acs_nccl_code_text().
 * If an op is skipped on one rank because of an earlier failure, the other ranks wait for it: abort the communicator.
 */
#ifndef ACS_NCCL_H
#define ACS_NCCL_H

#include "acs_wrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of elements. */
typedef enum acs_nccl_type {
    ACS_NCCL_I8 = 0, ACS_NCCL_U8 = 1, ACS_NCCL_I32 = 2, ACS_NCCL_U32 = 3, ACS_NCCL_I64 = 4, ACS_NCCL_U64 = 5,
    ACS_NCCL_F16 = 6, ACS_NCCL_F32 = 7, ACS_NCCL_F64 = 8, ACS_NCCL_BF16 = 9
} acs_nccl_type;

typedef enum acs_nccl_reduction {
    ACS_NCCL_SUM = 0, ACS_NCCL_PRODUCT = 1, ACS_NCCL_MAX = 2, ACS_NCCL_MIN = 3, ACS_NCCL_AVERAGE = 4
} acs_nccl_reduction;

/** Operations, with the elements that are sent and received where n is `count` and r the number of ranks. */
typedef enum acs_nccl_kind {
    ACS_NCCL_ALL_REDUCE = 0,     /**< n, n. In place: send == receive */
    ACS_NCCL_BROADCAST = 1,      /**< n of the root `peer`, n. In place: send == receive. Other ranks send nothing */
    ACS_NCCL_REDUCE_SCATTER = 2, /**< r * n, n. In place: receive == send + rank * n elements */
    ACS_NCCL_ALL_GATHER = 3,     /**< n, r * n. In place: send == receive + rank * n elements */
    ACS_NCCL_SEND = 4,           /**< n to `peer`, none */
    ACS_NCCL_RECEIVE = 5         /**< none, n from `peer` */
} acs_nccl_kind;

/** One operation. Fields that a kind does not use are 0. */
typedef struct acs_nccl_part {
    acs_nccl_kind kind;
    acs_nccl_type type;
    acs_nccl_reduction reduction;
    int peer;
    const void *send;
    void *receive;
    uint64_t count;
} acs_nccl_part;

/** Most operations of one group. */
enum { ACS_NCCL_PARTS_MAX = 512 };

/** A communicator, for ACS. Opaque. */
typedef struct acs_nccl_comm acs_nccl_comm;

/**
 * Use a communicator of NCCL's. It stays the program's, which destroys it after acs_nccl_comm_destroy. Until then the
 * program gives it no work of its own, but between acs_sync and the next op.
 * @param      nccl_comm  an ncclComm_t.
 * @param[out] comm       Written only on ACS_OK; release with acs_nccl_comm_destroy.
 * @retval ACS_ERR_ARGUMENT     a pointer is NULL, or NCCL does not know the communicator.
 * @retval ACS_ERR_UNSUPPORTED  NCCL was not found.
 * @retval ACS_ERR_MEMORY       no host memory is left.
 */
acs_status acs_nccl_comm_adopt(void *nccl_comm, acs_nccl_comm **comm);
/**
 * Make a communicator of one rank. On a GPU its first op makes NCCL's, which takes long, and not inside a capture.
 * @param[out] comm  Written only on ACS_OK; release with acs_nccl_comm_destroy.
 * @retval ACS_ERR_ARGUMENT  `comm` is NULL.  @retval ACS_ERR_MEMORY  no host memory is left.
 */
acs_status acs_nccl_comm_alone(acs_nccl_comm **comm);
/**
 * Release it. Its ops must have retired, and graphs that captured them must not run any more. Does not wait for them.
 * @param comm  NULL is allowed.
 */
void acs_nccl_comm_destroy(acs_nccl_comm *comm);

/**
 * Queue operations as one op, which NCCL runs together (ncclGroupStart, ncclGroupEnd).
 * @param context  NULL: the default context.
 * @param comm     Borrowed until the op has retired.
 * @param parts    1 to ACS_NCCL_PARTS_MAX operations; copied. What a rank sends to itself it must receive in the same
 *                 group, in the same order and sizes.
 */
acs_op acs_nccl_group(acs_context *context, acs_nccl_comm *comm, const acs_nccl_part *parts, size_t count);

/* One operation each. */
acs_op acs_nccl_all_reduce(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, acs_nccl_reduction reduction,
                           const void *send, void *receive, uint64_t count);
acs_op acs_nccl_broadcast(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, int root, const void *send,
                          void *receive, uint64_t count);
acs_op acs_nccl_reduce_scatter(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type,
                               acs_nccl_reduction reduction, const void *send, void *receive, uint64_t receive_count);
acs_op acs_nccl_all_gather(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, const void *send, void *receive,
                           uint64_t send_count);
acs_op acs_nccl_send(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, int peer, const void *send,
                     uint64_t count);
acs_op acs_nccl_receive(acs_context *context, acs_nccl_comm *comm, acs_nccl_type type, int peer, void *receive,
                        uint64_t count);

/**
 * Find NCCL now; the first op on a CUDA context does so otherwise.
 * @retval ACS_ERR_UNSUPPORTED  it was not found, or the wrapper was built without it; acs_wrap_last_error has the text.
 */
acs_status acs_nccl_load(void);
/** What an op's code means (acs_error.native), in one sentence; as snprintf. */
size_t acs_nccl_code_text(int code, char *text, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ACS_NCCL_H */
