"""
Launches of Warp as ops: grid, arguments, footprint. A launch that recurs, with the kernel, dimensions and arrays of an earlier
one, is queued from what was packed then, if it can be seen that nothing of it has changed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp
from warp._src import codegen as _codegen
from warp._src import types as _types

from .._arrays import SEGMENT, UPDATE
from .._kernels import Kernel
from .._library import Arg, Dim3, LaunchParams, Uses
from .._packing import site_of
from ._functions import Range, address_of
from ._inference import KernelUses, kernel_uses
from ._ranges import touched
from ._recording import READS_ALL, pack
from ._values import is_array_in_arguments

MOST_RECURRING = 16384    # launches that are kept; an engine's step has up to 7000
MOST_DESCRIPTORS = 65536  # arrays, and launches that came once, that are told apart; an engine's step has some thousands
_GRID_MOST = (1 << 31) - 1        # blocks of a grid's x; a kernel with a loop takes the rest in turns
_LEAN_THREADS = 1 << 24           # threads of a grid's x, of kernels without a loop
_LEAN_MOST = (1 << 16) - 1        # blocks of their grid's y and z
_DESCRIPTOR_BYTES = ctypes.sizeof(_types.array_t)
_SCALARS = (int, float, np.number, np.bool_)
_INSIDE = (os.path.dirname(warp.__file__) + os.sep, os.path.dirname(__file__) + os.sep)


def launch_ranges(uses: KernelUses, addresses: Sequence[int]) -> list[Range] | None:
    """What a launch touches, from its packed arguments. None: anything."""
    if uses.everything == UPDATE:
        return None
    ranges = touched(uses, addresses)
    return [*ranges, READS_ALL] if uses.everything else ranges


def grid_of(threads: int, block: int, max_blocks: int, loops: bool) -> tuple[int, int, int]:
    """The grid with which Warp launches so many threads. ``loops``: the kernel has a loop over what its grid does not cover."""
    blocks = -(-threads // block)
    if loops:
        return min(blocks, max_blocks if max_blocks > 0 else _GRID_MOST), 1, 1
    x = min(blocks, _LEAN_THREADS // block)
    rows = -(-blocks // x)
    y = min(rows, _LEAN_MOST)
    return x, y, min(-(-rows // y), _LEAN_MOST)


def _is_scalar(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "_type_") and not issubclass(kind, (ctypes.Array, ctypes.Structure))


def _size_of(kind: Any, gradient: bool) -> int | None:
    """Bytes of a packed argument. None: not known."""
    if is_array_in_arguments(kind):
        plain = gradient or _types.matches_array_class(kind, _types.array)
        return ctypes.sizeof(_types.array_t if plain else _types.indexedarray_t)
    if isinstance(kind, _codegen.Struct):
        return ctypes.sizeof(kind.ctype)
    if _is_scalar(kind):
        return ctypes.sizeof(kind._type_)
    return ctypes.sizeof(kind) if isinstance(kind, type) and issubclass(kind, ctypes.Array) else None


def _argument_sizes(kernel: Any, adjoint: bool) -> list[int] | None:
    """Bytes of all packed arguments, the launch's dimensions first. None: one is not known."""
    kinds = [argument.type for argument in kernel.adj.args]
    sizes = [_size_of(kind, False) for kind in kinds]
    if adjoint:
        sizes += [_size_of(kind, True) for kind in kinds]
    known = [size for size in sizes if size]
    bounds = ctypes.sizeof(_types.launch_bounds_t((1,) * kernel.adj.kernel_dim))
    return [bounds, *known] if len(known) == len(sizes) else None


def _caller() -> Any:
    """The line outside of Warp that launches, as the library takes it."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, depth = frame.f_back, depth + 1
    return site_of(depth + 1)


class Function:
    """A kernel of the GPU, as ops launch it. It keeps its module loaded, since the library's graphs may hold the function."""

    __slots__ = ("kernel", "module", "op", "sizes", "uses", "_form", "_arguments")

    def __init__(self, function: int, kernel: Any, adjoint: bool, module: Any) -> None:
        self.kernel, self.module = weakref.ref(kernel), module
        self.op = Kernel(function, name=kernel.key)
        self.sizes = _argument_sizes(kernel, adjoint)
        self.uses = kernel_uses(kernel, adjoint)
        count = len(self.sizes or ())
        self._form = struct.Struct("@" + "QII" * count)  # as the library has arguments: address, bytes, type
        self._arguments = Arg * count

    def arguments(self, addresses: Sequence[int]) -> Any:
        """Its arguments, from where they lie."""
        values = [0] * (3 * len(addresses))
        values[::3], values[1::3] = addresses, self.sizes or ()
        return self._arguments.from_buffer(bytearray(self._form.pack(*values)))


class Launch:
    """A launch that is ready to be queued. Its arguments are read where they lie when it is queued; it keeps its dimensions."""

    __slots__ = ("function", "bounds", "args", "params", "at")

    def __init__(self, function: Function, grid: tuple[int, int, int], block: int, shared: int,
                 addresses: Sequence[int]) -> None:
        sizes = function.sizes
        assert sizes is not None
        self.function = function
        self.bounds = ctypes.create_string_buffer(ctypes.string_at(addresses[0], sizes[0]), sizes[0])
        self.args = function.arguments(addresses)
        self.args[0].value = ctypes.addressof(self.bounds)
        ranges = launch_ranges(function.uses, addresses[1:])
        segments = pack(ranges)
        self.params = LaunchParams(
            size=ctypes.sizeof(LaunchParams), kernel=function.op.at, grid=Dim3(*grid), block=Dim3(block, 1, 1),
            shared_bytes=shared, args=self.args, arg_count=len(sizes), site=_caller(), no_wait=1,
            uses=Uses(segments, len(segments) // SEGMENT.size, None, None, ranges is None))
        self.at = ctypes.addressof(self.params)


class Functions:
    """Kernels of the GPU by their addresses. ``known``: kernel, whether it is the adjoint, module."""

    def __init__(self, known: dict[int, tuple[Any, bool, Any]]) -> None:
        self._known = known
        self._functions: dict[int, Function] = {}

    def clear(self) -> None:
        """Forget all, so that their modules can be unloaded. No op of them may be left."""
        self._functions.clear()

    def launch(self, args: Sequence[Any]) -> Launch | None:
        """The launch that these arguments of Warp's runtime library mean. None: it cannot be an op."""
        _, function, threads, max_blocks, block, loops, cluster, shared, packed, _, recording = args
        found = self._find(address_of(function))
        if found is None or found.sizes is None or len(packed) != len(found.sizes):
            return None
        if cluster > 1 or recording is not None or block <= 0 or threads <= 0:
            return None
        return Launch(found, grid_of(threads, block, max_blocks, bool(loops)), block, shared, packed[:])

    def _find(self, address: int) -> Function | None:
        found = self._functions.get(address)
        if found is None:
            kernel, adjoint, module = self._known.get(address, (None, False, None))
            loaded = module() if module is not None else None
            if loaded is None:
                return None
            found = self._functions[address] = Function(address, kernel, adjoint, loaded)
        return found


class _Recurring:
    """A launch, and what must be as it was when it comes again."""

    __slots__ = ("launch", "kernel", "device", "module", "hasher", "execs", "kept", "scalars", "values", "structs")

    def __init__(self, launch: Launch, kernel: Any, concrete: Any, device: Any) -> None:
        loaded = launch.function.module
        self.launch, self.kernel, self.device = launch, weakref.ref(kernel), device
        self.module = concrete.module
        self.hasher = self.module.hashers.get(loaded.block_dim)
        self.execs = (device.context, loaded.block_dim)
        self.kept: list[Any] = []                               # packed arguments
        self.scalars: list[tuple[int, Any]] = []                # argument, where its value is written
        self.values: list[tuple[int, Any]] = []                 # argument, place of its address
        self.structs: list[tuple[int, Any, int, int, bytes]] = []  # argument, its memory, address, size, contents

    def add(self, index: int, value: Any, kind: Any) -> bool:
        """Note how an argument is packed. False: it cannot be seen whether it changes."""
        place = self.launch.args[index + 1]
        if value is None and is_array_in_arguments(kind):
            self._keep(place, kind.__ctype__())
        elif type(value) is warp.array:
            self.kept.append(value.ctype)
            return value.ctype is not None and ctypes.addressof(value.ctype) == place.value
        elif isinstance(value, _SCALARS):
            if kind in (_types.float16, _types.bfloat16) or not _is_scalar(kind):
                return False
            self.scalars.append((index, self._keep(place, kind._type_(value))))
        elif isinstance(kind, _codegen.Struct):
            memory = value.__ctype__()
            at, size = ctypes.addressof(memory), ctypes.sizeof(memory)
            self.structs.append((index, memory, at, size, ctypes.string_at(at, size)))
            return at == place.value and isinstance(value, _codegen.StructInstance)
        elif type(value) is kind and issubclass(kind, ctypes.Array):
            self.values.append((index, place))
            return ctypes.addressof(value) == place.value
        else:
            return False
        return True

    def _keep(self, place: Any, packed: Any) -> Any:
        self.kept.append(packed)
        place.value = ctypes.addressof(packed)
        return packed

    def renew(self, kernel: Any, args: Sequence[Any]) -> bool:
        """Write the values of this launch. False: something has changed, so that it must be packed anew."""
        module = self.module
        if (self.kernel() is not kernel or module.execs.get(self.execs) is not self.launch.function.module
                or module.hashers.get(self.execs[1]) is not self.hasher or module.has_unresolved_static_expressions):
            return False
        for index, memory, at, size, contents in self.structs:
            if getattr(args[index], "_ctype", None) is not memory or ctypes.string_at(at, size) != contents:
                return False
        for index, place in self.values:
            place.value = ctypes.addressof(args[index])
        for index, slot in self.scalars:
            slot.value = args[index]
        return True


class Memo:
    """
    Launches that may recur, by their arguments. Those that come a second time are kept. Not for several threads at once.
    Scalars and vectors count by their types, since their values are packed anew. Arrays count by what their descriptors hold,
    since temporary arrays are others each time. Warp makes a descriptor anew once its array has changed, so those that are
    kept here need not be read again.
    """

    def __init__(self) -> None:
        self._recurring: dict[tuple[Any, ...], _Recurring] = {}
        self._by_type: set[Any] = {type(None), int, float, bool}  # types of arguments whose values are packed anew
        self._seen: set[int] = set()                          # hashes of those that came once
        self._numbers: dict[tuple[int, bytes], int] = {}      # of what descriptors hold, and of types of elements
        self._known: dict[int, int] = {}                      # the same of descriptors that are kept, by their ids
        self._kept: list[Any] = []                            # these descriptors, and types of elements
        self._next = itertools.count(1)

    def clear(self) -> None:
        """Forget all."""
        for each in (self._recurring, self._seen, self._numbers, self._known, self._kept):
            each.clear()

    @staticmethod
    def key(kernel: Any, dim: Any, device: Any, block_dim: Any, max_blocks: Any) -> tuple[Any, ...] | None:
        """What tells launches apart, without their arguments. None: this one is not kept."""
        sizes = (dim,) if type(dim) is int else dim if type(dim) is tuple else tuple(dim) if type(dim) is list else (None,)
        for size in (*sizes, block_dim or 0, max_blocks):
            if not isinstance(size, int):  # 4.0 would be found as 4, which Warp refuses
                return None
        return None if 0 in sizes else (id(kernel), sizes, id(device), block_dim, max_blocks)

    def find(self, key: tuple[Any, ...], kernel: Any, args: Sequence[Any]) -> Launch | None:
        """The launch of this key with these arguments, if it is as it was."""
        found = self._recurring.get((*key, *self._arguments(args)))
        return found.launch if found is not None and found.renew(kernel, args) else None

    def add(self, key: tuple[Any, ...], launch: Launch, kernel: Any, args: Sequence[Any], device: Any) -> bool:
        """Keep a launch that was queued for the second time. Its arguments are still alive. False: it is not kept."""
        self._by_type.update(type(value) for value in args if isinstance(value, (*_SCALARS, ctypes.Array)))
        place = (*key, *self._arguments(args))
        if hash(place) not in self._seen:
            if len(self._seen) >= MOST_DESCRIPTORS:
                self._seen.clear()
            self._seen.add(hash(place))
            return False
        concrete = launch.function.kernel()
        if concrete is None or len(launch.args) != len(args) + 1:
            return False
        found = _Recurring(launch, kernel, concrete, device)
        for index, (value, argument) in enumerate(zip(args, concrete.adj.args)):
            if not found.add(index, value, argument.type):
                return False
        if len(self._recurring) >= MOST_RECURRING:
            self.clear()  # also the numbers of arguments, of which `place` has some
        self._recurring[(*key, *self._arguments(args))] = found
        for value in args:
            if type(value) is warp.array and id(value.ctype) not in self._known:
                self._known[id(value.ctype)] = self._number(value)
                self._kept.append(value.ctype)
        return True

    def _arguments(self, args: Sequence[Any]) -> list[Any]:
        by_type, array, known, number = self._by_type, warp.array, self._known, self._number
        return [known.get(id(value.ctype)) or number(value) if type(value) is array
                else type(value) if type(value) in by_type else id(value) for value in args]

    def _number(self, value: Any) -> int:
        """The number of what an array's descriptor holds."""
        contents = id(value.dtype), ctypes.string_at(ctypes.addressof(value.__ctype__()), _DESCRIPTOR_BYTES)
        found = self._numbers.get(contents)
        if found is None:
            if len(self._numbers) >= MOST_DESCRIPTORS:
                self.clear()
            self._kept.append(value.dtype)
            found = self._numbers[contents] = next(self._next)
        return found
