"""
Graphs that Warp captures, op by op: which nodes belong together, and what they touch. The library gives a graph its edges
when its capture ends (acs_graph_begin to acs_graph_end in acs.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from .._arrays import EXTENT_ALL, READ, SEGMENT, UPDATE
from .._library import GraphParams, GraphReport, Uses, check, held, last_error
from ._functions import Range

_NO_OP = (1 << 64) - 1
READS_ALL: Range = (0, -1, READ)
"""As one of the ranges of an op: it may read anything."""


class Memory:
    """
    Memory that a program allocates while it captures. It is no node of the graph, lives as long as the graph, and rests
    when the program frees it: memory that is used again at once would order ops that have nothing to do with each other.
    """

    def __init__(self, rests_most: int) -> None:
        self.over = False  # whether the graph is gone
        self._rests_most = rests_most
        self._blocks: dict[int, int] = {}   # address and bytes of all
        self._resting: dict[int, int] = {}  # the same of those that were freed; the oldest first
        self._rests = 0                     # bytes of these

    def add(self, address: int, nbytes: int) -> None:
        """A block that was allocated."""
        self._blocks[address] = nbytes

    def take(self, nbytes: int) -> int | None:
        """A block that has rested, once too much memory rests."""
        if self._rests <= self._rests_most:
            return None
        for address, size in self._resting.items():
            if nbytes <= size <= 2 * nbytes:
                del self._resting[address]
                self._rests -= size
                return address
        return None

    def rest(self, address: int) -> None:
        """The program freed a block."""
        self._resting[address] = self._blocks[address]
        self._rests += self._blocks[address]

    def end(self) -> list[int]:
        """The graph is gone. Returns the blocks that the program has freed."""
        self.over = True
        return list(self._resting)


class Recording:
    """A graph that a stream captures. ``parent``: the recording and the op whose body the graph is."""

    def __init__(self, context: Any, stream: int, chains: int, memory: Memory,
                 parent: "tuple[Recording, int] | None" = None) -> None:
        self.context, self.stream, self.chains, self.memory, self.parent = context, stream, chains, memory, parent
        self.touched: dict[tuple[int, int], int] | None = {}  # what all its ops touch; None: anything
        self.awaits = False  # whether bodies of its latest op come next
        self.figures = {"ops": 0, "nodes": 0, "edges": 0, "levels": 0, "chains": 0, "graphs": 0}
        self._handle: int | None = None
        self.begin()

    def begin(self) -> None:
        """All that the stream captured before comes before the ops."""
        handle = ctypes.c_void_p()
        check(held.acs_graph_begin(self.context._handle, self.stream, ctypes.byref(handle)))
        self._handle = handle.value

    def op(self, ranges: Iterable[Range] | None) -> int | None:
        """What the stream captured since the last call is one op. None: it touches anything. Returns its number, if any."""
        segments = pack(ranges)
        uses = Uses(segments, len(segments) // SEGMENT.size, None, None, ranges is None)
        number = held.acs_graph_op(self._handle, self.stream, uses, None)
        if not number:
            raise last_error()
        if number == _NO_OP:
            return None
        self._remember(ranges)
        return int(number)

    def fill(self, at: int, value: int, nbytes: int) -> None:
        """Capture a fill as an op."""
        if not held.acs_graph_memset(self._handle, self.stream, at, value, nbytes, None):
            raise last_error()
        self._remember([(at, nbytes, UPDATE)])

    def resume(self) -> None:
        """The stream captures into the graph again."""
        check(held.acs_graph_resume(self._handle, self.stream))

    def end(self) -> None:
        """Make the edges. What the stream captures from now on comes behind all ops."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        report = GraphReport(size=ctypes.sizeof(GraphReport))
        params = GraphParams(ctypes.sizeof(GraphParams), self.chains)
        if self.parent:
            params.body_of, params.op = self.parent[0]._handle, self.parent[1]
        status = held.acs_graph_end(handle, self.stream, ctypes.byref(params), ctypes.byref(report))
        for name in ("ops", "nodes", "edges", "levels"):
            self.figures[name] += getattr(report, name)
        self.figures["chains"] = max(self.figures["chains"], report.chains)
        self.figures["graphs"] += 1
        check(status)

    def tell_parent(self) -> None:
        """The op whose body this is did what its ops did."""
        if self.parent is None:
            return
        above = self.parent[0]
        above._remember(self.ranges())
        for name in ("ops", "nodes", "edges", "graphs"):
            above.figures[name] += self.figures[name]
        above.figures["chains"] = max(above.figures["chains"], self.figures["chains"])

    def ranges(self) -> list[Range] | None:
        """What all its ops touch."""
        return None if self.touched is None else [(at, size, access) for (at, size), access in self.touched.items()]

    def drop(self) -> None:
        """Forget the ops, after an error. The graph must not run."""
        if self._handle is not None:
            held.acs_graph_cancel(self._handle)
            self._handle = None

    def _remember(self, ranges: Iterable[Range] | None) -> None:
        if ranges is None:
            self.touched = None
        elif self.touched is not None:
            for at, size, access in ranges:
                self.touched[at, size] = self.touched.get((at, size), 0) | (UPDATE if access != READ else READ)


def pack(ranges: Iterable[Range] | None) -> bytes:
    if ranges is None:
        return b""
    return b"".join(SEGMENT.pack(at, size, 1, 0, access, 0, 0, 0) if size > 0 else
                    SEGMENT.pack(0, 0, 0, 0, access, EXTENT_ALL, 0, 0) for at, size, access in ranges if size)

