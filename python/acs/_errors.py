"""Errors of the library as exceptions."""

from __future__ import annotations

from dataclasses import dataclass

from . import _layout


@dataclass(frozen=True)
class Site:
    """Where in the program an op was launched."""

    name: str | None
    file: str | None
    line: int


class Error(Exception):
    """
    A call failed, or an op did. ``status`` is one of the library's ``ACS_ERR_`` numbers, ``native`` the code of CUDA, of
    the system or of the host function (0: none), ``op`` the op that failed (0: none), ``cause`` the op whose failure made
    this one skip (0: none), ``site`` the line that launched the op.
    """

    def __init__(self, text: str, status: int = 0, native: int = 0, op: int = 0, cause: int = 0,
                 site: Site | None = None) -> None:
        super().__init__(text)
        self.status, self.native, self.op, self.cause, self.site = status, native, op, cause, site


class ArgumentError(Error, ValueError):
    """An argument is invalid. Nothing was queued."""


class FullError(Error):
    """The FIFO is full, and the call was told not to wait. Nothing was queued."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is exhausted. Nothing was queued."""


class StateError(Error):
    """
    Not allowed here: in a function that the library calls, after close, after a fork, inside a group or capture, or beside a
    second copy of the library.
    """


class OptionError(Error, ValueError):
    """An option has a bad value."""


class UnsupportedError(Error):
    """Not supported by this backend or device."""


class LaunchError(Error):
    """The backend refused to issue the op. It did not run."""


class HostError(Error):
    """A host function raised an exception or reported failure. The exception is ``__cause__``."""


class SkippedError(Error):
    """The op was skipped, since an op failed that it depends on."""


class DeviceError(Error):
    """The device faulted or was given up. Nothing more runs."""


class CheckError(Error):
    """ACS_CHECK found a footprint that contradicts itself, its allocation, another op or the kernel."""


class InternalError(Error):
    """A defect in the library."""


def unsupported(text: str) -> UnsupportedError:
    """What is not supported here."""
    return UnsupportedError(f"acs: {text}", _layout.ACS_ERR_UNSUPPORTED)


CLASSES: dict[int, type[Error]] = {
    _layout.ACS_ERR_ARGUMENT: ArgumentError,
    _layout.ACS_ERR_FULL: FullError,
    _layout.ACS_ERR_MEMORY: OutOfMemoryError,
    _layout.ACS_ERR_STATE: StateError,
    _layout.ACS_ERR_OPTION: OptionError,
    _layout.ACS_ERR_UNSUPPORTED: UnsupportedError,
    _layout.ACS_ERR_LAUNCH: LaunchError,
    _layout.ACS_ERR_HOST: HostError,
    _layout.ACS_ERR_SKIPPED: SkippedError,
    _layout.ACS_ERR_DEVICE: DeviceError,
    _layout.ACS_ERR_CHECK: CheckError,
    _layout.ACS_ERR_INTERNAL: InternalError,
}
