"""
Finds and loads libacs.so, and declares its functions. The library is what ACS_LIBRARY names, else the one in the package.
Calls that never block hold the interpreter's lock (`held`): to give it up costs more than such a call. All others
(`free`) let other threads run.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

from . import _errors, _layout


class Dim3(Structure):
    _fields_ = [("x", c_uint32), ("y", c_uint32), ("z", c_uint32)]


class Grid(Structure):
    """The launch as a host body sees it."""

    _fields_ = [("grid", Dim3), ("block", Dim3), ("shared_bytes", c_uint64), ("shared", c_void_p)]


class Site(Structure):
    _fields_ = [("name", c_char_p), ("file", c_char_p), ("line", c_int)]


class ErrorText(Structure):
    _fields_ = [("size", c_size_t), ("status", c_int), ("native", c_int), ("op", c_uint64), ("cause", c_uint64),
                ("where", c_char_p), ("site", Site), ("text", c_char * 320)]


class KernelStruct(Structure):
    _fields_ = [("name", c_char_p), ("function", c_void_p), ("host", c_void_p), ("kind", c_uint32), ("flags", c_uint32)]


class Arg(Structure):
    _fields_ = [("value", c_void_p), ("size", c_uint32), ("type", c_uint32)]


class Attributes(Structure):
    _fields_ = [("cluster", Dim3), ("priority", c_int32), ("cooperative", c_uint8), ("programmatic", c_uint8),
                ("on", c_uint8), ("share", c_uint8), ("variant", c_uint8), ("fit", c_uint8), ("reserved", c_uint8 * 2)]


class Uses(Structure):
    _fields_ = [("segments", c_char_p), ("count", c_size_t), ("footprint", c_void_p), ("user", c_void_p),
                ("any", c_uint32)]


class GridFrom(Structure):
    _fields_ = [("word", c_void_p), ("items", c_uint32)]


class LaunchParams(Structure):
    _fields_ = [("size", c_size_t), ("kernel", POINTER(KernelStruct)), ("grid", Dim3), ("block", Dim3),
                ("shared_bytes", c_uint64), ("args", POINTER(Arg)), ("arg_count", c_size_t), ("uses", Uses),
                ("attributes", Attributes), ("site", POINTER(Site)), ("no_wait", c_uint32),
                ("grid_from", GridFrom), ("args_text", c_char_p), ("stub", c_void_p)]


class OpParams(Structure):
    _fields_ = [("site", POINTER(Site)), ("no_wait", c_uint32)]


class GroupParams(Structure):
    _fields_ = [("size", c_size_t), ("slots", c_uint32), ("reserved", c_uint32)]


class GroupReport(Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in (
        "ops", "blocks", "memory_sum", "memory_bound", "memory_peak", "slots", "threads", "shared_bytes", "registers",
        "first", "last")]


class GraphParams(Structure):
    _fields_ = [("size", c_size_t), ("chains", c_uint32), ("body_of", c_void_p), ("op", c_uint64)]


class GraphReport(Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in ("ops", "nodes", "edges", "levels", "chains")]


class FootprintInput(Structure):
    _fields_ = [("name", c_char_p), ("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("shared_bytes", c_uint64),
                ("args", POINTER(c_void_p)), ("arg_count", c_size_t), ("user", c_void_p), ("arg_bytes", POINTER(c_uint32)),
                ("grid_is_most", c_uint32)]


class LaunchShape(Structure):
    _fields_ = [("grid", Dim3), ("block", Dim3), ("shared_bytes", c_uint64)]


SHAPE = ctypes.CFUNCTYPE(c_size_t, POINTER(FootprintInput), POINTER(LaunchShape))


class VariantStruct(Structure):
    _fields_ = [("name", c_char_p), ("kernel", POINTER(KernelStruct)), ("shape", SHAPE), ("user", c_void_p)]


class ShareInfo(Structure):
    _fields_ = [("size", c_size_t), ("device_sms", c_uint32), ("sms", c_uint32), ("step_sms", c_uint32),
                ("places", c_uint32), ("reason", c_char * 128)]


class MeasureParams(Structure):
    _fields_ = [("size", c_size_t), ("share", c_uint32), ("runs", c_uint32), ("beside", c_void_p),
                ("beside_share", c_uint32), ("flags", c_uint32)]


class Measured(Structure):
    _fields_ = [("size", c_size_t), ("us", c_double), ("least_us", c_double), ("beside_us", c_double),
                ("runs", c_uint32), ("share_ignored", c_uint32)]


HOST_FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p)
HOST_BODY = ctypes.CFUNCTYPE(None, POINTER(Grid), POINTER(c_void_p))

_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "acs_options_init": (c_int, [c_void_p, c_size_t]),
    "acs_open": (c_int, [c_void_p, POINTER(c_void_p)]),
    "acs_close": (c_int, [c_void_p]),
    "acs_context_backend": (c_int, [c_void_p]),
    "acs_reaches": (c_int, [c_void_p, c_void_p]),
    "acs_launch": (c_uint64, [c_void_p, c_void_p]),
    "acs_memcpy_op": (c_uint64, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "acs_memset_op": (c_uint64, [c_void_p, c_void_p, c_int, c_size_t, c_void_p]),
    "acs_host_op": (c_uint64, [c_void_p, HOST_FUNCTION, c_void_p, c_size_t, Uses, c_void_p]),
    "acs_malloc_op": (c_int, [c_void_p, c_size_t, c_int, POINTER(c_void_p), c_void_p]),
    "acs_free_op": (c_uint64, [c_void_p, c_void_p, c_void_p]),
    "acs_wait": (c_int, [c_void_p, c_uint64]),
    "acs_query": (c_int, [c_void_p, c_uint64]),
    "acs_sync": (c_int, [c_void_p]),
    "acs_step": (c_int, [c_void_p]),
    "acs_wait_range": (c_int, [c_void_p, c_void_p, c_size_t, c_int]),
    "acs_after_stream_op": (c_uint64, [c_void_p, c_void_p, Uses, c_void_p]),
    "acs_stream_after": (c_int, [c_void_p, c_void_p, Uses]),
    "acs_graph_begin": (c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "acs_graph_op": (c_uint64, [c_void_p, c_void_p, Uses, c_void_p]),
    "acs_graph_add_uses": (c_int, [c_void_p, c_uint64, Uses]),
    "acs_graph_memset": (c_uint64, [c_void_p, c_void_p, c_void_p, c_int, c_size_t, c_void_p]),
    "acs_graph_resume": (c_int, [c_void_p, c_void_p]),
    "acs_graph_end": (c_int, [c_void_p, c_void_p, POINTER(GraphParams), POINTER(GraphReport)]),
    "acs_graph_cancel": (None, [c_void_p]),
    "acs_group_begin": (c_int, [c_void_p, c_size_t]),
    "acs_group_submit": (c_int, [c_void_p, POINTER(GroupParams), POINTER(GroupReport)]),
    "acs_group_cancel": (c_int, [c_void_p]),
    "acs_repeat_begin": (c_int, [c_void_p, c_uint64]),
    "acs_repeat_end": (c_int, [c_void_p]),
    "acs_clear": (c_int, [c_void_p]),
    "acs_check_register": (c_int, [c_void_p, c_void_p, c_size_t]),
    "acs_check_unregister": (c_int, [c_void_p, c_void_p]),
    "acs_stats": (c_int, [c_void_p, c_void_p]),
    "acs_last_error": (c_int, [POINTER(ErrorText)]),
    "acs_op_error": (c_int, [c_void_p, c_uint64, POINTER(ErrorText)]),
    "acs_context_error": (c_int, [c_void_p, POINTER(ErrorText)]),
    "acs_status_text": (c_char_p, [c_int]),
    "acs_variants": (c_int, [c_void_p, c_void_p, c_size_t]),
    "acs_variant_number": (c_int, [c_void_p, c_char_p, c_void_p]),
    "acs_share_find": (c_int, [c_void_p, c_uint32, c_uint32, c_void_p]),
    "acs_measure": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
}


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _path() -> str:
    named = os.environ.get("ACS_LIBRARY")
    if named:
        return named
    found = sorted((pathlib.Path(__file__).parent / "lib").glob("libacs.so.*.*"))
    if not found:
        raise ImportError("acs: libacs.so is not in the package; build it (pip install .), or name it in ACS_LIBRARY")
    return str(found[0])


def _load_runtime() -> str:
    """Load the CUDA runtime from a package that has it. Returns what was looked for, for an error."""
    names = [f"libcudart.so.{major}" for major in (13, 12)]
    roots = [pathlib.Path(p) / "nvidia" for p in sys.path if p]
    for name in names:
        for root in roots:
            for file in sorted(root.glob(f"*/lib/{name}")):
                ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
                return name
    return " or ".join(names)


def _load() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    path = _path()
    try:
        free = ctypes.CDLL(path)
    except OSError as first:
        looked_for = _load_runtime()
        try:
            free = ctypes.CDLL(path)
        except OSError:
            raise ImportError(f"acs: {path} cannot be loaded: {first} ({looked_for} was looked for in the packages of "
                              "Python, too)") from first
    return _declare(free), _declare(ctypes.PyDLL(path))


free, held = _load()


def error_from(e: ErrorText) -> _errors.Error:
    """The exception for what the library says of an error."""
    site = None
    if e.site.name or e.site.file:
        site = _errors.Site(e.site.name.decode() if e.site.name else None,
                            e.site.file.decode() if e.site.file else None, e.site.line)
    kind = _errors.CLASSES.get(e.status, _errors.Error)
    return kind(e.text.decode(errors="replace"), e.status, e.native, e.op, e.cause, site)


def last_error() -> _errors.Error:
    """The exception for the latest error that a call of this thread returned."""
    e = ErrorText(size=ctypes.sizeof(ErrorText))
    held.acs_last_error(ctypes.byref(e))
    return error_from(e)


def failure_of(status: int) -> _errors.Error | None:
    """The exception for a call of this thread that returned this status; None: it succeeded."""
    if status == _layout.ACS_OK:
        return None
    e = ErrorText(size=ctypes.sizeof(ErrorText))
    if held.acs_last_error(ctypes.byref(e)) == status:
        return error_from(e)
    text = held.acs_status_text(status).decode()  # the status is that of an op, not of the call
    return _errors.CLASSES.get(status, _errors.Error)(text, status)


def check(status: int) -> None:
    """Raise what a call that returned this status has failed of."""
    error = failure_of(status)
    if error is not None:
        raise error
