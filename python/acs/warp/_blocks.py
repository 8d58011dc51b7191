"""
Memory that a program frees in regions. Ops may still use it, so Warp's pool does not get it back at once. It is not used again
in the same region: ops that share no data would wait for each other. Later regions of the stream use it again, each in the
same order, so that a step that recurs has the same addresses each time.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any

_Free = Callable[..., Any]


class Blocks:
    """Memory of one stream that has been freed."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._resting: list[tuple[int, int]] = []        # address and bytes of those that were freed in this region
        self._ready: dict[int, list[int]] = {}           # by bytes: addresses of the others, negative, in rising order
        self._frees: dict[int, tuple[_Free, Sequence[Any]]] = {}  # by address: the call that gives it back to Warp

    def rest(self, address: int, nbytes: int, free: _Free, args: Sequence[Any]) -> None:
        """The program freed a block. ``free(*args)`` gives it back."""
        self._resting.append((address, nbytes))
        self._frees[address] = free, args
        self.nbytes += nbytes

    def take(self, nbytes: int) -> int | None:
        """A block of an earlier region: the one with the lowest address."""
        ready = self._ready.get(nbytes)
        if not ready:
            return None
        address = -ready.pop()
        del self._frees[address]
        self.nbytes -= nbytes
        return address

    def settle(self) -> bool:
        """The stream's work comes behind all that uses these blocks. Returns whether there are new ones."""
        for address, nbytes in self._resting:
            insort(self._ready.setdefault(nbytes, []), -address)
        resting, self._resting = self._resting, []
        return bool(resting)

    def give_back(self) -> None:
        """Give all back to Warp. The stream's work comes behind all that uses them."""
        frees, self._frees = self._frees, {}
        self._resting, self._ready, self.nbytes = [], {}, 0
        for free, args in frees.values():
            free(*args)
