"""
Versions of kernels, shares of a GPU, and times of launches (include/acs_variants.h): what the calls of the module give the
library, and what they make of its answers.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _errors, _layout
from ._kernels import _CODES, Kernel
from ._library import (Dim3, KernelStruct, Measured as _MeasuredStruct, MeasureParams, SHAPE, ShareInfo as _ShareStruct,
                       VariantStruct, check, free, held)
from ._packing import number_of, sizes_of

Shape = Callable[[tuple[Any, ...], tuple[int, int, int]], Any]
"""Called with the arguments of a launch and its grid; returns (grid, block), (grid, block, shared bytes) or None."""

_UNFIT, _FITS, _REFUSED = 0, 1, ctypes.c_size_t(-1).value  # ACS_SHAPE_UNFIT, ACS_SHAPE_FITS, ACS_FOOTPRINT_REFUSED
_MOST = 62  # ACS_VARIANTS_MOST

Wish = tuple[int, int, int]
NO_WISH: Wish = (0, 0, 0)
"""The fields share, variant and fit of acs_attributes."""

_kept: list[Any] = []  # the library keeps functions of versions, and ops that were queued use them, after a new declaration
_failed = threading.local()  # .error: what a function for shapes raised on this thread


def taken_failure() -> BaseException | None:
    """What a function for shapes raised in the latest call of this thread. It is told once."""
    failure, _failed.error = getattr(_failed, "error", None), None
    return failure


def _percent(value: int | None, what: str) -> int:
    if value is None:
        return 0
    number = number_of(value, what, 101)
    if number == 0:
        raise _errors.ArgumentError(f"acs: {what} is 0; it must be 1 to 100", _layout.ACS_ERR_ARGUMENT)
    return number


def wish_of(kernel: Kernel, share: int | None, variant: int | str | None, fit: int | None) -> Wish:
    """What a launch wants of the GPU and of the versions of its kernel."""
    if variant is None:
        number = 0
    elif isinstance(variant, str):
        number = version_number(kernel, variant) + 1
    else:
        number = number_of(variant, "a version", _MOST + 1) + 1
    return _percent(share, "a share"), number, _percent(fit, "what a version is to fit")


def version_number(kernel: Kernel, name: str) -> int:
    """The number of a kernel's version, which Python or C declared."""
    if name in kernel.versions:
        return kernel.versions.index(name)
    number = ctypes.c_uint32()
    check(held.acs_variant_number(kernel.at, name.encode(), ctypes.byref(number)))
    return number.value


def _called_back(shape: Shape, types: Sequence[str], name: str) -> Any:
    """A function for shapes as the library calls it."""
    forms = [struct.Struct("=" + _CODES[t]) for t in types]

    def call(given: Any, out: Any) -> int:
        try:
            launch = given.contents
            if launch.arg_count != len(forms) or any(launch.arg_bytes[i] != form.size for i, form in enumerate(forms)):
                return _REFUSED
            args = tuple(form.unpack(ctypes.string_at(launch.args[i], form.size))[0] for i, form in enumerate(forms))
            found = shape(args, tuple(launch.grid))
            if found is None:
                return _UNFIT
            if not isinstance(found, tuple) or not 2 <= len(found) <= 3:
                raise TypeError(f"acs: the shape function of version '{name}' returned {found!r}; it must return (grid, block) "
                                "or (grid, block, shared bytes), or None for a launch that the version cannot run")
            to = out.contents
            to.grid, to.block = Dim3(*sizes_of(found[0], "a grid")), Dim3(*sizes_of(found[1], "a block"))
            to.shared_bytes = number_of(found[2], "shared memory", 1 << 64) if len(found) == 3 else 0
            return _FITS
        except BaseException as error:  # it must not cross the library
            _failed.error = error
            return _REFUSED

    return SHAPE(call)


def _row(kernel: Kernel, name: str, version: Any) -> VariantStruct:
    of, shape = version if isinstance(version, tuple) else (version, None)
    if not isinstance(of, Kernel):
        raise TypeError(f"acs: version '{name}' of kernel '{kernel.name}' is an object of type {type(of).__name__}; it must be "
                        "an acs.Kernel, or one with a function for its shape")
    types = kernel.types
    if shape is not None and types is None:
        raise TypeError(f"acs: kernel '{kernel.name}' has no signature, so the shape function of version '{name}' cannot know "
                        "the arguments")
    if types is not None and of.types is not None and types != of.types:
        raise ValueError(f"acs: version '{name}' takes ({', '.join(of.types)}), and kernel '{kernel.name}' "
                         f"({', '.join(types)}); they must take the same")
    function = _called_back(shape, types or (), name) if shape is not None else SHAPE()
    _kept.append((of, function))
    return VariantStruct(name.encode(), ctypes.cast(of.at, ctypes.POINTER(KernelStruct)), function, None)


def variants(kernel: Any, versions: Mapping[str, Any]) -> None:
    """
    Declare the versions of a kernel, for all later launches that name it. Each has a name, and is a Kernel that takes the same
    arguments and touches the same bytes, or a tuple of such a Kernel and a function for its shape. The function is called with
    the arguments of a launch (of arrays the addresses) and the launch's grid. It returns (grid, block), (grid, block, shared
    bytes), or None if the version cannot run this launch. Without a function the version runs in the launch's own shape.
    The kernel itself is the version "base". An empty dictionary takes back what was declared.

    For kernels of :mod:`acs.triton` the versions are such kernels, too; the function returns the grid alone.
    """
    if hasattr(kernel, "declare_versions"):
        kernel.declare_versions(versions)
        return
    if not isinstance(kernel, Kernel):
        raise TypeError(f"acs: an object of type {type(kernel).__name__} gets versions; make an acs.Kernel of it")
    rows = (VariantStruct * len(versions))(*[_row(kernel, name, version) for name, version in versions.items()])
    check(held.acs_variants(kernel.at, rows, len(versions)))
    _kept.append((kernel, rows))
    kernel.versions = ("base", *versions)


@dataclass(frozen=True)
class ShareInfo:
    """What a share of a device comes to."""

    sms: int
    """Multiprocessors that a launch with this share gets."""
    device_sms: int
    step_sms: int
    """Multiprocessors in the smallest part; 0: the device cannot be partitioned."""
    places: int
    """Different sets of multiprocessors that launches of this share are spread over."""
    reason: str
    """Why the device cannot be partitioned; empty: it can."""


@dataclass(frozen=True)
class Measured:
    """Times of a launch on the device, in microseconds."""

    us: float
    """Median of the runs."""
    least_us: float
    beside_us: float
    """Time of one run of the launch beside it, alone, before the runs; 0: there was none."""
    runs: int
    share_ignored: bool
    """The device cannot be partitioned, so the launch had the whole of it."""


def share_info(handle: int, percent: int, device: int) -> ShareInfo:
    """See Context.share_info."""
    info = _ShareStruct(size=ctypes.sizeof(_ShareStruct))
    check(free.acs_share_find(handle, number_of(device, "a device", 254), number_of(percent, "a share", 1 << 32),
                              ctypes.byref(info)))
    return ShareInfo(info.sms, info.device_sms, info.step_sms, info.places, info.reason.decode(errors="replace"))


def measuring(handle: int, launch: Any, share: int | None, runs: int, beside: Any,
              beside_share: int | None) -> tuple[Callable[[], int], Callable[[], Measured], list[BaseException | None]]:
    """The call that measures a prepared launch, what then returns its times, and what a function for shapes raised."""
    how = MeasureParams(size=ctypes.sizeof(MeasureParams), share=_percent(share, "a share"),
                        runs=number_of(runs, "a number of runs", 1 << 32),
                        beside=beside._at if beside is not None else None, beside_share=_percent(beside_share, "a share"))
    result = _MeasuredStruct(size=ctypes.sizeof(_MeasuredStruct))

    failures: list[BaseException | None] = []

    def call() -> int:  # maybe on a thread that waits in place of the main one
        status = int(free.acs_measure(handle, launch._at, ctypes.byref(how), ctypes.byref(result)))
        failures.append(taken_failure())
        return status

    def times() -> Measured:
        return Measured(result.us, result.least_us, result.beside_us, result.runs, bool(result.share_ignored))

    return call, times, failures


__all__ = ["Measured", "ShareInfo", "variants"]
