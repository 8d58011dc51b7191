"""Which bytes a launch touches: read from its packed arguments."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence

from warp._src import types as _types

from .._arrays import READ, UPDATE
from ._inference import KernelUses

# The layout of array_t: data, grad, shape, strides, dimensions, flags. That of indexedarray_t: array_t, indices, shape.
_DIMENSIONS = int(_types.ARRAY_MAX_DIMS)
_descriptor = struct.Struct(f"@QQ{_DIMENSIONS}i{_DIMENSIONS}iHH")
_INDEXED = _types.indexedarray_t
_indices = struct.Struct(f"@{_DIMENSIONS}Q{_DIMENSIONS}i")
_INDEX_BYTES = 4
assert _descriptor.size <= ctypes.sizeof(_types.array_t) and _types.array_t.strides.offset == 16 + 4 * _DIMENSIONS
assert _INDEXED.indices.offset + _indices.size <= ctypes.sizeof(_INDEXED)
assert _INDEXED.shape.offset == _INDEXED.indices.offset + 8 * _DIMENSIONS


def touched(uses: KernelUses, addresses: Sequence[int]) -> list[tuple[int, int, int]]:
    """
    The bytes of the arrays that a launch touches: first byte, number of bytes, READ or UPDATE. ``addresses``: where the packed
    arguments lie. Ranges that occur several times are given once, with the stronger access.
    """
    ranges: dict[tuple[int, int], int] = {}
    for use in uses.arrays:
        address = addresses[use.argument] + use.offset
        descriptor = ctypes.string_at(address, _descriptor.size)
        if use.kind == "indexed":
            _add_indices(ranges, address, _descriptor.unpack(descriptor)[2 + 2 * _DIMENSIONS])
        elements, gradient = _named_by(descriptor, use.itemsize)
        if elements:
            ranges[elements] = ranges.get(elements, 0) | (UPDATE if use.updates else READ)
        if gradient and use.gradient:
            ranges[gradient] = UPDATE
    return [(first, nbytes, access) for (first, nbytes), access in ranges.items()]


@functools.lru_cache(maxsize=1 << 16)
def _named_by(descriptor: bytes, itemsize: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """First byte and number of bytes of the elements of an array, and of their gradients, as far as there are any."""
    fields = _descriptor.unpack(descriptor)
    before, nbytes = _extent(fields, itemsize)
    data, gradient = ((at - before, nbytes) if at and nbytes else None for at in fields[:2])
    return data, gradient


def _extent(fields: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Bytes before the first element, and bytes from the lowest to the highest one."""
    before, nbytes = 0, itemsize
    for dimension in range(fields[2 + 2 * _DIMENSIONS]):
        size, stride = fields[2 + dimension], fields[2 + _DIMENSIONS + dimension]
        if size <= 0:
            return 0, 0
        reach = stride * (size - 1)
        if reach < 0:
            before, reach = before - reach, -reach
        nbytes += reach
    return before, nbytes


def _add_indices(ranges: dict[tuple[int, int], int], address: int, ndim: int) -> None:
    """An indexed array reads the arrays of its indices."""
    fields = _indices.unpack(ctypes.string_at(address + _INDEXED.indices.offset, _indices.size))
    for pointer, size in zip(fields[:ndim], fields[_DIMENSIONS:]):
        if pointer and size > 0:
            key = pointer, size * _INDEX_BYTES
            ranges[key] = ranges.get(key, 0) | READ
