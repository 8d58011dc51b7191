"""Calls of ops by XLA: contexts to run them in, what their functions get, and how they begin and end."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import secrets
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from .. import _errors, _layout
from .._arrays import ALL, BYTES, Span, span
from .._context import Context, _first_error
from .._kernels import Kernel
from .._library import failure_of, free
from . import _ffi
from ._arrays import Array, DeviceArray, HostArray, Lease

CPU, CUDA = "cpu", "CUDA"
"""Platforms, as JAX names them where a handler is registered."""
Options = tuple[tuple[str, Any], ...]
"""Options of contexts, sorted by name."""
Key = tuple[str, int, Options]
"""Contexts with the same backend, GPU and options can be exchanged."""


class Entry(NamedTuple):
    """What XLA's calls name by a number: an op's function with its static arguments."""

    name: str
    function: Callable[..., None]
    static: dict[str, Any]
    options: Options


_entries: list[Entry] = []  # kept until the process ends, since compiled programs name them
_numbers: dict[Any, int] = {}
_registering = threading.Lock()
_process = secrets.randbits(63)  # compiled programs that another process has stored name other entries


def attributes(key: Any, entry: Entry) -> dict[str, Any]:
    """The attributes by which calls name an entry. It is the one that was given with this key first."""
    with _registering:
        number = _numbers.get(key)
        if number is None:
            _entries.append(entry)
            number = _numbers[key] = len(_entries) - 1
    return {"acs_entry": numpy.int64(number), "acs_process": numpy.int64(_process)}


def _entry(numbers: dict[str, int]) -> Entry:
    if numbers.get("acs_process") != _process:
        raise _errors.StateError("acs.jax: the program was compiled in another process; ops can be called only in the process "
                                 "that traced them", _layout.ACS_ERR_STATE)
    return _entries[numbers["acs_entry"]]


class Where:
    """The platform and GPU of a call, and its stream; on the CPU there is none."""

    def __init__(self, platform: str, frame: _ffi.Frame) -> None:
        self.platform, self.frame = platform, frame
        on_gpu = platform == CUDA
        self.backend = "cuda" if on_gpu else "host"
        self.device = frame.device() if on_gpu else 0
        self.stream = frame.stream() if on_gpu else None


class Call:
    """
    What the function of an op launches with, from its beginning to its return, on the thread that it was called on.
    ``platform`` is "cpu" or "CUDA", ``device`` the number of the GPU, 0 on the CPU, ``stream`` XLA's CUDA stream as a
    number, None on the CPU. Work that you give to the stream yourself has no order with the ops: in one call use one of the
    two.
    """

    def __init__(self, context: Context, where: Where, lease: Lease, inputs: Sequence[Array]) -> None:
        self.platform, self.device, self.stream = where.platform, where.device, where.stream
        self._context, self._lease, self._thread = context, lease, threading.get_ident()
        self._inputs = [(array._span.ptr, array._span.ptr + array._span.nbytes, array) for array in inputs if array._readonly]

    def launch(self, kernel: Kernel, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), *,
               reads: Sequence[Any] = (), writes: Sequence[Any] = (), updates: Sequence[Any] = (), shared_bytes: int = 0,
               cooperative: bool = False) -> int:
        """As :meth:`acs.Context.launch`. Inputs may be written only if an output is aliased to them."""
        self._check()
        values = [value.__acs_span__ if isinstance(value, Array) else value for value in args]
        return self._context.launch(kernel, grid, block, values, reads=[span(array) for array in reads],
                                    writes=self._written(writes), updates=self._written(updates), shared_bytes=shared_bytes,
                                    cooperative=cooperative, _depth=3)

    def copy(self, to: Any, source: Any) -> int:
        """As :meth:`acs.Context.copy`."""
        self._check()
        return self._context.copy(self._written([to])[0], source, _depth=3)

    def fill(self, to: Any, value: int) -> int:
        """As :meth:`acs.Context.fill`."""
        self._check()
        return self._context.fill(self._written([to])[0], value, _depth=3)

    def _check(self) -> None:
        self._lease.check("the context")
        if threading.get_ident() != self._thread:
            raise _errors.StateError("acs.jax: the context of a call is used on another thread", _layout.ACS_ERR_STATE)

    def _written(self, arrays: Iterable[Any]) -> list[Span]:
        """The memory of arrays that an op writes. ArgumentError: an input is among them."""
        spans = [span(array) for array in arrays]
        for memory in spans:
            if memory.extent == BYTES:
                for base, row, rows, pitch in memory.pieces:
                    self._refuse_input(base, base + row + pitch * (rows - 1))
        return spans

    def _refuse_input(self, begin: int, end: int) -> None:
        for first, last, array in self._inputs:
            if begin < last and first < end:
                raise _errors.ArgumentError(f"acs.jax: {array.name} is written; it is read-only, unless input_output_aliases "
                                            "has it", _layout.ACS_ERR_ARGUMENT)


@contextlib.contextmanager
def _gpu_of(stream: int | None) -> Iterator[None]:
    """With this the thread's current GPU is that of a stream. None: there is no GPU."""
    if stream is None:
        yield
        return
    driver, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()  # XLA has loaded the driver
    code = driver.cuStreamGetCtx(ctypes.c_void_p(stream), ctypes.byref(handle)) or driver.cuCtxPushCurrent_v2(handle)
    if code:
        raise _errors.DeviceError(f"acs.jax: the GPU of XLA's stream {stream:#x} cannot be selected: CUDA's error {code}",
                                  _layout.ACS_ERR_DEVICE, code)
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(handle))


class _Contexts:
    """
    Contexts that are kept for calls. A call has one for itself, so that its failures are its own. The one that was given
    back last is taken first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[Key, list[Context]] = {}

    def take(self, key: Key, stream: int | None) -> Context:
        """A context for a call, which gives it back. A new one belongs to the GPU of the stream."""
        with self._lock:
            kept = self._free.setdefault(key, [])
            if kept:
                return kept.pop()
        with _gpu_of(stream):
            return Context(backend=key[0], **dict(key[2]))

    def give(self, key: Key, context: Context) -> None:
        """The call has ended, and another one can have its context. One that is not given back is closed at exit."""
        with self._lock:
            self._free[key].append(context)


contexts = _Contexts()


class _Interrupts:
    """
    With this, Ctrl-C on the main thread ends the user's function alone. Elsewhere it is raised at the end, so that no call
    returns while ops use its memory.
    """

    def __init__(self) -> None:
        self.allowed, self._came = False, False
        self._before: Any = None

    def __enter__(self) -> "_Interrupts":
        if threading.get_ident() == threading.main_thread().ident and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self._came:
                signal.raise_signal(signal.SIGINT)

    def _signal(self, number: int, frame: Any) -> None:
        if self.allowed:
            self.allowed = False
            self._before(number, frame)
        else:
            self._came = True


@functools.lru_cache(maxsize=None)
def _dtype(code: int) -> Any:
    name = _ffi.DTYPES.get(code)
    if name is None:
        raise _errors.UnsupportedError(f"acs.jax: arrays with XLA's type {code} of elements are not supported: they have no "
                                       "whole bytes, or no elements", _layout.ACS_ERR_UNSUPPORTED)
    try:
        return numpy.dtype(name)
    except TypeError:
        import ml_dtypes  # JAX has it
        return numpy.dtype(getattr(ml_dtypes, name))


def _arrays(frame: _ffi.Frame, kind: type[Array], lease: Lease) -> tuple[list[Array], list[Array]]:
    """Inputs and outputs of a call. An input in the place of an output may be written."""
    results = frame.buffers(frame.raw.results)
    outputs = [kind(f"output {i}", at, _dtype(code), shape, lease, False) for i, (at, code, shape) in enumerate(results)]
    places = {at for at, _, _ in results}
    inputs = [kind(f"input {i}", at, _dtype(code), shape, lease, at not in places)
              for i, (at, code, shape) in enumerate(frame.buffers(frame.raw.arguments))]
    return inputs, outputs


def _end(context: Context, stream: int | None) -> _errors.Error | None:
    """End a call's section: behind its ops goes the stream on, or on the CPU this thread. Returns the first failure."""
    try:
        if stream is None:
            failure = failure_of(context._call(free.acs_sync))
        else:
            context.stream_after(stream, updates=[ALL])
            failure = None
    except _errors.Error as error:
        failure = error
    try:
        return _first_error(context._handle) or failure  # the stream's op may only have been skipped
    except _errors.Error:  # it was closed
        return failure


def _clear(context: Context) -> bool:
    """Wait for all ops and forget what failed, so that the next call can have the context. False: it cannot."""
    context._captures.pop(threading.get_ident(), None)
    try:
        return failure_of(context._call(free.acs_clear)) is None
    except _errors.Error:  # it was closed
        return False


def _called(entry: Entry, call: Call, arrays: Sequence[Array], interrupts: _Interrupts) -> BaseException | None:
    """Call the user's function. Returns what it raised."""
    try:
        try:
            interrupts.allowed = True
            result = entry.function(call, *arrays, **entry.static)
        finally:
            interrupts.allowed = False
    except BaseException as failure:
        return failure
    if result is not None:
        return TypeError(f"the function returned an object of type {type(result).__name__}; it must return nothing, and write "
                         "its outputs")
    return None


def _section(entry: Entry, context: Context, where: Where, interrupts: _Interrupts) -> BaseException | None:
    """Run a call's ops in a context. Returns why it failed; then ops of it may be under way still."""
    lease = Lease()
    try:
        inputs, outputs = _arrays(where.frame, DeviceArray if where.stream is not None else HostArray, lease)
        if where.stream is not None:
            context.after_stream(where.stream, updates=[ALL])  # all: what is no buffer of XLA's is ordered, too
    except Exception as failure:  # also a type of elements that Python's libraries do not have
        return failure
    call = Call(context, where, lease, inputs)
    raised = _called(entry, call, inputs + outputs, interrupts)
    lease.ended = True
    late = _end(context, where.stream)
    return raised or late


def _described(entry: Entry, failure: BaseException) -> _ffi.Failed:
    """The failure with the op's name, and the line that it came from; for XLA, which takes only text."""
    kind = "" if isinstance(failure, _errors.Error) else f"{type(failure).__name__}: "
    code = getattr(entry.function, "__code__", None)
    places = [f" ({frame.f_code.co_filename}:{line})" for frame, line in traceback.walk_tb(failure.__traceback__)
              if frame.f_code is code]
    site = getattr(failure, "site", None)
    if not places and site is not None:
        places = [f" ({site.file}:{site.line})"]
    return _ffi.Failed(f"acs.jax: op '{entry.name}': {kind}{failure}{''.join(places[:1])}", _ffi.code_of(failure))


def _execute(entry: Entry, where: Where) -> None:
    key = (where.backend, where.device, entry.options)
    with _Interrupts() as interrupts:
        context = contexts.take(key, where.stream)
        failure = _section(entry, context, where, interrupts)
        if failure is None or _clear(context):
            contexts.give(key, context)
    if failure is not None:
        raise _described(entry, failure)


def run(platform: str, frame: _ffi.Frame) -> None:
    """What a handler does. In the stage "initialize" no capture is under way yet, so that a context can be opened."""
    entry = _entry(frame.numbers())
    if frame.raw.stage == _ffi.EXECUTE:
        _execute(entry, Where(platform, frame))
    elif frame.raw.stage == _ffi.INITIALIZE:
        where = Where(platform, frame)
        key = (where.backend, where.device, entry.options)
        contexts.give(key, contexts.take(key, where.stream))
