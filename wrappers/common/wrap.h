/*
 * What the wrappers share inside: errors, libraries that are opened at run time, how ops are queued, and handles. Not
 * installed. Every wrapper includes it; it knows no library.
 */
#ifndef ACS_WRAP_INTERNAL_H
#define ACS_WRAP_INTERNAL_H

#include "acs_wrap.h"

#include <stdatomic.h>
#include <stdbool.h>

/* ------------------------------------------------------------------------------------------------------------- errors */

/* Keep an error of the calling thread: "site: text". @return the status */
__attribute__((format(printf, 3, 4))) acs_status acs_wrap_fail(acs_status status, const acs_site *site,
                                                               const char *format, ...);

/* ACS itself refused an op of this thread: its error is the wrapper's, too. @return 0 */
acs_op acs_wrap_refused_by_acs(void);

/* Codes of ops that failed while they ran, of every wrapper. Those of a library follow its base. */
enum {
    ACS_WRAP_CODE_LIBRARY = 1, /* a library was not found */
    ACS_WRAP_CODE_MEMORY = 2,  /* no host memory */
    ACS_WRAP_CODE_SCRATCH = 3, /* the op's scratch_bytes are too few */
    ACS_WRAP_CODE_OTHER = 4,   /* first code that a wrapper gives a meaning of its own */
    ACS_WRAP_CODE_BASE = 1000
};

/* ---------------------------------------------------------------------------------------------------------- libraries */

/* A function of a library, and the function pointer that receives it. */
typedef struct acs_wrap_function {
    const char *name;
    void *to;
} acs_wrap_function;

/* Libraries that a wrapper needs, with the functions of each. Static storage; `state` and `why` begin as zeros. */
typedef struct acs_wrap_library {
    const char *file; /* "libcufft.so.12" */
    const acs_wrap_function *functions;
    size_t count;
} acs_wrap_library;

typedef struct acs_wrap_loader {
    const acs_wrap_library *libraries;
    size_t count;
    _Atomic int state; /* 0: not tried, 1: loaded, 2: failed. Written under a lock of load.c */
    char why[256];     /* written before `state` becomes 2 */
} acs_wrap_loader;

/* The name of a library's file, of the major version that its header has: others may have other signatures. */
#define ACS_WRAP_TEXT_(x) #x
#define ACS_WRAP_TEXT(x) ACS_WRAP_TEXT_(x)

/* For a list LIST(X) of functions: members of a struct, and the table that fills it, for a struct `g`. */
#define ACS_WRAP_MEMBER(function) __typeof__(&function) function;
#define ACS_WRAP_ROW(function) {#function, &g.function},

/* Whether the libraries are there; opened at the first call. If not, `why` is a sentence of static storage. */
bool acs_wrap_load(acs_wrap_loader *loader, const char **why);

/* What a wrapper says of its codes. */
typedef struct acs_wrap_codes {
    const char *library, *type;              /* "cuFFT", "cufftResult" */
    bool (*load)(const char **why);
    const char *(*text)(int status);         /* the library's own words, or NULL; may be NULL itself */
    const char *const *own;                  /* meanings of the codes from ACS_WRAP_CODE_OTHER, up to NULL; may be NULL */
} acs_wrap_codes;

/* A sentence about a code; as snprintf. */
size_t acs_wrap_code_text(const acs_wrap_codes *codes, int code, char *text, size_t bytes);

/* ---------------------------------------------------------------------------------------------------------------- ops */

/* What the ops of one wrapper have in common. */
typedef struct acs_wrap_kind {
    bool (*load)(const char **why); /* before the first op on a GPU */
    acs_call_fn run;
    const void *place_key;          /* NULL: no place */
    void (*place_destroy)(void *);
} acs_wrap_kind;

/* A prepared call has room for this closure. */
#define ACS_WRAP_ROOM(type)                                                                                            \
    _Static_assert(sizeof(type) <= ACS_WRAP_CLOSURE_WORDS * sizeof(uint64_t), "room for " #type)

/* Fewest bytes of scratch memory of an op that keeps state in it, or a handle by it (acs_wrap_handle). */
enum { ACS_WRAP_SCRATCH_LEAST = 256 };

/* What an op asks for, given what its library asked for. */
static inline size_t acs_wrap_scratch(size_t bytes)
{
    return bytes > ACS_WRAP_SCRATCH_LEAST ? bytes : ACS_WRAP_SCRATCH_LEAST;
}

/* Fill a call's parameters. Segments are already in `call`, `count` of them. The closure is copied. */
void acs_wrap_fill(acs_wrap_call *call, const acs_wrap_kind *kind, const acs_site *site, const void *closure,
                   size_t closure_bytes, size_t count, size_t scratch_bytes);

/* Queue a prepared op. `prepared`: what preparing it returned. Unless that is ACS_OK, `params` is not read. */
acs_op acs_wrap_queue(acs_context *context, acs_call_params *params, const acs_site *site, acs_status prepared,
                      bool (*load)(const char **why));

/* ACS_OK if the libraries are there, else the error. */
acs_status acs_wrap_load_status(bool (*load)(const char **why), const acs_site *site);

/*
 * Run a function as an op that touches nothing, and wait for it: what a library must be asked on the device before ops are
 * prepared. The function's closure holds a pointer to a copy of `argument`, `bytes` long. It answers there and returns 0, so
 * that the context keeps no failure. The answer is copied back. In captures and groups: ACS_ERR_STATE. In a group the
 * function may still run when the group is submitted, and so must own all that its argument points to. On the host backends
 * there is no library to ask: ACS_OK, and the function is not called.
 */
acs_status acs_wrap_ask(acs_context *context, const acs_site *site, acs_call_fn function, void *argument, size_t bytes,
                        bool (*load)(const char **why));

/* ------------------------------------------------------------------------------------------------------------ handles */

/*
 * A handle that no two running ops share: one for each slot, and in captures one for each block of scratch memory. Calls
 * of a graph that may run at once have different blocks. So ops that take a handle, or a work area, ask for
 * ACS_WRAP_SCRATCH_LEAST bytes at least.
 */
typedef struct acs_wrap_handle_type {
    int (*create)(void **handle); /* returns 0 or a code */
    void (*destroy)(void *handle);
} acs_wrap_handle_type;

/* @return 0 or a code */
int acs_wrap_handle(const acs_call_env *env, const acs_wrap_handle_type *type, void **handle);
/* The place_destroy of ops whose place acs_wrap_handle fills. */
void acs_wrap_handles_destroy(void *place);

#endif
