"""Regions: a stream's work and the ops of a thread in one order."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import _layout
from ._arrays import ALL
from ._errors import Error, StateError

if TYPE_CHECKING:
    from ._context import Context


KEPT_MOST = 8192
"""Ops whose arrays are kept alive before it is looked which of them have ended."""


class Region:
    """
    What :meth:`Context.region` returns. Turns change as seldom as can be: the first op after work of the stream comes behind
    that work, and :meth:`order` puts the stream behind the ops.
    """

    def __init__(self, context: "Context", stream: Any) -> None:
        self.context, self.stream = context, stream
        self._ops_turn = False  # whether ops were launched since the stream's last turn
        self._kept: list[list[Any]] = []  # what those ops use
        self._outer: Region | None = None
        self._thread: int | None = None  # that is in it

    def __enter__(self) -> "Region":
        if self._thread is not None:
            raise StateError("acs: a region is entered that was not left", _layout.ACS_ERR_STATE)
        self._thread = threading.get_ident()
        try:
            self._outer = self.context._enter_region(self)
        except BaseException:
            self._thread = None
            raise
        return self

    def check_exit(self) -> None:
        """A region is left by the thread that entered it, and before those around it."""
        if self._thread != threading.get_ident():
            raise StateError("acs: a region is left that this thread is not in; leave it on the thread that entered it",
                             _layout.ACS_ERR_STATE)
        if self.context._regions.get(self._thread) is not self:
            raise StateError("acs: a region is left before one that was entered inside it", _layout.ACS_ERR_STATE)

    def __exit__(self, kind: Any, *_: object) -> None:
        self.check_exit()
        self.context._leave_region(self._thread, self._outer)
        try:
            self.order()
        except BaseException as error:
            self.keep()
            if kind is None or not isinstance(error, Error):  # else the program's own exception says more
                raise
        finally:
            self._thread, self._ops_turn = None, False

    def order(self) -> None:
        """Put the stream's next work behind the ops. On the CPU: wait for them. Call it before other libraries' work."""
        if not self._ops_turn:
            return
        if self._thread in self.context._captures and threading.get_ident() != self._thread:
            raise StateError("acs: another thread gives work to a captured stream inside a region, as a backward pass does: call "
                             "the region's order() before it", _layout.ACS_ERR_STATE)
        if self.context._on_cpu:
            self.context.sync()
        else:
            self.context.stream_after(self.stream, updates=(ALL,))
        self.give_back()
        self._ops_turn = False

    def give_back(self) -> None:
        """The stream is behind the ops. On the CPU they have ended."""
        if self.context._on_cpu:
            self._kept.clear()
        else:
            self.keep()

    def keep(self) -> None:
        """Let the context keep what the ops use until they have ended."""
        kept, self._kept = self._kept, []
        self.context._keep_all(kept)

    def begin_op(self, what: Any) -> list[list[Any]]:
        """An op comes that uses this. Returns the list for it."""
        if len(self._kept) > KEPT_MOST:
            self.keep()  # the context looks
        self.begin_ops()
        return self._kept

    def begin_ops(self) -> None:
        """From now on it is the turn of ops. Call it before code in C that launches them (:attr:`Context.handle`)."""
        if self._ops_turn:
            return
        if not self.context._on_cpu:
            self.context.after_stream(self.stream, updates=(ALL,))
        self._ops_turn = True
