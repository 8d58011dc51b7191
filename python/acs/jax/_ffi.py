"""
XLA's C interface for foreign functions, as far as acs.jax needs it: xla/ffi/api/c_api.h, which jaxlib has in its folder
`include`. Structures have their size in front, and both sides check it. Nothing here knows contexts or ops.
"""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

from .. import _errors, _layout
from .._library import _path

MAJOR, MINOR_LEAST, MINOR_MOST = 0, 1, 5  # versions of the interface in which these structures are the same
INITIALIZE, EXECUTE = 2, 3                # stages of a call; no other one is registered
_METADATA, _COMMAND_BUFFER = 1, 1         # kind of an extension; trait of a handler: XLA may capture its work
_BUFFER, _SCALAR, _INT64 = 1, 3, 5        # kinds of arguments and results, of attributes; a type of elements
_CANCELLED, _INVALID_ARGUMENT, _INTERNAL = 1, 3, 13  # kinds of errors, as those below
_CODES = {_layout.ACS_ERR_MEMORY: 8, _layout.ACS_ERR_STATE: 9, _layout.ACS_ERR_UNSUPPORTED: 12, _layout.ACS_ERR_DEVICE: 14}

_FUNCTION = ctypes.PYFUNCTYPE(c_void_p, c_void_p)  # of XLA's table; none blocks, so the interpreter's lock stays held

DTYPES = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
          10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16", 18: "complex128",
          19: "float8_e5m2", 20: "float8_e4m3fn", 23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz",
          28: "float8_e4m3", 29: "float8_e3m4", 33: "float8_e8m0fnu"}
"""Names of the types of elements that have whole bytes, by XLA's numbers."""


class _Sized(Structure):
    """How most structures begin."""

    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p)]


class Extension(Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", c_void_p)]


class Version(_Sized):
    _fields_ = [("major", c_int), ("minor", c_int)]


class Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", Version), ("traits", c_uint32)]


class Buffer(_Sized):
    _fields_ = [("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]


class Buffers(_Sized):
    """Arguments, or results."""

    _fields_ = [("count", c_int64), ("types", POINTER(c_int)), ("items", POINTER(c_void_p))]


class Text(Structure):
    _fields_ = [("at", c_void_p), ("bytes", c_size_t)]


class Scalar(Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_int64))]


class Attributes(_Sized):
    _fields_ = [("count", c_int64), ("types", POINTER(c_int)), ("names", POINTER(POINTER(Text))),
                ("items", POINTER(c_void_p))]


class CallFrame(_Sized):
    _fields_ = [("api", c_void_p), ("context", c_void_p), ("stage", c_int), ("arguments", Buffers), ("results", Buffers),
                ("attributes", Attributes)]


class ErrorCreate(_Sized):
    _fields_ = [("text", c_char_p), ("code", c_int)]


class ErrorText(_Sized):
    _fields_ = [("error", c_void_p), ("text", c_char_p), ("code", c_int)]  # the last one since 0.5


class ErrorDestroy(_Sized):
    _fields_ = [("error", c_void_p)]


class StreamGet(_Sized):
    _fields_ = [("context", c_void_p), ("stream", c_void_p)]


class DeviceGet(_Sized):
    _fields_ = [("context", c_void_p), ("device", c_int32)]


class Table(_Sized):
    """XLA's functions. Those that are not called here have their places alone."""

    _fields_ = [("version", Version), ("internal", c_void_p), ("error_create", _FUNCTION), ("error_text", _FUNCTION),
                ("error_destroy", _FUNCTION), ("handler_register", c_void_p), ("stream_get", _FUNCTION),
                ("others", c_void_p * 12), ("device_get", _FUNCTION)]


class Failed(Exception):
    """A call failed. ``code`` is XLA's kind of error, the text is for people."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def _size(structure: type[Structure]) -> int:
    """Bytes of a structure as XLA counts them: without those that fill it up behind its last field."""
    last = getattr(structure, structure._fields_[-1][0])
    return int(last.offset + last.size)


def _check_size(found: int, structure: type[Structure], what: str) -> None:
    if found < _size(structure):
        raise _errors.UnsupportedError(f"acs.jax: {what} of this jaxlib has {found} bytes, and at least {_size(structure)} are "
                                       "needed: it is another version of XLA's interface", _layout.ACS_ERR_UNSUPPORTED)


class Api:
    """XLA's functions for handlers. They stay where they are."""

    def __init__(self, at: int) -> None:
        self.table = Table.from_address(at)

    def check(self) -> None:
        """Raise UnsupportedError unless structures and functions are those that are declared here."""
        _check_size(self.table.struct_size, Table, "XLA's table of functions")
        version = self.table.version
        if version.major != MAJOR or version.minor < MINOR_LEAST:
            raise _errors.UnsupportedError(
                f"acs.jax: this jaxlib has version {version.major}.{version.minor} of XLA's interface; {MAJOR}.{MINOR_LEAST} "
                "and later ones of the same first number are known", _layout.ACS_ERR_UNSUPPORTED)

    def error(self, text: str, code: int) -> int:
        """A new error of XLA's, which takes it when it is returned."""
        args = ErrorCreate(_size(ErrorCreate), None, text.encode(errors="replace"), code)
        return self.table.error_create(ctypes.addressof(args)) or 0

    def call(self, function: Any, args: _Sized, what: str) -> None:
        """Call a function of the table. Raises what it failed of."""
        args.struct_size = _size(type(args))
        error = function(ctypes.addressof(args))
        if error:
            about = ErrorText(_size(ErrorText), None, error)
            self.table.error_text(ctypes.addressof(about))
            text = (about.text or b"").decode(errors="replace")
            end = ErrorDestroy(_size(ErrorDestroy), None, error)
            self.table.error_destroy(ctypes.addressof(end))
            raise _errors.Error(f"acs.jax: XLA does not tell {what}: {text}", _layout.ACS_ERR_INTERNAL)


class Frame:
    """One call of a handler, for as long as it lasts."""

    def __init__(self, api: Api, raw: CallFrame) -> None:
        self.api, self.raw = api, raw

    def numbers(self) -> dict[str, int]:
        """Attributes that are whole numbers of 64 bits, by name."""
        found = {}
        attributes = self.raw.attributes
        for i in range(attributes.count):
            if attributes.types[i] == _SCALAR:
                scalar = Scalar.from_address(attributes.items[i] or 0)
                if scalar.dtype == _INT64:
                    name = attributes.names[i].contents
                    found[ctypes.string_at(name.at, name.bytes).decode()] = scalar.value[0]
        return found

    def buffers(self, which: Buffers) -> list[tuple[int, int, tuple[int, ...]]]:
        """Address, type of elements and shape of each argument, or of each result."""
        found = []
        for i in range(which.count):
            if which.types[i] != _BUFFER:
                raise _errors.UnsupportedError(f"acs.jax: value {i} has the kind {which.types[i]}, which is no array",
                                               _layout.ACS_ERR_UNSUPPORTED)
            buffer = Buffer.from_address(which.items[i] or 0)
            found.append((buffer.data or 0, buffer.dtype, tuple(buffer.dims[:buffer.rank]) if buffer.rank else ()))
        return found

    def stream(self) -> int:
        """The CUDA stream of the call."""
        args = StreamGet(context=self.raw.context)
        self.api.call(self.api.table.stream_get, args, "the stream of a call")
        return args.stream or 0

    def device(self) -> int:
        """Number of the GPU of the call; 0 on the CPU."""
        args = DeviceGet(context=self.raw.context)
        self.api.call(self.api.table.device_get, args, "the device of a call")
        return int(args.device)


class Answer(Structure):
    """What a call returns, as wrappers/acs_jax.c has it."""

    _fields_ = [("error", c_void_p), ("answered", c_uint32)]


_CALL = ctypes.CFUNCTYPE(None, c_int, c_void_p, POINTER(Answer))
HANDLERS = (("cpu", True), ("cpu", False), ("CUDA", True), ("CUDA", False))
"""Platform of each handler, and whether XLA may capture its work."""


def _library() -> ctypes.CDLL:
    path = pathlib.Path(_path()).parent / "libacs_jax.so"
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"acs: acs.jax needs libacs_jax.so beside libacs.so: {error}") from error


class Handlers:
    """
    The functions of C that XLA calls (libacs_jax.so). They call `run` with the platform and the call's frame. What it raises
    becomes an error of XLA. There is one object of this class, which stays until the process ends.
    """

    def __init__(self, run: Callable[[str, Frame], None]) -> None:
        self._run, self._library = run, _library()
        self.api: Api | None = None  # of the latest call
        self._call = _CALL(self._answer)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._call))  # C has its address
        self._library.acs_jax_begin(self._call)

    def end(self) -> None:
        """Refuse calls from now on, and wait for those under way."""
        self._library.acs_jax_end()

    def address(self, platform: str, capturable: bool) -> int:
        """The handler's address."""
        name = f"acs_jax_{platform.lower()}{'' if capturable else '_uncaptured'}"
        return ctypes.cast(self._library[name], c_void_p).value or 0

    def _answer(self, handler: int, at: int, answer: Any) -> None:
        raw = CallFrame.from_address(at)
        error = 0
        try:
            if not _describe(raw, HANDLERS[handler][1]):
                self._take(HANDLERS[handler][0], raw)
        except BaseException as failure:
            known = isinstance(failure, (Failed, _errors.Error))
            text = str(failure) if known else f"acs.jax: {type(failure).__name__}: {failure}"
            error = Api(raw.api).error(text, code_of(failure)) if raw.api else 0
        answer.contents.error, answer.contents.answered = error, 1

    def _take(self, platform: str, raw: CallFrame) -> None:
        api = self.api
        if api is None or ctypes.addressof(api.table) != raw.api:  # each platform may have one
            api = Api(raw.api)
            api.check()
            _check_size(raw.struct_size, CallFrame, "a call's frame")
            self.api = api
        self._run(platform, Frame(api, raw))


def _describe(raw: CallFrame, capturable: bool) -> bool:
    """If XLA asks for the metadata of a handler, tell it the version of these structures and what it may do."""
    extension = raw.extension
    while extension:
        about = Extension.from_address(extension)
        if about.type == _METADATA:
            metadata = Metadata.from_address(about.metadata)
            _check_size(metadata.struct_size, Metadata, "the metadata of a handler")
            metadata.version.major, metadata.version.minor = MAJOR, min(_minor(raw), MINOR_MOST)
            metadata.traits = _COMMAND_BUFFER if capturable else 0
            return True
        extension = about.next
    return False


def _minor(raw: CallFrame) -> int:
    """Second number of XLA's version. XLA refuses what it does not support. In 0.1 this question comes without functions."""
    if not raw.api:
        return MINOR_LEAST
    version = Table.from_address(raw.api).version
    return version.minor if version.major == MAJOR else MINOR_MOST


def code_of(failure: BaseException) -> int:
    """XLA's kind of error for an exception."""
    if isinstance(failure, Failed):
        return failure.code
    if isinstance(failure, KeyboardInterrupt):
        return _CANCELLED
    if isinstance(failure, _errors.Error) and failure.status in _CODES:
        return _CODES[failure.status]
    return _INVALID_ARGUMENT if isinstance(failure, (TypeError, ValueError)) else _INTERNAL
