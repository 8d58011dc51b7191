/*
 * ACS under ggml's CUDA backend: the calls that acs.patch adds to ggml. While ggml captures a compute graph from its one
 * stream, each piece of work gets the footprint of its tensors, so the CUDA graph becomes parallel. All calls are of the
 * thread that captures. With the adapter off (the default unless ACS_GGML=1) they do nothing.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

struct ggml_cuda_pool;
struct ggml_tensor;
struct ggml_cgraph;
struct cublasContext;
struct CUstream_st;

/* ---- called by ggml ---- */

/** The stream's capture has begun. */
void acs_ggml_begin(CUstream_st * stream);
/** `count` nodes from number `first` were given to the stream, as one piece of work. */
void acs_ggml_op(CUstream_st * stream, const ggml_cgraph * cgraph, int first, int count);
/** The capture is about to end. Aborts if the graph could not get its edges. */
void acs_ggml_end(CUstream_st * stream);
/** Whether a launch may overlap the one before it (programmatic dependent launch). */
bool acs_ggml_allows_pdl();
/** A pool for scratch memory that gives each op of a capture its own bytes. Takes over `pool`, used otherwise. */
std::unique_ptr<ggml_cuda_pool> acs_ggml_pool(std::unique_ptr<ggml_cuda_pool> pool);
/** Give the handle a workspace of this op's own, until the capture ends. Returns the handle. */
cublasContext * acs_ggml_cublas(cublasContext * handle, void * workspace, size_t bytes);

/* ---- called by the program ---- */

struct acs_ggml_settings {
    bool     on         = false;     /**< next captures get their edges from ACS */
    bool     pdl        = true;      /**< programmatic dependent launch */
    bool     own_cublas = true;      /**< a cuBLAS workspace for each op; false: ops that use a handle follow each other */
    uint32_t chains     = 0;         /**< acs_graph_params.chains */
    size_t   scratch    = 1ull << 30; /**< bytes of scratch memory for captures, a ring; from the first capture on */
};

/** Set before the first capture; `on`, `pdl`, `own_cublas`, `chains` may change between captures. */
acs_ggml_settings & acs_ggml();

struct acs_ggml_report {
    uint64_t ops = 0, nodes = 0, edges = 0, levels = 0, chains = 0; /**< of acs_graph_end */
    uint64_t any       = 0; /**< ops without a footprint */
    uint64_t scratch   = 0; /**< bytes of scratch memory that were given out */
    uint64_t wraps     = 0; /**< times that the ring began again: later ops then wait for earlier ones */
    uint64_t programmatic = 0; /**< programmatic edges between ops */
    uint64_t capture   = 0; /**< number of the capture in this thread, from 1; 0: there was none */
};

/** About this thread's last capture through ACS. */
acs_ggml_report acs_ggml_last();

/** Open the context of ACS now. Otherwise the first capture opens it. */
void acs_ggml_open();
/** Close it. No capture may be under way. */
void acs_ggml_close();

/* ---- footprints, also usable without a GPU ---- */

/** `rows` rows of `row_bytes` bytes, `pitch` apart, which an op reads, or may read and write. */
struct acs_ggml_range {
    uint64_t base, row_bytes, rows, pitch;
    bool     writes;
};

/**
 * The bytes that the nodes `first` to `first + count - 1` touch, computed as one piece.
 * @param[out] ranges  The ranges are appended.
 * @return whether the footprint is known. False: the piece may touch anything.
 */
bool acs_ggml_footprint(const ggml_cgraph * cgraph, int first, int count, std::vector<acs_ggml_range> & ranges);
