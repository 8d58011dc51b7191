"""What wp.launch costs the caller, by itself and in a region of acs.warp. See README.md."""
from __future__ import annotations

import argparse
import contextlib
import ctypes
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "python"), str(HERE.parent.parent / "python" / "tests")]

import numpy as np  # noqa: E402
import warp as wp  # noqa: E402

import acs  # noqa: E402
import acs.warp  # noqa: E402
from acs.warp import _hooks, _launches, _regions  # noqa: E402
from warp_kernels import Pair, add, add_pair  # noqa: E402

N = 256
LAUNCHES, BATCHES = 200, 15  # launches between two waits for the device; the best batch counts


@wp.kernel
def many(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float),
         e: wp.array(dtype=float), f: wp.array(dtype=float), g: wp.array(dtype=float), h: wp.array(dtype=float),
         j: wp.array(dtype=float), k: wp.array(dtype=float), m: wp.array(dtype=float), n: wp.array(dtype=float),
         o: wp.array(dtype=float), p: wp.array(dtype=float), by: float, count: int):
    i = wp.tid()
    a[i] = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + j[i] + k[i] + m[i] + n[i] + o[i] + p[i] + by


@contextlib.contextmanager
def made_up_gpu() -> Iterator[Any]:
    """Where there is no GPU: kernels that do nothing."""
    import warp_fake

    nothing = ctypes.CDLL(None).getpid

    def host_context(**options: Any) -> acs.Context:
        return acs.Context(backend="host")

    def host_kernel(function: int, *, name: str) -> acs.Kernel:
        return acs.Kernel(host=nothing, name=name)

    with warp_fake.gpu() as device, contextlib.ExitStack() as stack:
        for module, name, stand_in in ((_hooks, "Context", host_context), (_regions, "Context", host_context),
                                       (_launches, "Kernel", host_kernel)):
            stack.enter_context(mock.patch.object(module, name, stand_in))
        warp_fake.core().wp_cuda_launch_kernel.function = lambda *_: 0
        yield device


@contextlib.contextmanager
def without_memo() -> Iterator[None]:
    """Each launch comes for the first time."""
    add_again = _launches.Memo.add

    def add_first(memo: _launches.Memo, *args: Any) -> bool:
        memo._seen.clear()
        return add_again(memo, *args)

    with mock.patch.object(_launches.Memo, "find", lambda *_: None), mock.patch.object(_launches.Memo, "add", add_first):
        yield


def cost_us(launch: Callable[[], None], device: Any) -> float:
    """Microseconds that the caller spends in a launch. It never waits: the device, or the library, takes all of a batch."""
    best = float("inf")
    for _ in range(BATCHES):
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        best = min(best, (time.perf_counter() - begin) / LAUNCHES)
        wp.synchronize_device(device)
    return best * 1e6


def measure(device: Any) -> None:
    rows = [wp.array(np.ones(N, dtype=np.float32), device=device) for _ in range(14)]
    pair = Pair()
    pair.source, pair.to, pair.by = rows[0], rows[1], 1.0
    cases: dict[str, Callable[[], None]] = {
        "3 arguments": lambda: wp.launch(add, N, [rows[0], rows[1], 0.5], device=device),
        "a struct": lambda: wp.launch(add_pair, N, [pair], device=device),
        "16 arguments": lambda: wp.launch(many, N, [*rows, 0.5, 3], device=device),
    }
    print("| launch of | Warp | in a region | there, for the first time |\n| --- | --- | --- | --- |")
    for name, launch in cases.items():
        launch()
        plain = cost_us(launch, device)
        acs.warp.enable()
        with acs.warp.out_of_order(device):
            region = cost_us(launch, device)
            with without_memo():
                anew = cost_us(launch, device)
        acs.warp.disable()
        print(f"| {name} | {plain:.1f} | {region:.1f} | {anew:.1f} |", flush=True)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    wp.init()
    is_real = wp.is_cuda_available()
    with contextlib.nullcontext(wp.get_device("cuda:0")) if is_real else made_up_gpu() as device:
        print(f"{device.name if is_real else 'no GPU'}, us a launch")
        measure(device)


if __name__ == "__main__":
    main()
