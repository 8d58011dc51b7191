"""XLA's buffers as arrays, for the time of one call."""

from __future__ import annotations

from typing import Any

from .. import _errors, _layout
from .._arrays import Span, bytes_at


class Lease:
    """Whether a call is under way: its arrays may be used meanwhile."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False

    def check(self, what: str) -> None:
        """Raise StateError once the call has returned."""
        if self.ended:
            raise _errors.StateError(f"acs.jax: {what} is used after the call that it was made for: XLA's memory is somebody "
                                     "else's then", _layout.ACS_ERR_STATE)


class Array:
    """
    An argument or a result of an op: XLA's memory without gaps, the last dimension innermost. ``shape``, ``dtype`` (of
    NumPy), ``nbytes``, ``ptr`` (address). ``array[i]`` and ``array[i:j]`` are rows of it. Once the op's function has
    returned, every use but of shape and dtype raises :class:`acs.StateError`.
    """

    __slots__ = ("shape", "dtype", "name", "_lease", "_span", "_readonly")

    def __init__(self, name: str, ptr: int, dtype: Any, shape: tuple[int, ...], lease: Lease, readonly: bool) -> None:
        self.name, self.shape, self.dtype = name, shape, dtype
        self._lease, self._readonly = lease, readonly
        count = 1
        for size in shape:
            count *= size
        self._span = bytes_at(ptr, count * dtype.itemsize, self)

    @property
    def __acs_span__(self) -> Span:
        self._lease.check(self.name)
        return self._span

    @property
    def ptr(self) -> int:
        """Address of the first element; 0 may be that of an array without elements."""
        return self.__acs_span__.ptr

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.__acs_span__.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"acs.jax: {self.name} has no dimensions, and so no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> "Array":
        rows = len(self)
        if isinstance(index, slice):
            first, last, step = index.indices(rows)
            if step != 1:
                raise ValueError(f"acs.jax: {self.name} is sliced with the step {step}; it must be 1")
            shape = (max(last - first, 0),) + self.shape[1:]
        elif hasattr(index, "__index__"):
            first, shape = index.__index__(), self.shape[1:]
            if not -rows <= first < rows:
                raise IndexError(f"acs.jax: {self.name} has {rows} rows, and no row {first}")
            first %= rows
        else:
            raise TypeError(f"acs.jax: {self.name} is indexed by {index!r}; it must be a whole number or a slice of rows")
        pitch = self.nbytes // rows if rows else 0
        return type(self)(self.name, self.ptr + first * pitch, self.dtype, shape, self._lease, self._readonly)

    def _interface(self) -> dict[str, Any]:
        span = self.__acs_span__
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (span.ptr, self._readonly), "strides": None,
                "version": 3}

    def __repr__(self) -> str:
        return f"acs.jax.Array({self.name}, {self.dtype}{list(self.shape)})"


class HostArray(Array):
    """On the CPU: numpy.asarray takes it."""

    __slots__ = ()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface()


class DeviceArray(Array):
    """On a GPU: cupy.asarray and torch.as_tensor take it. Only ops are ordered; work of these libraries is not."""

    __slots__ = ()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface()
