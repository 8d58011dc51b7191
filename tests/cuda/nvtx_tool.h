/*
 * A tool that takes NVTX ranges, as a profiler does: a shared library that NVTX loads where NVTX_INJECTION64_PATH
 * names it. It keeps what the domain's ranges say; a test asks for that by dlsym. It reads extended payloads by their
 * schemas, unless NVTX_TOOL_PLAIN is set: then it takes none, as older profilers do. Ranges may come from any thread;
 * the test reads them when no thread makes any. With NVTX_TOOL_WANTS the process fails at its end unless ranges are
 * balanced and the last one of several ops has that text.
 */
#ifndef NVTX_TOOL_H
#define NVTX_TOOL_H

enum { NVTX_TOOL_BYTES = 1024, NVTX_TOOL_KEPT = 4096, NVTX_TOOL_CATEGORIES = 16, NVTX_TOOL_FIELDS = 12 };

typedef struct nvtx_tool_field {
    char name[32];
    long long number;
    char text[16]; /* of a text, instead of the number */
} nvtx_tool_field;

typedef struct nvtx_tool_range {
    char text[NVTX_TOOL_BYTES];
    int registered;    /* number of the registered string; 0: the message is none */
    int category;
    int thread;        /* threads are numbered from 1 on */
    int depth;         /* ranges of its thread around it */
    int ended;         /* ranges that had begun when it ended, itself included; 0: it has not */
    long long payload; /* of a plain payload */
    int extended;      /* whether the payload has fields instead */
    int fields;
    nvtx_tool_field field[NVTX_TOOL_FIELDS];
} nvtx_tool_range;

typedef struct nvtx_tool_seen {
    int attached, domains, strings, schemas, pushed, popped, threads;
    int wrong; /* calls that break a rule of NVTX: other domain, pop without push, unknown handle or category */
    char domain[64];
    char category[NVTX_TOOL_CATEGORIES][32];
    int of_category[NVTX_TOOL_CATEGORIES];
    char last[NVTX_TOOL_BYTES];            /* message of the range of several ops that was pushed last */
    nvtx_tool_range range[NVTX_TOOL_KEPT]; /* by number of the push, modulo this */
} nvtx_tool_seen;

/* Its name is "nvtx_tool_look". */
typedef const nvtx_tool_seen *(*nvtx_tool_look_function)(void);

#endif
