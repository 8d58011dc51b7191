/*
 * A tool that takes NVTX ranges, as a profiler does: a shared library that NVTX loads where NVTX_INJECTION64_PATH
 * names it. It keeps what the domain's ranges say; a test asks for that by dlsym. One thread.
 */
#ifndef NVTX_TOOL_H
#define NVTX_TOOL_H

enum { NVTX_TOOL_BYTES = 1024 };

typedef struct nvtx_tool_seen {
    int attached, domains, pushed, popped;
    char domain[64];
    char last[NVTX_TOOL_BYTES]; /* the message of the range that was pushed last */
} nvtx_tool_seen;

/* Its name is "nvtx_tool_look". */
typedef const nvtx_tool_seen *(*nvtx_tool_look_function)(void);

#endif
