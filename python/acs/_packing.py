"""What calls of Python give the library: sizes, numbers, values of arguments, footprints, and the line that called."""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

from . import _errors, _layout
from ._arrays import BYTES, CPU, READ, SOME_GPU, UPDATE, WHOLE, WRITE, Place, Span, gpu_of, on_gpu, pack_bytes, place
from ._kernels import plain_value
from ._library import Attributes, Site, failure_of, held

NUMBER_MOST = 1 << 64
_ANYTHING, _LOOK_UP = 1, 2  # of acs_uses.any

_sites: dict[tuple[CodeType, int], Any] = {}
_plain = frozenset((int, float, bool))  # values that are packed as they are


def site_of(depth: int) -> Any:
    """A pointer to the line that called a method, for errors and statistics; the library keeps it."""
    frame = sys._getframe(depth)
    key = (frame.f_code, frame.f_lineno)
    site = _sites.get(key)
    if site is None:
        name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        site = _sites[key] = ctypes.pointer(Site(name.encode(), frame.f_code.co_filename.encode(), frame.f_lineno))
    return site


def number_of(value: Any, what: str, most: int) -> int:
    """A whole number from 0 to below `most`."""
    if type(value) is int and 0 <= value < most:
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"acs: {what} is {value!r}; it must be a whole number") from None
    if not 0 <= number < most:
        raise _errors.ArgumentError(f"acs: {what} is {number}; it must be 0 to {most - 1}", _layout.ACS_ERR_ARGUMENT)
    return number


def sizes_of(value: int | Sequence[int], what: str) -> tuple[int, int, int]:
    if type(value) is int and 0 <= value < 1 << 32:
        return value, 1, 1
    sizes = (value,) if hasattr(value, "__index__") else tuple(value)  # type: ignore[arg-type]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"acs: {what} has {len(sizes)} sizes; it must have one to three")
    checked = tuple(number_of(size, f"a size of {what}", 1 << 32) for size in sizes)
    return checked + (1,) * (3 - len(checked))  # type: ignore[return-value]


def frozen(sizes: Any) -> Any:
    """Sizes that their owner cannot change: a launch with other ones then differs. A list never equals them."""
    return sizes if hasattr(sizes, "__index__") else tuple(sizes)


def rest_of_shape(shared_bytes: int, cooperative: bool, device: int | None,
                  wish: tuple[int, int, int]) -> tuple[int, Attributes]:
    """Shared memory and attributes of a launch. `wish`: share, variant and fit of the attributes."""
    on = 0 if device is None else number_of(device, "a device", 254) + 1
    return number_of(shared_bytes, "shared memory", NUMBER_MOST), Attributes(
        cooperative=cooperative, on=on, share=wish[0], variant=wish[1], fit=wish[2])


def refuse_no_bytes(memory: Span, what: str) -> None:
    """Names without bytes, all memory, and allocations whose size is not known are for footprints alone."""
    if memory.extent != BYTES or any(piece[1] == WHOLE for piece in memory.pieces):
        raise ValueError(f"acs: {what} must be bytes, not a token, all memory or a whole allocation: {memory!r}")


def start_of(memory: Span, what: str) -> int:
    """Where bytes without gaps begin."""
    refuse_no_bytes(memory, what)
    if memory.nbytes == 0:
        return memory.ptr
    if len(memory.pieces) != 1 or memory.pieces[0][2] != 1 or not memory.whole:
        raise ValueError(f"acs: {what} has gaps")
    return memory.pieces[0][0]


def touched_by(uses: Sequence[Any]) -> int:
    """
    acs_uses.any of an op without segments. One that names no arrays may touch anything, but for a launch whose kernel was
    declared: `uses` begins with the kernel or None, its arguments, and what it reads, writes and updates.
    """
    kernel = uses[0]
    if uses[2] or uses[3] or uses[4] or (kernel is not None and kernel.is_declared):
        return 0
    return _ANYTHING if kernel is None else _LOOK_UP


def footprint(reads: Any, writes: Any, updates: Any, seen: dict[int, Place]) -> tuple[bytes, int, int, tuple[Span, ...]]:
    """
    Segments of all arrays, packed, how many they are, the arrays' bytes, and spans that must live as long as the op, since a
    library lent memory to them. `seen`: arrays of this call whose memory is known.
    """
    packed, count, nbytes = [], 0, 0
    lent: list[Span] = []
    for arrays, access in ((reads, READ), (writes, WRITE), (updates, UPDATE)):
        for array in arrays:
            memory = array if type(array) is Span else seen.get(id(array)) or place(array)
            if isinstance(memory, Span):
                packed.append(memory.packed(access))
                count += len(memory.pieces)
                nbytes += memory.nbytes
                if type(memory.owner) is tuple and memory is not array:
                    lent.append(memory)
            elif memory[1]:
                packed.append(pack_bytes(*memory, access))
                count += 1
                nbytes += memory[1]
    return b"".join(packed), count, nbytes, tuple(lent)


class Reach:
    """
    Memory that kernels of a context on a GPU may touch. Touching any other ends the use of the GPU by the process, so arrays
    elsewhere are refused. What an array says of its GPU is enough where memory of this GPU was reached before.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.gpus: set[int | None] = {None}
        """Where memory is reached; None: where it is not known, which is the caller's affair."""

    def check(self, array: Any, ptr: int, gpu: int) -> None:
        """Refuse an array unless the context reaches it. `gpu`: what gpu_of says of it."""
        if not ptr:  # without elements
            return
        failure = failure_of(held.acs_reaches(self._handle, ptr))
        if failure is None:
            if gpu not in (CPU, SOME_GPU):
                self.gpus.add(gpu)
            return
        if not isinstance(failure, _errors.ArgumentError):
            raise failure
        array = array[0] if isinstance(array, tuple) else array  # of a span: with what its library lent
        where = "in pageable memory of the CPU" if gpu == CPU else f"on GPU {gpu}" if gpu != SOME_GPU else "elsewhere"
        raise _errors.ArgumentError(f"acs: an argument of type {type(array).__name__} is {where}, which kernels of the context do "
                                    "not reach", _layout.ACS_ERR_ARGUMENT)


def values_of(args: Sequence[Any], types: Sequence[str], seen: dict[int, Place], lent: list[Span],
              reach: Reach | None) -> list[Any]:
    """
    What arguments are packed as. The memory of arrays goes to `seen`, and to `lent` the spans that must live as long as the
    op: a library that lent memory to one may take it back when the span dies. `reach`: None on the CPU.
    """
    values: list[Any] = []
    for value, name in zip(args, types):
        kind = type(value)
        if kind is Span:
            values.append(value.ptr)
            if reach is not None and value.gpu not in reach.gpus:
                reach.check(value.owner, value.ptr, value.gpu)
        elif kind in _plain:
            values.append(value)
        elif name == "pointer" and kind is not ctypes.c_void_p:
            memory = seen[id(value)] = place(value)
            if isinstance(memory, tuple):
                values.append(memory[0])
            else:
                values.append(memory.ptr)
                lent.append(memory)
            if reach is not None and (gpu := gpu_of(value)) not in reach.gpus:
                reach.check(value, values[-1], gpu)  # type: ignore[arg-type]
        else:
            values.append(plain_value(value))
    return values


def refuse_gpu_arrays(arrays: Iterable[Any]) -> None:
    """What runs on the CPU cannot touch a GPU's memory: it would end the process."""
    for array in arrays:
        if on_gpu(array):
            raise _errors.ArgumentError(f"acs: an array of type {type(array).__name__} is in the memory of a GPU, and the "
                                        "context runs ops on the CPU", _layout.ACS_ERR_ARGUMENT)
