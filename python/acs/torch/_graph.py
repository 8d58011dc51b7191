"""
Graphs of PyTorch's operators that run side by side. Each operator that is captured becomes an op, whose footprint follows
from its schema and from the memory that it allocates. The edges are made when the capture ends (acs_graph_begin in acs.h).
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _errors, _layout
from .._arrays import SEGMENT, UPDATE, pack_bytes
from .._context import Context
from .._errors import unsupported as _unsupported
from .._library import GraphParams, GraphReport, Uses, check, held, last_error
from .._packing import number_of
from ._footprint import footprint, fresh_results, has_own_streams
from ._region import sends_work

_NO_OP = (1 << 64) - 1
_capturing = threading.Lock()
"""Held while a graph is captured: PyTorch's history of memory, and its workspaces, are the process's."""
_contexts: "dict[int, Context]" = {}
"""By device: what graphs are made with. They launch no ops."""


def _check_pytorch() -> None:
    """Refuse versions of PyTorch that lack what is needed, before anything begins."""
    for where, name in ((torch._C, "_cuda_isHistoryEnabled"), (torch._C, "_cuda_clearCublasWorkspaces"),
                        (torch.cuda.memory, "_record_memory_history"), (torch.cuda.memory, "_snapshot")):
        if not hasattr(where, name):
            raise _unsupported(f"PyTorch {torch.__version__} has no {name}, by which memory inside of operators is found")
    if torch.cuda.get_allocator_backend() != "native":
        raise _unsupported("PyTorch's allocator is another one than its own, and does not tell what it allocates")


def _context(device: int) -> Context:
    context = _contexts.get(device)
    if context is None or context.closed:
        context = _contexts[device] = Context(backend="cuda", workers=0)
    return context


def _uses(segments: bytes | None) -> Uses:
    return Uses(segments or b"", len(segments or b"") // SEGMENT.size, None, None, segments is None)


class _Allocations:
    """
    What PyTorch's allocator hands out while a graph is captured. Its history tells which memory an operator used and gave back
    inside. Tensors that are allocated before and behind the operator mark its part of the history. They live on.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._marks: list[torch.Tensor] = []
        self._blocks: dict[int, list[int]] = {}  # by their bytes together: sizes of blocks that operators gave back
        self._was_on = torch._C._cuda_isHistoryEnabled()

    def begin(self) -> None:
        if not self._was_on:
            torch.cuda.memory._record_memory_history(context=None)

    def end(self) -> None:
        if not self._was_on:
            torch.cuda.memory._record_memory_history(enabled=None)

    def mark(self) -> int:
        """An operator begins or ends. Returns the mark's number, from 0."""
        self._marks.append(torch.empty(1, dtype=torch.uint8, device=f"cuda:{self._device}"))
        return len(self._marks) - 1

    def behind_marks(self) -> Iterator[tuple[int, int, int]]:
        """Number of the latest mark, address and bytes of each block that was allocated behind one."""
        allocs = [(entry["addr"], entry["size"]) for entry in self._history() if entry["action"] == "alloc"]
        latest = {at: place for place, (at, _) in enumerate(allocs)}  # a mark may lie where operators had memory before it
        marks = {latest.get(mark.data_ptr(), -1): number for number, mark in enumerate(self._marks)}
        if -1 in marks or list(marks) != sorted(marks):
            raise _unsupported("PyTorch's history of allocations has gaps, so memory inside of operators is not known")
        number = None
        for place, (at, nbytes) in enumerate(allocs):
            if place in marks:
                number = marks[place]
            elif number is not None:
                yield number, at, nbytes

    def freed_bytes(self) -> int:
        """Bytes that were given back to the allocator, ever."""
        return int(torch.cuda.memory_stats_as_nested_dict(self._device)["allocated_bytes"]["all"]["freed"])

    def freed_blocks(self, nbytes: int) -> list[int]:
        """
        Sizes of the blocks that were given back behind the latest mark, ``nbytes`` together, the largest first. A guess: those
        that an earlier operator with as many bytes gave back. Reading the history each time would take long.
        """
        sizes = self._blocks.get(nbytes)
        if sizes is None:
            mark, sizes = self._marks[-1].data_ptr(), []
            for entry in reversed(self._history()):
                if entry["action"] == "alloc" and entry["addr"] == mark:
                    break
                if entry["action"] == "free_completed":
                    sizes.append(entry["size"])
            self._blocks[nbytes] = sizes = sorted(sizes, reverse=True)
        return sizes

    def _history(self) -> list[dict[str, Any]]:
        return torch.cuda.memory._snapshot()["device_traces"][self._device]  # type: ignore[no-any-return]


class _Rest:
    """
    Memory that is not used again soon after the program drops it. An operator that reuses a block is ordered behind the
    block's earlier users.
    """

    def __init__(self, device: int, most: int) -> None:
        self._device, self._most = device, most
        self._bytes = 0
        self._held: deque[tuple[Any, int]] = deque()

    def hold(self, what: Any, nbytes: int) -> None:
        self._held.append((what, nbytes))
        self._bytes += nbytes
        while self._bytes > self._most:
            self._bytes -= self._held.popleft()[1]

    def take(self, nbytes: int) -> None:
        """The allocator just got a block of this size back, and most likely hands it out again now."""
        if 0 < nbytes <= self._most:
            self.hold(torch.empty(nbytes, dtype=torch.uint8, device=f"cuda:{self._device}"), nbytes)


class _Operators(TorchDispatchMode):
    """Makes an op of each operator that PyTorch runs."""

    supports_higher_order_operators = True

    def __init__(self, recording: "graph") -> None:
        super().__init__()
        self._recording = recording

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._recording._operator(function, args, kwargs or {})


class graph:
    """
    With this, as with ``torch.cuda.graph``: operators of PyTorch are captured, and those that do not depend on each other run
    side by side when the graph is replayed. Results are those of the serial capture.

    ``cuda_graph``  a ``torch.cuda.CUDAGraph``. ``pool``, ``stream``, ``capture_error_mode`` go to ``torch.cuda.graph``.
    ``chains``      number of chains on which operators are placed; as many run at once. 0: a number that is good on
                    today's devices (docs/capture.md).
    ``rest_bytes``  bytes that are allocated before memory that the program freed in the capture is used again. The graph
                    needs that much more memory at most.

    After it, ``figures`` has the graph's ops, nodes, edges, levels (ops on its longest path) and chains.

    Work that PyTorch's dispatcher does not see (kernels of Triton, CuPy, compiled functions) is ordered behind everything
    before it, and before everything behind it. Work in other streams is refused: StateError.
    """

    def __init__(self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global", *,
                 chains: int = 0, rest_bytes: int = 1 << 30) -> None:
        if not torch.cuda.is_available():
            raise _unsupported("PyTorch finds no GPU, whose work could be captured")
        self._chains, self._rest_most = number_of(chains, "chains", 1 << 32), number_of(rest_bytes, "rest_bytes", 1 << 62)
        self._cuda_graph = cuda_graph
        self._capture: Any = torch.cuda.graph(cuda_graph, pool=pool, stream=stream, capture_error_mode=capture_error_mode)
        self._handle: int | None = None
        self._mode: _Operators | None = None
        self._ops: dict[int, int] = {}  # by number of the mark before the operator
        self.figures: dict[str, int] = {}

    def __enter__(self) -> "graph":
        _check_pytorch()
        if not _capturing.acquire(blocking=False):
            raise _errors.StateError("acs: another acs.torch.graph is being captured", _layout.ACS_ERR_STATE)
        try:
            self._begin()
        except BaseException:
            _capturing.release()
            raise
        return self

    def _begin(self) -> None:
        self._device = torch.cuda.current_device()
        context = _context(self._device)
        self._allocations = _Allocations(self._device)
        self._rest = _Rest(self._device, self._rest_most)
        torch._C._cuda_clearCublasWorkspaces()
        self._capture.__enter__()
        try:
            self._stream = torch.cuda.current_stream()
            handle = ctypes.c_void_p()
            check(held.acs_graph_begin(context._handle, self._stream.cuda_stream, ctypes.byref(handle)))
            self._handle = handle.value
            self._allocations.begin()
            self._mode = _Operators(self)
            self._mode.__enter__()
        except BaseException as error:
            self._end(error)
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        mode = self._mode
        assert mode is not None
        try:
            mode.__exit__(kind, error, trace)
            if kind is None:
                self._finish()
        except BaseException as failure:
            self._end(failure)
            raise
        else:
            self._end(error)
        finally:
            _capturing.release()

    def _end(self, error: BaseException | None) -> None:
        """End the capture. After an error the graph is emptied, since it lacks edges."""
        capture, graph = self._capture, self._cuda_graph
        self._mode = self._capture = self._cuda_graph = None  # else the garbage collector might end them in a later capture
        try:
            self._drop()
        finally:
            try:
                capture.__exit__(type(error) if error else None, error, None)
            finally:
                if error is not None:
                    graph.reset()

    def _finish(self) -> None:
        """Make the graph's edges."""
        self._op(None)
        for number, at, nbytes in self._allocations.behind_marks():
            op = self._ops.get(number)
            if op is not None:
                check(held.acs_graph_add_uses(self._handle, op, _uses(pack_bytes(at, nbytes, UPDATE))))
        handle, self._handle = self._handle, None
        report = GraphReport(size=ctypes.sizeof(GraphReport))
        params = GraphParams(ctypes.sizeof(GraphParams), self._chains)
        status = held.acs_graph_end(handle, self._stream.cuda_stream, ctypes.byref(params), ctypes.byref(report))
        self.figures = {name: getattr(report, name) for name in ("ops", "nodes", "edges", "levels", "chains")}
        check(status)

    def _drop(self) -> None:
        self._allocations.end()
        torch._C._cuda_clearCublasWorkspaces()
        del self._rest, self._allocations
        if self._handle is not None:
            held.acs_graph_cancel(self._handle)
            self._handle = None

    def _op(self, segments: bytes | None) -> int | None:
        """What the stream captured since the last call is one op. Returns its number, if any."""
        number = held.acs_graph_op(self._handle, self._stream.cuda_stream, _uses(segments), None)
        if not number:
            raise last_error()
        return None if number == _NO_OP else int(number)

    def _operator(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if not sends_work(function):
            result = function(*args, **kwargs)
            self._hold_results(function, result)
            return result
        self._check(function)
        self._op(None)  # work that others gave to the stream
        number = self._allocations.mark()
        freed = self._allocations.freed_bytes()
        result = function(*args, **kwargs)
        op = self._op(footprint(function, args, kwargs, result))
        if op is not None:
            self._ops[number] = op
        self._hold_memory(freed)
        self._hold_results(function, result)
        return result

    def _check(self, function: Any) -> None:
        if has_own_streams(function) or torch.cuda.current_stream() != self._stream:
            raise _errors.StateError(f"acs: {function} gives work to another stream; acs.torch.graph takes one stream, and finds "
                                     "by itself what may run side by side", _layout.ACS_ERR_STATE)

    def _hold_results(self, function: Any, result: Any) -> None:
        """Let memory of new tensors rest once the program drops them."""
        for tensor in fresh_results(function, result):
            storage = tensor.untyped_storage()
            self._rest.hold(storage, storage.nbytes())

    def _hold_memory(self, freed: int) -> None:
        """Let memory rest that an operator used inside, and the workspaces of matrix products."""
        torch._C._cuda_clearCublasWorkspaces()
        freed = self._allocations.freed_bytes() - freed
        blocks = self._allocations.freed_blocks(freed) if freed else []
        self._allocations.mark()
        for nbytes in blocks:
            self._rest.take(nbytes)
