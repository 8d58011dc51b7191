/**
 * @file acs.h
 * ACS: launch GPU kernels in program order, run them out of order, get the results of program order.
 *
 * For each op (kernel, copy, fill, host function, library call) a program names the bytes that the op reads and writes:
 * its *footprint*. ACS takes ops in program order into a sliding *window* and finds the dependencies among them. It
 * issues them out of order to many streams. What recurs is replayed (docs/repeats.md), and kernels with bodies go in
 * bundles (docs/issue-methods.md). The window and its dependency check follow ACS (Automatic Concurrent Scheduling,
 * sections 3 and 4), corrected so that reads are compared with earlier writes too. Stream choice follows HuntKTm.
 *
 *     acs_dim3 grid = {n / 256, 1, 1}, block = {256, 1, 1};
 *     ACS_LAUNCH(saxpy, grid, block, 0, ACS_ARGS(n, a, x, y),
 *                ACS_USES(ACS_IN(x, n * sizeof *x), ACS_INOUT(y, n * sizeof *y)));
 *     acs_sync(acs_default());
 *
 * A kernel's footprint may also be declared once, for all its launches: acs_declare.
 *
 * **Plain CUDA beside it.** A cudaMemcpy, cudaDeviceSynchronize or kernel launch of the program's own cannot see ops
 * that still wait in the FIFO. There are three remedies. Call acs_sync or acs_wait_range first. Or order a stream with
 * acs_stream_after and acs_after_stream. Or link acs::compat (CMake; pkg-config's acs-compat), which makes CUDA's
 * synchronising and copying calls drain ACS first.
 *
 * **Promises.** Suppose that every footprint covers what its op touches, and that kernels are deterministic and end on
 * their own. Then memory ends up exactly as if all ops of a context had run one at a time in the order of the calls.
 * Between threads, a call that returned before another began comes first. Contexts are not ordered among each other.
 * The library never exits, and touches only streams that it made or was handed. It prints only what ACS_LOG, ACS_STATS,
 * ACS_CHECK, ACS_BARRIERS or ACS_TUNE asks for, and three notices to standard error, each once. The first: the default
 * context cannot be opened. The second: an ACS_* variable is unknown. The third: a variable has a bad value, or names a
 * file that cannot be written, and its default is used. That happens only for variables that change no result: ACS_LOG,
 * ACS_STATS, ACS_DOT, ACS_MEMORY_LOG, ACS_TRACE, ACS_TRACE_OPS, ACS_TRACE_SAMPLE, ACS_TRACE_TIMES, ACS_REPORT.
 *
 * **Threads.** Every function may be called from any thread at any time, with three exceptions. One thread at a time may
 * use an acs_graph. acs_close must not run beside other calls on the same context. Inside a retire callback, a host
 * function, a library call or a footprint function, every call that takes a context is refused with ACS_ERR_STATE. A
 * refused op is also kept for acs_context_error and acs_sync of the context that the call named (NULL: the default one,
 * if it is open). After fork() the child may not use the parent's contexts: calls return ACS_ERR_STATE there.
 *
 * The library's threads block signals, so handlers run on the program's threads. They leave SIGSEGV, SIGBUS, SIGFPE,
 * SIGILL, SIGTRAP, SIGSYS and SIGABRT as the thread that opened the context had them: a crash handler runs for a fault
 * in a host body. Where the main thread ends by pthread_exit, one more thread takes signals in its place, with its mask,
 * as long as there are threads of the library. While a call waits, or does the library's work, pthread_cancel has no
 * effect on its thread. The request stays pending, also while that thread runs host functions. Asynchronous cancellation
 * (PTHREAD_CANCEL_ASYNCHRONOUS) must be off inside ACS. No exception may leave a kernel's host body, a host function, a
 * library call or a retire callback. A footprint function may throw one (acs_footprint).
 *
 * **Errors.** Functions return an acs_status, or an acs_op that is 0 on failure. acs_last_error() then tells the
 * calling thread what was wrong. If an op fails after its call returned, the context keeps the failure:
 * acs_context_error(). Examples: the driver refuses a launch, or a host function reports failure. Ops that conflict
 * with a failed op, directly or through others, are skipped; independent ones run, unless ops have failed on 65536
 * ranges. acs_clear() forgets failures and lets the program go on.
 *
 * **Ops that never end.** ACS_WATCHDOG_S sets a limit in seconds; 0, the default, sets none. If an op runs longer
 * without an end, the context gives the device up: ACS_ERR_DEVICE with native ETIMEDOUT. The error's text names the op,
 * the time that it has run, and the ops that wait for it. All ops then end with ACS_ERR_DEVICE, every wait returns,
 * nothing more begins. Ops that had begun, the named one among them, may still run and touch what they name, also after
 * acs_close: leave that memory alone.
 *
 * Time counts while the op can be running and no other op ends that it may have had to wait for. Ops of one stream
 * whose ends cannot be told apart share the limit: n of them get n times as long, and the text says so. There are at
 * most 16 such ops, since bundles of kernels are no larger while a watchdog looks. So choose the limit by the longest
 * op; host functions count, and foreign work that acs_after_stream waits for. Waiting callers and the library's threads
 * look for overdue ops. A waiting caller does the library's work itself where no worker is awake. A function or copy
 * that blocks it there is named (ACS_LOG=error), and the waits of other threads end, but not its own. These can block
 * it: library calls and copies of pageable memory on a GPU; host functions with ACS_WORKERS=0; kernels of the host
 * backend with ACS_DISABLE=1 (which are not even named).
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

/* libacs.so exports the functions declared from here to the end of extern "C", and no others. */
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------------------------------------ status and errors */

/** Every status, once: X(name, value, text). */
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
    X(ACS_ERR_CHECK, 12, "ACS_CHECK found a footprint that contradicts itself, an allocation, an op or the kernel")      \
    X(ACS_ERR_INTERNAL, 13, "a defect in the library")

typedef enum acs_status {
#define ACS_STATUS_ENUM_(name, value, text) name = value,
    ACS_STATUS_TABLE(ACS_STATUS_ENUM_)
#undef ACS_STATUS_ENUM_
} acs_status;

/**
 * Number of an op of a context, from 1. 0: the call failed, see acs_last_error(). Numbers follow the program order, but
 * for kernels that recur (docs/repeats.md): these may have numbers less than those of ops before them, and leave gaps.
 * With ACS_REPEATS=named they do so only between acs_repeat_begin and acs_repeat_end.
 */
typedef uint64_t acs_op;

/** Bit of the number of an op that became a node of a graph that the program captures: see acs_after_stream. */
#define ACS_OP_CAPTURED (1ull << 63)

/** Bit of the number of an op that is held in a group: see acs_group_begin. */
#define ACS_OP_HELD (1ull << 62)

/** Where in the program an op was launched. Static storage: the library keeps the pointer. */
typedef struct acs_site {
    const char *name; /**< the kernel or call as written; errors, statistics and graphs leave a leading & out */
    const char *file; /**< source file, as __FILE__ */
    int line;         /**< its line, as __LINE__ */
} acs_site;

/** Room for acs_error.text in bytes, the final 0 included. */
#define ACS_ERROR_TEXT_BYTES 320

/** What went wrong, and for which op. Set `size` before passing it to a function. */
typedef struct acs_error {
    size_t size;       /**< sizeof(acs_error) of the caller */
    acs_status status; /**< kind of the error, to switch on */
    int native;        /**< cudaError_t, errno, or the code that the host function returned; 0 if none */
    acs_op op;         /**< the op that failed; 0 if the error is not about one */
    acs_op cause;      /**< for ACS_ERR_SKIPPED: the op whose failure is the origin */
    const char *where; /**< function of the library that detected the error; static storage */
    acs_site site;     /**< call site of `op`, or of the call that was refused, with the name of its acs_kernel where that
                            has one; name and file are NULL if unknown */
    char text[ACS_ERROR_TEXT_BYTES]; /**< what was wrong, with the values, and with file and line where `site` has them */
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

/* Values of the options that are choices. docs/options.md says what each means. */
enum { ACS_BACKEND_AUTO, ACS_BACKEND_CUDA, ACS_BACKEND_HOST, ACS_BACKEND_SIM };
enum { ACS_WAIT_GPU, ACS_WAIT_HOST };
enum { ACS_REPEATS_NAMED, ACS_REPEATS_AUTO };
enum { ACS_ISSUE_AUTO, ACS_ISSUE_LAUNCH, ACS_ISSUE_REPLAY, ACS_ISSUE_RESIDENT, ACS_ISSUE_COUNT };
enum { ACS_SIM_ORDER_SEED, ACS_SIM_ORDER_TIME };
enum { ACS_VARIANTS_AUTO, ACS_VARIANTS_FIXED, ACS_VARIANTS_BASE };
enum { ACS_TUNE_OFF, ACS_TUNE_LIST, ACS_TUNE_MEASURE, ACS_TUNE_MIX };
enum { ACS_POOL_OFF, ACS_POOL_ON, ACS_POOL_AUTO };
enum { ACS_GROWTH_PAGES, ACS_GROWTH_CHUNKS };
enum { ACS_POLICY_SINGLE, ACS_POLICY_ROUND_ROBIN, ACS_POLICY_STREAM_AWARE, ACS_POLICY_MIN_TRANSFER_SIZE,
       ACS_POLICY_MIN_MAX_TRANSFER_TIME, ACS_POLICY_AUTO, ACS_POLICY_COUNT };
enum { ACS_TRACE_TIMES_AUTO, ACS_TRACE_TIMES_POLLS, ACS_TRACE_TIMES_GRAPHS, ACS_TRACE_TIMES_KERNELS };
enum { ACS_LOG_OFF, ACS_LOG_ERROR, ACS_LOG_WARN, ACS_LOG_INFO, ACS_LOG_DEBUG };
enum { ACS_CHECK_OFF, ACS_CHECK_OVERLAP, ACS_CHECK_WRITES, ACS_CHECK_READS, ACS_CHECK_ALL };

/** Room for an option that is a text, in bytes, the final 0 included. */
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
 * @param[out] options  The whole struct is written, `size` included.
 * @param      size     sizeof(acs_options) as the caller was compiled; use acs_options_init(&o, sizeof o).
 * @retval ACS_ERR_OPTION  a variable has a bad value (the error names variable, value and range). `options` then holds
 *                         the default for it and the environment's values for the others.
 * A bad value of ACS_LOG, ACS_STATS, ACS_DOT, ACS_MEMORY_LOG, ACS_REPORT or an option that begins with ACS_TRACE
 * is no error: a warning is written to standard error once, and the default is used. acs_open does the same where a file
 * that one of them names cannot be written. Set-user-ID programs do not take ACS_DOT, ACS_LEDGER,
 * ACS_MEMORY_LOG, ACS_PROFILE, ACS_REPORT, ACS_TOPOLOGY and ACS_TRACE from the environment. An unknown ACS_* variable is
 * no error: a warning with the nearest known name is written to standard error once.
 */
acs_status acs_options_init(acs_options *options, size_t size);

/**
 * Write every option, its value and the value's origin ("default", "environment", "program"), one option per line.
 * @return bytes needed without the final 0, as snprintf does; `text` may be NULL when `bytes` is 0.
 */
size_t acs_options_dump(const acs_options *options, char *text, size_t bytes);

/* --------------------------------------------------------------------------------------------------------- contexts */

/** A context: a FIFO, a window, its slots and workers. Opaque; made by acs_open, freed by acs_close. */
typedef struct acs_context acs_context;

/**
 * Open a context.
 * @param      options  Copied. NULL: taken from the environment.
 * @param[out] context  Written only on ACS_OK; release with acs_close.
 * @retval ACS_ERR_OPTION       a value is out of its range, or the environment (options NULL) has a bad value. Or there
 *                              are fewer devices than ACS_DEVICES, or another option does not go with several devices
 *                              (docs/devices.md). Or the file of ACS_TOPOLOGY cannot be read, or is wrong (the error
 *                              names file and line).
 * @retval ACS_ERR_UNSUPPORTED  the requested backend is not built in, or no device answers (ACS_BACKEND=cuda).
 * @retval ACS_ERR_STATE        two copies of ACS are in the process (the error names both files); or inside a callback.
 * @retval ACS_ERR_MEMORY, ACS_ERR_DEVICE  nothing was opened.
 * Blocks: may initialise the device. Starts `workers` threads for each device. On the host backend it also starts
 * `executors` threads (0: one for each CPU).
 */
acs_status acs_open(const acs_options *options, acs_context **context);

/**
 * Finish all ops, report statistics if asked, release everything. The context is gone whatever is returned.
 * @param context  NULL is allowed. A handle that was closed already gets ACS_ERR_STATE, here and in every other call,
 *                 until its memory is given to a new context.
 * @return ACS_OK, or the context's first uncleared error. After ACS_WATCHDOG_S gave the device up: ACS_ERR_DEVICE. If
 *         an op may still run then, the call returns all the same. It leaves things behind until the process ends;
 *         acs_last_error says which. If a thread is inside an op: that thread, the context and its memory. Otherwise,
 *         on a GPU: the streams and the memory of acs_malloc, which no call can release without waiting for the op.
 *         The op may end at any time.
 */
acs_status acs_close(acs_context *context);

/**
 * The default context, opened from the environment at first use and closed at exit. The program may close it before.
 * The next use of the default context, here or by a call given NULL, then opens a fresh one from the environment.
 * @return the context, owned by the library; NULL if it cannot be opened (see acs_last_error). The next call tries
 *         again.
 */
acs_context *acs_default(void);

/** Which backend a context runs on: ACS_BACKEND_CUDA, _HOST or _SIM; -1 for an invalid context. */
int acs_context_backend(acs_context *context);

/* --------------------------------------------------------------------------------------------------------- segments */

/** How an op touches a segment. */
typedef enum acs_access {
    ACS_READ = 1,    /**< in: reads only */
    ACS_WRITE = 2,   /**< out: writes every byte, reads none */
    ACS_UPDATE = 3,  /**< inout: reads and writes, or may write: the old bytes must be there */
    /**
     * Changes the bytes so that the order among ops with this access does not matter, such as by atomic additions: they
     * run in any order and at the same time, ordered with all other ops that touch the bytes (inoutset of OpenMP 5.1,
     * section 2.19.11). The kernel's accesses must be atomic, since others run beside it. Results are those of serial
     * execution bit for bit where the operation is associative and commutative to the bit: integers, minimum and
     * maximum. Sums of floating-point numbers differ in rounding from run to run. If such an op fails, later ops that
     * touch the bytes in other ways are skipped. Those that commute with it run, unless an op between them was skipped.
     * Tokens commute too. With ACS_EXTENT_ALL it counts as ACS_UPDATE.
     */
    ACS_COMMUTE = 7,
    /**
     * As ACS_UPDATE; and the op keeps the address, such as in a table of pointers that later ops read. So the block of
     * acs_malloc in which it lies is pinned at the launch, as by acs_pin. See ACS_ESCAPES.
     */
    ACS_ESCAPE = 11
} acs_access;

typedef enum acs_extent {
    ACS_EXTENT_BYTES = 0, /**< `rows` rows of `row_bytes` bytes, `pitch_bytes` apart; contiguous where rows is 1 */
    ACS_EXTENT_ALL = 1,   /**< all memory, and all tokens */
    ACS_EXTENT_TOKEN = 2  /**< no bytes: a name (`base`) to order ops by */
} acs_extent;

/** Bytes that an op touches. Zero bytes or rows touch nothing. Device and host memory share one address space. */
typedef struct acs_segment {
    uint64_t base;        /**< address of the first byte; of a token its key */
    uint64_t row_bytes;   /**< bytes of each row */
    uint64_t rows;        /**< number of rows */
    uint64_t pitch_bytes; /**< distance between the starts of two rows, row_bytes at least; ignored where rows is 1 */
    uint8_t access;       /**< acs_access */
    uint8_t extent;       /**< acs_extent */
    uint16_t device;      /**< reserved; 0 */
    uint32_t version;     /**< reserved; 0 */
} acs_segment;

/** The launch as a footprint function sees it, with the bytes of its arguments. Borrowed for the call. */
typedef struct acs_footprint_input {
    const char *name;         /**< kernel name; may be NULL */
    uint32_t grid[3], block[3];
    uint64_t shared_bytes;    /**< dynamic shared memory */
    void *const *args;        /**< args[i] points to the bytes of argument i */
    size_t arg_count;         /**< number of arguments */
    const void *user;         /**< as given in acs_uses, or in acs_declare */
    const uint32_t *arg_bytes; /**< arg_bytes[i]: bytes of argument i */
    uint32_t grid_is_most;     /**< nonzero: the GPU reads the grid's size (acs_grid_from); `grid` is its maximum */
} acs_footprint_input;

/**
 * Computes an op's segments from its argument bytes (ACS, section 4.1: get_addresses). Runs on the launching thread
 * inside the call; must be pure and must not call ACS. A C++ exception or pthread_exit may leave it: they pass through
 * the call that was given the footprint, nothing was queued, and no error is kept. longjmp may not leave it.
 * @param[out] out  Room for `capacity` segments.
 * @return how many segments the op has. If more than `capacity`, `out` is ignored, and the function is called again
 *         with room for that number. It must then return the same number, else ACS_ERR_ARGUMENT. ACS_FOOTPRINT_REFUSED:
 *         the op is refused with ACS_ERR_ARGUMENT.
 */
typedef size_t (*acs_footprint)(const acs_footprint_input *in, acs_segment *out, size_t capacity);

/** Result of a footprint function that cannot tell the segments: the arguments are not those that it expects. */
#define ACS_FOOTPRINT_REFUSED SIZE_MAX

/** The footprint of one op. All zero: the op touches nothing. */
typedef struct acs_uses {
    const acs_segment *segments; /**< copied before the call returns */
    size_t count;                /**< number of `segments` */
    acs_footprint footprint;     /**< function whose segments are added to `segments`, or NULL */
    const void *user;            /**< handed to `footprint` */
    /**
     * ACS_LOOK_UP, which other calls than launches refuse: `footprint` is the one that acs_declare was given for the
     * kernel. The one given here, if any, counts where there is none. Other values but 0: the op may touch anything.
     */
    uint32_t any;
} acs_uses;

/** For acs_uses.any: the footprint was declared for the kernel (acs_declare). ACS_USES_DECLARED is shorter. */
#define ACS_LOOK_UP 2u

/**
 * As the number of bytes of a segment: the whole allocation in which the address lies, from its first byte to its last, also
 * where the address is not its first. Found are, in this order, blocks of acs_malloc; memory of acs_check_register, where
 * that is kept; and what the CUDA driver knows: memory of cudaMalloc, pinned and managed memory, but not cuMemMap's.
 * Memory that nobody knows: the op may touch anything, and if it reads the segment alone, may read anything.
 * acs_statistics.unknown_memory counts such ops; the log names kernel and argument once for each call site (ACS_LOG=info).
 *
 * It is a number of its own: do not multiply it by the size of an item. NULL: the op touches nothing. An address in a
 * freed block: ACS_ERR_ARGUMENT, with ACS_CHECK ACS_ERR_CHECK. The allocation is looked up in the call. For segments of
 * footprints, not for acs_memcpy, acs_memset and acs_wait_range.
 */
#define ACS_WHOLE ((uint64_t)1 << 63)
/** As ACS_WHOLE for an address outside what the op indexes (x - 1): the allocation that begins there, else all memory. */
#define ACS_WHOLE_AT (ACS_WHOLE | 1u)

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
/** The op changes these bytes in a way for which the order of such ops does not matter: see ACS_COMMUTE. */
#define ACS_INOUTSET(ptr, bytes) ACS_BYTES_(ACS_COMMUTE, ptr, bytes)
/**
 * The op reads and writes the whole allocation (ACS_WHOLE), and keeps its address in memory, where later ops find it. A
 * block of acs_malloc is pinned by the call before the op's pointers are looked at, as by acs_pin: it stays where it is
 * from then on. That may queue copies, and blocks as acs_pin, but waits for no op; with no_wait a lock that another thread
 * holds gives ACS_ERR_FULL. An ACS_LAZY block is refused with ACS_ERR_UNSUPPORTED. The block stays pinned if the op is
 * refused later. Ops that reach it through memory still name its bytes (docs/footprints.md).
 */
#define ACS_ESCAPES(ptr) ACS_BYTES_(ACS_ESCAPE, ptr, ACS_WHOLE)
/**
 * The same for `rows` rows of `row_bytes` bytes whose starts are `pitch_bytes` apart: a tile of a matrix. Rows that
 * overlap are refused with ACS_ERR_ARGUMENT; they have no gap, so name them as one run of bytes.
 */
#define ACS_TILE_IN(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_READ, ptr, row_bytes, rows, pitch_bytes)
#define ACS_TILE_OUT(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_WRITE, ptr, row_bytes, rows, pitch_bytes)
#define ACS_TILE_INOUT(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_UPDATE, ptr, row_bytes, rows, pitch_bytes)
#define ACS_TILE_INOUTSET(ptr, row_bytes, rows, pitch_bytes) ACS_TILE_(ACS_COMMUTE, ptr, row_bytes, rows, pitch_bytes)
/** Everything: conflicts with every op that touches anything (tokens included). */
#define ACS_ALL_MEMORY acs_make_segment(ACS_EXTENT_ALL, ACS_UPDATE, 0, 0, 0, 0)
/** Reads anything: conflicts with every op that writes. */
#define ACS_ALL_MEMORY_IN acs_make_segment(ACS_EXTENT_ALL, ACS_READ, 0, 0, 0, 0)
/** A name without bytes, only to order ops: writers of one key follow each other in program order. */
#define ACS_TOKEN(key) acs_make_segment(ACS_EXTENT_TOKEN, ACS_UPDATE, (uint64_t)(uintptr_t)(key), 0, 0, 0)
/** Readers of a token are ordered against its writers only. */
#define ACS_TOKEN_IN(key) acs_make_segment(ACS_EXTENT_TOKEN, ACS_READ, (uint64_t)(uintptr_t)(key), 0, 0, 0)

/* --------------------------------------------------------------------------------------------- kernels and launches */

/** Three sizes; a zero is an error, so write 1 where a dimension is not used. */
typedef struct acs_dim3 {
    uint32_t x, y, z;
} acs_dim3;

/** The launch as a host body sees it. Borrowed for the call. */
typedef struct acs_grid {
    acs_dim3 grid, block;
    uint64_t shared_bytes;
    void *shared;          /**< `shared_bytes` bytes of zeroed scratch memory for the body, or NULL if 0 */
} acs_grid;

/** A kernel as a C function that runs the whole grid. args[i] points to the bytes of argument i. */
typedef void (*acs_host_body)(const acs_grid *grid, void *const *args);

typedef enum acs_kernel_kind {
    ACS_KERNEL_NONE = 0,      /**< host body only */
    ACS_KERNEL_FUNCTION = 1,  /**< a __global__ function of this program */
    ACS_KERNEL_HANDLE = 2,    /**< a cudaKernel_t (== CUkernel) */
    /**
     * A CUfunction, as NVRTC, Triton and Warp give it. It belongs to one CUDA context. On several devices (ACS_DEVICES)
     * it must belong to that of device 0, and runs only there: ACS_ON another device is refused with
     * ACS_ERR_UNSUPPORTED. A CUkernel has no such bounds (cuLibraryLoadData, cuLibraryGetKernel).
     */
    ACS_KERNEL_CUFUNCTION = 3
} acs_kernel_kind;

/**
 * A kernel. Where it has a host body the same call site runs on every backend. Copied by launches; cheap. Of arguments only
 * the sizes are checked, on a GPU; in C++ acs::kernel adds the types.
 */
typedef struct acs_kernel {
    const char *name;     /**< for errors, statistics and graphs; static storage. NULL: the name at the call site */
    const void *function; /**< function or handle for the GPU, as `kind` says */
    acs_host_body host;   /**< the kernel for the CPU, or NULL */
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
    ACS_ARG_POINTERS = 2 /**< a struct by value with plain device pointers; add ACS_POINTER_AT for each of them */
} acs_arg_type;

/**
 * For ACS_ARG_POINTERS: a pointer begins at byte 8 * word of the struct; word < 30. Write
 * ACS_ARG_POINTERS | ACS_POINTER_AT(0) | ... In C++ ACS_ARGS takes the bits from the struct:
 * static constexpr uint32_t acs_pointers = ACS_POINTER_AT(0) | ...;
 */
#define ACS_POINTER_AT(word) (1u << ((word) + 2))

/** One kernel argument; its bytes are copied by the launch. */
typedef struct acs_arg {
    const void *value; /**< its `size` bytes */
    uint32_t size;     /**< bytes */
    uint32_t type;     /**< acs_arg_type; of a struct with pointers also their places (ACS_POINTER_AT) */
} acs_arg;

/** A list of `count` arguments, as ACS_ARGS makes it. */
typedef struct acs_args {
    const acs_arg *list;
    size_t count;
} acs_args;

/** Largest sum of argument bytes of one op, each argument aligned as CUDA aligns it. */
#define ACS_ARG_BYTES_MAX 32764

/** Wishes of a launch beyond grid and block. All zero: none. */
typedef struct acs_attributes {
    acs_dim3 cluster;      /**< thread block cluster in blocks; {0,0,0}: none */
    int32_t priority;      /**< launch priority; 0: the stream's; negative: more urgent */
    uint8_t cooperative;   /**< nonzero: grid-wide synchronisation is used */
    uint8_t programmatic;  /**< programmatic dependent launch: refused, it weakens ordering against a neighbour */
    uint8_t on;            /**< run on device number on - 1, if possible; 0: the device of acs_on, else where
                                ACS_POLICY says. See ACS_ON */
    uint8_t share;         /**< most of the GPU that the launch may take, in percent; 0: all of it. See ACS_SHARE */
    uint8_t variant;       /**< run version number variant - 1 of the kernel; 0: the runtime picks one. See ACS_VARIANT */
    uint8_t fit;           /**< pick the version that is best on this percentage of the GPU; 0: as what runs beside it
                                demands. See acs_mix_plan */
    uint8_t reserved[2];   /**< 0 */
} acs_attributes;

/** Attributes without any wish. */
static inline acs_attributes acs_no_attributes(void)
{
    acs_attributes a = {{0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, {0, 0}};
    return a;
}

/** As ACS_ON. A number that no device can have gives attributes with which a launch is refused. */
static inline acs_attributes acs_make_on(int64_t device)
{
    acs_attributes a = acs_no_attributes();
    a.on = (uint8_t)(device < -1 || device > UINT8_MAX - 1 ? UINT8_MAX : device + 1);
    return a;
}

/**
 * Attributes of a launch that is to run on this device of the context: ACS_LAUNCH_WITH(context, ACS_ON(2), ...). A
 * hint, as acs_on; but a device that the context does not have is refused. ACS_ANY_DEVICE: as without ACS_ON.
 */
#define ACS_ON(device) acs_make_on(device)

/**
 * Where a launch's number of blocks lies in device memory. It is read there just before the launch runs: the program
 * need not know it. acs_launch_params.grid is then the maximum.
 *
 * If a number of blocks is 0 the launch does not run. If it is larger than the maximum the launch does not run either,
 * and the context keeps ACS_ERR_ARGUMENT for acs_context_error and the next wait: the text has both. Ops behind it run.
 *
 * The word is read behind all earlier ops that write it, and need not be named. What the launch names as **out** counts as
 * inout, since it may not be written. docs/decided.md has examples, and the costs.
 */
typedef struct acs_grid_from {
    /** Device address, a multiple of 4. NULL: the grid is that of the launch. */
    const void *word;
    /**
     * 0: three uint32_t (an acs_dim3) are read, the numbers of blocks. Else one uint32_t, a number of items: the grid has
     * as many blocks in x as these need with `items` in each, and the maximum's y and z.
     */
    uint32_t items;
} acs_grid_from;

/** A grid for ACS_LAUNCH that is read on the GPU, as ACS_GRID_AT and ACS_GRID_FOR make it. */
typedef struct acs_read_grid {
    acs_dim3 most;
    acs_grid_from from;
} acs_read_grid;
static inline acs_read_grid acs_make_read_grid(const void *word, uint32_t items, acs_dim3 most)
{
    acs_read_grid g;
    g.most = most;
    g.from.word = word;
    g.from.items = items;
    return g;
}
/** As the grid of ACS_LAUNCH: the acs_dim3 at this device address, at most `most` (an integer or an acs_dim3). */
#define ACS_GRID_AT(address, most) acs_make_read_grid((address), 0, ACS_DIM3_(most))
/** As the grid of ACS_LAUNCH: blocks for the number of items (uint32_t) at this device address, `items` per block. */
#define ACS_GRID_FOR(count, items, most) acs_make_read_grid((count), (items), ACS_DIM3_(most))

typedef struct acs_launch_params {
    size_t size; /**< sizeof(acs_launch_params) */
    const acs_kernel *kernel;
    acs_dim3 grid, block;
    uint64_t shared_bytes; /**< dynamic shared memory of a block; above 48 KiB the opt-in of the device is used */
    acs_args args;
    acs_uses uses;
    acs_attributes attributes;
    const acs_site *site; /**< static storage; NULL: unknown */
    uint32_t no_wait;     /**< nonzero: a full FIFO gives ACS_ERR_FULL instead of waiting */
    acs_grid_from grid_from; /**< all zero: none */
    const char *args_text; /**< the arguments as written, "n, x", "ACS_ARGS(n, x)" or "ACS_LAUNCH(.., ACS_ARGS(n, x), ..)",
                                for reports of ACS_CHECK; static storage; NULL: unknown */
    const void *stub;      /**< the __global__ function of which kernel->function is the handle: a declaration by it counts
                                for this launch, too. NULL: none */
} acs_launch_params;

/**
 * Queue a kernel. The macros ACS_LAUNCH and ACS_LAUNCH_ON are shorter and record file and line.
 *
 * Never allocates in the steady state. Leaves CUDA to the library's threads, with these exceptions. The call asks CUDA
 * once per kernel what the function needs, and for a declared footprint (acs_declare) what it is called. For ACS_WHOLE it
 * asks about memory that acs_malloc did not make. On a GPU the call itself issues the first kernel into an idle runtime (not
 * with ACS_WATCHDOG_S). That takes about 3 us; to wake a thread takes longer. With ACS_WORKERS=0 and bundles
 * (ACS_ISSUE) each 64th call issues the ops that have been queued; with ACS_ISSUE=resident the call that completes a
 * bundle. With ACS_DISABLE=1 each call issues its own op, unless that comes behind a host function; inside a capture
 * (acs_after_stream) it does all work for its op. Waits only while the FIFO is full, and then steps the runtime itself.
 * @param context  NULL: the default context.
 * @param launch   Copied, with argument bytes and segments, before the call returns.
 * @return the op, or 0 with acs_last_error(): ACS_ERR_UNSUPPORTED, ACS_ERR_FULL (with no_wait, or in a group),
 *         ACS_ERR_MEMORY, ACS_ERR_STATE, ACS_ERR_DEVICE, or ACS_ERR_ARGUMENT. The last is for a null kernel, and for a
 *         zero or too large grid, block or shared memory. It is for argument sizes that do not match the kernel, and
 *         for ACS_ON a device that there is not. And it is for segments that wrap the address space, have rows that
 *         overlap, or have reserved fields that are not 0. After each of these errors nothing was queued. Since program
 *         order has a hole, the error is also kept for acs_context_error and acs_sync. Two errors are not kept:
 *         ACS_ERR_FULL with no_wait, after which a retry leaves no hole, and ACS_ERR_STATE of a call that reached no
 *         open context.
 */
acs_op acs_launch(acs_context *context, const acs_launch_params *launch);

/**
 * Declare the footprint of a kernel, once for all its launches. Launches whose uses are ACS_USES_DECLARED, or that name
 * none (ACS_LAUNCH without its last argument), then call `footprint` with their arguments. In C ACS_PARAMS and ACS_SEGMENTS
 * help to write it; in C++ ACS_KERNEL_USES, acs::declare and acs::declare_by_type declare a kernel by its parameters.
 *
 * A kernel is known by its `function`; without one by its host body; without both by its name alone, in full as the
 * compiler mangles it ("_Z5saxpyifPKfPf"). The parts that nvcc adds to the names of static functions and of anonymous
 * namespaces, from the path of the file, do not count: kernels that only these tell apart share a declaration. A launch
 * looks for one of its function or handle; of acs_launch_params.stub; of its host body; of the name that the CUDA driver
 * has for the function (CUDA 12.3 and newer); and of the name in its acs_kernel. Where there is none, it may touch anything:
 * acs_statistics.undeclared counts it, and the log names the kernel once for each call site (ACS_LOG=info).
 *
 * Declarations are the process's: for all contexts, those opened before too. No context need be open, nor a GPU be there,
 * so that static constructors may declare. Any thread, also beside launches, and in callbacks. Takes a lock for a moment.
 * @param kernel     Its identity alone is used, and copied. Before a module is unloaded, and once its ops have ended, call
 *                   this with its handles and NULL: contexts forget handles. It waits for graphs being built (some ms).
 * @param footprint  Replaces an earlier one. NULL: forget the kernel's declaration.
 * @param user       Handed to `footprint` (acs_footprint_input.user). The program keeps it valid until no launch that
 *                   began before a replacement is under way.
 * @retval ACS_ERR_ARGUMENT  `kernel` is NULL, or has no function, host body or name.
 * @retval ACS_ERR_MEMORY    nothing has changed.
 */
acs_status acs_declare(const acs_kernel *kernel, acs_footprint footprint, const void *user);

/**
 * For footprint functions: the allocation in which an address lies, a block of acs_malloc or memory of acs_check_register.
 * Does not ask the CUDA driver, which takes about half a microsecond.
 * @param[out] first, bytes  Where it begins, and its size; written only if it is found. Either may be NULL.
 * @return nonzero: found. 0: not found; or no footprint function runs on this thread.
 */
int acs_footprint_allocation(uint64_t address, uint64_t *first, uint64_t *bytes);

/** A parameter that acs_params reads. */
typedef struct acs_param {
    void *to;     /**< receives the argument's bytes; NULL: its size is compared alone */
    size_t bytes; /**< bytes of the parameter */
} acs_param;

/**
 * For footprint functions: copy a launch's arguments into variables. ACS_PARAMS is shorter.
 * @return 0; or ACS_FOOTPRINT_REFUSED, for the footprint function to return: the launch has not `count` arguments, or one
 *         has another size. The launch's error then says so.
 */
size_t acs_params(const acs_footprint_input *in, const acs_param *params, size_t count);

/**
 * A resident executor: a kernel that runs the blocks of other kernels as calls of device functions. ACS_EXECUTOR in
 * acs_resident.cuh makes one, with its parameters; docs/issue-methods.md says what it is good for.
 */
typedef struct acs_executor_params {
    size_t size;               /**< sizeof(acs_executor_params) */
    acs_kernel executor;       /**< the executor itself */
    uint32_t layout;           /**< ACS_EXECUTOR_LAYOUT of the acs_executor.h that it was compiled with */
    uint32_t threads;          /**< most threads of a block that it runs; a multiple of 32 */
    uint64_t shared_bytes;     /**< most dynamic shared memory in bytes of a launch that it runs */
    const acs_kernel *kernels; /**< the kernels that it has bodies for; borrowed for the call */
    size_t count;              /**< number of `kernels`: a multiple of `bodies`. Kernel i has body i % bodies */
    uint32_t bodies;           /**< number of bodies */
} acs_executor_params;

/**
 * Tell a context of an executor. Launches of its kernels may then go to it in bundles (ACS_ISSUE). Results, waits and
 * errors stay the same. Launches that it cannot run go as before: those with other block sizes, more shared memory, larger
 * grids than half of the device holds, or attributes. A kernel that several executors have a body for belongs to the last.
 * There is nothing to do on other backends, and where kernels are launched one by one; then the call does nothing.
 * @param context  NULL: the default context.
 * @param params   Copied. The executor and its kernels stay loaded until acs_close.
 * @retval ACS_ERR_ARGUMENT     a field is out of its range, or a kernel is none of this program.
 * @retval ACS_ERR_UNSUPPORTED  the executor was compiled with another layout, or not for this GPU.
 * @retval ACS_ERR_MEMORY, ACS_ERR_STATE, ACS_ERR_DEVICE  as acs_launch.
 * After an error no kernel of the device concerned has changed. Any thread. It may load code, and does not wait for ops.
 */
acs_status acs_executor_add(acs_context *context, const acs_executor_params *params);

/* ------------------------------------------------------------------------------------------------------- other ops */

/** Parameters that the ops below share. Copied. */
typedef struct acs_op_params {
    const acs_site *site; /**< static storage; NULL: unknown */
    uint32_t no_wait;     /**< nonzero: a full FIFO gives ACS_ERR_FULL instead of waiting */
} acs_op_params;

/**
 * Copy bytes between any two places, device or host. An op like others: neither range may be touched by the program
 * until the op retired. Pageable host memory works and makes the copy slow, as in CUDA. On a GPU the call asks the
 * driver about the memory of a copy or fill of at most 64 KiB. Such an op may then go in a bundle, as a kernel.
 * @return as acs_launch.
 */
acs_op acs_memcpy_op(acs_context *context, void *dst, const void *src, size_t bytes, const acs_op_params *params);
/** Set each of `bytes` bytes from `dst` to `value`. Otherwise as acs_memcpy_op. */
acs_op acs_memset_op(acs_context *context, void *dst, int value, size_t bytes, const acs_op_params *params);

/** A host function. Returns 0, or a code of its own: then the op failed, and ops that depend on it are skipped. */
typedef int (*acs_host_fn)(void *closure);

/**
 * Queue a host function. It runs on a thread of the library once all upstream ops have retired. (With ACS_WORKERS=0, unless
 * ACS_DISABLE is set, it runs on a caller that waits, or that calls acs_query or acs_step; on the sim backend on any
 * caller, also of this function.) Ops that depend on it are issued after it returned. It must not call ACS.
 *
 * Where it has a thread, it may take a lock that the program holds over calls that queue ops, but not over calls that wait.
 * A call that queues an op waits while the FIFO is full of ops that have not ended, which sooner or later it is in a program
 * that never waits: let the lock go before such a call, or use no_wait. Launches with ACS_CHECK=writes, reads and all wait
 * too, as does acs_malloc where memory is short.
 * @param closure  `closure_bytes` bytes (at most ACS_ARG_BYTES_MAX) are copied; the function gets the copy. With 0
 *                 bytes it gets the pointer itself.
 * @return as acs_launch.
 */
acs_op acs_host_op(acs_context *context, acs_host_fn function, const void *closure, size_t closure_bytes, acs_uses uses,
                   const acs_op_params *params);

/** Environment of a library call. Borrowed for the call. */
typedef struct acs_call_env {
    void *stream;       /**< cudaStream_t to issue to; NULL on the host backends */
    int device;         /**< CUDA device; -1 on the host backends */
    int slot;           /**< number of the slot, from 0; -1: the call is captured, its scratch memory is the graph's own */
    void *scratch;      /**< scratch_bytes of device memory, private to the slot; NULL if none was asked for */
    size_t scratch_bytes;
    void **place;       /**< address of one pointer per slot and place key, for handles of the program. *place is NULL
                             at first. NULL without a place key; valid in this call alone */
} acs_call_env;

/**
 * A library call: issues work to env->stream and returns 0, or a code of its own (then the op failed).
 *
 * A *repeatable* call (acs_call_params.repeatable) keeps this contract. It issues nothing but kernels and
 * fills, and issues them only to env->stream. That stream may be in a capture. The work follows from its closure's
 * bytes and its scratch memory, not from memory, time or earlier calls. Its kernels stay loaded until acs_close. The
 * pointers in its closure decide only addresses in the arguments of that work. Apart from that the work may depend on
 * their lowest 8 bits, and on which of them are equal or NULL. Calls of cuBLAS and cuSOLVER with a workspace of their
 * own keep the contract; calls that draw random numbers or build plans do not.
 *
 * On a GPU the library captures a repeatable call behind some of its first runs: the function then runs once more, into
 * a stream that executes nothing. Once it is known which addresses follow from which pointer, the function is no longer
 * run for later calls that differ in pointers alone. They are issued as kernels that may go in bundles, or as launches.
 * A call that comes to several kernels may become as many ops, with no other op between them. acs_call returns the last
 * of them; it is skipped if an earlier one fails. acs_op_error reports them as kernels.
 *
 * These calls are always left to the function: those whose work reaches memory that neither the footprint names nor the
 * scratch memory holds; those whose closure has more than 256 bytes or more than 11 different pointers; those whose
 * `pointers` name bytes behind the closure; and all calls with ACS_SERIAL, with ACS_DISABLE, with several devices, in
 * captures and in groups.
 */
typedef int (*acs_call_fn)(const acs_call_env *env, void *closure);

typedef struct acs_call_params {
    size_t size; /**< sizeof(acs_call_params) */
    acs_call_fn function;
    const void *closure;      /**< copied */
    size_t closure_bytes;     /**< at most ACS_ARG_BYTES_MAX */
    size_t scratch_bytes;     /**< device memory wanted (acs_call_env.scratch) */
    const void *place_key;    /**< name of the pointer acs_call_env.place of each slot; NULL: no place */
    void (*place_destroy)(void *); /**< called when the context closes for each place that is not NULL; or NULL */
    acs_uses uses;
    const acs_site *site; /**< static storage; NULL: unknown */
    uint32_t no_wait;     /**< nonzero: a full FIFO gives ACS_ERR_FULL instead of waiting */
    uint32_t repeatable;  /**< 1: the function keeps the contract of a repeatable call, see acs_call_fn. 0: no */
    uint64_t pointers;    /**< for a repeatable call: if bit w is set, a device pointer begins at byte 8 * w of the
                               closure */
} acs_call_params;

/**
 * Queue a library call (cuBLAS and the like). It runs on a thread that steps the runtime, with ACS_DISABLE=1 on a GPU in the
 * call that queues it; it must not synchronise, nor take a lock that is held over calls of ACS.
 * @return as acs_launch.
 */
acs_op acs_call(acs_context *context, const acs_call_params *call);

/* -------------------------------------------------------------------------------------------------------- decisions */

/**
 * Begin a section: the calling thread's ops on this context, up to acs_end_if, run only if a word in device memory is
 * not zero. The word is read on the GPU when the section's first op may run: acs_if itself reads nothing and does not
 * wait. A launch that is refused counts as such an op. An op inside may change the word; the section is decided once.
 *
 *     acs_if(context, converged);                  // as: if (*converged) a(); else b();
 *     ACS_LAUNCH_ON(context, a, ...);
 *     acs_else(context);
 *     ACS_LAUNCH_ON(context, b, ...);
 *     acs_end_if(context);
 *
 * Sections may be nested, up to 32 deep. Their ops wait until the word was read; what they name as **out** counts as inout.
 * An op that does not run is no failure: ops behind it run, acs_statistics.not_run counts it, and acs_wait returns ACS_OK.
 *
 * Kernels, and copies and fills that become kernels, are switched on the GPU. Host functions, library calls and other
 * copies are decided by the thread that issues them, which waits for the ops that they depend on. acs_malloc, acs_free,
 * callbacks, waits, acs_after_stream and acs_stream_after are not part of a section: they always take place. An op in
 * another capture or group than the section's first op is refused (ACS_ERR_STATE). A section may end anywhere.
 *
 * **Failures.** If the op that writes the word failed, the section's ops are skipped. An op that conflicts with a failed one
 * is skipped also in a section that would not run. Until acs_clear, later sections with this word, and writers of the word,
 * may be skipped too if an op of the section failed. If acs_clear forgets failures, open sections are decided anew: the
 * next op reads the word again, also behind acs_else.
 *
 * **Captures.** A captured graph with such ops decides at each of its launches. CUDA has rules for it, and for one with
 * loops or grids that are read: cudaGraphUpload before its first launch, or the device faults; it is instantiated once;
 * it is no child of another graph; its executable graph is not updated. Library calls, and copies that cannot become
 * kernels, are refused there (ACS_ERR_LAUNCH).
 *
 * Called as acs_if(context, word), which adds the call site.
 * @param context  NULL: the default context.
 * @param word     Device address of a uint32_t, a multiple of 4.
 * @param site     Static storage; NULL: unknown.
 * @return ACS_OK. After an error the section is open all the same, and its ops are refused with this error, which the
 *         context keeps: ACS_ERR_ARGUMENT for a bad address, ACS_ERR_UNSUPPORTED for too deep a section. ACS_ERR_STATE,
 *         ACS_ERR_MEMORY, ACS_ERR_DEVICE: there is no section.
 */
acs_status acs_if_op(acs_context *context, const uint32_t *word, const acs_site *site);
/** As acs_if: the ops run only if the word is zero. */
acs_status acs_unless_op(acs_context *context, const uint32_t *word, const acs_site *site);
/**
 * The other branch of the thread's innermost section: its ops run if those before did not.
 * @retval ACS_ERR_STATE        the thread has no section in the context, or that has had its acs_else.
 * @retval ACS_ERR_UNSUPPORTED  the section is too deep: the ops of both branches are refused.
 */
acs_status acs_else(acs_context *context);
/**
 * End the thread's innermost section in the context.
 * @retval ACS_ERR_STATE  there is none.
 */
acs_status acs_end_if(acs_context *context);

/**
 * The body of a loop: queues the ops of one iteration, in the calling thread.
 * @param iteration  From 0.
 * @return 0; other values end the loop behind this iteration.
 */
typedef int (*acs_loop_fn)(acs_context *context, uint32_t iteration, void *user);

/** A loop that ends when the GPU says so. */
typedef struct acs_loop_params {
    size_t size;          /**< sizeof(acs_loop_params) */
    const uint32_t *stop; /**< device address of a word, a multiple of 4. Once it is not zero no iteration begins */
    uint32_t most;        /**< most iterations; at least 1 */
    acs_loop_fn body;
    void *user;           /**< handed to `body` */
    const acs_site *site; /**< static storage; NULL: unknown */
} acs_loop_params;

/**
 * Queue the iterations of a loop: memory ends up as with
 *
 *     for (i = 0; i < most && !*stop; i++) body(i);
 *
 * The word is read on the GPU before each iteration. The call queues iterations ahead, each as a section that runs unless
 * the loop has stopped. It looks now and then how far the GPU is, without draining it, and queues no more once it sees
 * the end. So `body` may be called a few times more than iterations run. An iteration's ops are all run or none, also
 * those behind the one that writes the word. Loops may be nested, and may be in sections. In a capture, where the host
 * cannot look, all `most` iterations become nodes; nothing but the switches of those behind the end runs.
 *
 * Blocks while the GPU is too far behind; returns before the last iteration has ended. Not in groups.
 * The loop does not look at what the calls in `body` return: a body whose call fails ends the loop by its own result.
 * @return ACS_OK. ACS_ERR_ARGUMENT, ACS_ERR_STATE in a group, ACS_ERR_UNSUPPORTED in sections 32 deep: nothing was
 *         queued, and the context keeps the error.
 *         ACS_ERR_STATE: the body left sections open, or ended those around it. Errors of the loop's decisions, and of
 *         those that failed on the GPU, end the loop: the iteration under way is then incomplete. ACS_ERR_SKIPPED: a
 *         decision was skipped because of an earlier failure. An op that fails in an iteration has all later ones skipped.
 *         If `body` calls acs_clear, the word is read anew for what follows in it.
 */
acs_status acs_loop(acs_context *context, const acs_loop_params *loop);

/* ----------------------------------------------------------------------------------------------------------- memory */

/** Kinds of memory: on the device, or pinned host memory that the device can reach. */
enum { ACS_MEMORY_DEVICE = 0, ACS_MEMORY_HOST = 1 };
/**
 * With ACS_MEMORY_DEVICE: a block whose contents may move. Ops reach it through plain pointer arguments only, each of
 * which points into the block. So ACS may rename the block, with up to ACS_RENAME bytes (0, the default: never). An op
 * with one **out** segment over the whole block then gets other memory, and does not wait for users of the old
 * contents. Without memory for it the op waits. Pointers and segments of later ops are changed accordingly.
 *
 * A copy brings the contents home, to the block's address, before anything that may reach the block in another way: an
 * op that may touch anything (acs_uses.any); a host function or library call on it; a kernel without a pointer argument
 * into it; an op inside a capture; acs_wait_range, acs_stream_after or acs_after_stream on it; acs_sync; acs_pin.
 * acs_wait, acs_query and acs_on_retire do not bring them home. Before work of your own on the block call one of the
 * functions that do, and acs_pin for a block that a graph uses.
 *
 * Failures: an op with one **out** segment over the whole block is not skipped because of earlier failures on it. If
 * that op fails or is skipped itself, the contents are undefined. Suppose that an op failed which only read a part of
 * the block: it is not promised whether a later op that writes this part is skipped. If the block has more than 16
 * parts, a failure in one part may cause ops on another part to be skipped, too.
 *
 * On several devices (ACS_DEVICES) the contents are wherever ops need them. The same holds with ACS_MEMORY_HOST, where
 * the program itself may read and change them at the block's address, after an acs_wait_range whose `access` names the
 * read or the write. acs_sync brings all ACS_RELOCATABLE blocks home, and the program may then write them. So devices
 * fetch them again: in loops wait by acs_wait, or acs_wait_range. Pinned memory without ACS_RELOCATABLE stays where it
 * is. See docs/devices.md, also for failures.
 */
#define ACS_RELOCATABLE 0x100
#define ACS_MOVABLE ACS_RELOCATABLE /* former name of ACS_RELOCATABLE; still accepted */
/**
 * With ACS_MEMORY_DEVICE: a block that is at first only an address. The library gives it memory when the first op names
 * it. Where device memory is short, the contents of the block that was named longest ago go to pinned host memory
 * (ACS_SPILL). They come back before the next op that reads them. So such blocks may together exceed the device's memory,
 * or ACS_MEMORY_LIMIT, as long as the operands of each op fit together. The address is the block's until acs_free.
 *
 * Ops reach the block as an ACS_RELOCATABLE one: kernels through plain pointer arguments into it (without a footprint
 * of their own, too), copies and fills. Other ways are refused with ACS_ERR_UNSUPPORTED: host functions and library
 * calls on the block, kernels that name it without a pointer argument into it, ops inside a capture, acs_pin.
 * An op that reaches beyond the block, or names it after acs_free, is refused with ACS_ERR_ARGUMENT. An op whose
 * operands find no room is refused with ACS_ERR_MEMORY. Work of the program's own finds no memory at the address: read
 * by acs_memcpy. Failures as with ACS_RELOCATABLE: an op with one **out** segment over the whole block is not skipped
 * for earlier failures on it. With ACS_POOL=off the memory is there at once, and stays.
 */
#define ACS_LAZY 0x200

/**
 * Allocate memory, in program order; 256-byte aligned, its contents undefined. Called as acs_malloc(context, bytes, kind,
 * ptr), which adds the call site. Most often it comes out of memory that the context keeps (ACS_POOL, docs/memory.md).
 *
 * The memory is for ops of this context that are launched from now on, and acs_close frees it. ACS_CHECK=overlap finds
 * ops of another context that name it (ACS_ERR_CHECK), except where it is an ACS_LAZY block.
 *
 * Freed memory may still be in use by earlier ops. If such device memory takes more than ACS_MEMORY_SLACK bytes, it is
 * handed out before those ops end. The ops that touch the new block are then ordered behind the earlier ones. So order
 * other work of the program's on a new block (its own streams, cudaMemcpy) as on one that ops have touched before: by
 * acs_wait_range on the block, acs_stream_after, acs_sync, or acs::compat. No op uses pinned memory when this returns.
 *
 * @param      kind  ACS_MEMORY_DEVICE, to which ACS_RELOCATABLE or ACS_LAZY may be added, or ACS_MEMORY_HOST, to which
 *                   ACS_RELOCATABLE may be added.
 * @param[out] ptr   Written only on ACS_OK; release with acs_free.
 * @retval ACS_ERR_MEMORY    the device, or ACS_MEMORY_LIMIT, has no room; the error says what is in use. Nothing
 *                           changed, except that idle memory was released, and acs_free ops were waited for.
 * @retval ACS_ERR_ARGUMENT  0 bytes, a kind that is none of these (the error says why), or `ptr` is NULL.
 * @retval ACS_ERR_DEVICE    the device is lost.
 * Blocks: may wait for the device. Where there is no room, it waits until ops no longer use memory that was freed.
 */
acs_status acs_malloc_op(acs_context *context, size_t bytes, int kind, void **ptr, const acs_op_params *params);

/**
 * Keep the block at its address from here on: its contents come home, and it is no longer renamed. For memory that is not
 * ACS_RELOCATABLE there is nothing to do. Blocks: where the FIFO is full, or another thread's call is about to queue an op.
 * @param ptr  Any address in the block.
 * @retval ACS_ERR_MEMORY, ACS_ERR_DEVICE  the contents may not be home.
 * @retval ACS_ERR_UNSUPPORTED  the block is ACS_LAZY.
 */
acs_status acs_pin(acs_context *context, const void *ptr);

/**
 * Give memory that ACS_POOL keeps, and that holds no block, back to the device. It stops when at most `keep_bytes` of each
 * kind of memory are reserved for nothing. Without ACS_POOL there is nothing to do. Blocks: may wait for the device.
 * @retval ACS_ERR_DEVICE  the device is lost.
 */
acs_status acs_trim(acs_context *context, size_t keep_bytes);

/**
 * Free memory of acs_malloc, in program order: after the ops that were launched before and touch it. It returns at once,
 * and earlier failures do not prevent it. NULL is allowed. With ACS_POOL, work of the program's own on the block, in a
 * foreign stream or a captured graph, is not waited for: order it before, by acs_after_stream or a synchronisation.
 * @return With ACS_POOL the latest op: once all ops up to it have ended, no op uses the memory. Without ACS_POOL an op
 *         of its own, which gives the block back to the device. For NULL the latest op; a context without any op queues
 *         one that does nothing (inside a capture ACS_OP_CAPTURED is returned instead). Never 0 on success. 0 with
 *         ACS_ERR_ARGUMENT if `ptr` is no start of a live allocation of this context; ACS_ERR_DEVICE: acs_close frees it.
 */
acs_op acs_free_op(acs_context *context, void *ptr, const acs_op_params *params);

/**
 * Ask whether kernels of a context may touch memory. A kernel that touches other memory ends the use of its GPU by this
 * process. Libraries that are handed arrays ask this before a launch; launches themselves do not. Any thread, also
 * during a capture. It does not block, and takes about a microsecond.
 * @param context  NULL: the default context, opened if need be.
 * @param ptr      an address inside the memory.
 * @retval ACS_OK  it is of a device of the context, of a GPU whose memory such a device reaches (peer access), managed,
 *                 or page-locked memory of the host. Where GPUs reach pageable memory also that. On the other backends
 *                 always.
 * @retval ACS_ERR_ARGUMENT  no device of the context reaches it, or it is no memory.
 * @retval ACS_ERR_DEVICE    the device is lost.
 * @retval ACS_ERR_STATE     a closed context, or one that may not be used here. As acs_open where the default one
 *                           cannot be opened.
 */
acs_status acs_reaches(acs_context *context, const void *ptr);

/* -------------------------------------------------------------------------------------------------- several devices */

enum { ACS_ANY_DEVICE = -1 };

/**
 * How many devices the context has (ACS_DEVICES), which it numbers from 0. Device 0 is the GPU that was current in acs_open.
 * The GPUs after it follow, and GPU 0 comes after the last. With ACS_DEVICES_PER_GPU the same round is made again.
 * @param context  NULL: the default context, opened if need be.
 * @return the number; -1 on failure, see acs_last_error: ACS_ERR_STATE for a closed context, and for one that may not
 *         be used here; as acs_open where the default one cannot be opened.
 */
int acs_devices(acs_context *context);

/**
 * Choose a device for the calling thread, until its next such call: its ops run there, as far as they can, and
 * acs_malloc gives it memory of that device. Ops on memory that belongs to another device and does not move run on that
 * other device. ACS_ON in a launch has precedence. A hint: results do not depend on it. A thread has a choice for one
 * context at a time: a call for another context ends the choice for the first.
 * @param context  NULL: the default context, opened if need be.
 * @param device   ACS_ANY_DEVICE: ACS_POLICY chooses, and memory is of device 0.
 * @retval ACS_ERR_ARGUMENT  the context has no such device; the thread's choice stays.
 * @retval ACS_ERR_STATE     a closed context, or one that may not be used here. As acs_open where the default one
 *                           cannot be opened.
 */
acs_status acs_on(acs_context *context, int device);

/* ------------------------------------------------------------------------------------------------------------ waits */

/**
 * Wait until every op queued so far has retired. The waiting thread steps the runtime itself.
 * @return ACS_OK, or the status of the first uncleared error. Errors of refused calls count, as acs_launch says;
 *         ACS_ERR_FULL of a call with no_wait does not.
 */
acs_status acs_sync(acs_context *context);

/**
 * Wait for one op. A kernel that went in a bundle is known to have ended when the kernels before it in the bundle have
 * ended, too. That is at the latest the end of the whole bundle (docs/issue-methods.md).
 * @return ACS_OK; ACS_ERR_LAUNCH, _HOST, _SKIPPED, _DEVICE as the op ended; ACS_ERR_ARGUMENT for a number that was not
 *         given out yet. One that repeats left out (docs/repeats.md) counts as an op that has ended well.
 *         ACS_ERR_ARGUMENT also tells of a grid above its maximum, of any op: the first wait that sees it returns it.
 */
acs_status acs_wait(acs_context *context, acs_op op);

/** As acs_wait without waiting: ACS_NOT_READY if it has not retired. Steps the runtime once while no worker is awake. */
acs_status acs_query(acs_context *context, acs_op op);

/**
 * Wait for the ops queued so far that conflict with an access of yours to a range; other ops go on.
 * @param access  The access that you are about to make: ACS_READ waits for writers and ops that commute, ACS_WRITE,
 *                ACS_UPDATE and ACS_COMMUTE for readers too.
 * @return ACS_OK; ACS_ERR_SKIPPED if one of these ops failed or was skipped (a writer; for a write of yours also a
 *         reader, which may still want the old bytes); ACS_ERR_DEVICE: nothing was waited for, and a host function or
 *         library call may still use the range until acs_sync returns.
 */
acs_status acs_wait_range(acs_context *context, const void *ptr, size_t bytes, acs_access access);

/**
 * Called when `op` has retired; `status` says how the op ended. Must not call ACS. Runs where host functions run; what
 * acs_host_op says of locks counts here too.
 */
typedef void (*acs_retire_fn)(void *user, acs_op op, acs_status status);

/**
 * Have `function` called once with `user` when `op` has retired (soon, if it has already).
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
 * being captured, with edges from their footprints, so that a serial program gets a parallel graph. No thread and no
 * stream of the library takes part. Ops that touch `uses` come behind the nodes that the stream captured before.
 * Kernels, copies, fills and library calls become nodes (docs/capture.md says how, and what each becomes). acs_host,
 * acs_free and acs_on_retire are refused with ACS_ERR_UNSUPPORTED, acs_sync and acs_wait_range with ACS_ERR_STATE. The
 * numbers of captured ops have ACS_OP_CAPTURED set and cannot be waited for.
 *
 * Ops of other threads, and ops launched before, run as always and are not part of the graph: order the graph's
 * launches against them as you order other work of yours. Between acs_after_stream and acs_stream_after, a
 * further call of them that names another stream of the same capture orders against that stream's nodes.
 *
 * @param stream  cudaStream_t; on the host backends ignored.
 * @return the op, or 0. ACS_ERR_STATE: the stream's capture was invalidated, or is another than the one that the
 *         thread's ops are in. ACS_ERR_UNSUPPORTED: the stream is not being captured while the thread's ops are.
 */
acs_op acs_after_stream(acs_context *context, void *stream, acs_uses uses);
/** The same with parameters: a call site, and no_wait. A retry takes what the stream has been given by then. */
acs_op acs_after_stream_op(acs_context *context, void *stream, acs_uses uses, const acs_op_params *params);

/**
 * Order work that the program gives to a foreign stream from now on behind the ops queued so far that conflict with `uses`.
 * Returns once those ops are issued; does not wait for their completion (it does on the host backends).
 *
 * Of a stream that is being captured, the next node comes behind the nodes of those ops. If acs_after_stream on this
 * stream began the capture of the thread's ops, this call ends that capture. Call it before cudaStreamEndCapture:
 * ACS_ERR_STATE after that. Errors as acs_after_stream; ACS_ERR_SKIPPED as acs_wait_range.
 */
acs_status acs_stream_after(acs_context *context, void *stream, acs_uses uses);

/* ----------------------------------------------------------------------------------------- graphs by footprints */

/**
 * Work that the program captures from a stream into a CUDA graph in its own way, piece by piece, with the footprint of
 * each piece. A piece is called an op here, too: kernels, copies, library calls, conditional nodes, whatever a stream can
 * capture. The ops get the edges that their footprints need, so a program that is captured from one stream becomes a
 * parallel graph. For engines whose launches pass one place, where acs_after_stream would change too much:
 * @code
 * cudaStreamBeginCapture(stream, mode);
 * acs_graph_begin(context, stream, &graph);
 * for each piece of work {
 *     give it to the stream, as ever;
 *     acs_graph_op(graph, stream, uses, site);
 * }
 * acs_graph_end(graph, stream, NULL, NULL);
 * cudaStreamEndCapture(stream, &result);
 * @endcode
 *
 * From acs_graph_begin to acs_graph_end the graph has no order but that inside each op. So do not run a graph of which
 * acs_graph_end failed or was not called. Work of the stream may not be ordered against other captured streams
 * meanwhile, unless the other stream's work is part of the same op. Memory nodes (cudaMallocAsync) are ops like others:
 * name the whole block as written.
 *
 * A body of a conditional node is a graph of its own: begin it once the stream captures into it, and end it before that
 * capture ends. acs_graph_params.body_of then adds what its ops touch to the conditional node's op. If the capture of a
 * graph is ended and begun again in between (cudaStreamBeginCaptureToGraph), call acs_graph_resume.
 *
 * A kernel that was launched with programmatic stream serialization (cudaLaunchAttributeProgrammaticStreamSerialization)
 * keeps its programmatic edge where it is still directly behind the kernel before it in the stream. Its other edges are
 * full. So the graph needs no more waits (cudaGridDependencySynchronize) than the stream's own capture does. A
 * footprint also names what the kernel touches before it waits.
 *
 * One thread at a time may use a graph, and not inside a callback or a footprint function. End or cancel it before
 * acs_close. Nothing here waits, and nothing runs. Ops of the context are not ordered against the graph: see
 * acs_after_stream for that. Inside a group of the thread acs_graph_op fails with ACS_ERR_STATE.
 */
typedef struct acs_graph acs_graph;

/** acs_graph_op: the stream captured nothing since the last call. */
#define ACS_GRAPH_NO_OP UINT64_MAX

/** For acs_graph_params.chains: edges are those that the footprints need, and no others. */
#define ACS_GRAPH_CHAINS_ANY UINT32_MAX

typedef struct acs_graph_params {
    size_t size;        /**< sizeof(acs_graph_params) */
    uint32_t chains;    /**< most ops of which no two are ordered. Ops are placed on so many chains, each behind the one
                             before it on its chain. 0: 8 for a graph with bodies, else 64; fewer where the graph is
                             narrow (docs/capture.md) */
    acs_graph *body_of; /**< graph with the conditional node whose body this graph is; NULL: none. It has not ended */
    uint64_t op;        /**< the op of that node: its footprint gets what this graph's ops touch */
} acs_graph_params;

/** Size and shape of a graph. Set `size` before passing it to a function. */
typedef struct acs_graph_report {
    size_t size;     /**< sizeof(acs_graph_report) of the caller */
    uint64_t ops;    /**< ops, in the order of their numbers from 1 */
    uint64_t nodes;  /**< ops that have nodes, and empty nodes that were added: one may take the place of many edges */
    uint64_t edges;  /**< edges that were added */
    uint64_t levels; /**< ops on the longest path; 0 with ACS_GRAPH_CHAINS_ANY */
    uint64_t chains; /**< chains that are used; 0 with ACS_GRAPH_CHAINS_ANY */
    uint64_t programmatic; /**< of the edges, those by which a kernel may begin before the one before it has ended */
} acs_graph_report;

/**
 * Begin. All that the stream captured before comes before the ops.
 * @param      stream  cudaStream_t that is being captured.
 * @param[out] graph   owned by the caller, until acs_graph_end or acs_graph_cancel. NULL after an error.
 * @retval ACS_ERR_ARGUMENT     `graph` is NULL.
 * @retval ACS_ERR_UNSUPPORTED  the context's backend has no captures, or the stream belongs to another device.
 * @retval ACS_ERR_STATE        the stream is not being captured, or its capture is void; or as for every call that takes
 *                              a context.
 * @retval ACS_ERR_MEMORY       no memory. After an error the capture is as before.
 */
acs_status acs_graph_begin(acs_context *context, void *stream, acs_graph **graph);

/**
 * All that the stream captured since the last call about this graph is one op, behind earlier ops that conflict with it.
 * @param uses  footprint; copied. A footprint function gets no arguments.
 * @param site  static storage, for errors; NULL: unknown.
 * @return the op's number in this graph, from 1. ACS_GRAPH_NO_OP: there is no such work. 0 with an error: a wrong
 *         footprint is reported as by acs_launch, and the op then counts as one that may touch anything. After
 *         ACS_ERR_STATE (the capture is over or void), ACS_ERR_MEMORY, or ACS_ERR_UNSUPPORTED (the work has edges with
 *         data) the graph cannot go on: cancel it.
 */
uint64_t acs_graph_op(acs_graph *graph, void *stream, acs_uses uses, const acs_site *site);

/**
 * Add to the footprint of an op of this graph: memory of which the program learns later that the op touches it.
 * @param uses  as for acs_graph_op. If it is refused the op's footprint is as before.
 * @retval ACS_ERR_ARGUMENT  the graph has no such op, or the footprint is wrong.
 * @retval ACS_ERR_MEMORY    no memory: cancel the graph.
 */
acs_status acs_graph_add_uses(acs_graph *graph, uint64_t op, acs_uses uses);

/**
 * Capture a fill of `bytes` bytes from `dst` with `value`, as an op. Where it can, the fill is a kernel of the library's
 * own: a fill node of CUDA takes 2.5 us of a graph's chain, a kernel less than 1. Other work that the stream captured
 * since the last call about this graph is an op before it, which may touch anything. The kernel's code stays loaded after
 * acs_close, so the graph may run then.
 * @return as acs_graph_op; ACS_GRAPH_NO_OP for no bytes. After an error there is no fill, and the graph may go on unless
 *         acs_graph_op says otherwise. ACS_ERR_LAUNCH: the device does not reach the memory.
 */
uint64_t acs_graph_memset(acs_graph *graph, void *stream, void *dst, int value, size_t bytes, const acs_site *site);

/** The stream captures into the graph again, after its capture was ended and begun anew. Errors as acs_graph_begin. */
acs_status acs_graph_resume(acs_graph *graph, void *stream);

/**
 * Give the graph its edges; the stream's next work comes behind all ops. Frees the list of ops, except on ACS_ERR_ARGUMENT.
 * @param      params  NULL: all zero.
 * @param[out] report  `size` set by the caller; may be NULL. Written, as far as it is known, also on failure.
 * @retval ACS_ERR_STATE     the capture is over or void.
 * @retval ACS_ERR_ARGUMENT  params->size is wrong, or body_of has no such op. The graph is as before.
 * @retval ACS_ERR_MEMORY, ACS_ERR_LAUNCH, ACS_ERR_DEVICE  edges could not be added: do not run the graph.
 */
acs_status acs_graph_end(acs_graph *graph, void *stream, const acs_graph_params *params, acs_graph_report *report);

/** Free the list of ops. The stream's graph then has no order between them: do not run it. NULL is allowed. */
void acs_graph_cancel(acs_graph *graph);

/* ----------------------------------------------------------------------------------------------------------- groups */

/** Largest number of ops that a group may hold. */
#define ACS_GROUP_OPS_MAX 4096

/**
 * Hold the ops that this thread launches on the context from now on, until acs_group_submit (HuntKTm, sections 5.3 and
 * 5.4: its *lazy engine*). The ops of the group are then known as a whole, so memory is planned before anything runs.
 * An ACS_LAZY block that was allocated and freed in the group has memory only from its first use to its last. Such
 * blocks share memory where they are not in use at the same time.
 *
 * Held are acs_free and kernels, copies, fills, host functions and library calls. The numbers of these ops have
 * ACS_OP_HELD set and mean nothing outside the group. acs_free returns the number of the latest held op. Their
 * arguments and footprints are checked, copied and computed in the call, as always. acs_malloc is not held; blocks of
 * other kinds than ACS_LAZY have memory at once.
 *
 * Waiting for ops that are held would last for ever. So acs_sync, acs_wait_range, acs_on_retire, acs_after_stream and
 * acs_stream_after are refused with ACS_ERR_STATE, and so is acs_wait for a held op. The context keeps such an error of
 * acs_on_retire, acs_after_stream and acs_stream_after, since program order has a hole. Ops of other threads go on as
 * always, before the group's ops or between them.
 *
 * @param ops_most  Largest number of ops to hold, at most ACS_GROUP_OPS_MAX; 0: 1024. One more op is refused with
 *                  ACS_ERR_FULL, which the context keeps unless the call has no_wait.
 * @retval ACS_ERR_STATE     the thread holds a group, of this context or another, or its ops are being captured.
 * @retval ACS_ERR_ARGUMENT  ops_most is too large.
 * @retval ACS_ERR_MEMORY    no memory to hold ops in. Nothing changed.
 */
acs_status acs_group_begin(acs_context *context, size_t ops_most);

typedef struct acs_group_params {
    size_t size;    /**< sizeof(acs_group_params) */
    uint32_t slots; /**< 0: ops are ordered by their footprints alone; blocks that are never in use at once in that order
                         share memory. n: the plan also assigns each op to one of n slots, and the ops of a slot run
                         one after the other. Fewer slots take less memory, and let less run at once */
    uint32_t reserved; /**< 0 */
} acs_group_params;

/** Size of a group and of its memory plan. Set `size` before passing it to a function. */
typedef struct acs_group_report {
    size_t size;           /**< sizeof(acs_group_report) of the caller */
    uint64_t ops;          /**< ops that were held */
    uint64_t blocks;       /**< ACS_LAZY blocks that were allocated and freed in the group */
    uint64_t memory_sum;   /**< bytes of these blocks, which they take without a plan */
    uint64_t memory_bound; /**< HuntKTm's upper bound of the bytes that they take at once, from each slot by itself
                                (section 5.4) */
    uint64_t memory_peak;  /**< bytes that the plan takes, reserved as one block */
    uint64_t slots;        /**< slots that the plan used */
    uint64_t threads;      /**< most threads that a kernel of a slot has, added up over the slots (HuntKTm, section 5.3) */
    uint64_t shared_bytes; /**< the same for bytes of shared memory; on a GPU with those that the code declares */
    uint64_t registers;    /**< the same for registers; 0: not known, as on the CPU */
    acs_op first, last;    /**< the group's ops have numbers from `first` to `last`, not in the order of their launches;
                                other threads' ops may be among them; 0: none was queued */
} acs_group_report;

/**
 * Queue the ops that this thread holds. They take their place in program order now. Among themselves they get an order
 * that their footprints allow: each op just before the op that needs it, copies to the host as soon as they can go.
 * Results are as in the order of the launches. Memory for the group's blocks is reserved as one block; where memory is
 * short, the call acts as acs_malloc. acs_free of other blocks happens behind the group's ops.
 * @param      params  NULL: all zero.
 * @param[out] report  `size` set by the caller; may be NULL. Written, as far as it is known, also on failure.
 * @return ACS_OK: the ops are queued, and the thread holds no group any more.
 *         ACS_ERR_STATE: the thread holds none; or the ledger (ACS_LEDGER) cannot be used, and the group is still held.
 *         ACS_ERR_MEMORY: there is no room for the plan or its memory. The group is still held: submit it again with
 *         fewer slots, or cancel it.
 *         With these errors the group is gone: ACS_ERR_DEVICE; ACS_ERR_LAUNCH: an op of the group needed memory beside
 *         the plan, and found none. That op and those behind it were not queued.
 * Blocks: while the FIFO is full, and as acs_malloc. On several devices (ACS_DEVICES) also while no device has room for
 * the group beside the groups that run. Groups get room in the order of the calls (HuntKTm, section 5.3, Algorithm 1).
 * With ACS_LEDGER also while other programs have the memory and may still give it, or for one that was overtaken too often.
 */
acs_status acs_group_submit(acs_context *context, const acs_group_params *params, acs_group_report *report);

/**
 * Forget the ops that this thread holds: none runs. Blocks that were freed in the group are freed.
 * @retval ACS_ERR_STATE  the thread holds none.
 */
acs_status acs_group_cancel(acs_context *context);

/* ---------------------------------------------------------------------------------------------------------- repeats */

/**
 * Begin a pass through a part of the program that recurs: a scene's substep, an iteration, an inference. The calling
 * thread's ops up to acs_repeat_end belong to it. The library learns the kernels of the first passes. From then on a
 * kernel that a pass launches again costs much less: it is only compared, and goes to the GPU in one launch with the
 * others. Results, errors and the order of ops are as without the two calls.
 *
 * A kernel is launched again if its function, block, grid's y and z, shared memory, call site, segments, and the number
 * and sizes of its arguments are those of a kernel of earlier passes. The arguments' values and the grid's x may differ.
 * Kernels that touch no common memory may come in any order.
 * A pass may leave kernels out, and may contain any other ops. Kernels that differ, and other ops, go the usual way.
 *
 * Kernels of a pass may be held back until it ends, or until the program waits for one of those that they share memory
 * with. So do not compute for long inside a pass. Their numbers (acs_op) may be less than those of ops that were queued
 * before, and may leave gaps. docs/repeats.md says where passes have no effect: with several devices, on the host
 * backend, in groups and captures, and with some options.
 *
 * Passes are found without these calls, too, unless ACS_REPEATS=named (docs/repeats.md). The first call in a context ends
 * that, since the program knows better.
 *
 * Takes a lock of the context. Neither waits nor queues anything, but for what automatic passes hold back.
 * @param context  NULL: the default context, opened if need be.
 * @param key      Names the part within the context. Any number; the same one for each pass through the part.
 * @return ACS_OK; as acs_open where the default context cannot be opened.
 * @retval ACS_ERR_STATE   this thread is in a pass, of any context, or another one is in a pass of this part. Nothing
 *                         changed: do not call acs_repeat_end for this call, since it would end the pass that is under way.
 * @retval ACS_ERR_MEMORY  Nothing changed.
 */
acs_status acs_repeat_begin(acs_context *context, uint64_t key);

/**
 * End the pass of the calling thread. Queues what is held back. After the first passes, and when their ops have changed,
 * the library computes dependencies here: some milliseconds for thousands of ops.
 * @retval ACS_ERR_STATE  this thread is in no pass of this context.
 */
acs_status acs_repeat_end(acs_context *context);

/* --------------------------------------------------------------------------------------------- errors of a context */

/**
 * The first failure since open or the last acs_clear.
 * @param[out] error  `size` set by the caller, may be NULL; untouched when there is none.
 * @return its status, or ACS_OK.
 */
acs_status acs_context_error(acs_context *context, acs_error *error);

/**
 * How one op ended. Failed and skipped ops are remembered until acs_clear: consecutive ops with one cause and call site
 * as one range, up to 65536 ranges. Where there are more, call sites are given up first (`site` and the text lack them).
 * Then, or where memory is exhausted, the exact record is given up, and a line is logged. Within some interval all ops that
 * are in no range then count as skipped, with `cause` 0 and a text that says so. Some of them may have ended well. This
 * function, acs_wait, acs_query, acs_wait_range and retire callbacks never say ACS_OK of an op that failed or was skipped.
 * @param[out] error  `size` set by the caller, may be NULL; untouched if the op has not failed. With ACS_ERR_DEVICE its
 *                    `op` is the first suspect. @return ACS_OK also for ops that have not failed yet.
 */
acs_status acs_op_error(acs_context *context, acs_op op, acs_error *error);

/**
 * Wait for all ops, then forget all failures, so that the program can go on. The context, and each op that ended with
 * ACS_ERR_DEVICE, keep that error for good.
 * @return ACS_OK, or ACS_ERR_DEVICE.
 */
acs_status acs_clear(acs_context *context);

/**
 * Let ACS_CHECK=writes, reads and all watch memory that acs_malloc did not make, as they watch blocks of acs_malloc: they
 * find kernels that change or read it without naming it. Ops can write it, and it stays until acs_check_unregister or
 * acs_close. Else the call only looks at its arguments. Any thread; waits while another thread's op is looked at.
 * @param ptr    Device memory, or memory of the process. Bytes that are in a block of acs_malloc too count as the block's.
 * @param bytes  More than 0. Each call needs an acs_check_unregister of its own; ranges may overlap.
 * @retval ACS_ERR_ARGUMENT  `ptr` is NULL, or `bytes` is 0 or too large; with all values of ACS_CHECK.
 * @retval ACS_ERR_MEMORY    no memory for the list. In both cases nothing has changed.
 */
acs_status acs_check_register(acs_context *context, const void *ptr, size_t bytes);
/**
 * No longer watch memory that acs_check_register was given. Call it before the memory is freed; it waits as that does.
 * @retval ACS_ERR_ARGUMENT  nothing that begins at `ptr` is registered. Not with other values of ACS_CHECK.
 */
acs_status acs_check_unregister(acs_context *context, const void *ptr);

/* ------------------------------------------------------------------------------------------------------- statistics */

/** Counters of a context since it was opened. */
typedef struct acs_statistics {
    size_t size;               /**< sizeof(acs_statistics); set by the caller */
    /**
     * Ops of callers (acs_wait_range is one), and copies of the runtime's own (`transfers` and others), which `copies` and
     * `levels` count, too. While kernels are replayed (`replays`) it may be too large; it is exact once all have ended.
     */
    uint64_t queued;
    uint64_t retired;          /**< queued ops that ended in any way */
    uint64_t failed, skipped;  /**< retired ops that did not end well */
    uint64_t kernels, copies, fills, host_functions, calls; /**< ops issued, by kind */
    uint64_t edges;            /**< dependencies found */
    uint64_t joins;            /**< join nodes made instead of many edges */
    uint64_t same_slot;        /**< dependencies kept because both ops went to one slot, in order */
    uint64_t waits_sent;       /**< waits sent to the backend */
    uint64_t waits_implied;    /**< waits dropped because other order implies them */
    uint64_t waits_complete;   /**< waits dropped because the upstream op was known to be complete */
    uint64_t marks;            /**< events recorded */
    uint64_t submissions;      /**< batches handed to the backend, bundles among them */
    uint64_t caller_waits;     /**< times that a caller found the FIFO full */
    uint64_t barriers;         /**< ops ordered behind everything because the index could not grow */
    uint64_t window_high;      /**< most ops in the window at once */
    uint64_t running_high;     /**< most ops issued and not retired at once, those that queue behind others included */
    /**
     * Longest chain of dependent ops, ended ones included: the critical path, in ops. Exact with ACS_STATS=1, as long
     * as the index of segments takes less than 64 MiB. Else a lower bound: a dependency on an op that has ended counts
     * where a later op names the same segment, but not always where segments only overlap. Where kernels are replayed it
     * may be too large, and without ACS_STATS=1 also too small (docs/repeats.md).
     */
    uint64_t levels;
    uint64_t slots_used;       /**< most slots open to new ops at once, of those that ACS_STREAMS allows */
    /**
     * Kernels issued, by issue method: the index is an ACS_ISSUE_ value; at ACS_ISSUE_AUTO: 0. The three launched_
     * fields below say why kernels of ACS_ISSUE_LAUNCH were launched.
     */
    uint64_t issued_by[ACS_ISSUE_COUNT];
    uint64_t bundles;          /**< submissions of kernels as one unit, by another issue method than launches */
    /** Bundles formed but not issued as a unit: not seen often enough, no room, or no issue method fits. */
    uint64_t bundles_refused;
    uint64_t launched_unfit;   /**< kernels launched because no other issue method fits them, or because there are no
                                    bundles (ACS_ISSUE=launch: all) */
    uint64_t launched_few;     /**< kernels launched because there were too few at once, or because a bundle was refused
                                    just before */
    uint64_t launched_refused; /**< kernels launched because the bundle that began with them was refused */
    uint64_t captured;         /**< ops that became nodes of a graph that the program captures; in no other count */
    uint64_t copies_as_kernels; /**< copies and fills issued as kernels of the library's own, which bundles can hold */
    uint64_t nodes_built;      /**< nodes of graphs built to be kept, 10 to 30 us each; the count should stop growing */
    uint64_t memory_live;      /**< bytes of device memory in blocks of acs_malloc that have not been freed,
                                    with ACS_POOL as they were rounded up */
    uint64_t memory_reserved;  /**< bytes that the device gave for such blocks; with ACS_POOL more than are in use */
    uint64_t memory_peak;      /**< most bytes in use at once, freed blocks that ops still used included */
    uint64_t memory_obtained;  /**< allocations that the device made for such blocks: with ACS_POOL few */
    uint64_t memory_resting;   /**< bytes in blocks that were freed and that ops may still use; in no other block */
    uint64_t memory_versions;  /**< ops that got fresh memory for the bytes that they write (ACS_RENAME) */
    uint64_t memory_homed;     /**< copies made to bring contents home */
    uint64_t memory_early;     /**< blocks handed out while earlier ops might still use them, so that their next users
                                    were ordered behind those ops */
    uint64_t memory_spilled;   /**< bytes of ACS_LAZY blocks copied to host memory, since device memory was short */
    uint64_t memory_returned;  /**< bytes of ACS_LAZY blocks copied back */
    uint64_t memory_moved;     /**< bytes of device memory mapped to other addresses, where memory was missing */
    uint64_t transfers;        /**< several devices: copies of the runtime's own between devices, and the host */
    uint64_t transfer_bytes;   /**< bytes of these copies */
    uint64_t calls_as_kernels; /**< of `calls`: kernels that repeatable calls came to, an op each; in no `issued_by` */
    /**
     * How many ops ran at once; with ACS_STATS=1 alone, else 0. On CPU threads these are the ops that threads were
     * inside of. On a device they are the ops that may have been running. An issued op counts from the time when all
     * work before it, in its stream and by dependencies, was seen to have ended. It counts until it is seen to end. A
     * device may run fewer ops, and is idle for longer. Host functions, and library calls on CPU threads, count while
     * they are called. Times are of the clock; on the sim backend of the simulated host.
     */
    uint64_t ran_high;         /**< most ops at once */
    uint64_t ran_ns;           /**< ops at once x time in ns; divided by (span_ns - idle_ns): the average while any ran */
    uint64_t span_ns;          /**< ns from the first begin to the latest end, or to now while anything runs */
    uint64_t idle_ns;          /**< ns of span_ns in which nothing ran */
    /** In passes: between acs_repeat_begin and acs_repeat_end, or those that are found without them. */
    uint64_t replays;          /**< times that ops of an earlier pass were queued again as one */
    uint64_t replayed;         /**< kernels that these came to, without those that were skipped */
    uint64_t unmatched;        /**< kernels queued by themselves: their first passes, and those that differed */
    uint64_t not_run;          /**< ops issued that did not run, since a word on the device said so (acs_if,
                                    acs_grid_from, acs_loop); decisions themselves are `kernels` */
    uint64_t undeclared;       /**< launches, refused ones too, that may touch anything: no declaration (acs_declare) */
    uint64_t unknown_memory;   /**< ops that may touch, or read, anything, since nobody knows the memory of a segment with
                                    ACS_WHOLE */
    uint64_t shares;           /**< launches issued to a part of a GPU (ACS_SHARE) */
    uint64_t shares_ignored;   /**< launches with ACS_SHARE that had the whole device: it cannot be partitioned,
                                    or they are captured, or the device decides about them */
    uint64_t variants;         /**< launches whose version the runtime picked (acs_variants) */
    uint64_t trials;           /**< launches that were timed to learn which version is best; not among `variants` */
} acs_statistics;

/**
 * Read the counters.
 * @param[out] stats  `size` set by the caller.
 * @retval ACS_ERR_ARGUMENT  `size` is not set, or larger than the library's own: the header is another version's.
 */
acs_status acs_stats(acs_context *context, acs_statistics *stats);

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "acs_variants.h"

/* Call-site macros: ACS_LAUNCH, ACS_LAUNCH_ON, ACS_ARGS, ACS_USES, acs_memcpy, acs_memset, acs_host, acs_free. */
#ifdef __cplusplus
#include "acs_launch.hpp"
#else
#include "acs_launch.h"
#endif

#endif /* ACS_H */
