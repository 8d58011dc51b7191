"""
Out-of-order issue of GPU kernels: launch kernels in program order with the arrays that each one reads and writes; they run
as if in that order, on many streams and GPUs.

    import acs

    add = acs.Kernel(compiled, signature="pointer, pointer, int32")
    with acs.Context() as context:
        op = context.launch(add, grid=64, block=256, args=(to, source, n), reads=[source], updates=[to])
        context.wait(op)

The module functions (:func:`launch`, :func:`sync`, ...) use one context that is opened at their first call.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from ._arrays import ALL, Span, bytes_at, escapes, inoutset, span, strided, tile, token, whole
from ._context import Block, Context, Launch
from ._errors import (ArgumentError, CheckError, DeviceError, Error, FullError, HostError, InternalError, LaunchError,
                      OptionError, OutOfMemoryError, Site, SkippedError, StateError, UnsupportedError)
from ._kernels import Kernel, declare, host_body
from ._layout import VERSION as __version__
from ._variants import Measured, ShareInfo, variants

_default_context: Context | None = None
_default_lock = threading.Lock()


def default() -> Context:
    """The context of the module's functions, opened from the environment at first use and closed at exit."""
    global _default_context
    with _default_lock:
        if _default_context is None or _default_context.closed:
            _default_context = Context()
        return _default_context


def _forked() -> None:
    """In a forked worker the thread that held the lock may not be there."""
    global _default_lock
    _default_lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def launch(*args: Any, **kwargs: Any) -> int:
    """:meth:`Context.launch` of the default context."""
    return default().launch(*args, _depth=3, **kwargs)


def copy(to: Any, source: Any) -> int:
    """:meth:`Context.copy` of the default context."""
    return default().copy(to, source, _depth=3)


def fill(to: Any, value: int) -> int:
    """:meth:`Context.fill` of the default context."""
    return default().fill(to, value, _depth=3)


def share_info(percent: int, *, device: int = 0) -> ShareInfo:
    """:meth:`Context.share_info` of the default context."""
    return default().share_info(percent, device=device)


def measure(launch: Launch, **how: Any) -> Measured:
    """:meth:`Context.measure` of the context that prepared the launch."""
    if not isinstance(launch, Launch):
        raise TypeError("acs: what is measured must be a launch that Context.prepare returned")
    return launch.context.measure(launch, **how)


def wait(op: int) -> None:
    """:meth:`Context.wait` of the default context."""
    default().wait(op)


def sync() -> None:
    """:meth:`Context.sync` of the default context."""
    default().sync()


__all__ = ["ALL", "ArgumentError", "Block", "CheckError", "Context", "DeviceError", "Error", "FullError", "HostError",
           "InternalError", "Kernel", "Launch", "LaunchError", "Measured", "OptionError", "OutOfMemoryError", "ShareInfo", "Site",
           "SkippedError", "Span", "StateError", "UnsupportedError", "__version__", "bytes_at", "copy", "declare", "default",
           "escapes", "fill", "host_body", "inoutset", "launch", "measure", "share_info", "span", "strided", "sync", "tile",
           "token", "variants", "wait", "whole"]
