"""
A picture and a number: python -m acs.demo. The pixels of a picture are shuffled, and lie in memory as strips. Each of about
2000 kernels sorts the pixels of two strips that are neighbours. Launched in program order they put the picture together
again: by odd-even transposition, so that each kernel depends on two kernels before it, and on no others.

The same launches run twice: one after another on one stream, and through ACS. On a GPU the kernel is compiled by CuPy or
cuda.core. On the CPU it is qsort of the C library, which ctypes calls without the interpreter's lock, so that kernels run
side by side.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import os
import random
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

import acs

SIZES = {"host": (768, 512), "cuda": (384, 256)}  # of the picture, so that a kernel takes about 0.2 ms
STRIPS = 64
PIXEL_BYTES = 8  # the place as text: three bytes that are not 0, and a 0; three colours; a 0
TIMES = 2        # runs of which the fastest counts: the first one of a GPU loads the kernel

SOURCE = r"""
__device__ unsigned place(unsigned long long pixel)
{
    return (unsigned)((pixel & 0xff) << 16 | (pixel & 0xff00) | (pixel >> 16 & 0xff));
}

extern "C" __global__ void sort_pixels(unsigned long long *pixels, int count)
{
    __shared__ unsigned long long before[PIXELS];
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        before[i] = pixels[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        unsigned mine = place(before[i]), rank = 0;
        for (int k = 0; k < count; k++)
            rank += place(before[k]) < mine;
        pixels[rank] = before[i];
    }
}
""".replace("PIXELS", str(2 * SIZES["cuda"][0] * SIZES["cuda"][1] // STRIPS))

_libc = ctypes.CDLL(None)
_libc.qsort.restype, _libc.qsort.argtypes = None, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
_strcmp = ctypes.cast(_libc.strcmp, ctypes.c_void_p)


@acs.host_body("pointer, int32")
def sort_on_cpu(grid: Any, pixels: int, count: int) -> None:
    _libc.qsort(pixels, count, PIXEL_BYTES, _strcmp)


def compile_for_gpu() -> Any:
    """The kernel as an object of CuPy or of cuda.core. An ImportError says that there is neither."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("cupy").RawKernel(SOURCE, "sort_pixels")
    try:
        core = importlib.import_module("cuda.core")
        if not hasattr(core, "Program"):
            core = importlib.import_module("cuda.core.experimental")
    except ImportError:
        raise ImportError("neither CuPy nor cuda.core is installed, which compile the kernel for the GPU "
                          "(pip install cupy-cuda13x)") from None
    device = core.Device()
    device.set_current()
    program = core.Program(SOURCE, code_type="c++", options=core.ProgramOptions(arch=f"sm_{device.arch}"))
    return program.compile("cubin").get_kernel("sort_pixels")


def choose(backend: str) -> tuple[str, acs.Kernel]:
    """Where it runs, and the kernel. "auto" takes the GPU if there is one, and something to compile for it."""
    function = None
    if backend != "host":
        try:
            acs.Context(backend="cuda").close()
            function = compile_for_gpu()
        except (acs.Error, ImportError) as error:
            if backend == "cuda":
                raise
            if isinstance(error, ImportError):
                print(f"There is a GPU, but {error}.")
    kernel = acs.Kernel(function, host=sort_on_cpu, signature="pointer, int32", name="sort_pixels")
    return ("host" if function is None else "cuda"), kernel


def draw(width: int, height: int) -> list[bytes]:
    """The Mandelbrot set: each pixel with its place, in order."""
    colours = []
    for y in range(height // 2):  # the lower half mirrors it
        row = []
        for x in range(width):
            c = complex(-2.3 + 3.3 * x / width, -1.1 + 2.2 * y / height)
            z, steps = 0j, 0
            while steps < 48 and abs(z) < 4:
                z, steps = z * z + c, steps + 1
            t = steps % 48 / 48
            row.append(bytes((int(2295 * (1 - t) * t**3), int(3825 * ((1 - t) * t)**2), int(2167 * (1 - t)**3 * t))))
        colours.append(row)
    pixels = []
    for at, colour in enumerate(colour for row in colours + colours[::-1] for colour in row):
        pixels.append(bytes((1 + at // 255**2, 1 + at // 255 % 255, 1 + at % 255, 0)) + colour + b"\0")
    return pixels


def run(kernel: acs.Kernel, shuffled: bytearray, **options: Any) -> tuple[float, bytes, bytes, dict[str, Any]]:
    """Seconds, the pixels half way and at the end, and statistics."""
    middle, end = bytearray(len(shuffled)), bytearray(len(shuffled))
    with acs.Context(fifo=4096, **options) as context:
        pixels, copied = context.malloc(len(shuffled)), context.malloc(len(shuffled))
        context.copy(pixels, shuffled)
        strip_bytes = len(shuffled) // STRIPS
        pairs = [pixels[strip * strip_bytes:(strip + 2) * strip_bytes] for strip in range(STRIPS - 1)]
        context.sync()
        begin = time.perf_counter()
        for turn in range(STRIPS):
            if turn == STRIPS // 2:
                context.copy(copied, pixels)  # behind the kernels before it, and before those that follow
            for pair in pairs[turn % 2::2]:
                context.launch(kernel, 1, 1024, (pair, 2 * strip_bytes // PIXEL_BYTES), updates=[pair])
        context.sync()
        seconds = time.perf_counter() - begin
        context.copy(middle, copied)
        context.copy(end, pixels)
        context.sync()
        return seconds, bytes(middle), bytes(end), context.stats()


@contextlib.contextmanager
def no_report() -> Iterator[None]:
    """Contexts with stats=True write a report to standard error when they close; here nobody asked for it."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def png(panels: list[bytes], width: int, height: int) -> bytes:
    """The pixels of pictures, side by side, as a file."""
    gap, lines = b"\xff" * 3 * 8, []
    for y in range(height):
        rows = [panel[y * width * PIXEL_BYTES:(y + 1) * width * PIXEL_BYTES] for panel in panels]
        lines.append(b"\0" + gap.join(b"".join(row[i:i + 3] for i in range(4, len(row), PIXEL_BYTES)) for row in rows))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(panels) * (width + 8) - 8, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(b"".join(lines))) + chunk(b"IEND", b""))


def show(path: str, wanted: str) -> int:
    """Run it, print what came out, and write the picture. Returns the exit status."""
    backend, kernel = choose(wanted)
    with open(path, "ab"):  # a path that cannot be written is said at once
        pass
    size = SIZES[backend]
    pixels = draw(*size)
    truth = b"".join(pixels)
    random.Random(1).shuffle(pixels)
    shuffled = bytearray().join(pixels)
    serial = min((run(kernel, shuffled, backend=backend, disable=True) for _ in range(TIMES)), key=lambda r: r[0])
    ours = min((run(kernel, shuffled, backend=backend) for _ in range(TIMES)), key=lambda r: r[0])
    with no_report():
        watched = run(kernel, shuffled, backend=backend, stats=True)
    kernels = ours[3]["kernels"]
    where = "the GPU" if backend == "cuda" else f"the CPU ({len(os.sched_getaffinity(0))} processors)"
    print(f"{kernels} kernels on {where} put {len(pixels)} shuffled pixels in order, in {STRIPS} strips, two by two.")
    print(f"One after another {serial[0] * 1e3:.0f} ms, through ACS {ours[0] * 1e3:.0f} ms: {serial[0] / ours[0]:.1f} times as "
          f"fast. At most {watched[3]['ran_high']} ran at once.")
    same = serial[1:3] == ours[1:3] == watched[1:3]
    right = ours[2] == truth
    print("The pictures have " + ("the same bytes, and " if same else "DIFFERENT bytes, and ") +
          ("each pixel is in its place." if right else "pixels are in WRONG places."))
    with open(path, "wb") as file:
        file.write(png([bytes(shuffled), ours[1], ours[2]], *size))
    print(f"{os.path.abspath(path)}: before, half way, and after.")
    return 0 if same and right else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m acs.demo", description="A picture and a number: kernels in program "
                                     "order, on one stream and through ACS.")
    parser.add_argument("--out", default="acs-demo.png", metavar="FILE", help="the picture (PNG); %(default)s")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "host"),
                        help="host: the CPU; cuda: the GPU; auto: the GPU if there is one, and CuPy or cuda.core")
    options = parser.parse_args()
    try:
        return show(options.out, options.backend)
    except (acs.Error, ImportError, OSError) as error:
        print(f"acs.demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
