"""
Warp through ACS: graphs that Warp captures, and launches without a capture, run in parallel.

    import acs.warp

    acs.warp.enable()
    with wp.ScopedCapture() as capture:     # any code of Warp: wp.launch, copies, fills, loops, libraries
        step()
    wp.capture_launch(capture.graph)        # what does not depend on each other runs side by side

Launches without a capture run out of order in a region:

    with acs.warp.out_of_order():
        step()

Each launch, copy and fill in one of these becomes an op. The bytes that it touches follow from the arrays among its
arguments, and from what the kernel's code does with each of them. Elsewhere Warp launches as it always does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _errors, _layout
from .._packing import number_of

if TYPE_CHECKING:
    from ._hooks import Hooks
    from ._regions import Region

KNOWN_VERSIONS = ("1.19.0",)
"""Versions of Warp with which this was tried."""
CHAINS_ANY = (1 << 32) - 1
"""As `chains` of :func:`enable`: edges are those that the footprints need, and no others."""

_installed: "Hooks | None" = None  # made once
_enabled = False


def _check_version(check: bool) -> None:
    try:
        import warp
    except ImportError:
        raise ImportError("acs: acs.warp needs Warp (pip install warp-lang)") from None
    if check and warp.__version__ not in KNOWN_VERSIONS:
        raise _errors.UnsupportedError(
            f"acs: Warp {warp.__version__} is installed; known are {', '.join(KNOWN_VERSIONS)} (check_version=False tries it)",
            _layout.ACS_ERR_UNSUPPORTED)


def enable(*, chains: int = 0, rest_bytes: int = 1 << 30, check_version: bool = True) -> None:
    """
    Let graphs that Warp captures from now on run in parallel. Call it again to change its parameters.

    ``chains``: ops are placed on so many chains, each behind the one before it on its chain, so that no more run at once.
    0: a number that is good on today's devices (docs/capture.md). :data:`CHAINS_ANY`: no chains.
    ``rest_bytes``: memory that a program frees while it captures is not used again before it has freed so many bytes. Regions of
    :func:`out_of_order` keep at most so many bytes of freed memory, for each stream.
    ``check_version``: refuse versions of Warp with which this was not tried. Without it, functions of Warp that are not
    known count as ops that may touch anything.

    Raises ImportError without Warp, :class:`acs.UnsupportedError` for a version that is not known or without a GPU.
    """
    global _installed, _enabled
    chains, rest_bytes = number_of(chains, "chains", 1 << 32), number_of(rest_bytes, "rest_bytes", 1 << 62)
    if _installed is None:
        _check_version(check_version)
        try:
            from ._hooks import Hooks
        except ImportError as error:
            raise _errors.UnsupportedError(f"acs: this version of Warp lacks what is needed: {error}",
                                           _layout.ACS_ERR_UNSUPPORTED) from error
        _installed = Hooks()
    _installed.chains, _installed.rest_bytes, _installed.latest = chains, rest_bytes, {}
    _installed.regions.rest_bytes = rest_bytes
    _installed.install()
    _enabled = True


def disable() -> None:
    """
    Undo :func:`enable`. Graphs that were captured stay as they are. Waits for the ops of regions, and raises what one of them
    has failed of. StateError while Warp captures on a GPU, and in a region.
    """
    global _enabled
    if _installed is not None and _enabled:
        _installed.remove()
        _installed.latest = {}
    _enabled = False


def enabled() -> bool:
    """Whether graphs that Warp captures run in parallel."""
    return _enabled


def out_of_order(device: Any = None) -> "Region":
    """
    With this: what is launched into the current stream of a CUDA device runs out of order, without a capture.

        with acs.warp.out_of_order():
            step()

    Launches, copies and fills become ops, and those that do not depend on each other run side by side. All else that Warp does
    with the device goes on in its order: the stream then waits for the ops before, and later ops wait for the stream. At the
    end the stream waits for all ops; the call itself does not wait. ``device``: as for ``wp.launch``. Regions nest. Inside a
    capture a region changes nothing. Work that other libraries give to the stream is not seen: :meth:`Region.join`.

    Raises :class:`acs.StateError` before :func:`enable`, :class:`acs.UnsupportedError` for the CPU. The end of a region raises
    what a launch has failed of, unless an exception ends it.
    """
    if _installed is None or not _enabled:
        raise _errors.StateError("acs: acs.warp.enable was not called", _layout.ACS_ERR_STATE)
    import warp
    from ._regions import Region
    where = warp.get_device(device)
    if not where.is_cuda:
        raise _errors.UnsupportedError(f"acs: the device {where} has no streams", _layout.ACS_ERR_UNSUPPORTED)
    return Region(_installed.regions, where)


def report() -> dict[str, Any]:
    """
    Figures of the graph whose capture ended last: its ``ops``, ``nodes``, ``edges``, ``levels`` (ops on its longest
    path; bodies of loops are not followed), ``chains``, and ``graphs`` (itself and bodies). Empty: there was none.
    """
    return dict(_installed.latest) if _installed is not None else {}


__all__ = ["CHAINS_ANY", "KNOWN_VERSIONS", "disable", "enable", "enabled", "out_of_order", "report"]
