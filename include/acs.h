/**
 * @file acs.h
 * ACS: launch GPU kernels in program order, run them out of order, get the results of program order.
 *
 * A program says for each op (kernel, copy, fill, host function, library call) which bytes it reads and writes: its
 * *footprint*. ACS takes ops in program order into a sliding *window*, finds the dependencies among them, and issues
 * them out of order to many streams, kernels in bundles where that costs less (docs/issue-methods.md). The window and
 * its dependency check follow ACS (Automatic Concurrent Scheduling, sections 3 and 4), corrected so that reads are
 * compared with earlier writes too; stream choice follows HuntKTm.
 *
 *     acs_dim3 grid = {n / 256, 1, 1}, block = {256, 1, 1};
 *     ACS_LAUNCH(saxpy, grid, block, 0, ACS_ARGS(n, a, x, y),
 *                ACS_USES(ACS_IN(x, n * sizeof *x), ACS_INOUT(y, n * sizeof *y)));
 *     acs_sync(acs_default());
 *
 * **Plain CUDA beside it.** A cudaMemcpy, cudaDeviceSynchronize or kernel launch of the program's own cannot see ops
 * that still wait in the FIFO. Either call acs_sync or acs_wait_range first, or order a stream with acs_stream_after
 * and acs_after_stream, or link the CMake target acs::compat, which makes CUDA's synchronising and copying calls drain
 * ACS first.
 *
 * **Promises.** If every footprint covers what its op touches, and kernels are deterministic and end on their own, then
 * memory ends up exactly as if all ops of a context had run one at a time in the order of the calls. Between threads, a
 * call that returned before another began comes first. Contexts are not ordered among each other. The library never
 * exits, and touches only streams that it made or was handed. It prints only what ACS_LOG or ACS_STATS asks for, and
 * two notices to standard error, each once: that the default context cannot be opened; that a variable which changes no
 * result (ACS_LOG, ACS_STATS, ACS_DOT, ACS_MEMORY_LOG) has a bad value, or names a file that cannot be written, so that
 * its default is used.
 *
 * **Threads.** Every function may be called from any thread at any time, except: acs_close must not run beside other
 * calls on the same context; inside a retire callback, a host function, a library call or a footprint function every
 * call that takes a context is refused with ACS_ERR_STATE. A refused op is also kept for acs_context_error and acs_sync
 * of the context that the call named (NULL: the default one, if it is open). After fork() the child may not use the
 * parent's contexts: calls return ACS_ERR_STATE there. The library's threads block signals, so handlers run on the
 * program's threads. They leave SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and SIGABRT as the thread that opened
 * the context had them: a crash handler runs for a fault in a host body. While a call waits, or does the library's
 * work, pthread_cancel has no effect on its thread: the request stays pending, host functions that run there included.
 * Asynchronous cancellation (PTHREAD_CANCEL_ASYNCHRONOUS) must be off inside ACS. No exception may leave a kernel's
 * host body, a host function, a library call or a retire callback; of a footprint function one may (acs_footprint).
 *
 * **Errors.** Functions return an acs_status, or an acs_op that is 0 on failure; acs_last_error() then tells the
 * calling thread what was wrong. What fails later (a launch that the driver refuses, a host function that reports
 * failure) is kept in the context: acs_context_error(). Ops that conflict with a failed op, directly or through others,
 * are skipped; independent ones run. acs_clear() forgets failures and lets the program go on.
 *
 * **Ops that never end.** With ACS_WATCHDOG_S, an op that runs and does not end for so long makes the context give the
 * device up: ACS_ERR_DEVICE with native ETIMEDOUT, whose text names the op, how long, and what waits for it. All ops
 * then end with ACS_ERR_DEVICE, every wait returns, nothing more begins. Ops that had begun (the named one among them)
 * may still run and touch what they name, also after acs_close: leave that memory alone. Time counts while the op can
 * be running and none other ends that it may have had to wait for. Ops of one stream whose ends cannot be told apart
 * (16 at most: bundles of kernels are no larger while a watchdog looks) share it: n of them get n times the limit, and
 * the text says so. So choose the limit by the longest op, host functions and foreign work that acs_after_stream waits
 * for included. It is looked for by waiting callers and by the library's threads. A waiting caller does the library's
 * work itself where no worker is awake, so a function or copy that blocks it is named (ACS_LOG=error) and the waits of
 * other threads end, but not its own: library calls and copies of pageable memory on a GPU, host functions with
 * ACS_WORKERS=0, kernels of the host backend with ACS_DISABLE=1 (these are not even named).
 */
#ifndef ACS_H
#define ACS_H

#include <stddef.h>
#include <stdint.h>

#define ACS_VERSION_MAJOR 0
#define ACS_VERSION_MINOR 1
#define ACS_VERSION_PATCH 0
#define ACS_VERSION_STRING "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* Whatever is declared from here to the end of extern "C" is exported by libacs.so, and nothing else. */
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------------------------------------ status and errors */

/** Every status, once: name, value, text. */
#define ACS_STATUS_TABLE(X)                                                                                            \
    X(ACS_OK, 0, "no error")                                                                                           \
    X(ACS_NOT_READY, 1, "not finished yet, or nothing to do")                                                          \
    X(ACS_ERR_ARGUMENT, 2, "an argument is invalid; nothing was queued")                                               \
    X(ACS_ERR_FULL, 3, "the FIFO is full and waiting was declined; nothing was queued, retry is safe")                 \
    X(ACS_ERR_MEMORY, 4, "memory is exhausted; nothing was queued")                                                    \
    X(ACS_ERR_STATE, 5, "not allowed here: in a callback, after close, after fork, or beside a second copy of ACS")    \
    X(ACS_ERR_OPTION, 6, "an option has a bad value")                                                                  \
    X(ACS_ERR_UNSUPPORTED, 7, "not supported by this backend or device, or refused because it weakens ordering")       \
    X(ACS_ERR_LAUNCH, 8, "the backend refused to issue the op; it did not run")                                        \
    X(ACS_ERR_HOST, 9, "a host function or library call reported failure")                                             \
    X(ACS_ERR_SKIPPED, 10, "skipped because an op that it depends on failed")                                          \
    X(ACS_ERR_DEVICE, 11, "the device faulted or was given up; nothing more runs")                                     \
    X(ACS_ERR_CHECK, 12, "ACS_CHECK found a footprint that contradicts itself, its allocation or another op")          \
    X(ACS_ERR_INTERNAL, 13, "a defect in the library")

typedef enum acs_status {
#define ACS_STATUS_ENUM_(name, value, text) name = value,
    ACS_STATUS_TABLE(ACS_STATUS_ENUM_)
#undef ACS_STATUS_ENUM_
} acs_status;

/** An op's number in its context's program order, counted from 1. 0: the call failed, see acs_last_error(). */
typedef uint64_t acs_op;

/** Set in the number of an op that became a node of somebody else's graph: see acs_after_stream. */
#define ACS_OP_CAPTURED (1ull << 63)

/** Set in the number of an op that is held in a group: see acs_group_begin. */
#define ACS_OP_HELD (1ull << 62)

/** Where in the program an op was launched. Static storage: the library keeps the pointer. */
typedef struct acs_site {
    const char *name; /**< the kernel or call as written; errors, statistics and graphs leave a leading & out */
    const char *file;
    int line;
} acs_site;

#define ACS_ERROR_TEXT_BYTES 320

/** What went wrong, and for which op. Set `size` before passing it to a function. */
typedef struct acs_error {
    size_t size;       /**< sizeof(acs_error) of the caller */
    acs_status status; /**< what to switch on */
    int native;        /**< cudaError_t, errno, or what the host function returned; 0 if none */
    acs_op op;         /**< the op that failed; 0 if the error is not about one */
    acs_op cause;      /**< for ACS_ERR_SKIPPED: the op whose failure is the origin */
    const char *where; /**< function of the library that detected it; static storage */
    acs_site site;     /**< the call site of `op`, with the name of its acs_kernel where that has one; name and file are
                            NULL if unknown */
    char text[ACS_ERROR_TEXT_BYTES]; /**< one sentence: what was wrong, with the values */
} acs_error;

/** Name of a status, "ACS_ERR_FULL"; "unknown status" for other numbers. Static storage. */
const char *acs_status_name(acs_status status);
/** One sentence about a status. Static storage. */
const char *acs_status_text(acs_status status);

/**
 * The latest error that a call of this thread returned. Never cleared by successful calls.
 * @param[out] error  `size` set by the caller; untouched when there was none.
 * @return that error's status, or ACS_OK if this thread had none.
 */
acs_status acs_last_error(acs_error *error);

/* ---------------------------------------------------------------------------------------------------------- options */

enum { ACS_BACKEND_AUTO, ACS_BACKEND_CUDA, ACS_BACKEND_HOST, ACS_BACKEND_SIM };
enum { ACS_WAIT_GPU, ACS_WAIT_HOST };
enum { ACS_ISSUE_AUTO, ACS_ISSUE_LAUNCH, ACS_ISSUE_REPLAY, ACS_ISSUE_LAYERS, ACS_ISSUE_GPU, ACS_ISSUE_COUNT };
enum { ACS_SIM_ORDER_SEED, ACS_SIM_ORDER_TIME };
enum { ACS_POOL_OFF, ACS_POOL_ON, ACS_POOL_AUTO };
enum { ACS_GROWTH_PAGES, ACS_GROWTH_CHUNKS };
enum { ACS_POLICY_SINGLE, ACS_POLICY_ROUND_ROBIN, ACS_POLICY_STREAM_AWARE, ACS_POLICY_MIN_TRANSFER_SIZE,
       ACS_POLICY_MIN_MAX_TRANSFER_TIME, ACS_POLICY_AUTO, ACS_POLICY_COUNT };
enum { ACS_LOG_OFF, ACS_LOG_ERROR, ACS_LOG_WARN, ACS_LOG_INFO, ACS_LOG_DEBUG };
enum { ACS_CHECK_OFF, ACS_CHECK_OVERLAP, ACS_CHECK_WRITTEN };

#define ACS_OPTION_TEXT_BYTES 128

/** Options of a context; the fields are the rows of acs_options.def, documented in docs/options.md. */
typedef struct acs_options {
    size_t size; /**< sizeof(acs_options) of the caller; set by acs_options_init */
#define ACS_OPT_NUMBER(field, env, def, lo, hi, unit, help) int64_t field;
#define ACS_OPT_CHOICE(field, env, def, names, help) int32_t field;
#define ACS_OPT_TEXT(field, env, def, form, help) char field[ACS_OPTION_TEXT_BYTES];
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_CHOICE
#undef ACS_OPT_TEXT
} acs_options;

/**
 * Fill options from their defaults and then from the environment.
 * @param[out] options  whole struct is written, `size` included.
 * @param      size     sizeof(acs_options) as the caller was compiled; use acs_options_init(&o, sizeof o).
 * @retval ACS_ERR_OPTION  a variable has a bad value (the error names variable, value and range); `options` then holds the
 *                         default for it and the environment's values for the others.
 * A bad value of ACS_LOG, ACS_STATS, ACS_DOT or ACS_MEMORY_LOG is no error: a warning is written to standard error
 * once, and the default is used; acs_open does the same where a file that the last two name cannot be written.
 * Set-user-ID programs do not take ACS_DOT, ACS_LEDGER, ACS_MEMORY_LOG and ACS_TOPOLOGY from the environment. An
 * unknown ACS_* variable is no error: acs_open logs it at level warn with the nearest known name.
 */
acs_status acs_options_init(acs_options *options, size_t size);

/**
 * Write every option, its value and where the value came from ("default", "environment", "program"), one per line.
 * @return bytes needed without the final 0, as snprintf does; `text` may be NULL when `bytes` is 0.
 */
size_t acs_options_dump(const acs_options *options, char *text, size_t bytes);

/* --------------------------------------------------------------------------------------------------------- contexts */

/** A FIFO, a window, its slots and workers. Opaque. */
typedef struct acs_context acs_context;

/**
 * Open a context.
 * @param      options  NULL: from the environment. Copied.
 * @param[out] context  Written only on ACS_OK; release with acs_close.
 * @retval ACS_ERR_OPTION       a value is out of its range, or the environment (options NULL) has a bad value; there
 *                              are not so many devices, or another option does not go with several (docs/devices.md);
 *                              the file of ACS_TOPOLOGY cannot be read, or is wrong (the error names file and line).
 * @retval ACS_ERR_UNSUPPORTED  the requested backend is not built in, or no device answers (ACS_BACKEND=cuda).
 * @retval ACS_ERR_STATE        two copies of ACS are in the process (the error names both files); or inside a callback.
 * @retval ACS_ERR_MEMORY, ACS_ERR_DEVICE  nothing was opened.
 * Blocks: may initialise the device. Opens threads as `workers` and `executors` say.
 */
acs_status acs_open(const acs_options *options, acs_context **context);

/**
 * Finish all ops, report statistics if asked, release everything. The context is gone whatever is returned.
 * @return ACS_OK, or the context's first uncleared error. After ACS_WATCHDOG_S gave the device up: ACS_ERR_DEVICE, and where
 *         an op may still run acs_last_error says what was left behind until the process ends: on a GPU the streams and the
 *         memory of acs_malloc, which no call can release without waiting for the op; on CPU threads those inside an op,
 *         and the context. It still returns, and the op may end at any time.
 * NULL is allowed. A handle that was closed already gets ACS_ERR_STATE here and in every other call as long as its
 * memory has not been given to a new context.
 */
acs_status acs_close(acs_context *context);

/**
 * The default context, opened from the environment at first use and closed at exit. The program may close it before:
 * then the next use of the default context, here or by a call given NULL, opens a fresh one from the environment.
 * @return NULL if it cannot be opened (see acs_last_error; tried again at the next call).
 */
acs_context *acs_default(void);

/** Which backend a context runs on: ACS_BACKEND_CUDA, _HOST or _SIM; -1 for an invalid context. */
int acs_context_backend(acs_context *context);

/* --------------------------------------------------------------------------------------------------------- segments */

/** How an op touches a segment. */
typedef enum acs_access {
    ACS_READ = 1,    /**< in: reads only */
    ACS_WRITE = 2,   /**< out: writes every byte, reads none */
    ACS_UPDATE = 3   /**< inout: reads and writes, or may write: the old bytes must be there */
} acs_access;

typedef enum acs_extent {
    ACS_EXTENT_BYTES = 0, /**< `rows` rows of `row_bytes` bytes, `pitch_bytes` apart; contiguous where rows is 1 */
    ACS_EXTENT_ALL = 1,   /**< all memory, and all tokens */
    ACS_EXTENT_TOKEN = 2  /**< no bytes: a name (`base`) to order ops by */
} acs_extent;

/** Bytes that an op touches. Zero bytes or rows touch nothing. Device and host memory share one address space. */
typedef struct acs_segment {
    uint64_t base;        /**< first byte; the key of a token */
    uint64_t row_bytes;
    uint64_t rows;
    uint64_t pitch_bytes; /**< distance between the starts of two rows, row_bytes at least; ignored where rows is 1 */
    uint8_t access;       /**< acs_access */
    uint8_t extent;       /**< acs_extent */
    uint16_t device;      /**< reserved; 0 */
    uint32_t version;     /**< reserved; 0 */
} acs_segment;

/** What a footprint function sees: the launch, with its arguments' bytes. */
typedef struct acs_footprint_input {
    const char *name;         /**< kernel name; may be NULL */
    uint32_t grid[3], block[3];
    uint64_t shared_bytes;
    void *const *args;        /**< args[i] points to the bytes of argument i */
    size_t arg_count;
    const void *user;         /**< as given in acs_uses */
} acs_footprint_input;

/**
 * Computes an op's segments from its argument bytes (ACS, section 4.1: get_addresses). Runs on the launching thread
 * inside the launch; must be pure and must not call ACS. A C++ exception may leave it, and pthread_exit: they pass
 * through the call, nothing was queued, and no error is kept. longjmp may not.
 * @param[out] out  room for `capacity` segments.
 * @return how many segments the op has. If more than `capacity`, nothing counts and it is called again with room.
 */
typedef size_t (*acs_footprint)(const acs_footprint_input *in, acs_segment *out, size_t capacity);

/** The footprint of one op. All zero: the op touches nothing. */
typedef struct acs_uses {
    const acs_segment *segments; /**< copied before the call returns */
    size_t count;
    acs_footprint footprint;     /**< or NULL; its segments are added to `segments` */
    const void *user;            /**< handed to `footprint` */
    uint32_t any;                /**< nonzero: may touch anything */
} acs_uses;

/** Build a segment; the macros below are shorter. */
static inline acs_segment acs_make_segment(acs_extent extent, acs_access access, uint64_t base, uint64_t row_bytes,
                                           uint64_t rows, uint64_t pitch_bytes)
{
    acs_segment s;
    s.base = base;
    s.row_bytes = row_bytes;
    s.rows = rows;
    s.pitch_bytes = pitch_bytes;
    s.access = (uint8_t)access;
    s.extent = (uint8_t)extent;
    s.device = 0;
    s.version = 0;
    return s;
}

#define ACS_BYTES_(access, ptr, bytes)                                                                                 \
    acs_make_segment(ACS_EXTENT_BYTES, access, (uint64_t)(uintptr_t)(ptr), (uint64_t)(bytes), 1, 0)
#define ACS_TILE_(access, ptr, row_bytes, rows, pitch_bytes)                                                           \
    acs_make_segment(ACS_EXTENT_BYTES, access, (uint64_t)(uintptr_t)(ptr), (uint64_t)(row_bytes), (uint64_t)(rows),     \
                     (uint64_t)(pitch_bytes))

/** The op reads these bytes. */
#define ACS_IN(ptr, bytes) ACS_BYTES_(ACS_READ, ptr, bytes)
/** The op writes every one of these bytes and reads none of them. When in doubt, ACS_INOUT. */
#define ACS_OUT(ptr, bytes) ACS_BYTES_(ACS_WRITE, ptr, bytes)
/** The op reads and writes, or may write, these bytes. */
#define ACS_INOUT(ptr, bytes) ACS_BYTES_(ACS_UPDATE, ptr, bytes)
/**
 * The same for `rows` rows of `row_bytes` bytes whose starts are `pitch_bytes` apart: a tile of a matrix. All count
 * bytes. Rows that overlap are refused with ACS_ERR_ARGUMENT; they have no gap, so name them as one run of bytes.
 */
#define ACS_TILE_IN(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_READ, ptr, row_bytes, rows, pitch_bytes)
#define ACS_TILE_OUT(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_WRITE, ptr, row_bytes, rows, pitch_bytes)
#define ACS_TILE_INOUT(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_UPDATE, ptr, row_bytes, rows, pitch_bytes)
/** Everything: conflicts with all that touches anything (tokens included). */
#define ACS_ALL_MEMORY acs_make_segment(ACS_EXTENT_ALL, ACS_UPDATE, 0, 0, 0, 0)
/** Reads anything: conflicts with all that writes. */
#define ACS_ALL_MEMORY_IN acs_make_segment(ACS_EXTENT_ALL, ACS_READ, 0, 0, 0, 0)
/** A name without bytes, for ordering alone: writers of one key follow each other in program order. */
#define ACS_TOKEN(key) acs_make_segment(ACS_EXTENT_TOKEN, ACS_UPDATE, (uint64_t)(uintptr_t)(key), 0, 0, 0)
/** Readers of a token are ordered against its writers only. */
#define ACS_TOKEN_IN(key) acs_make_segment(ACS_EXTENT_TOKEN, ACS_READ, (uint64_t)(uintptr_t)(key), 0, 0, 0)

/* --------------------------------------------------------------------------------------------- kernels and launches */

/** Three sizes; a zero is an error, so write 1 where a dimension is not used. */
typedef struct acs_dim3 {
    uint32_t x, y, z;
} acs_dim3;

/** What a host body sees of the launch. */
typedef struct acs_grid {
    acs_dim3 grid, block;
    uint64_t shared_bytes;
    void *shared;          /**< `shared_bytes` of zeroed scratch memory for the body, or NULL if 0 */
} acs_grid;

/** A kernel as a C function that runs the whole grid. args[i] points to the bytes of argument i. */
typedef void (*acs_host_body)(const acs_grid *grid, void *const *args);

typedef enum acs_kernel_kind {
    ACS_KERNEL_NONE = 0,      /**< host body only */
    ACS_KERNEL_FUNCTION = 1,  /**< a __global__ function of this program */
    ACS_KERNEL_HANDLE = 2,    /**< a cudaKernel_t (== CUkernel) */
    /**
     * A CUfunction, as NVRTC, Triton and Warp give it. It is of one CUDA context: on several devices (ACS_DEVICES) it
     * is to be that of device 0, where alone it runs; ACS_ON another one is refused with ACS_ERR_UNSUPPORTED. A
     * CUkernel has no such bounds (cuLibraryLoadData, cuLibraryGetKernel).
     */
    ACS_KERNEL_CUFUNCTION = 3
} acs_kernel_kind;

/** A kernel. Where it has a host body the same call site runs on every backend. Copied by launches; cheap. */
typedef struct acs_kernel {
    const char *name;     /**< for errors, statistics and graphs; static storage. NULL: the name at the call site */
    const void *function; /**< what `kind` says */
    acs_host_body host;   /**< or NULL */
    uint32_t kind;        /**< acs_kernel_kind */
    uint32_t flags;       /**< 0 */
} acs_kernel;

/** Initialise an acs_kernel from a __global__ function and a host body; either may be NULL. */
#define ACS_KERNEL_INIT(text, gpu, body)                                                                               \
    { (text), (const void *)(gpu), (body), ACS_KERNEL_FUNCTION, 0 }
/** Initialise an acs_kernel that has a host body only. */
#define ACS_KERNEL_HOST_INIT(text, body)                                                                               \
    { (text), NULL, (body), ACS_KERNEL_NONE, 0 }

typedef enum acs_arg_type {
    ACS_ARG_VALUE = 0,   /**< bytes that the library never changes */
    ACS_ARG_POINTER = 1, /**< a plain device pointer */
    ACS_ARG_POINTERS = 2 /**< a struct by value in which ACS_POINTER_AT, added for each, tells plain device pointers */
} acs_arg_type;

/**
 * For ACS_ARG_POINTERS: there is a pointer at byte 8 * word; word < 30. ACS_ARG_POINTERS | ACS_POINTER_AT(0) | ...
 * In C++ ACS_ARGS takes them from the struct: static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0) | ...;
 */
#define ACS_POINTER_AT(word) (1u << ((word) + 2))

/** One kernel argument; its bytes are copied by the launch. */
typedef struct acs_arg {
    const void *value;
    uint32_t size; /**< bytes */
    uint32_t type; /**< acs_arg_type; of a struct with pointers also where they are */
} acs_arg;

/** A list of arguments, as ACS_ARGS makes it. */
typedef struct acs_args {
    const acs_arg *list;
    size_t count;
} acs_args;

/** Largest sum of argument bytes of one op, each argument aligned as CUDA aligns it. */
#define ACS_ARG_BYTES_MAX 32764

/** What a launch asks for beyond grid and block. All zero: nothing. */
typedef struct acs_attributes {
    acs_dim3 cluster;      /**< thread block cluster in blocks; {0,0,0}: none */
    int32_t priority;      /**< launch priority; 0: the stream's; negative: more urgent */
    uint8_t cooperative;   /**< nonzero: grid-wide synchronisation is used */
    uint8_t programmatic;  /**< programmatic dependent launch: refused, it weakens ordering against a neighbour */
    uint8_t on;            /**< it runs on device number on - 1, if it may; 0: anywhere. See ACS_ON, acs_on */
    uint8_t reserved;
} acs_attributes;

/** As ACS_ON. A number that no device can have stays one: the launch is refused. */
static inline acs_attributes acs_make_on(int64_t device)
{
    acs_attributes a = {{0, 0, 0}, 0, 0, 0, 0, 0};
    a.on = (uint8_t)(device < -1 || device > UINT8_MAX - 1 ? UINT8_MAX : device + 1);
    return a;
}

/**
 * Attributes of a launch that is to run on this device of the context: ACS_LAUNCH_WITH(context, ACS_ON(2), ...). A
 * hint, as acs_on; a launch that names a device which the context does not have is refused. ACS_ANY_DEVICE: as if it
 * said nothing.
 */
#define ACS_ON(device) acs_make_on(device)

typedef struct acs_launch_params {
    size_t size; /**< sizeof(acs_launch_params) */
    const acs_kernel *kernel;
    acs_dim3 grid, block;
    uint64_t shared_bytes; /**< dynamic shared memory; above 48 KiB the opt-in of the device is used */
    acs_args args;
    acs_uses uses;
    acs_attributes attributes;
    const acs_site *site; /**< static storage; NULL: unknown */
    uint32_t no_wait;     /**< nonzero: a full FIFO gives ACS_ERR_FULL instead of waiting */
} acs_launch_params;

/**
 * Queue a kernel. The macros ACS_LAUNCH and ACS_LAUNCH_ON are shorter and record file and line.
 *
 * Never allocates in the steady state, and leaves CUDA to the library's threads, with these exceptions: what a CUDA
 * function needs is asked once per kernel; on a GPU the first kernel into an idle runtime is issued by the call itself,
 * about 3 us, since waking a thread takes longer (not with ACS_WATCHDOG_S); with ACS_WORKERS=0 and bundles (ACS_ISSUE)
 * each 64th call issues what has been queued; with ACS_DISABLE=1, and inside a capture (acs_after_stream), each does
 * all for its own op. Waits only while the FIFO is full, and then steps the runtime itself.
 * @param context  NULL: the default context.
 * @param launch   Copied, with argument bytes and segments, before the call returns.
 * @return the op, or 0 with acs_last_error(): ACS_ERR_ARGUMENT (null kernel, a zero or too large grid, block or shared
 *         memory, segments that wrap the address space, have rows that overlap or reserved fields that are not 0, argument
 *         sizes that do not match the kernel, ACS_ON a device that there is not), ACS_ERR_UNSUPPORTED, ACS_ERR_FULL (with
 *         no_wait, or in a group), ACS_ERR_MEMORY, ACS_ERR_STATE, ACS_ERR_DEVICE. Then nothing was queued; since program
 *         order has a hole, the error is also kept for acs_context_error and acs_sync. Not kept are ACS_ERR_FULL with
 *         no_wait, after which a retry leaves no hole, and ACS_ERR_STATE of a call that reached no open context.
 */
acs_op acs_launch(acs_context *context, const acs_launch_params *launch);

/* ------------------------------------------------------------------------------------------------------- other ops */

/** What the ops below share. Copied. */
typedef struct acs_op_params {
    const acs_site *site; /**< static storage; NULL: unknown */
    uint32_t no_wait;     /**< nonzero: a full FIFO gives ACS_ERR_FULL instead of waiting */
} acs_op_params;

/**
 * Copy bytes between any two places, device or host. An op like others: neither range may be touched by the program
 * until the op retired. Pageable host memory works and makes the copy slow, as in CUDA. On a GPU the call asks the
 * driver about the memory of a copy or fill of at most 64 KiB, which may then go in a bundle, as a kernel.
 */
acs_op acs_memcpy_op(acs_context *context, void *dst, const void *src, size_t bytes, const acs_op_params *params);
/** Set every byte to `value`. */
acs_op acs_memset_op(acs_context *context, void *dst, int value, size_t bytes, const acs_op_params *params);

/** A host function. Returns 0, or a code of its own: the op failed, ops that depend on it are skipped. */
typedef int (*acs_host_fn)(void *closure);

/**
 * Queue a host function. It runs on a thread of the library (with ACS_WORKERS=0: of a caller) once all upstream ops
 * have retired; ops that depend on it are issued after it returned. It must not call ACS.
 * @param closure  `closure_bytes` bytes (at most ACS_ARG_BYTES_MAX) are copied; the function gets the copy. With 0
 *                 bytes it gets the pointer itself.
 */
acs_op acs_host_op(acs_context *context, acs_host_fn function, const void *closure, size_t closure_bytes, acs_uses uses,
                   const acs_op_params *params);

/** What a library call is given. */
typedef struct acs_call_env {
    void *stream;       /**< cudaStream_t to issue to; NULL on the host backends */
    int device;         /**< CUDA device; -1 on the host backends */
    int slot;           /**< which slot, from 0; -1: the call is captured, and scratch memory is the graph's own */
    void *scratch;      /**< scratch_bytes of device memory, private to the slot; NULL if none was asked for */
    size_t scratch_bytes;
    void **place;       /**< a pointer of the program's own per slot and place key, NULL at first: for handles */
} acs_call_env;

/**
 * A library call: issues work to env->stream and returns 0, or a code of its own (then the op failed).
 *
 * A *repeatable* call (acs_call_params.repeatable) keeps this contract: it issues kernels and fills to env->stream
 * alone, which may be captured; what it issues follows from its closure's bytes and its scratch memory, not from
 * memory, time or earlier calls; its kernels stay loaded until acs_close. From the pointers in its closure follow only
 * addresses in the arguments of that work, and otherwise at most their lowest 8 bits and which of them are equal or
 * NULL. Calls of cuBLAS and cuSOLVER with a workspace of their own keep it; calls that draw random numbers or build
 * plans do not.
 *
 * On a GPU a repeatable call is captured behind some of its first runs: the function then runs once more, into a stream
 * that executes nothing. Once it is known which addresses follow from which pointer, later calls that differ in
 * pointers alone are issued without the function: as kernels that may ride in bundles, or as launches. A call that
 * comes to several kernels may become as many ops, between which no other comes. The last of them is the one that
 * acs_call returns; if an earlier one fails it is skipped. acs_op_error tells of them as of kernels. A call whose work
 * reaches memory that neither its footprint names nor its scratch memory holds is always left to the function. So is
 * one whose closure has more than 256 bytes or more than 11 different pointers, or whose `pointers` name bytes behind
 * its closure; and so are all with ACS_SERIAL, with ACS_DISABLE and with several devices, in captures and in groups.
 */
typedef int (*acs_call_fn)(const acs_call_env *env, void *closure);

typedef struct acs_call_params {
    size_t size; /**< sizeof(acs_call_params) */
    acs_call_fn function;
    const void *closure;      /**< copied */
    size_t closure_bytes;     /**< at most ACS_ARG_BYTES_MAX */
    size_t scratch_bytes;     /**< device memory wanted */
    const void *place_key;    /**< names the per-slot place; NULL: no place */
    void (*place_destroy)(void *); /**< called for a place that is not NULL when the context closes; or NULL */
    acs_uses uses;
    const acs_site *site;
    uint32_t no_wait;
    uint32_t repeatable; /**< 1: the function keeps the contract of acs_call_fn. 0: no */
    uint64_t pointers;   /**< of a repeatable call: bit w says that byte 8 * w of the closure begins a device pointer */
} acs_call_params;

/** Queue a library call (cuBLAS and the like). It runs on a thread that steps the runtime; it must not synchronise. */
acs_op acs_call(acs_context *context, const acs_call_params *call);

/* ----------------------------------------------------------------------------------------------------------- memory */

enum { ACS_MEMORY_DEVICE = 0, ACS_MEMORY_HOST = 1 /**< pinned, reachable from the device */ };
/**
 * With ACS_MEMORY_DEVICE: ops reach the block through plain pointer arguments only, each of which points into it, so it
 * may be renamed (ACS_RENAME): an op with one **out** segment over the whole block need not wait for those that use its
 * old contents, and gets memory of its own; later ops' pointers and segments are changed accordingly. The contents come
 * home, by a copy, before anything that may reach the block in another way: an op without footprint, a host function or
 * library call on it, a kernel without a pointer argument into it, an op inside a capture, acs_wait_range,
 * acs_stream_after or acs_after_stream on it, acs_sync, acs_pin. acs_wait, acs_query and acs_on_retire do not bring
 * them home: call one of those before work of your own on the block, and acs_pin for a block that a graph uses.
 *
 * Where ops fail: who writes the whole of it begins anew, and is not skipped for what failed there before; if that op
 * fails or is skipped itself, the contents are undefined. Whether an op that writes a part is skipped for one that
 * failed and had only read that part is not promised; and what failed in one of more than 16 parts may make ops on
 * another skip, too.
 *
 * On several devices (ACS_DEVICES) the contents are wherever ops need them, and so with ACS_MEMORY_HOST: there the
 * program finds and changes them by itself, at the block's address, after an acs_wait_range that says which. Else
 * pinned memory stays where it is. acs_sync makes all of it the program's to write, so that devices fetch it anew: in
 * loops wait by acs_wait, or acs_wait_range. See docs/devices.md, also for failures.
 */
#define ACS_RELOCATABLE 0x100
#define ACS_MOVABLE ACS_RELOCATABLE /* the name of version 0.1 */
/**
 * With ACS_MEMORY_DEVICE: an address alone. Memory comes with the first op that names the block, and where device
 * memory is short the contents of the block that was named longest ago go to pinned host memory (ACS_SPILL), and come
 * back before the next op that reads them. So a program may have more in such blocks than fits the device, or
 * ACS_MEMORY_LIMIT, as long as the operands of each op fit together. The address is the block's until acs_free.
 *
 * Ops reach the block as an ACS_RELOCATABLE one: kernels through plain pointer arguments into it (without a footprint
 * of their own, too), copies and fills. Other ways (host functions and library calls on it, kernels that name it
 * without a pointer argument into it, ops inside a capture, acs_pin) are refused with ACS_ERR_UNSUPPORTED, what leaves
 * it or names it after acs_free with ACS_ERR_ARGUMENT, and an op whose operands find no room with ACS_ERR_MEMORY.
 * Nothing of the program's own finds memory at the address: read by acs_memcpy. Failures as with ACS_RELOCATABLE: who
 * writes the whole of it begins anew. With ACS_POOL=off the memory is there at once, and stays.
 */
#define ACS_LAZY 0x200

/**
 * Allocate memory, in program order; 256-byte aligned, its contents undefined. Called as acs_malloc(context, bytes,
 * kind, ptr), which adds the call site. Most often out of memory that the context keeps (ACS_POOL, docs/memory.md).
 *
 * The memory is for ops of this context that are launched from now on, and goes with it in acs_close. ACS_CHECK=overlap
 * finds ops of another context that name it (ACS_ERR_CHECK), but for ACS_LAZY blocks.
 *
 * Where more than ACS_MEMORY_SLACK was freed and is still in use by
 * earlier ops, device memory is handed out all the same, and the ops that touch it are ordered behind those. So other
 * work of the program's on a new block (its own streams, cudaMemcpy) is to be ordered as on one that ops have touched
 * before: acs_wait_range on the block, acs_stream_after, acs_sync, or acs::compat. Pinned memory is nobody else's when
 * this returns.
 *
 * @param      kind  ACS_MEMORY_DEVICE, which may have ACS_RELOCATABLE or ACS_LAZY added, or ACS_MEMORY_HOST, which may have
 *                   ACS_RELOCATABLE.
 * @param[out] ptr   written only on ACS_OK; release with acs_free.
 * @retval ACS_ERR_MEMORY    the device, or ACS_MEMORY_LIMIT, has no room; the error says what is in use. Nothing changed,
 *                           but that memory which lay idle was released, and acs_free ops were waited for.
 * @retval ACS_ERR_ARGUMENT  0 bytes, a kind that is none of these (the error says why), or no place for the result.
 * @retval ACS_ERR_DEVICE    the device is lost.
 * Blocks: may wait for the device. Where there is no room, until memory that was freed is no longer in use by ops.
 */
acs_status acs_malloc_op(acs_context *context, size_t bytes, int kind, void **ptr, const acs_op_params *params);

/**
 * The block stays at its address from here on: its contents come home, and it is no longer renamed. For memory that is
 * not ACS_RELOCATABLE there is nothing to do. Blocks: where the FIFO is full, or another thread's call is about to
 * queue an op.
 * @param ptr  anywhere in the block.
 * @retval ACS_ERR_MEMORY, ACS_ERR_DEVICE  it may not be home.
 */
acs_status acs_pin(acs_context *context, const void *ptr);

/**
 * Give memory that ACS_POOL keeps, and in which no block is, back to the device, until at most `keep_bytes` of each
 * kind of memory are reserved for nothing. Without ACS_POOL there is nothing to do. Blocks: may wait for the device.
 * @retval ACS_ERR_DEVICE  the device is lost.
 */
acs_status acs_trim(acs_context *context, size_t keep_bytes);

/**
 * Free memory of acs_malloc, in program order: after the ops that were launched before and touch it. It returns at
 * once, and what failed before does not keep it from happening. NULL is allowed. Work of the program's own on the
 * block, in a foreign stream or a captured graph, is not waited for with ACS_POOL: order it before, by acs_after_stream
 * or a synchronisation.
 * @return the latest op: once all up to it have ended the memory is nobody's. Without ACS_POOL an op of its own, which
 *         gives the block back to the device. For NULL the latest op; a context without any op queues one that does nothing
 *         (inside a capture ACS_OP_CAPTURED is returned instead). Never 0 on success. 0 with ACS_ERR_ARGUMENT if `ptr`
 *         is not the start of a live allocation of this context.
 */
acs_op acs_free_op(acs_context *context, void *ptr, const acs_op_params *params);

/* -------------------------------------------------------------------------------------------------- several devices */

enum { ACS_ANY_DEVICE = -1 };

/**
 * How many devices the context has (ACS_DEVICES), which it numbers from 0: the GPU that was current in acs_open, then
 * those that follow it, and the first behind the last; with ACS_DEVICES_PER_GPU around them again.
 * @param context  NULL: the default context, opened if need be.
 * @return -1 where there is none, see acs_last_error: ACS_ERR_STATE for a closed context, and for one that may not be used
 *         here; as acs_open where the default one cannot be opened.
 */
int acs_devices(acs_context *context);

/**
 * Until the next such call of this thread its ops run on this device, as far as they can, and acs_malloc gives it
 * memory of this one. Ops on memory of another device that does not move run there; ACS_ON in a launch comes first. A
 * hint: results do not depend on it.
 * @param context  NULL: the default context, opened if need be.
 * @param device   ACS_ANY_DEVICE: where ACS_POLICY says, and memory of device 0. One context at a time: a call for
 *                 another ends the first one's.
 * @retval ACS_ERR_ARGUMENT  the context has no such device; what the thread said before stays.
 * @retval ACS_ERR_STATE     a closed context, or one that may not be used here. As acs_open where the default one cannot be
 *                           opened.
 */
acs_status acs_on(acs_context *context, int device);

/* ------------------------------------------------------------------------------------------------------------ waits */

/**
 * Wait until every op queued so far has retired. The waiting thread steps the runtime itself.
 * @return ACS_OK, or the status of the first uncleared error (also for errors of calls that were refused, as
 *         acs_launch says: ACS_ERR_FULL of a call with no_wait is none of them).
 */
acs_status acs_sync(acs_context *context);

/**
 * Wait for one op. A kernel that went in a bundle is known to have ended when those before it in the bundle have, too,
 * at the latest with the whole bundle (docs/issue-methods.md).
 * @return ACS_OK; ACS_ERR_LAUNCH, _HOST, _SKIPPED, _DEVICE as the op ended; ACS_ERR_ARGUMENT for an op never queued.
 */
acs_status acs_wait(acs_context *context, acs_op op);

/** As acs_wait without waiting: ACS_NOT_READY if it has not retired. Steps the runtime once while no worker is awake. */
acs_status acs_query(acs_context *context, acs_op op);

/**
 * Wait for the ops queued so far that conflict with an access of yours to a range; other ops go on.
 * @param access  what you are about to do: ACS_READ waits for writers, ACS_WRITE and ACS_UPDATE for readers too.
 * @return ACS_OK; ACS_ERR_SKIPPED if one of them failed or was skipped (a writer; for a write of yours also a reader, which
 *         may still want the old bytes); ACS_ERR_DEVICE: nothing was waited for, and a host function or library call may
 *         still be at the range until acs_sync returns.
 */
acs_status acs_wait_range(acs_context *context, const void *ptr, size_t bytes, acs_access access);

/** Called when an op has retired, with how it ended. Must not call ACS; runs on a thread that steps the runtime. */
typedef void (*acs_retire_fn)(void *user, acs_op op, acs_status status);

/**
 * Have `function` called once when `op` has retired (soon, if it has already).
 * @return the op that stands for the callback: acs_wait on it returns after the callback did; 0 on failure.
 */
acs_op acs_on_retire(acs_context *context, acs_op op, acs_retire_fn function, void *user);

/** Do one piece of the runtime's work on this thread, if there is any. ACS_NOT_READY: there was none. */
acs_status acs_step(acs_context *context);

/**
 * Order ops launched from now on that touch `uses` behind the work already in a foreign stream.
 *
 * **A stream that is being captured** (cudaStreamBeginCapture, torch.cuda.graph): from this call to acs_stream_after on
 * the same stream the ops that this thread launches on this context do not run. They become nodes of the graph that is
 * being captured, with edges from their footprints, so that a serial program gets a parallel graph; no thread and no
 * stream of the library takes part. Ops that touch `uses` come behind what the stream captured before. Kernels, copies,
 * fills and library calls become nodes (docs/capture.md says how, and what each is); acs_host, acs_free and
 * acs_on_retire are refused with ACS_ERR_UNSUPPORTED, acs_sync and acs_wait_range with ACS_ERR_STATE. The numbers of
 * captured ops have ACS_OP_CAPTURED set and cannot be waited for. Ops of other threads, and ops launched before, run as
 * always and are not part of the graph: order its launches against them as those of other work of yours. A call between
 * the two that names another stream of the same capture orders against that stream's nodes.
 *
 * @param stream  cudaStream_t; on the host backends ignored.
 * @return the op; 0 with ACS_ERR_STATE if the stream's capture was invalidated, or is another one than the thread's ops are
 *         in; ACS_ERR_UNSUPPORTED for a stream that is not being captured while the thread's ops are.
 */
acs_op acs_after_stream(acs_context *context, void *stream, acs_uses uses);

/**
 * Order work that the program gives to a foreign stream from now on behind the ops queued so far that conflict with
 * `uses`. Returns once those are issued; does not wait for their completion (on the host backends, which have no
 * streams, it does). Of a stream that is being captured: the stream's next node comes behind theirs; on the stream
 * whose acs_after_stream began it this ends the capturing of the thread's ops. To be called before
 * cudaStreamEndCapture: ACS_ERR_STATE after it. Errors as acs_after_stream; ACS_ERR_SKIPPED as acs_wait_range.
 */
acs_status acs_stream_after(acs_context *context, void *stream, acs_uses uses);

/* ----------------------------------------------------------------------------------------------------------- groups */

/** Most ops that a group may hold. */
#define ACS_GROUP_OPS_MAX 4096

/**
 * Hold the ops that this thread launches on the context from now on, until acs_group_submit (HuntKTm, sections 5.3 and
 * 5.4: its *lazy engine*). What the group does is then known as a whole, so memory is planned before anything runs: an
 * ACS_LAZY block that was allocated and freed in the group has memory from its first use to its last alone, and blocks
 * that are not in use at the same time share it.
 *
 * Held are kernels, copies, fills, host functions and library calls, whose numbers have ACS_OP_HELD set and mean
 * nothing outside, and acs_free. Their arguments and footprints are checked, copied and computed in the call, as
 * always. acs_malloc is not held; blocks of other kinds than ACS_LAZY have memory at once. Waiting for ops that are
 * held would last for ever: acs_sync, acs_wait_range, acs_on_retire, acs_after_stream and acs_stream_after are refused
 * with ACS_ERR_STATE, and so is acs_wait for a held op. The context keeps such an error of acs_on_retire,
 * acs_after_stream and acs_stream_after, since program order has a hole. What other threads launch goes on as always,
 * before the group's ops or between them.
 *
 * @param ops_most  most ops that are held, ACS_GROUP_OPS_MAX at most; 0: 1024. One more is refused with ACS_ERR_FULL,
 *                  which the context keeps unless the call has no_wait.
 * @retval ACS_ERR_STATE     the thread holds a group, of this context or another, or its ops are being captured.
 * @retval ACS_ERR_ARGUMENT  ops_most is too large.
 * @retval ACS_ERR_MEMORY    for what is held. Nothing changed.
 */
acs_status acs_group_begin(acs_context *context, size_t ops_most);

typedef struct acs_group_params {
    size_t size;    /**< sizeof(acs_group_params) */
    uint32_t slots; /**< 0: ops are ordered as their footprints say, and memory is shared by what follows from that alone.
                         Else by what follows if they also go one after the other in so many slots: fewer take less memory,
                         and let less run at once */
    uint32_t reserved; /**< 0 */
} acs_group_params;

/** What a group came to. Set `size` before passing it to a function. */
typedef struct acs_group_report {
    size_t size;           /**< sizeof(acs_group_report) of the caller */
    uint64_t ops;          /**< that were held */
    uint64_t blocks;       /**< ACS_LAZY blocks that were allocated and freed in the group */
    uint64_t memory_sum;   /**< their bytes: what they take without a plan */
    uint64_t memory_bound; /**< HuntKTm's upper bound of what they take at once, from each slot by itself (section 5.4) */
    uint64_t memory_peak;  /**< what the plan takes: reserved as one block */
    uint64_t slots;        /**< that the plan used */
    uint64_t threads;      /**< of kernels, the most of each slot, added up (HuntKTm, section 5.3) */
    uint64_t shared_bytes; /**< the same for shared memory: on a GPU what their code declares included */
    uint64_t registers;    /**< the same for registers; 0: not known, as on the CPU */
    acs_op first, last;    /**< the group's ops have numbers from `first` to `last`, not in the order of their launches;
                                other threads' ops may be among them; 0: none was queued */
} acs_group_report;

/**
 * Queue the ops that this thread holds. They take their place in program order now, in an order among themselves that
 * their footprints allow: each just before what needs it, copies to the host as soon as they can go. Results are as in
 * the order of the launches. Memory for the group's blocks is reserved as one block; where it is short, as for
 * acs_malloc. acs_free of other blocks happens behind the group's ops.
 * @param      params  NULL: all zero.
 * @param[out] report  `size` set by the caller; may be NULL. Written, as far as it is known, also on failure.
 * @return ACS_OK: the ops are queued, and the thread holds no group any more. ACS_ERR_STATE: it holds none; or the ledger
 *         (ACS_LEDGER) cannot be used, and the group is still held.
 *         ACS_ERR_MEMORY: the plan, or its memory, has no room: the group is still held; submit it again with fewer slots,
 *         or cancel it. Then errors with which the group is gone: ACS_ERR_DEVICE; ACS_ERR_LAUNCH: there was no memory for an
 *         op of the group beside its plan, and it and those behind it were not queued.
 * Blocks: while the FIFO is full, and as acs_malloc; on several devices (ACS_DEVICES) while none has room for the group
 * beside those that run, in the order of the calls (HuntKTm, section 5.3, Algorithm 1); with ACS_LEDGER while other
 * programs have the memory, and may still give it, or waited for it long before.
 */
acs_status acs_group_submit(acs_context *context, const acs_group_params *params, acs_group_report *report);

/**
 * Forget the ops that this thread holds: none runs. Blocks that were freed in the group are freed.
 * @retval ACS_ERR_STATE  it holds none.
 */
acs_status acs_group_cancel(acs_context *context);

/* ------------------------------------------------------------------------------------------------------------ hints */

/**
 * Say that a repeat begins with the next op: an iteration of a solver, a step of a simulation, one inference. A hint,
 * for speed alone: bundles of ops then end at such calls where they can, so that equal repeats give equal bundles,
 * whose graphs are kept (docs/issue-methods.md). Repeats are found without it; it helps most where kernels of one type
 * are repeated in groups that do not fit. Where no equal ops follow, bundles end there for nothing, and that is all.
 * Neither waits nor queues anything; of several calls before an op one counts. From several threads: the next op of any
 * of them is meant. Without effect on captured ops.
 * @param context  NULL: the default context, opened if need be.
 * @return ACS_OK; ACS_ERR_STATE for a context that may not be used here; as acs_open where the default one cannot be opened.
 */
acs_status acs_mark_repeat(acs_context *context);

/* --------------------------------------------------------------------------------------------- errors of a context */

/**
 * The first failure since open or the last acs_clear.
 * @param[out] error  `size` set by the caller, may be NULL; untouched when there is none.
 * @return its status, or ACS_OK.
 */
acs_status acs_context_error(acs_context *context, acs_error *error);

/**
 * How one op ended. Failed and skipped ops are remembered until acs_clear: consecutive ops with one cause and call site
 * as one range, up to 65536 ranges. Where there are more, call sites are given up first (`site` and the text lack
 * them). Then, or where memory is exhausted, the exact record is given up, which is logged: of an interval of ops all
 * that are in no range count as skipped, with `cause` 0 and a text that says so. Some of them may have ended well. This
 * function, acs_wait, acs_query, acs_wait_range and retire callbacks never say ACS_OK of an op that failed or was
 * skipped.
 * @return ACS_OK also for ops that have not failed yet.
 */
acs_status acs_op_error(acs_context *context, acs_op op, acs_error *error);

/**
 * Wait for all ops, then forget all failures, so that the program can go on. ACS_ERR_DEVICE stays for good, also that
 * of each op that ended with it.
 * @return ACS_OK, or ACS_ERR_DEVICE.
 */
acs_status acs_clear(acs_context *context);

/* ------------------------------------------------------------------------------------------------------- statistics */

/** Counters of a context since it was opened. */
typedef struct acs_statistics {
    size_t size;               /**< sizeof(acs_statistics); set by the caller */
    /** Ops of callers, and copies of the runtime's own (`transfers` and others), which `copies` and `levels` count, too. */
    uint64_t queued;
    uint64_t retired;          /**< of them, ended in any way */
    uint64_t failed, skipped;  /**< of the retired */
    uint64_t kernels, copies, fills, host_functions, calls; /**< issued, by kind */
    uint64_t edges;            /**< dependencies found */
    uint64_t joins;            /**< join nodes made instead of many edges */
    uint64_t same_slot;        /**< dependencies kept by staying behind in one slot */
    uint64_t waits_sent;       /**< waits sent to the backend */
    uint64_t waits_implied;    /**< waits dropped because other order implies them */
    uint64_t waits_complete;   /**< waits dropped because the upstream op was known to be complete */
    uint64_t marks;            /**< events recorded */
    uint64_t submissions;      /**< batches handed to the backend, bundles among them */
    uint64_t caller_waits;     /**< times that a caller found the FIFO full */
    uint64_t barriers;         /**< ops ordered behind everything because the index could not grow */
    uint64_t window_high;      /**< most ops in the window at once */
    uint64_t running_high;     /**< most ops issued and not retired at once, those that queue behind others included */
    /** Longest chain of dependent ops, ended ones included: the critical path, in ops. Exact with ACS_STATS=1, as long as
        the index of segments takes less than 64 MiB. Else a lower bound: a dependency on an op that has ended counts where
        a later op names the same segment, but not always where segments only overlap. */
    uint64_t levels;
    uint64_t slots_used;       /**< most slots open to new ops at once, of those that ACS_STREAMS allows */
    /** Kernels issued, by what ACS_ISSUE names; at ACS_ISSUE_AUTO: 0. Of ACS_ISSUE_LAUNCH three fields below say why. */
    uint64_t issued_by[ACS_ISSUE_COUNT];
    uint64_t bundles;          /**< submissions of several kernels as one unit, by another way than launches */
    /** Bundles that were formed but not issued as a unit: launches are cheaper, not seen often enough, no way fits. */
    uint64_t bundles_refused;
    uint64_t launched_unfit;   /**< kernels launched because they cannot go in another way, or are known to take long
                                    (ACS_ISSUE=launch: all) */
    uint64_t launched_few;     /**< because there were too few at once, or a bundle was refused just before */
    uint64_t launched_refused; /**< because the bundle at whose head they were was refused */
    uint64_t captured;         /**< ops that became nodes of somebody else's graph; in no other count */
    uint64_t copies_as_kernels; /**< of copies and fills: issued as kernels of the library's own, which bundles can hold */
    uint64_t nodes_built;      /**< nodes of graphs built to be kept, 10 to 30 us each: should come to a rest */
    uint64_t memory_live;      /**< bytes of device memory in blocks of acs_malloc that have not been freed,
                                    with ACS_POOL as they were rounded up */
    uint64_t memory_reserved;  /**< bytes that the device gave for them; with ACS_POOL more than are in use */
    uint64_t memory_peak;      /**< most that were in use at once, blocks that were freed and ops still used included */
    uint64_t memory_obtained;  /**< allocations that the device made for them: with ACS_POOL few */
    uint64_t memory_resting;   /**< bytes in blocks that were freed and that ops may still use; in no other block */
    uint64_t memory_versions;  /**< ops that got fresh memory for what they write (ACS_RENAME) */
    uint64_t memory_homed;     /**< copies made for contents to come home */
    uint64_t memory_early;     /**< blocks handed out while ops might still use them: their next users were ordered behind */
    uint64_t memory_spilled;   /**< bytes of ACS_LAZY blocks copied to host memory, since the device's was short */
    uint64_t memory_returned;  /**< bytes of them copied back */
    uint64_t memory_moved;     /**< bytes of device memory that were mapped to other addresses, where they were missing */
    uint64_t transfers;        /**< several devices: copies of the runtime's own between devices, and the host */
    uint64_t transfer_bytes;   /**< their bytes */
    uint64_t calls_as_kernels; /**< of `calls`: kernels that repeatable calls came to, an op each; in no `issued_by` */
    /**
     * What ran at once; with ACS_STATS=1 alone, else 0. On CPU threads these are the ops that threads were inside of.
     * On a device they are the ops that may have been running: those issued for which everything before them, in their
     * stream and by dependencies, was seen to have ended, until they are seen to end. A device may run fewer, and is
     * idle for longer. Host functions, and library calls on CPU threads, count while they are called. Times are of the
     * clock; on the sim backend of the simulated host.
     */
    uint64_t ran_high;         /**< most at once */
    uint64_t ran_ns;           /**< ops at once x time: by (span_ns - idle_ns) the average while anything ran */
    uint64_t span_ns;          /**< from the first begin to the latest end, or to now while anything runs */
    uint64_t idle_ns;          /**< of span_ns, nothing ran */
} acs_statistics;

/** Read the counters. @retval ACS_ERR_ARGUMENT `size` is not set. */
acs_status acs_stats(acs_context *context, acs_statistics *stats);

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

/* Call-site macros: ACS_LAUNCH, ACS_LAUNCH_ON, ACS_ARGS, ACS_USES, acs_memcpy, acs_memset, acs_host, acs_free. */
#ifdef __cplusplus
#include "acs_launch.hpp"
#else
#include "acs_launch.h"
#endif

#endif /* ACS_H */
