#!/usr/bin/env python3
"""ACS inside PyTorch's graph capture: the serial program of chains.cu becomes a graph as wide as its rows.

usage: capture.py LIBRARY       the shared library made of chains.cu, for example libtorch_chains.so
Exit status: 0, 1 if a result is wrong, 77 where PyTorch or a GPU is missing.
"""
import ctypes
import sys
import time

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)

ROWS, COUNT, STEPS, GAIN = 32, 4096, 20, 0.5


def call(library, name, tensor):
    """Run one of the library's programs on a tensor, in PyTorch's current stream."""
    rows, count = tensor.shape
    stream = torch.cuda.current_stream().cuda_stream
    if getattr(library, name)(ctypes.c_void_p(tensor.data_ptr()), rows, count, STEPS, ctypes.c_float(GAIN),
                              ctypes.c_void_p(stream)):
        text = ctypes.create_string_buffer(320)
        library.chains_error(text, ctypes.c_size_t(len(text)))
        raise RuntimeError(f"{name}: {text.value.decode()}")


def expected(source):
    """What the program below computes, by PyTorch alone."""
    y = source * 2
    for _ in range(STEPS):
        y = y * GAIN + 1
    return y.sum(dim=1)


def program(library, name, source):
    """PyTorch's own work, the library's, PyTorch's again."""
    y = source * 2
    call(library, name, y)
    return y.sum(dim=1)


def capture(library, name, source):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = program(library, name, source)
    return graph, result


def microseconds(graph, repeats=50):
    graph.replay()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        graph.replay()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repeats * 1e6


def main():
    library = ctypes.CDLL(sys.argv[1])
    source = torch.rand(ROWS, COUNT, device="cuda")
    bad = 0
    bad += not torch.allclose(program(library, "chains_run", source), expected(source))
    torch.cuda.synchronize()
    graph, result = capture(library, "chains_run", source)
    for _ in range(3):
        source.copy_(torch.rand_like(source))
        graph.replay()
        bad += not torch.allclose(result, expected(source))
    plain, _ = capture(library, "chains_plain", source)
    print(f"{ROWS} chains of {STEPS} kernels, one replay: {microseconds(plain):.0f} us as captured from the stream, "
          f"{microseconds(graph):.0f} us as captured through ACS")
    print("wrong" if bad else "right")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
