"""What the benchmarks of engines on Warp share besides measure.py: hooks of ACS, counts of launches, loading of kernels."""
from __future__ import annotations

import argparse
import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import warp as wp

from engines import measure


def subject(mode: str, step: Callable[[], None], state: Callable[[], measure.State], through_acs: bool,
            **more: Any) -> measure.Subject:
    """A mode on Warp's device, with ACS hooked in or without."""
    return measure.Subject(mode, step, state, synchronize=wp.synchronize_device,
                           hooks=acs_hooks if through_acs else contextlib.nullcontext, **more)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks on Warp have."""
    options = measure.parser(description)
    options.add_argument("--device", help="Warp's name of the device; on cpu only modes that run there")
    return options


def device() -> dict[str, Any]:
    """What Warp says of its device."""
    found = wp.get_device()
    return {"device": found.name, "cuda_driver": wp.get_cuda_driver_version() if found.is_cuda else None,
            "cuda_toolkit": wp.get_cuda_toolkit_version() if found.is_cuda else None}


@contextlib.contextmanager
def acs_hooks(enabled: bool = True) -> Iterator[None]:
    """ACS is hooked into Warp inside of this block, for captures, for launches of its graphs and for eager launches."""
    if not enabled:
        yield
        return
    import acs.warp  # only modes that need it require it

    acs.warp.enable()
    try:
        yield
    finally:
        acs.warp.disable()


def acs_report() -> dict[str, Any]:
    """What ACS says about the last graph it captured: plain values, shown beside the row."""
    import acs.warp

    return dict(acs.warp.report() or {})


@contextlib.contextmanager
def launches_counted() -> Iterator[dict[str, int]]:
    """Counts kernel launches: `all` of the block, `captured` of its last capture. Bodies of loops count once in captures."""
    count = {"all": 0, "captured": 0}
    originals = {name: getattr(wp, name) for name in ("launch", "launch_tiled", "capture_begin", "capture_end")}
    before = 0

    def counted(launch: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            count["all"] += 1
            return launch(*args, **kwargs)
        return wrapper

    def begin(*args: Any, **kwargs: Any) -> Any:
        nonlocal before
        before = count["all"]
        return originals["capture_begin"](*args, **kwargs)

    def end(*args: Any, **kwargs: Any) -> Any:
        count["captured"] = count["all"] - before
        return originals["capture_end"](*args, **kwargs)

    wp.launch, wp.launch_tiled = counted(originals["launch"]), counted(originals["launch_tiled"])
    wp.capture_begin, wp.capture_end = begin, end
    try:
        yield count
    finally:
        for name, original in originals.items():
            setattr(wp, name, original)


def load_modules(step: Callable[[], None], workers: int) -> int:
    """Compiles and loads what a step launches, on several threads, without launching it. Returns the number of modules.

    Modules with generic kernels are left to the first launch, which knows the types.
    """
    found: dict[int | None, set[Any]] = {}
    launch, launch_tiled = wp.launch, wp.launch_tiled
    signature = inspect.signature(launch)

    def note(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs).arguments
        module = bound["kernel"].module
        if not any(kernel.is_generic for kernel in module.kernels.values()):
            found.setdefault(bound.get("block_dim"), set()).add(module)

    wp.launch, wp.launch_tiled = note, note
    try:
        step()
    finally:
        wp.launch, wp.launch_tiled = launch, launch_tiled
    for block_dim, modules in found.items():
        wp.force_load(wp.get_device(), list(modules), block_dim, max_workers=workers)
    return len(set().union(*found.values()))
