"""
Kernels, and how their arguments are packed. A kernel is a function of the GPU (an object of cuda.core, CuPy, numba-cuda or
Triton, or a CUfunction as a number), a body for the CPU, or both.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._arrays import escapes, inoutset, whole
from ._library import Arg, Grid, HOST_BODY, KernelStruct

_NO_FUNCTION, _HANDLE, _CUFUNCTION = 0, 2, 3
_VALUE, _POINTER = 0, 1

_CODES = {"pointer": "Q", "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
          "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}
_CTYPES = {ctypes.c_bool: "bool", ctypes.c_int8: "int8", ctypes.c_uint8: "uint8", ctypes.c_int16: "int16",
           ctypes.c_uint16: "uint16", ctypes.c_int32: "int32", ctypes.c_uint32: "uint32", ctypes.c_int64: "int64",
           ctypes.c_uint64: "uint64", ctypes.c_float: "float32", ctypes.c_double: "float64", ctypes.c_void_p: "pointer"}


class Packing:
    """The places of a kernel's arguments. `pack` writes them; a launch copies them."""

    __slots__ = ("types", "bytes", "list", "count", "pack")

    def __init__(self, types: Sequence[str]) -> None:
        self.types = tuple(types)
        offset, form, places = 0, "=", []
        for name in self.types:
            size = struct.calcsize("=" + _CODES[name])
            gap = -offset % size
            form += (f"{gap}x" if gap else "") + _CODES[name]
            places.append((offset + gap, size))
            offset += gap + size
        packer = struct.Struct(form)
        self.bytes = ctypes.create_string_buffer(max(offset, 1))
        base = ctypes.addressof(self.bytes)
        self.list = (Arg * len(places))(*[
            Arg(base + at, size, _POINTER if name == "pointer" else _VALUE) for (at, size), name in zip(places, self.types)])
        self.count = len(places)
        packed = self.bytes
        self.pack: Callable[..., None] = lambda *values: packer.pack_into(packed, 0, *values)


def _type_of(value: Any, place: int) -> str:
    known = _CTYPES.get(type(value))
    if known:
        return known
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(value, "shape", None) == () and not hasattr(value, "__cuda_array_interface__"):
        name = str(dtype)
        if name in _CODES:
            return name
        raise TypeError(f"acs: argument {place} (from 0) has the type {name}, which kernels do not take by value")
    if isinstance(value, (bool, int, float)):
        raise TypeError(f"acs: argument {place} (from 0) is a Python {type(value).__name__}, which does not say how many bytes it "
                        "has: give the kernel a signature, or the value a type (numpy.int32, ctypes.c_float)")
    return "pointer"


def _signature(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in _CODES:
            raise ValueError(f"acs: a signature has '{name}', which is none of {', '.join(_CODES)}")
    return names


def _gpu_function(function: Any) -> tuple[int, int]:
    """Address and kind of what a library of Python calls a kernel."""
    if isinstance(function, int):
        return function, _CUFUNCTION
    module = type(function).__module__
    if module.startswith("cuda.core"):
        handle = getattr(function, "handle", None) or getattr(function, "_handle")
        return int(handle), _HANDLE
    if module.startswith("cupy"):
        inner = getattr(function, "kernel", function)  # a RawKernel has a Function
        return int(inner.ptr), _CUFUNCTION
    if module.startswith("triton") and isinstance(getattr(function, "function", None), int):
        return function.function, _CUFUNCTION
    if module.startswith("numba") and hasattr(function, "overloads"):
        if len(function.overloads) != 1:
            raise TypeError(f"acs: the numba kernel has {len(function.overloads)} compiled versions: give the one to launch, "
                            "kernel.overloads[types]")
        (function,) = function.overloads.values()
    library = getattr(function, "_codelibrary", None)
    if library is not None:
        handle = library.get_cufunc().handle  # a CUkernel since numba-cuda took kernels from cuda.core, before a CUfunction
        kind = _HANDLE if type(handle).__name__ == "CUkernel" else _CUFUNCTION
        return int(getattr(handle, "value", handle)), kind
    raise TypeError(f"acs: an object of type {module}.{type(function).__name__} is no kernel that acs knows: give a kernel of "
                    "cuda.core, CuPy, numba-cuda or Triton, or its CUfunction as a number")


def _host_address(body: Any) -> int:
    if isinstance(body, int):
        return body
    address = getattr(body, "address", None)  # a cfunc of numba
    if isinstance(address, int):
        return address
    if isinstance(body, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(body, ctypes.c_void_p).value or 0
    raise TypeError(f"acs: an object of type {type(body).__name__} is no body for the CPU: give a function of ctypes, a cfunc "
                    "of numba, an address, or acs.host_body")


def _reader(name: str) -> Callable[[int], Any]:
    form = struct.Struct("=" + _CODES[name])
    return lambda address: form.unpack(ctypes.string_at(address, form.size))[0]


def host_body(signature: str) -> Callable[[Callable[..., None]], Any]:
    """
    Decorator: a Python function as a kernel's body for the CPU. It is called with the launch (``.grid``, ``.block``) and the
    values of the arguments; pointers are addresses. An exception in it is written to standard error, and the op counts as
    done, as for a kernel of a GPU.
    """
    readers = [_reader(name) for name in _signature(signature)]

    def decorate(function: Callable[..., None]) -> Any:
        def body(grid: Any, args: Any) -> None:
            function(grid.contents, *[read(args[i]) for i, read in enumerate(readers)])

        return HOST_BODY(body)

    return decorate


Named = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
"""What a launch reads, writes and updates."""

_NOTHING: Named = ((), (), ())
_PLACES = {"in": 0, "out": 1, "inout": 2, "inoutset": 2, "escapes": 2}


def _memory(value: Any, how: str, name: str) -> Any:
    """The memory of an argument: an array's own bytes; of an address the whole allocation in which it lies."""
    if isinstance(value, ctypes.c_void_p):
        value = value.value or 0
    if isinstance(value, (bool, float)):
        raise TypeError(f"acs: the footprint of kernel '{name}' has '{how}' for an argument that is no array and no address")
    if how == "escapes":
        return escapes(value)
    memory = whole(value) if isinstance(value, int) else value
    return inoutset(memory) if how == "inoutset" else memory


def _by_words(text: str, name: str) -> Callable[..., Named]:
    """The footprint that a word for each argument says."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in _PLACES and word != "none":
            raise ValueError(f"acs: the footprint of kernel '{name}' has '{word}', which is none of {', '.join(_PLACES)}, none")

    def footprint(*args: Any) -> Named:
        if len(args) != len(words):
            raise TypeError(f"acs: the footprint of kernel '{name}' has {len(words)} words, and the launch {len(args)} arguments")
        named: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for value, word in zip(args, words):
            if word != "none":
                named[_PLACES[word]].append(_memory(value, word, name))
        return tuple(named[0]), tuple(named[1]), tuple(named[2])

    return footprint


def _by_function(function: Callable[..., Any], name: str) -> Callable[..., Named]:
    """The footprint that a function of the program returns."""

    def footprint(*args: Any) -> Named:
        named = function(*args)
        if not isinstance(named, dict) or not named.keys() <= {"reads", "writes", "updates"}:
            raise TypeError(f"acs: the footprint function of kernel '{name}' must return a dict with reads, writes and updates")
        return tuple(named.get("reads", ())), tuple(named.get("writes", ())), tuple(named.get("updates", ()))

    return footprint


class Kernel:
    """
    A kernel that ops launch. Make it once, and launch it often.

    ``function``  of the GPU: a kernel of cuda.core, CuPy (RawKernel), numba-cuda or Triton, or a CUfunction as a number.
    ``host``      body for the CPU, with which the same launch runs without a GPU: a function of ctypes, a cfunc of numba, an
                  address, or a function with the decorator :func:`host_body`.
    ``signature`` types of the arguments, such as "pointer, int32, float32". Without one each launch takes them from the
                  values: arrays are pointers, and scalars need a type (numpy.int32, ctypes.c_float).
    ``name``      for errors and statistics.
    ``uses``      its footprint, for launches that name no arrays: see :func:`acs.declare`.
    ``variants``  its versions: see :func:`acs.variants`.
    """

    __slots__ = ("name", "struct", "at", "versions", "_keep", "_packing", "_by_types", "_uses", "__weakref__")

    def __init__(self, function: Any = None, *, host: Any = None, signature: str | None = None, name: str | None = None,
                 uses: str | Callable[..., Any] | None = None, variants: Mapping[str, Any] | None = None) -> None:
        if function is None and host is None:
            raise TypeError("acs: a kernel needs a function of the GPU, a body for the CPU, or both")
        self.name = name or getattr(function, "name", None) or getattr(function, "__name__", None) or "kernel"
        address, kind = _gpu_function(function) if function is not None else (0, _NO_FUNCTION)
        self.struct = KernelStruct(str(self.name).encode(), address, _host_address(host) if host is not None else 0, kind, 0)
        self.at = ctypes.pointer(self.struct)
        self._keep = (function, host)
        self._packing = Packing(_signature(signature)) if signature is not None else None
        self._by_types: dict[tuple[str, ...], Packing] = {}
        _structs.append(self.struct)  # the library keeps the address of the name
        self.declare(uses)
        self.versions: tuple[str, ...] = ("base",)
        if variants:
            from ._variants import variants as declare_versions
            declare_versions(self, variants)

    @property
    def types(self) -> tuple[str, ...] | None:
        """The types of its signature; None: it has none."""
        return self._packing.types if self._packing is not None else None

    def declare(self, uses: str | Callable[..., Any] | None) -> None:
        """As :func:`acs.declare`."""
        self._uses: Callable[..., Named] | None = None
        if callable(uses):
            self._uses = _by_function(uses, self.name)
        elif uses is not None and uses != "declared":
            self._uses = _by_words(uses, self.name)

    @property
    def is_declared(self) -> bool:
        """Whether Python declared what launches touch that name no arrays. Otherwise the library looks for what C declared."""
        return self._uses is not None

    def named(self, args: Sequence[Any]) -> Named:
        """What a launch that names no arrays reads, writes and updates."""
        return self._uses(*args) if self._uses is not None else _NOTHING

    def packing(self, args: Sequence[Any]) -> Packing:
        """The places of these arguments. A TypeError says which one does not fit."""
        packing = self._packing
        if packing is None:
            types = tuple(_type_of(value, place) for place, value in enumerate(args))
            packing = self._by_types.get(types)
            if packing is None:
                packing = self._by_types[types] = Packing(types)
        if len(args) != packing.count:
            raise TypeError(f"acs: kernel '{self.name}' takes {packing.count} arguments, and got {len(args)}")
        return packing

    def __repr__(self) -> str:
        return f"acs.Kernel({self.name!r})"


_structs: list[KernelStruct] = []


def plain_value(value: Any) -> Any:
    """What a scalar with a type is packed as."""
    return getattr(value, "value", value) or 0


def declare(kernel: Kernel, uses: str | Callable[..., Any] | None) -> None:
    """
    Declare what a kernel touches, once for all its launches that name no arrays themselves. ``uses`` is one of these:

    - a word for each argument, "in, inout, none": in, out, inout, inoutset (acs.inoutset), escapes (acs.escapes), none. Of an
      array the word counts for its bytes, of an address for the whole allocation in which it lies (acs.whole);
    - a function that gets the arguments of the launch and returns a dict with the lists reads, writes and updates;
    - "declared", or None: the footprint that acs_declare was given in C or C++, by the kernel's name for example. Without
      one the launch may touch anything. The launch keeps its arguments alive.
    """
    kernel.declare(uses)


__all__ = ["Grid", "Kernel", "declare", "host_body"]
