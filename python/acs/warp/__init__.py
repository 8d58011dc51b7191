"""
Warp through ACS: graphs that Warp captures run in parallel.

    import acs.warp

    acs.warp.enable()
    with wp.ScopedCapture() as capture:     # any code of Warp: wp.launch, copies, fills, loops, libraries
        step()
    wp.capture_launch(capture.graph)        # what does not depend on each other runs side by side

Each launch, copy and fill that is captured becomes an op. The bytes that it touches follow from the arrays among its
arguments, and from what the kernel's code does with each of them. Without a capture Warp launches as it always does.
"""

from __future__ import annotations

from typing import Any

from ._hooks import KNOWN_VERSIONS, Hooks

_installed: Hooks | None = None  # made once
_enabled = False


def enable(*, chains: int = 0, rest_bytes: int = 1 << 30, check_version: bool = True) -> None:
    """
    Let graphs that Warp captures from now on run in parallel. Call it again to change its parameters.

    ``chains``: most ops of a graph of which no two are ordered; 0: a number that is good on today's devices.
    ``rest_bytes``: memory that a program frees while it captures is not used again before so many bytes rest.
    ``check_version``: refuse versions of Warp with which this was not tried. Without it, functions that are not known
    count as ops that may touch anything.

    Raises ImportError without Warp, :class:`acs.UnsupportedError` for a version that is not known or without a GPU.
    """
    global _installed, _enabled
    if _installed is None:
        _installed = Hooks(check_version)
    _installed.chains, _installed.rest_bytes, _installed.latest = chains, rest_bytes, {}
    _installed.install()
    _enabled = True


def disable() -> None:
    """Undo :func:`enable`. Graphs that were captured stay as they are. Not while Warp captures."""
    global _enabled
    if _installed is not None and _enabled:
        _installed.remove()
        _installed.latest = {}
    _enabled = False


def enabled() -> bool:
    """Whether graphs that Warp captures run in parallel."""
    return _enabled


def report() -> dict[str, Any]:
    """
    Figures of the graph whose capture ended last: its ``ops``, ``nodes``, ``edges``, ``levels`` (ops on its longest
    path; bodies of loops are not followed), ``chains``, and ``graphs`` (itself and bodies). Empty: there was none.
    """
    return dict(_installed.latest) if _installed is not None else {}


__all__ = ["KNOWN_VERSIONS", "disable", "enable", "enabled", "report"]
