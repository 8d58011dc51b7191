"""
Eager launches out of order. While a region is open, what Warp launches into its stream goes to a context of the library as ops;
so do copies and fills. All else that Warp's runtime library does goes the usual way, with the stream ordered behind the ops
before it, and the ops after it ordered behind the stream. A row of such calls costs that once.

Regions are of streams, not of threads: any thread's launches into the stream become ops.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import warp
from warp._src import context as _warp_context

from .. import _errors, _layout
from .._arrays import SEGMENT, UPDATE
from .._context import Context, _first_error
from .._library import OpParams, Uses, free, held, last_error
from ._blocks import Blocks
from ._functions import Range, address_of
from ._launches import Functions, Launch, Memo
from ._recording import pack

_context: Any = _warp_context  # its attributes are not declared
_ANYTHING = Uses(None, 0, None, None, 1)
_NO_WAIT = ctypes.pointer(OpParams(None, 1))
_SEQUENCES = (list, tuple)


class Order:
    """A stream with a region: which ops it waits for, and what of its work later ops wait for."""

    def __init__(self, contexts: "Contexts", core: Any, device: Any) -> None:
        self.device, self.warp_stream = device, device.stream
        self.stream = address_of(device.stream.cuda_stream)
        self.depth = self.ops = self.waits = 0
        self._contexts, self._core = contexts, core
        self._context: Context | None = None
        self._pending = False            # ops that the stream does not wait for yet
        self._behind = True              # whether later ops have to wait for all that the stream has
        self._fresh: list[Range] = []    # memory that the stream made; ops on it have to wait for the stream

    def follow(self) -> None:
        """Ops from now on come behind what the stream has now."""
        self._behind = True

    def made(self, address: int, nbytes: int) -> None:
        """The stream made memory: ops that touch it come behind that."""
        self._fresh.append((address, nbytes, UPDATE))

    def begin(self) -> Context | None:
        """Before an op. Returns the context that takes it. None: the stream is being captured, so that there are no ops."""
        if self._behind or self._fresh:
            if self._core.wp_cuda_stream_is_capturing(self.stream):
                return None
            context = self._context or self._open()
            segments = pack(self._fresh)
            uses = _ANYTHING if self._behind else Uses(segments, len(segments) // SEGMENT.size)
            context._queue_op(None, free.acs_after_stream_op, self.stream, uses, site=None)
            self._behind, self._fresh = False, []
        return self._context

    def queue(self, context: Context, function: str, *args: Any) -> None:
        """Queue an op: call this function of the library with these arguments. They say that it must not wait."""
        call = getattr(held if context._holds else free, function)
        self._pending = True  # before the call: the garbage collector may free memory behind it, and so join
        while not call(context._handle, *args):
            error = last_error()
            if error.status != _layout.ACS_ERR_FULL:
                self.forget(context)
                raise error
            context._step()
        self.ops += 1

    def launch(self, context: Context, launch: Any) -> None:
        """Queue a kernel. A check of it waits."""
        if context._checks:
            launch.params.no_wait = 0
        self.queue(context, "acs_launch", launch.at)

    def join(self) -> None:
        """Order the stream's work from now on behind all ops. Raises what an op has failed of."""
        if not self._pending:
            return
        assert self._context is not None
        self._pending = False
        self.waits += 1
        status = self._context._call(free.acs_stream_after, self.stream, _ANYTHING)
        error = _first_error(self._context._handle)
        if status or error:
            first = error or last_error()
            self.forget(self._context)
            raise first

    def _open(self) -> Context:
        self._context = self._contexts.get(self.device)
        return self._context

    @staticmethod
    def forget(context: Context) -> None:
        """After an error: wait for all ops, so that what follows is in order, and forget it."""
        context._call(free.acs_clear)


class Contexts:
    """A context of the library for each device that has had a region."""

    def __init__(self) -> None:
        self._contexts: dict[int, tuple[Any, Context]] = {}

    def get(self, device: Any) -> Context:
        """That of a device, opened at first use."""
        found = self._contexts.get(device.context)
        if found is None:
            with device.context_guard:
                found = self._contexts[device.context] = (device, Context(backend="cuda"))
        return found[1]

    def close(self) -> None:
        """Close all, once their ops have ended."""
        contexts, self._contexts = self._contexts, {}
        for _, context in contexts.values():
            context.close()


class _Thread(threading.local):
    """What one thread launches. ``launches``: those of the call of wp.launch under way; None for what is no op."""

    launches: "list[Launch | None] | None" = None


class Regions:
    """The regions that are open, and wrappers of the functions of Warp's runtime library for them."""

    def __init__(self, core: Any, known: dict[int, tuple[Any, bool, Any]], is_capturing: Callable[[], bool]) -> None:
        self.rest_bytes = 1 << 30
        self._core, self._is_capturing = core, is_capturing  # whether this thread captures a graph
        self._functions, self._memo, self._contexts = Functions(known), Memo(), Contexts()
        self._orders: dict[int, Order] = {}  # by stream
        self._lock = threading.RLock()       # one op at a time; the garbage collector may free arrays inside
        self._thread = _Thread()
        self._sizes: dict[int, int] = {}     # bytes of memory by its address
        self._blocks: dict[int, Blocks] = {}  # by stream: memory that was freed in its regions
        self._launch: Any = None             # Warp's own function
        self._hook: Any = None               # what stands in for it

    @property
    def open(self) -> bool:
        """Whether there is a region."""
        return bool(self._orders)

    # ------------------------------------------------------------------------------------------------ begin and end

    def enter(self, device: Any) -> Order:
        """Begin a region of a device's current stream."""
        stream = address_of(device.stream.cuda_stream)
        with self._lock:
            order = self._orders.get(stream)
            if order is None:
                if not self._orders:
                    self._install()
                order = self._orders[stream] = Order(self._contexts, self._core, device)
            order.depth += 1
        return order

    def leave(self, order: Order) -> None:
        """End a region: the stream's work comes behind its ops."""
        with self._lock:
            order.depth -= 1
            try:
                order.join()
            finally:
                if not order.depth:
                    del self._orders[order.stream]
                if not self._orders:
                    self._remove()
                if not order.depth:
                    self._settle(order)

    def _settle(self, order: Order) -> None:
        """Memory that was freed in a region may be used again in later ones. While its stream is captured it rests on."""
        kept = self._blocks.get(order.stream)
        if kept is not None and not self._core.wp_cuda_stream_is_capturing(order.stream) and kept.settle():
            # Other streams may have used the memory, too. Warp frees it in this one, which comes behind all.
            order.warp_stream.wait_stream(order.device.null_stream)

    def join(self, order: Order) -> None:
        """Order the stream behind the ops of its region, and ops from now on behind the stream."""
        with self._lock:
            order.join()
            order.follow()

    def close(self) -> None:
        """Release what regions have used. There is none."""
        self._memo.clear()
        self._release()
        self._contexts.close()
        self._functions.clear()

    def _install(self) -> None:
        """Stand in for wp.launch. Where another stands in for it already, that one goes on, and calls Warp's own."""
        self._launch = _context.launch
        self._hook = self._launch_hook()
        for module in (warp, _context):  # wp.launch_tiled calls the second one
            if module.launch is self._launch:
                setattr(module, "launch", self._hook)

    def _remove(self) -> None:
        for module in (warp, _context):
            if module.launch is self._hook:
                setattr(module, "launch", self._launch)

    # ---------------------------------------------------------------------------------------------------- wrappers

    def wrap(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        """The wrapper of a function, whose own call is ``inner``."""
        make = {"wp_cuda_launch_kernel": self._kernel, "wp_memset_device": self._fill, "wp_memcpy_d2d": self._copy,
                "wp_alloc_device_async": self._alloc, "wp_free_device_async": self._free,
                "wp_free_device_default": self._free, "wp_cuda_stream_destroy": self._destroy_stream}.get(name, self._other)
        return make(inner)

    def _bracket(self, inner: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """A call that is no op. Not under the lock: it may wait for what another thread launches."""
        launches = self._thread.launches
        if launches is not None:
            launches.append(None)
        with self._lock:
            for order in list(self._orders.values()):
                order.join()
        try:
            return inner(*args)
        finally:
            with self._lock:
                for order in self._orders.values():
                    order.follow()

    def _other(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            return self._bracket(inner, args) if self._orders else inner(*args)
        return call

    def _order_of(self, context: Any, stream: Any) -> Order | None:
        """The region of a stream, if this thread's work there can be ops. Under the lock."""
        if self._is_capturing():
            return None
        at = address_of(stream)
        if at == _context.WP_CURRENT_STREAM:
            at = address_of(self._core.wp_cuda_context_get_stream(context))
        return self._orders.get(at)

    def _kernel(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def launch_kernel(*args: Any) -> Any:
            if not self._orders:
                return inner(*args)
            with self._lock:
                order = self._order_of(args[0], args[9])
                launch = self._functions.launch(args) if order is not None else None
                context = order.begin() if order is not None and launch is not None else None
                if order is not None and launch is not None and context is not None:
                    order.launch(context, launch)
                    if self._thread.launches is not None:
                        self._thread.launches.append(launch)
                    return 0
            return self._bracket(inner, args)
        return launch_kernel

    def _fill(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def fill(*args: Any) -> Any:
            if not self._orders:
                return inner(*args)
            context, to, value, nbytes, stream = args
            if 0 <= value <= 255 and self._queue(context, stream, "acs_memset_op", address_of(to), value, nbytes):
                return True
            return self._bracket(inner, args)
        return fill

    def _copy(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def copy(*args: Any) -> Any:
            if not self._orders:
                return inner(*args)
            context, to, source, nbytes, stream = args
            if self._queue(context, stream, "acs_memcpy_op", address_of(to), address_of(source), nbytes):
                return True
            return self._bracket(inner, args)
        return copy

    def _queue(self, device: Any, stream: Any, function: str, *args: Any) -> bool:
        """Queue a copy or a fill of so many bytes, the last argument. False: it cannot be an op."""
        with self._lock:
            order = self._order_of(device, stream)
            context = order.begin() if order is not None and args[-1] > 0 else None
            if order is None or context is None:
                return False
            if self._thread.launches is not None:
                self._thread.launches.append(None)
            order.queue(context, function, *args, _NO_WAIT)
            return True

    # ------------------------------------------------------------------------------------------------------- memory

    def _alloc(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def alloc(context: Any, nbytes: int, stream: Any, tag: Any) -> Any:
            if self._is_capturing():
                return inner(context, nbytes, stream, tag)
            with self._lock:
                order = self._order_of(context, stream) if self._orders else None
                kept = self._blocks.get(order.stream) if order is not None else None
                address = kept.take(nbytes) if kept is not None else None
                if address is None:
                    address = inner(context, nbytes, stream, tag)
                    if not address and self._blocks:  # the device is full, also of what is kept here
                        self._release()
                        address = inner(context, nbytes, stream, tag)
                    if address and order is not None:
                        order.made(address, nbytes)
                if address:
                    self._sizes[address] = nbytes
            return address
        return alloc

    def _free(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Memory that is freed in a region is kept: ops may use it."""
        def free_memory(context: Any, address: Any, *rest: Any) -> Any:
            at, args = address_of(address), (context, address, *rest)
            nbytes = self._sizes.pop(at, None)
            if not self._orders:
                return inner(*args)
            with self._lock:
                order = next((each for each in self._orders.values() if each.device.context == context), None)
                if order is not None and nbytes is not None and not self._is_capturing():
                    kept = self._blocks.setdefault(order.stream, Blocks())
                    kept.rest(at, nbytes, inner, args)
                    if kept.nbytes > self.rest_bytes:
                        self._release()
                    return None
            return self._bracket(inner, args)
        return free_memory

    def _destroy_stream(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def destroy(context: Any, stream: Any) -> Any:
            with self._lock:
                self._release()
            return self._bracket(inner, (context, stream)) if self._orders else inner(context, stream)
        return destroy

    def _release(self) -> None:
        """Give memory that is kept back to Warp, behind all ops."""
        blocks, self._blocks = self._blocks, {}
        try:
            for order in list(self._orders.values()):
                order.join()
        finally:
            for kept in blocks.values():
                kept.give_back()

    # ------------------------------------------------------------------------------------------------ wp.launch

    def _launch_hook(self) -> Callable[..., Any]:
        original, memo = self._launch, self._memo

        def launch(kernel: Any, dim: Any, inputs: Any = (), outputs: Any = (), adj_inputs: Any = (), adj_outputs: Any = (),
                   device: Any = None, stream: Any = None, adjoint: bool = False, record_tape: bool = True,
                   record_cmd: bool = False, max_blocks: int = 0, block_dim: Any = None) -> Any:
            given = (kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device, stream, adjoint, record_tape, record_cmd,
                     max_blocks, block_dim)
            if (stream is not None or adjoint or record_cmd or adj_inputs or adj_outputs or _is_watched(record_tape)
                    or type(inputs) not in _SEQUENCES or type(outputs) not in _SEQUENCES):
                return _with_caller(original, given)
            where = _context.runtime.get_device(device)
            if not where.is_cuda or self._is_capturing():
                return _with_caller(original, given)
            args = [*inputs, *outputs]
            with self._lock:
                order = self._orders.get(where.stream.cuda_stream or 0)
                key = memo.key(kernel, dim, where, block_dim, max_blocks) if order is not None else None
                found = memo.find(key, kernel, args) if key is not None else None
                context = order.begin() if order is not None and found is not None else None
                if order is not None and found is not None and context is not None:
                    order.launch(context, found)
                    return None
            if key is None:
                return original(*given)
            launches = self._launches_of(original, given)
            if len(launches) == 1 and launches[0] is not None:
                with self._lock:
                    memo.add(key, launches[0], kernel, args, where)
            return None
        return launch

    def _launches_of(self, original: Any, given: tuple[Any, ...]) -> "list[Launch | None]":
        """Launch as Warp does. Returns what that launched."""
        outer, self._thread.launches = self._thread.launches, []
        try:
            original(*given)
            return self._thread.launches
        finally:
            self._thread.launches = outer


def _is_watched(record_tape: bool) -> bool:
    """Whether Warp does more for a launch than to launch it."""
    runtime, config = _context.runtime, warp.config
    return bool((record_tape and runtime.tape) or config.print_launches or config.verify_cuda or runtime._apic_capture
                or config.launch_array_access_mode != config.LaunchArrayAccessMode.RELAXED)


def _with_caller(original: Any, given: tuple[Any, ...]) -> Any:
    """Launch as Warp does. A tape notes the caller of the function that stands in for wp.launch."""
    tape = _context.runtime.tape
    before = len(tape.launches) if tape else 0
    result = original(*given)
    if tape and len(tape.launches) > before:
        frame = sys._getframe(2)
        tape.launches[-1][-1]["caller"] = {"file": frame.f_code.co_filename, "lineno": frame.f_lineno,
                                           "func": frame.f_code.co_name}
    return result


class Region:
    """
    A part of a program whose launches run out of order; made by :func:`acs.warp.out_of_order`. ``with`` begins and ends it,
    also several times. Any thread may use it.
    """

    def __init__(self, regions: Regions, device: Any) -> None:
        self._regions, self._device = regions, device
        self._entered: list[Order] = []
        self._latest: Order | None = None

    def __enter__(self) -> "Region":
        self._latest = self._regions.enter(self._device)
        self._entered.append(self._latest)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        try:
            self._regions.leave(self._entered.pop())
        except _errors.Error:
            if kind is None:  # else the program's own exception goes on
                raise

    def join(self) -> None:
        """
        Order the stream's work from now on behind what was launched, and what is launched from now on behind the stream's work.
        Call it before and after other libraries use the stream, since that is not seen here. Does not wait.
        Raises what a launch has failed of, :class:`acs.StateError` outside of the region.
        """
        if not self._entered:
            raise _errors.StateError("acs: the region has not begun, or has ended", _layout.ACS_ERR_STATE)
        self._regions.join(self._entered[-1])

    @property
    def ops(self) -> int:
        """Launches, copies and fills that became ops in the region, and in those around it that it shares a stream with."""
        return self._latest.ops if self._latest else 0

    @property
    def waits(self) -> int:
        """How often the stream was ordered behind ops."""
        return self._latest.waits if self._latest else 0
