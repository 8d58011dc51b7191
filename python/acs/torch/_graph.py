"""
Graphs of PyTorch's operators that run side by side. Each operator that is captured becomes an op, whose footprint follows
from its schema and from the memory that it allocates. The edges are made when the capture ends (acs_graph_begin in acs.h).
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _errors, _layout
from .._arrays import SEGMENT, UPDATE, pack_bytes
from .._context import Context, _number
from .._library import GraphParams, GraphReport, Uses, check, held, last_error
from ._footprint import footprint, fresh_results, has_own_streams
from ._region import sends_work

_NO_OP = (1 << 64) - 1
_ROUND = 512  # bytes to which PyTorch's allocator rounds

_contexts: "dict[int, Context]" = {}
"""By device: what graphs are made with. They launch no ops."""


def _unsupported(text: str) -> _errors.Error:
    return _errors.UnsupportedError(f"acs: {text}", _layout.ACS_ERR_UNSUPPORTED)


def _context(device: int) -> Context:
    context = _contexts.get(device)
    if context is None or context.closed:
        context = _contexts[device] = Context(backend="cuda", workers=0)
    return context


def _uses(segments: bytes | None) -> Uses:
    return Uses(segments or b"", len(segments or b"") // SEGMENT.size, None, None, segments is None)


class _Allocations:
    """
    What PyTorch's allocator hands out while a graph is captured. Its history tells which memory each operator used and gave
    back inside: a tensor that is allocated before each operator, and lives on, marks where the operator begins.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._marks: list[torch.Tensor] = []
        self._blocks: dict[int, list[int]] = {}  # by their bytes together: sizes of blocks that an operator gave back
        self._was_on = torch._C._cuda_isHistoryEnabled()

    def begin(self) -> None:
        if not self._was_on:
            torch.cuda.memory._record_memory_history(context=None)

    def end(self) -> None:
        if not self._was_on:
            torch.cuda.memory._record_memory_history(enabled=None)

    def mark(self) -> int:
        """An operator begins. Returns its number, from 0."""
        self._marks.append(torch.empty(1, dtype=torch.uint8, device=f"cuda:{self._device}"))
        return len(self._marks) - 1

    def of_operators(self) -> Iterator[tuple[int, int, int]]:
        """Number of the operator, address and bytes of each block that an operator allocated."""
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
                yield number, at, max(nbytes, _ROUND)

    def freed_bytes(self) -> int:
        """Bytes that were given back to the allocator, ever."""
        return int(torch.cuda.memory_stats_as_nested_dict(self._device)["allocated_bytes"]["all"]["freed"])

    def freed_blocks(self, nbytes: int) -> list[int]:
        """Sizes of the blocks that the last operator gave back, which are so many bytes together, the largest first."""
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
    Memory that is not used again soon once the program drops it: an operator that gets it has to come behind those that used
    it before.
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
    ``chains``      operators are placed on so many chains, and no more run at once. 0: a number that is good on today's
                    devices (docs/capture.md).
    ``rest_bytes``  memory that the program frees while it captures is not used again before so many bytes were allocated
                    behind it. The graph needs that much more memory at most.

    After it, ``figures`` has the graph's ops, nodes, edges, levels (ops on its longest path) and chains.

    Work that PyTorch's dispatcher does not see (kernels of Triton, CuPy, compiled functions) is ordered behind everything
    before it, and before everything behind it. Work in other streams is refused: StateError.
    """

    def __init__(self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global", *,
                 chains: int = 0, rest_bytes: int = 1 << 30) -> None:
        self._chains, self._rest_most = _number(chains, "chains", 1 << 32), _number(rest_bytes, "rest_bytes", 1 << 62)
        self._capture: Any = torch.cuda.graph(cuda_graph, pool=pool, stream=stream, capture_error_mode=capture_error_mode)
        self._handle: int | None = None
        self._mode: _Operators | None = None
        self._ops: dict[int, int] = {}  # by number of the operator
        self.figures: dict[str, int] = {}

    def __enter__(self) -> "graph":
        if torch.cuda.get_allocator_backend() != "native":
            raise _unsupported("PyTorch's allocator is another one than its own, and does not tell what it allocates")
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
        except BaseException as error:
            self._capture.__exit__(type(error), error, error.__traceback__)
            raise
        self._mode = _Operators(self)
        self._mode.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        mode, capture = self._mode, self._capture
        assert mode is not None
        mode.__exit__(kind, error, trace)
        self._mode = self._capture = None  # else the garbage collector would end the graph, maybe in a later capture
        try:
            if kind is None:
                self._finish()
        finally:
            self._drop()
            capture.__exit__(kind, error, trace)

    def _finish(self) -> None:
        """Make the graph's edges."""
        self._op(None)
        for number, at, nbytes in self._allocations.of_operators():
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
        if freed:
            for nbytes in self._allocations.freed_blocks(freed):
                self._rest.take(nbytes)
