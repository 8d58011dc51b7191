"""
Takes part in Warp's captures. Warp sends all work to a device through functions of its runtime library, which are
attributes of one object of ctypes. While a stream is captured, wrappers of these functions tell which nodes each call
made, and what they touch. Nothing of Warp is copied, and its files are not changed.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .. import _errors, _layout
from .._context import Context
from ._functions import TOUCHED, Range, address_of, condition, observes_work, sends_work
from ._inference import kernel_uses
from ._launches import launch_ranges
from ._recording import Memory, Recording
from ._regions import Regions

_LAUNCH_ARGUMENTS = 11
_FOR_EVER = ("wp_free_device_async", "wp_cuda_graph_destroy")
_RELAXED = 2  # cudaStreamCaptureModeRelaxed


class _Thread(threading.local):
    """Recordings whose streams this thread captures."""

    def __init__(self) -> None:
        self.active: dict[int, Recording] = {}


class Hooks:
    """The wrappers, and what they know."""

    def __init__(self) -> None:
        import warp
        from warp._src import context as warp_context
        warp.init()
        self._warp: Any = warp_context
        self._core = self._warp.runtime.core
        self._check_core()
        self.context = Context(backend="cuda", workers=0)
        self.chains, self.rest_bytes = 0, 1 << 30
        self.latest: dict[str, int] = {}
        self._thread = _Thread()
        self._kernels: dict[int, tuple[Any, bool, Any]] = {}        # by function: kernel, whether it is the adjoint, module
        self._suspended: dict[int, Recording] = {}                  # by graph: captures that go on later
        self._bodies: dict[int, tuple[Recording, int]] = {}         # by graph: op whose body it is
        self._graphs: dict[int, tuple[Memory, list[Range] | None]] = {}  # by graph: its memory, and what it touches
        self._memory_of: dict[int, Memory] = {}                     # by address: memory of a graph
        self._originals: dict[str, Any] = {}                        # functions that wrappers stand in for
        self._frees = False
        self._get_hooks: Any = None
        self.regions = Regions(self._core, self._kernels, lambda: bool(self._thread.active))

    # -------------------------------------------------------------------------------------------------------- installing

    def _check_core(self) -> None:
        launch = getattr(self._core, "wp_cuda_launch_kernel", None)
        if launch is None or launch.argtypes is None or len(launch.argtypes) != _LAUNCH_ARGUMENTS:
            raise _errors.UnsupportedError("acs: Warp's runtime library launches kernels in a way that is not known",
                                           _layout.ACS_ERR_UNSUPPORTED)

    def install(self) -> None:
        """Put the wrappers in place."""
        if self._originals:
            return
        special: dict[str, Callable[[Any], Callable[..., Any]]] = {
            "wp_cuda_launch_kernel": self._launch,
            "wp_cuda_graph_begin_capture": self._begin_capture,
            "wp_cuda_graph_end_capture": self._end_capture,
            "wp_cuda_graph_pause_capture": self._pause_capture,
            "wp_cuda_graph_resume_capture": self._resume_capture,
            "wp_cuda_graph_insert_if_else": self._insert_if_else,
            "wp_cuda_graph_insert_while": self._insert_while,
            "wp_cuda_graph_insert_child_graph": self._insert_child_graph,
            "wp_cuda_event_record": self._between(1),
            "wp_cuda_stream_wait_event": self._between(0),
            "wp_cuda_stream_wait_stream": self._between(0, 1),
            "wp_alloc_device_async": self._alloc,
            "wp_memset_device": self._fill,
        }
        for name, function in list(vars(self._core).items()):
            sends = name in special or sends_work(name)
            if not name.startswith("wp_") or name in _FOR_EVER or not (sends or observes_work(name)):
                continue
            self._originals[name] = function
            make = special.get(name)
            inner = make(function) if make else self._call(function, TOUCHED.get(name)) if sends else function
            setattr(self._core, name, self.regions.wrap(name, inner))
        self._get_hooks = self._warp.ModuleExec.get_kernel_hooks
        setattr(self._warp.ModuleExec, "get_kernel_hooks", self._kernel_hooks(self._get_hooks))
        if not self._frees:  # these stay, since graphs outlive the others
            self._frees = True
            self._core.wp_free_device_async = self.regions.wrap("wp_free_device_async",
                                                                self._free(self._core.wp_free_device_async))
            self._core.wp_cuda_graph_destroy = self._destroy_graph(self._core.wp_cuda_graph_destroy)

    def remove(self) -> None:
        """Take the wrappers away."""
        if self._thread.active or self._suspended:
            raise _errors.StateError("acs: Warp is capturing a graph", _layout.ACS_ERR_STATE)
        if self.regions.open:
            raise _errors.StateError("acs: a region of acs.warp.out_of_order has not ended", _layout.ACS_ERR_STATE)
        for name, function in self._originals.items():
            setattr(self._core, name, function)
        self._originals.clear()
        setattr(self._warp.ModuleExec, "get_kernel_hooks", self._get_hooks)
        self.regions.close()

    def _kernel_hooks(self, original: Any) -> Callable[..., Any]:
        def get_kernel_hooks(module: Any, kernel: Any) -> Any:
            hooks = original(module, kernel)
            if hooks is not None:
                loaded = weakref.ref(module)
                if hooks.forward:
                    self._kernels[address_of(hooks.forward)] = (kernel, False, loaded)
                if hooks.backward:
                    self._kernels[address_of(hooks.backward)] = (kernel, True, loaded)
            return hooks
        return get_kernel_hooks

    # --------------------------------------------------------------------------------------------------------- recording

    def _note(self, ranges: Iterable[Range] | None) -> None:
        for recording in list(self._thread.active.values()):
            recording.op(ranges)

    def _call(self, original: Any, what: Callable[..., Any] | None) -> Callable[..., Any]:
        """A function whose footprint follows from its arguments, or may be anything."""
        def call(*args: Any) -> Any:
            if not self._thread.active:
                return original(*args)
            self._note(None)  # work that others gave to the stream
            result = original(*args)
            self._note(what(*args) if what else None)
            return result
        return call

    def _launch(self, original: Any) -> Callable[..., Any]:
        def launch(*args: Any) -> Any:
            if not self._thread.active:
                return original(*args)
            self._note(None)
            result = original(*args)
            self._note(self._launch_ranges(args[1], args[8]))
            return result
        return launch

    def _fill(self, original: Any) -> Callable[..., Any]:
        def fill(context: Any, to: Any, value: int, nbytes: int, stream: Any) -> Any:
            recording = self._recording_of(context, stream)
            if recording is None:
                return original(context, to, value, nbytes, stream)
            self._note(None)
            recording.fill(address_of(to), value, nbytes)
            return True
        return fill

    def _launch_ranges(self, function: Any, params: Any) -> list[Range] | None:
        known = self._kernels.get(address_of(function))
        if known is None:
            return None
        return launch_ranges(kernel_uses(*known[:2]), params[1:len(params)])  # the first one holds the launch's dimensions

    # ---------------------------------------------------------------------------------------------------------- captures

    def _begin_capture(self, original: Any) -> Callable[..., Any]:
        def begin(context: Any, stream: Any, *rest: Any) -> Any:
            result = original(context, stream, *rest)
            try:
                if result:
                    self._start(address_of(stream), Memory(self.rest_bytes))
            except _errors.Error:  # the stream belongs to another device
                graph = ctypes.c_void_p()
                self._originals["wp_cuda_graph_end_capture"](context, stream, ctypes.byref(graph))
                self._core.wp_cuda_graph_destroy(context, graph)
                raise
            return result
        return begin

    def _start(self, stream: int, memory: Memory, parent: tuple[Recording, int] | None = None) -> None:
        self._thread.active[stream] = Recording(self.context, stream, self.chains, memory, parent)

    def _finish(self, recording: Recording) -> None:
        """The graph gets its edges. The recording is of no more use, also after an error."""
        try:
            recording.op(None)
            recording.end()
            recording.tell_parent()
        finally:
            recording.drop()

    def _end_capture(self, original: Any) -> Callable[..., Any]:
        def end(context: Any, stream: Any, graph: Any) -> Any:
            recording = self._thread.active.pop(address_of(stream), None)
            if recording is None:
                return original(context, stream, graph)
            try:
                self._finish(recording)
            except _errors.Error:  # the graph must not run
                if original(context, stream, graph):
                    self._core.wp_cuda_graph_destroy(context, graph._obj)
                self._give_back(context, recording.memory)
                raise
            result = original(context, stream, graph)
            if result:
                self._graphs[_target(graph)] = (recording.memory, recording.ranges())
                self.latest = dict(recording.figures)
            else:
                self._give_back(context, recording.memory)
            return result
        return end

    def _pause_capture(self, original: Any) -> Callable[..., Any]:
        def pause(context: Any, stream: Any, graph: Any) -> Any:
            recording = self._thread.active.pop(address_of(stream), None)
            goes_on = recording is not None and recording.awaits
            if recording and not goes_on:
                self._finish(recording)
            result = original(context, stream, graph)
            if recording and result:
                if goes_on:
                    self._suspended[_target(graph)] = recording
                elif recording.parent is None:  # bodies are part of another graph
                    self._graphs[_target(graph)] = (recording.memory, recording.ranges())
            return result
        return pause

    def _resume_capture(self, original: Any) -> Callable[..., Any]:
        def resume(context: Any, stream: Any, graph: Any) -> Any:
            result = original(context, stream, graph)
            if not result:
                return result
            at, key = address_of(stream), address_of(graph)
            recording = self._suspended.pop(key, None)
            body = self._bodies.pop(key, None)
            if recording:
                recording.awaits = False
                recording.resume()
                self._thread.active[at] = recording
            elif body:
                self._start(at, body[0].memory, body)
            elif key in self._graphs:
                self._start(at, self._graphs[key][0])
            return result
        return resume

    def _insert(self, original: Any, args: tuple[Any, ...], bodies: tuple[Any, ...]) -> Any:
        recording = self._thread.active.get(address_of(args[1]))
        if recording is None:
            return original(*args)
        self._note(None)
        result = original(*args)
        op = recording.op(condition(*args))
        if result and op is not None:
            recording.awaits = True
            for body in bodies:
                if body is not None:
                    self._bodies[_target(body)] = (recording, op)
        return result

    def _insert_if_else(self, original: Any) -> Callable[..., Any]:
        return lambda *args: self._insert(original, args, args[5:7])

    def _insert_while(self, original: Any) -> Callable[..., Any]:
        return lambda *args: self._insert(original, args, args[5:6])

    def _insert_child_graph(self, original: Any) -> Callable[..., Any]:
        def insert(context: Any, stream: Any, child: Any) -> Any:
            if not self._thread.active:
                return original(context, stream, child)
            self._note(None)
            result = original(context, stream, child)
            known = self._graphs.get(address_of(child))
            self._note(known[1] if known else None)
            return result
        return insert

    def _between(self, *streams: int) -> Callable[[Any], Callable[..., Any]]:
        """A function that orders streams against each other. The stream's own order then has to be that of the program."""
        def make(original: Any) -> Callable[..., Any]:
            def call(*args: Any) -> Any:
                if not self._thread.active:
                    return original(*args)
                recordings = [self._thread.active.get(address_of(args[i])) for i in streams]
                for recording in recordings:
                    if recording:
                        recording.op(None)
                        recording.end()
                result = original(*args)
                for recording in recordings:
                    if recording:
                        recording.begin()
                return result
            return call
        return make

    # ------------------------------------------------------------------------------------------------------------ memory

    def _alloc(self, original: Any) -> Callable[..., Any]:
        def alloc(context: Any, nbytes: int, stream: Any, tag: Any) -> Any:
            recording = self._recording_of(context, stream)
            if recording is None:
                return original(context, nbytes, stream, tag)
            found = recording.memory.take(nbytes)
            if found is not None:
                return found
            before = self._core.wp_cuda_thread_exchange_capture_mode(_RELAXED)
            address = self._core.wp_alloc_device_default(context, nbytes, tag)
            self._core.wp_cuda_thread_exchange_capture_mode(before)
            if address:
                recording.memory.add(address, nbytes)
                self._memory_of[address] = recording.memory
            return address
        return alloc

    def _recording_of(self, context: Any, stream: Any) -> Recording | None:
        if not self._thread.active:
            return None
        at = address_of(stream)
        if at == self._warp.WP_CURRENT_STREAM:
            at = address_of(self._core.wp_cuda_context_get_stream(context))
        return self._thread.active.get(at)

    def _free(self, original: Any) -> Callable[..., Any]:
        def free(context: Any, address: Any, node: Any) -> Any:
            memory = self._memory_of.get(address_of(address)) if address else None
            if memory is None:
                return original(context, address, node)
            if memory.over:
                del self._memory_of[address_of(address)]
                return self._core.wp_free_device_default(context, address)
            memory.rest(address_of(address))
            return None
        return free

    def _destroy_graph(self, original: Any) -> Callable[..., Any]:
        def destroy(context: Any, graph: Any) -> Any:
            result = original(context, graph)
            known = self._graphs.pop(address_of(graph), None)
            if known:
                self._give_back(context, known[0])
            return result
        return destroy

    def _give_back(self, context: Any, memory: Memory) -> None:
        """The graph is gone: free what the program has freed. The rest is freed when the program frees it."""
        for address in memory.end():
            if self._memory_of.pop(address, None):
                self._core.wp_free_device_default(context, address)


def _target(pointer: Any) -> int:
    """The handle that a call wrote behind a pointer."""
    return address_of(getattr(pointer, "_obj", pointer))
