"""
Arrays of any library as memory: their address, and the segments that an op touches through them. Understood are
``__cuda_array_interface__`` (CuPy, numba-cuda, PyTorch, JAX, Warp), ``__array_interface__`` (NumPy), PyTorch tensors on the
CPU, DLPack, and objects with the buffer protocol.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable
from typing import Any, Union

READ, WRITE, UPDATE, COMMUTE, ESCAPE = 1, 2, 3, 7, 11
BYTES, EXTENT_ALL, _TOKEN = 0, 1, 2
WHOLE = 1 << 63   # ACS_WHOLE
_TILES_MOST = 64  # most tiles for one array; of more dimensions the bytes between them are touched, too
_DLPACK_CPU, _DLPACK_CUDA = 1, 2
CPU, SOME_GPU = -1, -2
SEGMENT = struct.Struct("=QQQQBBHI")


class Span:
    """
    Memory that ops name: where it begins, and which bytes from there on. Made once of an array, it saves the time to look
    at the array in each launch. It keeps the array alive.
    """

    __slots__ = ("ptr", "nbytes", "pieces", "whole", "extent", "owner", "gpu", "commutes", "escapes", "_packed")
    owner: Any
    """The array; or a tuple of it and what its library lent, which must live as long as ops use the memory."""

    def __init__(self, ptr: int, pieces: Iterable[tuple[int, int, int, int]], owner: Any = None, whole: bool = True,
                 extent: int = BYTES) -> None:
        """``pieces``: address, bytes of a row, rows, bytes between the starts of rows. ``whole``: they hold nothing else."""
        self.ptr, self.owner, self.whole, self.extent = ptr, owner, whole, extent
        self.gpu: int | None = None  # gpu_of its array, if it was made of one
        self.commutes = False        # made by inoutset
        self.escapes = False         # made by escapes
        self.pieces = tuple(pieces)
        self.nbytes = sum(row * rows for _, row, rows, _ in self.pieces)
        self._packed: list[bytes | None] = [None, None, None, None]

    def packed(self, access: int) -> bytes:
        """The segments as the library reads them."""
        packed = self._packed[access]
        if packed is not None:
            return packed
        at = access
        if self.commutes:
            if access != UPDATE:
                raise ValueError("acs: what commutes (acs.inoutset) is given in updates, not in reads or writes")
            access = COMMUTE
        if self.escapes:
            if access != UPDATE:
                raise ValueError("acs: what escapes (acs.escapes) is given in updates, not in reads or writes")
            access = ESCAPE
        if self.whole and len(self.pieces) == 1:
            packed = SEGMENT.pack(*self.pieces[0], access, self.extent, 0, 0)
        else:
            how = UPDATE if access == WRITE and not self.whole else access
            packed = b"".join(SEGMENT.pack(base, row, rows, pitch, how, self.extent, 0, 0)
                              for base, row, rows, pitch in self.pieces)
        self._packed[at] = packed
        return packed

    def __repr__(self) -> str:
        return f"acs.Span({self.ptr:#x}, {self.nbytes} bytes in {len(self.pieces)} pieces)"


Place = Union[Span, "tuple[int, int]"]
"""Memory for one launch: a Span, or address and bytes of an array without gaps, which cost half of the time to make."""


def pack_bytes(ptr: int, nbytes: int, access: int) -> bytes:
    """The segment of bytes without gaps, as the library reads it."""
    return SEGMENT.pack(ptr, nbytes, 1, 0, access, BYTES, 0, 0)


def bytes_at(ptr: int, nbytes: int, owner: Any = None) -> Span:
    """These bytes."""
    if nbytes < 0 or not 0 <= ptr < 1 << 64:
        raise ValueError(f"acs: a span of {nbytes} bytes at {ptr:#x}")
    made = Span.__new__(Span)  # what most launches make: without the general case, in half of the time
    made.ptr, made.nbytes, made.owner, made.whole, made.extent, made.gpu = ptr, nbytes, owner, True, BYTES, None
    made.pieces = ((ptr, nbytes, 1, 0),) if nbytes else ()
    made.commutes, made.escapes, made._packed = False, False, [None, None, None, None]
    return made


def tile(ptr: int, row_bytes: int, rows: int, pitch_bytes: int, owner: Any = None) -> Span:
    """Rows of ``row_bytes`` bytes whose starts are ``pitch_bytes`` apart."""
    if min(ptr, row_bytes, rows, pitch_bytes) < 0:
        raise ValueError(f"acs: a tile of {rows} rows of {row_bytes} bytes, {pitch_bytes} apart")
    return Span(ptr, ((ptr, row_bytes, rows, pitch_bytes),) if row_bytes and rows else (), owner)


def token(key: int) -> Span:
    """A name without bytes, to order ops by: those that write it follow each other in program order."""
    if not 0 <= key < 1 << 64:
        raise ValueError(f"acs: a token with the key {key}; it must be 0 to 2**64 - 1")
    return Span(0, ((key, 0, 0, 0),), extent=_TOKEN)


ALL = Span(0, ((0, 0, 0, 0),), extent=EXTENT_ALL)
"""All memory, and all tokens."""


def _dimensions(shape: Iterable[int], strides: Iterable[int]) -> list[tuple[int, int]]:
    """Dimensions with more than one element each, the widest stride first; those that repeat the same bytes are left out."""
    return sorted(((abs(stride), size) for size, stride in zip(shape, strides) if size > 1 and stride), reverse=True)


def _join(dimensions: list[tuple[int, int]], itemsize: int) -> tuple[int, list[tuple[int, int]], bool]:
    """Bytes in a row at the inner end; the other dimensions, outermost first; whether elements overlap."""
    row, overlaps = itemsize, False
    outer: list[tuple[int, int]] = []
    for stride, size in reversed(dimensions):
        reach = outer[0][0] * (outer[0][1] - 1) + row if outer else row
        overlaps |= stride < reach
        if not outer and stride == row:
            row *= size
        elif outer and stride == outer[0][0] * outer[0][1]:
            outer[0] = (outer[0][0], outer[0][1] * size)
        else:
            outer.insert(0, (stride, size))
    return row, outer, overlaps


def strided(ptr: int, shape: Iterable[int], strides: Iterable[int] | None, itemsize: int, owner: Any = None) -> Span:
    """The bytes of an array; strides in bytes, None: without gaps, the last dimension inside."""
    shape = tuple(shape)
    strides = None if strides is None else tuple(strides)
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"acs: an array of {len(shape)} dimensions with {len(strides)} strides")
    count = 1
    for size in shape:
        count *= size
    if strides is None or not count:
        return bytes_at(ptr, count * itemsize, owner)
    first = ptr + sum(stride * (size - 1) for size, stride in zip(shape, strides) if stride < 0)
    row, outer, overlaps = _join(_dimensions(shape, strides), itemsize)
    tiles = 1
    for _, size in outer[:-1]:
        tiles *= size
    if overlaps or tiles > _TILES_MOST:
        return Span(ptr, ((first, row + sum(stride * (size - 1) for stride, size in outer), 1, 0),), owner, whole=False)
    starts = [first]
    for stride, size in outer[:-1]:
        starts = [start + stride * i for start in starts for i in range(size)]
    pitch, rows = outer[-1] if outer else (0, 1)
    return Span(ptr, ((start, row, rows, pitch) for start in starts), owner)


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", _DLDataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _from_dlpack(array: Any) -> Span:
    try:
        capsule = array.__dlpack__()
    except BufferError as error:
        raise TypeError(f"acs: an object of type {type(array).__name__} gives no memory by __dlpack__: {error}") from error
    t = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    itemsize = (t.dtype.bits * t.dtype.lanes + 7) // 8
    strides = [t.strides[i] * itemsize for i in range(t.ndim)] if t.strides else None
    return strided((t.data or 0) + t.byte_offset, [t.shape[i] for i in range(t.ndim)], strides, itemsize, (array, capsule))


def _from_interface(array: Any) -> Span:
    about = getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None)
    if about is None:  # as of an array of JAX on the CPU, after one on a GPU
        return _from_dlpack(array)
    itemsize = getattr(array, "itemsize", None)
    if not isinstance(itemsize, int):
        itemsize = _itemsize(about["typestr"])
    if about["typestr"][1] == "O":
        raise TypeError("acs: an array of Python objects has no bytes that a kernel could use")
    return strided(about["data"][0] or 0, about["shape"], about.get("strides"), itemsize, array)


def _itemsize(typestr: str) -> int:
    """Bytes of an element: of texts ("<U2") the number counts characters of four bytes."""
    digits = typestr[2:].split("[")[0]
    return int(digits) * (4 if typestr[1] == "U" else 1)


def _from_torch(array: Any) -> Place:
    try:
        at = array.data_ptr()
    except RuntimeError as error:  # sparse, or inside of vmap
        raise TypeError(f"acs: a tensor of type {type(array).__name__} has no memory of its own: {error}") from None
    if not at and array.numel():
        raise TypeError(f"acs: a tensor on '{array.device}' of type {type(array).__name__} has no memory; is it traced, or a "
                        "stand-in?")
    if array.is_conj() or array.is_neg():
        raise TypeError("acs: the memory of a tensor does not hold its values, since they are conjugated or negated later: call "
                        "resolve_conj() or resolve_neg()")
    if array.is_contiguous():
        return at, array.nbytes
    size = array.element_size()
    return strided(array.data_ptr(), array.shape, [s * size for s in array.stride()], size, array)


def _from_cupy(array: Any) -> Place:
    if array._c_contiguous:  # `flags` makes an object, which takes longer than all the rest
        return array.data.ptr, array.nbytes
    return strided(array.data.ptr, array.shape, array.strides, array.itemsize, array)


def _from_ctypes(array: Any) -> Span:
    return bytes_at(ctypes.addressof(array), ctypes.sizeof(array), array)


def _from_buffer(array: Any) -> Span:
    view = memoryview(array)
    if view.readonly:
        raise TypeError(f"acs: an object of type {type(array).__name__} cannot be written, and its address is not known")
    if not view.c_contiguous:
        raise TypeError(f"acs: an object of type {type(array).__name__} has gaps or runs backwards, and its address is "
                        "not known")
    raw = (ctypes.c_char * 0).from_buffer(view)
    return bytes_at(ctypes.addressof(raw), view.nbytes, (array, raw))


def _find_reader(array: Any) -> Callable[[Any], Place]:
    """How the memory of arrays of this type is found. Those that cost least come first."""
    if isinstance(array, Span):
        return lambda memory: memory
    if hasattr(array, "__acs_span__"):
        return lambda owner: owner.__acs_span__
    if hasattr(array, "data_ptr") and hasattr(array, "element_size"):
        return _from_torch
    if type(array).__module__.startswith("cupy") and hasattr(array, "_c_contiguous"):
        return _from_cupy
    if any(base.__module__ == "numpy" and base.__name__ == "generic" for base in type(array).__mro__):
        raise TypeError("acs: a scalar of NumPy is no array: it has no place in memory. An array in place of a list of arrays "
                        "looks like its scalars")
    if hasattr(array, "__cuda_array_interface__") or hasattr(array, "__array_interface__"):
        return _from_interface
    if hasattr(array, "__dlpack__"):
        return _from_dlpack
    if isinstance(array, (ctypes.Array, ctypes.Structure, ctypes._SimpleCData)):
        return _from_ctypes
    try:
        memoryview(array)
    except TypeError:
        raise TypeError(f"acs: an object of type {type(array).__name__} is no array: it has none of "
                        "__cuda_array_interface__, __array_interface__, __dlpack__, and no buffer") from None
    return _from_buffer


_readers: dict[type, Callable[[Any], Place]] = {}
"""How arrays of a type are read that was seen before."""


def place(array: Any) -> Place:
    """The memory of an array, for one launch. A TypeError says why there is none."""
    reader = _readers.get(type(array))
    if reader is None:
        reader = _readers[type(array)] = _find_reader(array)
    return reader(array)


def span(array: Any) -> Span:
    """The memory of an array. A TypeError says why there is none."""
    memory = place(array)
    made = memory if isinstance(memory, Span) else bytes_at(*memory, array)
    if made is not array and made.gpu is None:
        made.gpu = gpu_of(array)
    return made


def inoutset(array: Any) -> Span:
    """
    The memory of an array, for ``updates`` of an op that changes it so that the order among such ops does not matter: by
    atomic additions, for example. They run in any order and at the same time, ordered with all others (ACS_COMMUTE in acs.h).
    """
    of = span(array)
    made = Span(of.ptr, of.pieces, (array, of), of.whole, of.extent)
    made.gpu, made.commutes = of.gpu, True
    return made


def whole(memory: Any) -> Span:
    """
    The whole allocation in which an array or an address lies, as the library or the CUDA driver knows it (ACS_WHOLE in acs.h).
    If nobody knows it, the op may touch anything. An address of 0 stands for no memory.
    """
    of = None if isinstance(memory, int) else span(memory)
    address = memory if of is None else of.ptr
    if not 0 <= address < 1 << 64:
        raise ValueError(f"acs: the whole allocation at {address:#x}")
    made = Span(address, ((address, WHOLE, 1, 0),), None if of is None else (memory, of))
    made.nbytes = 0  # not known here
    return made


def escapes(memory: Any) -> Span:
    """
    The same, for ``updates`` of an op that keeps the address in memory, such as in a table of pointers: the block stays where
    it is from then on (ACS_ESCAPES in acs.h).
    """
    made = whole(memory)
    made.escapes = True
    return made


def _gpu_by_protocol(array: Any) -> int | None:
    if getattr(array, "__array_interface__", None) is not None:
        return CPU
    device = getattr(array, "__dlpack_device__", None)
    if device is not None:
        kind, number = device()
        return int(number) if kind == _DLPACK_CUDA else CPU if kind == _DLPACK_CPU else None
    return CPU if getattr(array, "__cuda_array_interface__", None) is None else SOME_GPU


def _find_gpu_reader(array: Any) -> Callable[[Any], int | None]:
    """How arrays of this type tell where they are. Those that cost least come first."""
    if isinstance(array, Span):
        return lambda memory: memory.gpu
    if hasattr(array, "__acs_span__"):
        return lambda owner: owner.__acs_span__.gpu
    if hasattr(array, "data_ptr") and hasattr(array, "get_device"):
        return type(array).get_device  # type: ignore[no-any-return]
    if type(array).__module__.startswith("cupy") and hasattr(array, "_c_contiguous"):
        return lambda memory: memory.data.device_id  # type: ignore[no-any-return]
    return _gpu_by_protocol


_gpu_readers: dict[type, Callable[[Any], int | None]] = {}
"""How arrays of a type tell where they are, that was seen before."""


def gpu_of(array: Any) -> int | None:
    """
    Where an array says that its memory is: the number of a GPU as CUDA counts them, SOME_GPU, or CPU, where it may still be
    page-locked. None: it does not say, as memory that was given by its address.
    """
    reader = _gpu_readers.get(type(array))
    if reader is None:
        reader = _gpu_readers[type(array)] = _find_gpu_reader(array)
    return reader(array)


def on_gpu(array: Any) -> bool:
    """Whether an array says that the CPU cannot touch its memory, or the array of a span does."""
    if type(array) is Span:
        array = array.owner[0] if isinstance(array.owner, tuple) else array.owner  # a tuple: with what its library lent
    is_cuda = getattr(array, "is_cuda", None)  # of PyTorch, where __dlpack_device__ takes long
    if isinstance(is_cuda, bool):
        return is_cuda
    return _gpu_by_protocol(array) not in (CPU, None)
