"""Contexts: where ops are queued, and where a program waits for them."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _arrays, _errors, _layout, _waits
from ._arrays import READ, UPDATE, Place, Span, span
from ._kernels import Kernel, Packing
from ._library import (Dim3, GroupParams, GroupReport, HOST_FUNCTION, LaunchParams, OpParams, Uses, check,
                       error_from, ErrorText, failure_of, free, held, last_error)
from ._packing import (NUMBER_MOST, Reach, footprint, frozen, number_of, refuse_gpu_arrays, refuse_no_bytes, rest_of_shape, site_of,
                       sizes_of, start_of, touched_by, values_of)
from ._region import KEPT_MOST, Region
from ._variants import NO_WISH, Measured, ShareInfo, Wish, measuring, share_info, taken_failure, wish_of

_BACKENDS = ("auto", "cuda", "host", "sim")
_KEPT_BYTES = 1 << 28  # as KEPT_MOST, for the bytes of these arrays; an array counts in each op
_UNTIL_SYNC = 1 << 62  # as the number of an op: it has ended when all have
_DEVICE, _PINNED, _RELOCATABLE, _LAZY = 0, 1, 0x100, 0x200
_CHECK_WRITES = 2  # ACS_CHECK_WRITES: it and what is above watch launches

_codes = itertools.cycle(range(1 << 30, 1 << 31))  # what functions that raise fail with; those of C seldom do with these
_open: "set[Context]" = set()  # until they are closed
_launching = threading.Lock()  # guards the places of a kernel's arguments, which all contexts share; never waited for


class Launch:
    """What :meth:`Context.prepare` returns. Call it to queue it: see :meth:`Context.launch`. Any thread may do so."""

    __slots__ = ("uses", "facts", "_context", "_params", "_at", "_packing")

    def __init__(self, context: "Context", params: LaunchParams, uses: Any, packing: Any) -> None:
        self._context, self._params, self._at = context, params, ctypes.addressof(params)
        self.uses, self._packing = uses, packing
        self.facts: Any = None  # what regions know of it

    @property
    def context(self) -> "Context":
        """The context that prepared it."""
        return self._context

    def __call__(self, *, wait: bool = True) -> int:
        """Queue it. Returns the op's number. ``wait=False``: raise FullError instead of waiting for room."""
        return self._context._queue(self, wait)


class Block:
    """Memory of :meth:`Context.malloc`. It is freed by :meth:`free`, or with its context."""

    def __init__(self, context: "Context", ptr: int, nbytes: int) -> None:
        self.context, self.ptr, self.nbytes = context, ptr, nbytes
        self.__acs_span__ = _arrays.bytes_at(ptr, nbytes)

    def __getitem__(self, part: slice) -> Span:
        """These bytes of it."""
        if not isinstance(part, slice):
            raise TypeError("acs: a part of a block is a slice of bytes")
        first, last, step = part.indices(self.nbytes)
        if step != 1:
            raise ValueError("acs: a part of a block has no steps")
        return _arrays.bytes_at(self.ptr + first, max(last - first, 0), self)

    def free(self) -> int:
        """Free it, behind the ops that were launched before. Returns at once."""
        return self.context._queue_op(None, free.acs_free_op, self.ptr, site=site_of(2))


class _Users:
    """Threads inside calls that let other threads run. A context closes once they have left."""

    def __init__(self) -> None:
        self._changed, self._count, self._closed = threading.Condition(), 0, False

    def __enter__(self) -> None:
        with self._changed:
            if self._closed:
                raise _errors.StateError("acs: the context is closed", _layout.ACS_ERR_STATE)
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def end(self) -> None:
        """Refuse new ones, and wait until the others have left."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._count)


class Context:
    """
    Takes ops in program order and runs them out of order. Options are those of docs/options.md by their names in lower case
    without ``ACS_`` (``backend="host"``, ``workers=2``); others come from the environment. Use it by ``with``, or call
    :meth:`close`; at the latest it is closed at exit. Any thread may use it.
    """

    def __init__(self, **options: Any) -> None:
        self._at: int | None = None
        self._users = _Users()
        self._kept: deque[list[Any]] = deque()  # what ops use, behind their numbers; 0: not queued yet
        self._kept_most, self._kept_bytes = KEPT_MOST, 0
        self._held: dict[int, list[Any]] = {}   # by thread: the same of ops that a group holds
        self._captures: dict[int, int] = {}     # by thread whose ops are captured: the stream that began it
        self._regions: dict[int, Region] = {}   # by thread: the innermost one that it is in
        self._failures: dict[int, BaseException] = {}  # by the code that the function's op failed with
        self._watched: list[Span] = []          # that check_register was given
        self._lock = threading.Lock()
        raw = ctypes.create_string_buffer(_layout.OPTIONS_BYTES)
        check(held.acs_options_init(raw, _layout.OPTIONS_BYTES))
        for name, value in options.items():
            _set_option(raw, name, value)
        # a check waits for the ops before a launch and for the launch, unless it must not wait
        self._checks = _choice_of(raw, "check") >= _CHECK_WRITES
        # with these a launch waits for ops, whose bodies may want the interpreter's lock
        waits = self._checks or any(_choice_of(raw, name) for name in ("serial", "disable", "tune"))
        self._holds = not waits
        # without workers a poll runs functions of Python, in which Ctrl-C must not land
        self._polls = not waits and ctypes.c_int64.from_buffer(raw, _layout.OPTIONS["workers"][1]).value > 0
        handle = ctypes.c_void_p()
        check(free.acs_open(raw, ctypes.byref(handle)))
        self._at = handle.value
        self._on_cpu = self.backend != "cuda"
        self._reach = None if self._on_cpu else Reach(self._handle)
        self._params = LaunchParams(size=ctypes.sizeof(LaunchParams), grid=Dim3(1, 1, 1), block=Dim3(1, 1, 1), no_wait=1)
        self._params_at = ctypes.addressof(self._params)
        self._uses = self._params.uses  # the same bytes
        self._kernel: Kernel | None = None
        self._packing: Any = None
        self._shape: Any = None
        self._pid = os.getpid()
        _open.add(self)

    def __enter__(self) -> "Context":
        self._handle  # raises if it is closed
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def backend(self) -> str:
        """Where ops run: "cuda", "host" or "sim"."""
        kind = held.acs_context_backend(self._handle)
        if kind < 0:
            raise last_error()
        return _BACKENDS[kind]

    @property
    def handle(self) -> int:
        """The context as C knows it (``acs_context *``), for code in C that uses the same library."""
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._at is None

    def close(self) -> None:
        """Wait for all ops and release everything. Raises the context's first failure. Twice is allowed."""
        if self._at is None:
            return
        handle = self._may_enter()  # else it would wait for the caller
        self._wait(lambda: free.acs_sync(handle))  # Ctrl-C here leaves the context open
        first = _first_error(handle)
        self._users.end()
        self._at = None
        _open.discard(self)
        closing = _waits.wait(lambda: free.acs_close(handle))
        for kept in (self._kept, self._held, self._watched):
            kept.clear()
        self._raise(first or closing)

    # ------------------------------------------------------------------------------------------------------------ ops

    def launch(self, kernel: Kernel, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), *,
               reads: Sequence[Any] = (), writes: Sequence[Any] = (), updates: Sequence[Any] = (), shared_bytes: int = 0,
               cooperative: bool = False, device: int | None = None, share: int | None = None, variant: int | str | None = None,
               fit: int | None = None, wait: bool = True, _depth: int = 2) -> int:
        """
        Queue a kernel. Returns its number, for :meth:`wait` and :meth:`query`.

        ``reads``, ``writes`` and ``updates`` are the arrays (or :class:`Span`) that it only reads, writes completely without
        reading, or reads and writes. When in doubt: ``updates``. The arrays are kept alive until the op has ended.
        A launch without any of the three has the footprint that was declared for the kernel (:func:`acs.declare`); if there
        is none, it may touch anything. ``wait=False``: raise FullError instead of waiting for room.

        ``share``: percent of the GPU's multiprocessors that it may take (:meth:`share_info`). ``variant``: name or number of the
        version that runs, ``fit``: the version that is best on this percentage of the GPU; without them the library picks one
        (:func:`acs.variants`).
        """
        looked = self._look_at(kernel, args, reads, writes, updates)
        wish = NO_WISH if share is None and variant is None and fit is None else wish_of(kernel, share, variant, fit)
        return self._launch(*looked, (grid, block, shared_bytes, cooperative, device, wish), wait, _depth + 1)

    def _look_at(self, kernel: Kernel, args: Sequence[Any], reads: Any, writes: Any,
                 updates: Any) -> tuple[Packing, list[Any], dict[int, Place], Any]:
        """The first arguments of :meth:`_launch` and :meth:`_prepare` for a launch."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"acs: an object of type {type(kernel).__name__} is launched; make an acs.Kernel of it")
        args, reads, writes, updates = tuple(args), tuple(reads), tuple(writes), tuple(updates)
        packing = kernel.packing(args)
        if self._on_cpu and kernel.struct.host:
            refuse_gpu_arrays(args)
        seen: dict[int, Place] = {}
        lent: list[Span] = []
        values = values_of(args, packing.types, seen, lent, self._reach)
        if not (reads or writes or updates):
            reads, writes, updates = kernel.named(args)
        uses = (kernel, args, reads, writes, updates, *lent)
        return packing, values, seen, uses

    def _launch(self, packing: Any, values: Sequence[Any], seen: dict[int, Place], uses: Any, shape: Any, wait: bool,
                depth: int) -> int:
        """
        Queue a kernel. ``values``: what its arguments are packed as. ``uses``: the kernel, its arguments, what it reads,
        writes and updates, each a tuple, and what else must live as long as the op.
        """
        kernel = uses[0]
        segments, count, nbytes, lent = footprint(uses[2], uses[3], uses[4], seen)
        uses += lent
        any_use = 0 if count else touched_by(uses)
        site = site_of(depth)
        p, place_of_uses = self._params, self._uses
        kept = self._keep(uses, nbytes)
        shares = self._holds and not self._held
        while True:
            # not acquired: another thread launches, or this one is inside a launch
            if not shares or not _launching.acquire(blocking=False):
                try:
                    launch = self._made(packing, values, uses, (segments, count, any_use), shape, site)
                except BaseException:
                    kept[1] = None
                    raise
                return self._queue(launch, wait, kept)
            try:
                try:
                    if shape != self._shape:
                        self._set_shape(*shape)
                    self._pack(kernel, packing, values)
                except BaseException:
                    kept[1] = None
                    raise
                if kernel is not self._kernel or packing is not self._packing:
                    p.kernel, p.args, p.arg_count = kernel.at, packing.list, packing.count
                    self._kernel, self._packing = kernel, packing
                place_of_uses.segments, place_of_uses.count, place_of_uses.any, p.site = segments, count, any_use, site
                op = held.acs_launch(self._handle, self._params_at)
            finally:
                _launching.release()
            if op:
                return self._kept_for(kept, op)
            self._make_room(kept, wait)

    def prepare(self, kernel: Kernel, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), *,
                reads: Sequence[Any] = (), writes: Sequence[Any] = (), updates: Sequence[Any] = (), shared_bytes: int = 0,
                cooperative: bool = False, device: int | None = None, share: int | None = None,
                variant: int | str | None = None, fit: int | None = None, _depth: int = 2) -> Launch:
        """
        A launch to be queued later, as often as wanted, with the arguments that it has now: call it. That takes a
        fraction of the time of :meth:`launch`. Arguments are as there; the launch keeps its arrays alive.
        """
        looked = self._look_at(kernel, args, reads, writes, updates)
        wish = wish_of(kernel, share, variant, fit)
        return self._prepare(*looked, (grid, block, shared_bytes, cooperative, device, wish), _depth + 1)

    @staticmethod
    def _pack(kernel: Kernel, packing: Any, values: Sequence[Any]) -> None:
        try:
            packing.pack(*values)
        except Exception as misfit:
            raise ValueError(f"acs: an argument of kernel '{kernel.name}' does not fit its type ({', '.join(packing.types)}): "
                             f"{misfit}") from None

    def _prepare(self, packing: Any, values: Sequence[Any], seen: dict[int, Place], uses: Any, shape: Any,
                 depth: int) -> Launch:
        """A launch to be queued later. Arguments as of :meth:`_launch`."""
        segments, count, _, lent = footprint(uses[2], uses[3], uses[4], seen)
        touched = segments, count, 0 if count else touched_by(uses)
        return self._made(packing, values, uses + lent, touched, shape, site_of(depth))

    def _made(self, packing: Any, values: Sequence[Any], uses: Any, touched: tuple[bytes, int, int], shape: Any,
              site: Any) -> Launch:
        """A launch with places of its own. ``touched``: segments, their number, and acs_uses.any."""
        own = Packing(packing.types)
        self._pack(uses[0], own, values)
        params = LaunchParams(size=ctypes.sizeof(LaunchParams), kernel=uses[0].at, args=own.list, arg_count=own.count,
                              uses=Uses(*touched[:2], any=touched[2]), site=site, no_wait=1)
        params.grid, params.block = Dim3(*sizes_of(shape[0], "a grid")), Dim3(*sizes_of(shape[1], "a block"))
        params.shared_bytes, params.attributes = rest_of_shape(*shape[2:])
        return Launch(self, params, uses, own)

    def _queue(self, launch: Launch, wait: bool, kept: list[Any] | None = None) -> int:
        """Queue a prepared launch. ``kept``: what it uses is kept already."""
        kept, at, looped = kept or self._keep(launch), launch._at, wait
        if wait and self._waits_inside():
            params = LaunchParams.from_buffer_copy(launch._params)
            params.no_wait, at, looped = 0, ctypes.addressof(params), False
        while True:
            op = held.acs_launch(self._handle, at) if self._holds else self._call(free.acs_launch, at)
            if op:
                return self._kept_for(kept, op)
            self._make_room(kept, looped)

    def _queue_op(self, kept: list[Any] | None, function: Any, *args: Any, site: Any) -> int:
        """Queue an op by a call whose last arguments are its parameters. Ctrl-C ends the wait for room."""
        inside = self._waits_inside()
        about = OpParams(site, not inside)
        while True:
            op: int = self._call(function, *args, ctypes.byref(about))
            if op:
                return self._kept_for(kept, op) if kept is not None else op
            self._make_room(kept, not inside)

    def _waits_inside(self) -> bool:
        """Whether calls that queue ops must wait in the library: for a check; or not at all, since a group has no room later."""
        return self._checks or bool(self._held) and threading.get_ident() in self._held

    def copy(self, to: Any, source: Any, *, _depth: int = 2) -> int:
        """Queue a copy of all bytes of an array to one of the same size; both without gaps."""
        if self._on_cpu:
            refuse_gpu_arrays((to, source))
        dst, src = span(to), span(source)
        to_at, from_at = start_of(dst, "the target of a copy"), start_of(src, "the source of a copy")
        if dst.nbytes != src.nbytes:
            raise ValueError(f"acs: a copy of {src.nbytes} bytes to {dst.nbytes}")
        kept = self._keep((None, (), (source,), (to,), (), dst, src), dst.nbytes + src.nbytes)
        return self._queue_op(kept, free.acs_memcpy_op, to_at, from_at, dst.nbytes, site=site_of(_depth))

    def fill(self, to: Any, value: int, *, _depth: int = 2) -> int:
        """Queue that each byte of an array without gaps gets this value, 0 to 255."""
        if self._on_cpu:
            refuse_gpu_arrays((to,))
        dst = span(to)
        at = start_of(dst, "the target of a fill")
        value = number_of(value, "the byte of a fill", 256)
        kept = self._keep((None, (), (), (to,), (), dst), dst.nbytes)
        return self._queue_op(kept, free.acs_memset_op, at, value, dst.nbytes, site=site_of(_depth))

    def call(self, function: Callable[[], Any], *, reads: Sequence[Any] = (), writes: Sequence[Any] = (),
             updates: Sequence[Any] = ()) -> int:
        """
        Queue a Python function. It runs on a thread of the library once the ops have ended that it depends on. Without any
        array it may touch anything. It must not call acs: that is a StateError. If it raises, the op fails, those that depend
        on it are skipped, and waits raise HostError from it.
        """
        if not callable(function):
            raise TypeError(f"acs: an object of type {type(function).__name__} cannot be called")

        def run(_: int | None) -> int:
            try:
                function()
                return 0
            except BaseException as error:  # it must not cross the library
                code = next(_codes)
                self._failures[code] = error
                return code

        callback = HOST_FUNCTION(run)
        named, uses, nbytes = self._uses_of(reads, writes, updates)
        kept = self._keep((*named, callback), nbytes)
        return self._queue_op(kept, free.acs_host_op, callback, None, 0, uses, site=site_of(2))

    @staticmethod
    def _uses_of(reads: Sequence[Any], writes: Sequence[Any], updates: Sequence[Any]) -> tuple[tuple[Any, ...], Uses, int]:
        """What an op that is no launch uses, as it is kept, and for the library, and its bytes."""
        named = (None, (), tuple(reads), tuple(writes), tuple(updates))
        segments, count, nbytes, lent = footprint(*named[2:], {})
        return named + lent, Uses(segments, count, any=0 if count else touched_by(named)), nbytes

    # --------------------------------------------------------------------------------------------------------- memory

    def malloc(self, nbytes: int, *, pinned: bool = False, relocatable: bool = False, lazy: bool = False) -> Block:
        """Memory of the device, or pinned memory of the host, in program order. See acs_malloc for what the words mean."""
        kind = (_PINNED if pinned else _DEVICE) | (_RELOCATABLE if relocatable else 0) | (_LAZY if lazy else 0)
        at = ctypes.c_void_p()
        nbytes = number_of(nbytes, "the size of a block", 1 << 62)
        about = OpParams(site_of(2), 0)
        check(self._call(free.acs_malloc_op, nbytes, kind, ctypes.byref(at), ctypes.byref(about)))
        return Block(self, at.value or 0, nbytes)

    # ---------------------------------------------------------------------------------------------------------- waits

    def wait(self, op: int) -> None:
        """Wait for an op. Raises what it failed of. Ctrl-C ends the wait, not the op."""
        handle, op = self._handle, number_of(op, "the number of an op", NUMBER_MOST)
        error = self._wait(lambda: free.acs_wait(handle, op),
                           lambda: self._call(free.acs_query, op) != _layout.ACS_NOT_READY)
        self._raise(error and (self._error_of(op) or error))

    def query(self, op: int) -> bool:
        """Whether an op has ended. Raises what it failed of."""
        op = number_of(op, "the number of an op", NUMBER_MOST)
        status = self._call(free.acs_query, op)
        if status not in (_layout.ACS_OK, _layout.ACS_NOT_READY):
            self._raise(self._error_of(op) or failure_of(status))
        return status == _layout.ACS_OK

    def sync(self) -> None:
        """Wait for all ops. Raises the context's first failure since it was opened, or since :meth:`clear`."""
        handle = self._handle
        error: _errors.Error | None = None
        ended = False
        before: list[list[Any]] = []
        try:
            with self._lock:
                later: deque[list[Any]] = deque()  # is about to be queued, and may outlast the wait
                for entry in self._kept:  # looked at once, since another thread may give it its number
                    (before if entry[0] else later).append(entry)
                self._kept = later
            error = self._wait(lambda: free.acs_sync(handle))
            ended = not isinstance(error, _errors.StateError)
        finally:
            if not ended:
                with self._lock:
                    self._kept.extendleft(reversed(before))
        self._raise(error and (_first_error(handle) or error))

    def wait_for(self, array: Any, access: str = "read") -> None:
        """Before you touch an array yourself: wait for the ops that conflict with that (access "read" or "write")."""
        how = {"read": READ, "write": UPDATE}.get(access)
        if how is None:
            raise ValueError(f"acs: the access is '{access}'; it must be read or write")
        memory, handle, first = span(array), self._may_enter(), None
        refuse_no_bytes(memory, "what is waited for")
        for base, row, rows, pitch in memory.pieces:
            error = self._wait(lambda: free.acs_wait_range(handle, base, row + pitch * (rows - 1), how))
            first = first or error
        self._raise(first)

    def clear(self) -> None:
        """Wait for all ops, and forget all failures."""
        handle = self._handle
        self._raise(self._wait(lambda: free.acs_clear(handle)))
        self._failures.clear()

    def check_register(self, array: Any) -> None:
        """
        Let ``check="writes"``, "reads" and "all" watch memory that :meth:`malloc` did not make: an array without gaps. Ops can
        write it. The context keeps it alive until :meth:`check_unregister`; without a check the call does nothing.
        """
        memory = span(array)
        at = start_of(memory, "what a check watches")
        check(self._call(free.acs_check_register, at, memory.nbytes))
        if self._checks:
            self._watched.append(memory)

    def check_unregister(self, array: Any) -> None:
        """No longer watch an array. Each :meth:`check_register` needs one."""
        at = start_of(span(array), "what a check watches")
        check(self._call(free.acs_check_unregister, at))
        for number, memory in enumerate(self._watched):
            if memory.ptr == at:
                del self._watched[number]
                break

    # ------------------------------------------------------------------------------------------------------- sections

    @contextlib.contextmanager
    def repeat(self, key: int) -> Iterator[None]:
        """With this: a part of the program that recurs (docs/repeats.md). ``key`` names it, and is the same each time."""
        check(self._call(free.acs_repeat_begin, number_of(key, "the key of a repeat", NUMBER_MOST)))
        try:
            yield
        finally:
            check(self._call(free.acs_repeat_end))

    @contextlib.contextmanager
    def group(self, *, slots: int = 0, ops_most: int = 4096) -> Iterator[dict[str, int]]:
        """With this: ops that are held, and planned together at the end. The dictionary then has the plan's figures."""
        slots = number_of(slots, "the slots of a group", 1 << 32)
        region = self._regions.get(threading.get_ident())
        if region is not None:
            region.begin_ops()
        check(self._call(free.acs_group_begin, number_of(ops_most, "the ops of a group", 1 << 62)))
        thread = threading.get_ident()
        self._held[thread] = []
        figures: dict[str, int] = {}
        try:
            yield figures
        except BaseException:
            self._held.pop(thread, None)
            check(self._call(free.acs_group_cancel))
            raise
        kept = self._keep(self._held.pop(thread, None))
        report = GroupReport(size=ctypes.sizeof(GroupReport))
        params = GroupParams(ctypes.sizeof(GroupParams), slots, 0)
        error = failure_of(self._call(free.acs_group_submit, ctypes.byref(params), ctypes.byref(report)))
        kept[0] = _UNTIL_SYNC
        if error is not None:
            self._call(free.acs_group_cancel)  # it may still be held, and would hold all that follows
            raise error
        figures.update({name: getattr(report, name) for name, *_ in GroupReport._fields_[1:]})

    def after_stream(self, stream: Any, *, reads: Sequence[Any] = (), writes: Sequence[Any] = (),
                     updates: Sequence[Any] = ()) -> int:
        """
        Order ops from now on that touch these arrays behind a stream's work; without any array, all ops. While it is captured,
        ops become its nodes.
        """
        at, (_, uses, _) = _stream(stream), self._uses_of(reads, writes, updates)
        op = self._queue_op(None, free.acs_after_stream_op, at, uses, site=None)
        if op >> 63:
            self._captures.setdefault(threading.get_ident(), at)
        return op

    def stream_after(self, stream: Any, *, reads: Sequence[Any] = (), writes: Sequence[Any] = (),
                     updates: Sequence[Any] = ()) -> None:
        """
        Order work that you give to the stream from now on behind ops that conflict with these accesses; without any array,
        behind all ops. On the CPU it waits for them.
        """
        at, (_, uses, _), handle = _stream(stream), self._uses_of(reads, writes, updates), self._handle
        if self._on_cpu:  # else the call belongs to this thread: to its GPU, and to its capture
            self._raise(self._wait(lambda: free.acs_stream_after(handle, at, uses)))
            return
        check(self._call(free.acs_stream_after, at, uses))
        if self._captures.get(threading.get_ident()) == at:
            del self._captures[threading.get_ident()]

    def region(self, stream: Any) -> Region:
        """
        With this: ops that this thread launches, and a stream's work, run as if in one order. It takes two calls a change of
        turns: no op comes before work that the stream was given earlier, and the stream's work after the region comes behind
        the ops. Inside, call the region's ``order()`` before other work is given to the stream. Regions nest. While the
        stream is captured, ops become its nodes. On the CPU the end of the region waits for the ops instead.
        """
        return Region(self, stream)

    # ------------------------------------------------------------------------------------------------------ statistics

    def stats(self) -> dict[str, Any]:
        """Counters since the context was opened, by their names in acs_statistics."""
        raw = ctypes.create_string_buffer(_layout.STATISTICS_BYTES)
        ctypes.c_size_t.from_buffer(raw).value = _layout.STATISTICS_BYTES
        check(self._call(free.acs_stats, raw))
        figures: dict[str, Any] = {}
        for name, offset, count in _layout.STATISTICS:
            values = (ctypes.c_uint64 * count).from_buffer(raw, offset)
            figures[name] = values[0] if count == 1 else list(values)
        return figures

    def share_info(self, percent: int, *, device: int = 0) -> ShareInfo:
        """What this share of a device of the context comes to, in multiprocessors. The first time, it may take some ms."""
        with self._users:
            return share_info(self._handle, percent, device)

    def measure(self, launch: Launch, *, share: int | None = None, runs: int = 0, beside: Launch | None = None,
                beside_share: int | None = None) -> Measured:
        """
        Time a prepared launch on the device, alone on ``share`` percent of the GPU, or while ``beside`` runs again and again on
        ``beside_share`` percent. Waits for all ops; the bytes that the launch writes are as before afterwards. Other threads must
        not use the context meanwhile. ``runs``: 0: as many as fit into 2 ms.
        """
        for given in (launch, beside):
            if given is not None and (not isinstance(given, Launch) or given._context is not self):
                raise TypeError("acs: what is measured must be a launch that Context.prepare of this context returned")
        call, times, failures = measuring(self._handle, launch, share, runs, beside, beside_share)
        error = self._wait(call)
        if error is not None:
            raise error from (failures[0] if failures else None)
        return times()

    # ---------------------------------------------------------------------------------------------------------- inside

    @property
    def _handle(self) -> int:
        if self._at is None:
            raise _errors.StateError("acs: the context is closed", _layout.ACS_ERR_STATE)
        return self._at

    def _may_enter(self) -> int:
        """
        The handle, for what waits here and not in the library. Where the library refuses all calls, so does this: in a function
        of :meth:`call` and in a kernel's body.
        """
        if held.acs_context_backend(self._handle) < 0:
            raise last_error()
        return self._handle

    def _set_shape(self, grid: Any, block: Any, shared_bytes: int, cooperative: bool, device: int | None,
                   wish: Wish) -> None:
        last, self._shape = self._shape, None
        self._params.grid = Dim3(*sizes_of(grid, "a grid"))
        if last is None or block != last[1]:
            self._params.block = Dim3(*sizes_of(block, "a block"))
        rest = (shared_bytes, cooperative, device, wish)
        if last is None or last[2:] != rest:
            self._params.shared_bytes, self._params.attributes = rest_of_shape(*rest)
        self._shape = (frozen(grid), frozen(block), *rest)

    def _keep(self, what: Any, nbytes: int = 0) -> list[Any]:
        """Keep what an op uses that is about to be queued, until it has ended. Its number follows by _kept_for."""
        kept = [0, what]
        if self._regions:
            region = self._regions.get(threading.get_ident())
            if region is not None:
                region.begin_op(what).append(kept)
                return kept
        self._kept_bytes += nbytes
        if len(self._kept) > self._kept_most or self._kept_bytes > _KEPT_BYTES:
            self._drop_ended()
        with self._lock:
            self._kept.append(kept)
        return kept

    def _kept_for(self, kept: list[Any], op: int) -> int:
        if op >> 62 & 1:  # a group holds it
            self._held.setdefault(threading.get_ident(), []).append(kept[1])
            kept[1] = None
        kept[0] = op
        return op

    def _keep_all(self, entries: list[list[Any]]) -> None:
        """Keep what ops of a region use."""
        if not entries:
            return
        if len(self._kept) > self._kept_most:
            self._drop_ended()
        with self._lock:
            self._kept.extend(entries)

    def _enter_region(self, region: Region) -> Region | None:
        """The thread is in this region from now on. Returns the one around it."""
        self._may_enter()
        thread = threading.get_ident()
        if thread in self._held:
            raise _errors.StateError("acs: a region inside a group; begin the group inside the region", _layout.ACS_ERR_STATE)
        outer = self._regions.get(thread)
        if outer is not None:
            outer.order()
        self._regions[thread] = region
        return outer

    def _leave_region(self, thread: int | None, outer: Region | None) -> None:
        if thread is None:
            return
        if outer is None:
            self._regions.pop(thread, None)
        else:
            self._regions[thread] = outer

    def _drop_ended(self) -> None:
        """Forget what ops used that have ended. The next look comes when as many have been added as are left."""
        with self._lock:
            kept, self._kept = self._kept, deque()
            self._kept_most, self._kept_bytes = max(KEPT_MOST, 2 * len(kept)), 0
        left: Sequence[list[Any]] = kept  # all of them, if Ctrl-C comes meanwhile
        try:
            left = [entry for entry in kept if entry[1] is not None and self._may_run(entry[0])]
        finally:
            with self._lock:
                self._kept.extendleft(reversed(left))
                self._kept_most = max(KEPT_MOST, 2 * len(self._kept))

    def _may_run(self, op: int) -> bool:
        """Whether an op may not have ended. Of one that was held or captured only a sync tells."""
        return op == 0 or op >> 62 != 0 or self._call(free.acs_query, op) == _layout.ACS_NOT_READY

    def _wait(self, blocking: Callable[[], int], poll: Callable[[], bool] | None = None) -> _errors.Error | None:
        """
        A wait. The library refuses it to a thread that holds a group or captures, so such a thread calls by itself. Refused at
        once where another thread would wait in place of this one for ever.
        """
        self._may_enter()

        def call() -> int:
            with self._users:
                return blocking()

        thread = threading.get_ident()
        if thread in self._held or thread in self._captures:
            return failure_of(call())
        return _waits.wait(call, poll if self._polls else None)

    def _call(self, function: Any, *args: Any) -> Any:
        with self._users:
            return function(self._handle, *args)

    def _make_room(self, kept: list[Any] | None, wait: bool) -> None:
        """Behind a refusal for want of room: let the library make some. Raises any other error."""
        error = last_error()
        try:
            if error.status != _layout.ACS_ERR_FULL or not wait:
                raise error from taken_failure()
            self._step()
        except BaseException:  # Ctrl-C, too: nothing was queued
            if kept is not None:
                kept[1] = None
            raise

    def _step(self) -> None:
        """Let the library work for a moment, and other threads run."""
        if self._call(free.acs_step) == _layout.ACS_NOT_READY:
            os.sched_yield()  # a thread of the library is at work, maybe on this core

    def _error_of(self, op: int) -> _errors.Error | None:
        """What an op failed of."""
        e = ErrorText(size=ctypes.sizeof(ErrorText))
        held.acs_op_error(self._handle, op, ctypes.byref(e))
        return error_from(e) if e.status else None

    def _raise(self, error: _errors.Error | None) -> None:
        """Raise an error, from the exception of the function that caused it."""
        if error is None:
            return
        origin = error
        if error.cause and error.cause != error.op:
            origin = self._error_of(error.cause) or error
        failure = self._failures.get(origin.native) if type(origin) is _errors.HostError else None
        if failure is not None:
            text = error.args[0].replace(f"reported failure {origin.native}", "failed")  # the number says nothing
            error.args = (f"{text}; it raised {type(failure).__name__}: {failure}",)
        raise error from failure


def _first_error(handle: int) -> _errors.Error | None:
    """The context's first failure."""
    e = ErrorText(size=ctypes.sizeof(ErrorText))
    held.acs_context_error(handle, ctypes.byref(e))
    return error_from(e) if e.status else None


def _choice_of(raw: Any, name: str) -> int:
    """The value of an option that is a choice."""
    return ctypes.c_int32.from_buffer(raw, _layout.OPTIONS[name][1]).value


def _stream(stream: Any) -> int:
    about = getattr(stream, "__cuda_stream__", None)
    if about is not None:
        return int(about()[1] if callable(about) else about[1])
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    if isinstance(stream, int):
        return stream
    raise TypeError(f"acs: an object of type {type(stream).__name__} is no CUDA stream: it has no __cuda_stream__")


def _set_option(raw: Any, name: str, value: Any) -> None:
    row = _layout.OPTIONS.get(name)
    if row is None:
        import difflib
        near = difflib.get_close_matches(name, _layout.OPTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise _errors.OptionError(f"acs: there is no option '{name}'{hint}", _layout.ACS_ERR_OPTION)
    kind, offset, size, names = row
    if kind == "text":
        encoded = str(value).encode()
        if 0 in encoded:
            raise _errors.OptionError(f"acs: option {name} is {value!r}; it has a 0 byte", _layout.ACS_ERR_OPTION)
        if len(encoded) >= size:
            raise _errors.OptionError(f"acs: option {name} has {len(encoded)} bytes; at most {size - 1}",
                                      _layout.ACS_ERR_OPTION)
        (ctypes.c_char * size).from_buffer(raw, offset).value = encoded
    elif kind == "choice":
        choices = (names or "").split("|")
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if text not in choices:
            raise _errors.OptionError(f"acs: option {name} is '{value}'; it must be {', '.join(choices)}",
                                      _layout.ACS_ERR_OPTION)
        ctypes.c_int32.from_buffer(raw, offset).value = choices.index(text)
    else:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _errors.OptionError(f"acs: option {name} is {value!r}; it must be a number", _layout.ACS_ERR_OPTION)
        if not -(1 << 63) <= value < 1 << 63:
            raise _errors.OptionError(f"acs: option {name} is {value}; it must have 64 bits", _layout.ACS_ERR_OPTION)
        ctypes.c_int64.from_buffer(raw, offset).value = value


def _forked() -> None:
    """In a forked worker: threads that held locks are not there. The library refuses calls, and says why."""
    global _launching
    _launching = threading.Lock()
    for context in _open:
        context._lock, context._users = threading.Lock(), _Users()


os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    """Work under way at the exit ends first, while functions of Python can still run."""
    for context in list(_open):
        if context._pid != os.getpid():
            continue  # a forked worker has none of the library's threads
        try:
            context.close()
        except _errors.Error as error:
            print(f"acs: at exit: {error}", file=sys.stderr)
