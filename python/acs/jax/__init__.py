"""
ACS inside JAX: a Python function that launches kernels with ACS on XLA's buffers, called in jax.jit on a GPU or the CPU.

    import acs, acs.jax, jax

    @acs.jax.op(outputs=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    def double(context, x, out):
        context.launch(kernel, grid=4, block=256, args=(out, x, 2.0, 1000), reads=[x], writes=[out])

    y = jax.jit(lambda x: double(x) + 1)(x)

The function is called when XLA runs the program, not when JAX traces it. On a GPU nothing waits: the ops come behind the
work that is in XLA's stream, and its later work behind them. docs/python.md has the rest.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

try:
    import jax
    import jax.numpy as jnp
    from jax import ffi as jax_ffi
except ImportError as _error:
    raise ImportError("acs: acs.jax needs JAX 0.5 or newer (pip install jax)") from _error

from .. import _errors, _layout
from .._context import _set_option
from .._library import check, held
from . import _calls, _ffi
from ._arrays import Array
from ._calls import Call

_TARGETS = {True: "acs_op", False: "acs_op_uncaptured"}
_handlers: _ffi.Handlers | None = None  # made at the first use
_registering = threading.Lock()
_SIGNATURE = inspect.Signature([inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL),
                                inspect.Parameter("static", inspect.Parameter.VAR_KEYWORD)])


def _target(capturable: bool) -> str:
    """XLA's name of a handler. All are registered at the first use."""
    global _handlers
    with _registering:
        if _handlers is None:
            handlers = _ffi.Handlers(_calls.run)
            atexit.register(handlers.end)  # before acs closes the contexts: what was registered last comes first
            for platform, captured in _ffi.HANDLERS:
                capsule = functools.partial(jax_ffi.pycapsule, handlers.address(platform, captured))
                stages = ("execute",) if platform == _calls.CPU else ("initialize", "execute")
                jax_ffi.register_ffi_target(_TARGETS[captured], {stage: capsule() for stage in stages}, platform=platform)
            _handlers = handlers
    return _TARGETS[capturable]


def _options(options: Mapping[str, Any]) -> _calls.Options:
    """Options of contexts, checked."""
    raw = ctypes.create_string_buffer(_layout.OPTIONS_BYTES)
    check(held.acs_options_init(raw, _layout.OPTIONS_BYTES))
    for name, value in options.items():
        if name == "backend":
            raise _errors.OptionError("acs.jax: the option backend is not yours to set: JAX's platform says it",
                                      _layout.ACS_ERR_OPTION)
        _set_option(raw, name, value)
    return tuple(sorted(options.items()))


class Op:
    """
    What :func:`op` makes of a function: call it with arrays, and with static arguments by name. Returns an array, or a
    sequence of the type of ``outputs``.
    """

    def __init__(self, function: Callable[..., None], outputs: Any, settings: dict[str, Any], capture: bool,
                 options: _calls.Options) -> None:
        functools.update_wrapper(self, function)
        self.__signature__ = _SIGNATURE  # of a call, which is not that of the function
        self.name = getattr(function, "__name__", repr(function))
        self._function, self._outputs, self._settings = function, outputs, settings
        self._capture, self._options = capture, options
        self._signature = inspect.signature(function)

    def __call__(self, *inputs: Any, **static: Any) -> Any:
        arrays = [jnp.asarray(array) for array in inputs]
        results = self._results([jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays], static)
        self._check(len(arrays), len(results) if isinstance(results, Sequence) else 1, static)
        entry = _calls.Entry(self.name, self._function, static, self._options)
        call = jax_ffi.ffi_call(_target(self._capture), results, **self._settings)
        return call(*arrays, **_calls.attributes(self._key(static), entry))

    def _results(self, inputs: list[Any], static: dict[str, Any]) -> Any:
        results = self._outputs(*inputs, **static) if callable(self._outputs) else self._outputs
        for result in results if isinstance(results, Sequence) else [results]:
            if not hasattr(result, "shape") or not hasattr(result, "dtype"):
                raise TypeError(f"acs.jax: outputs of op '{self.name}' have {result!r}, which has no shape and dtype; give a "
                                "jax.ShapeDtypeStruct for each")
        return results

    def _check(self, inputs: int, outputs: int, static: dict[str, Any]) -> None:
        """A TypeError, if the function does not take so many arguments."""
        try:
            self._signature.bind(*[None] * (1 + inputs + outputs), **static)
        except TypeError as error:
            raise TypeError(f"acs.jax: op '{self.name}' is called with a context, {inputs} inputs, {outputs} outputs and "
                            f"{sorted(static) or 'no static arguments'}: {error}") from None

    def _key(self, static: dict[str, Any]) -> Any:
        """Two calls with equal keys are calls of one entry. Types count: 1, 1.0 and True are equal in Python."""
        for name, value in static.items():
            if isinstance(value, jax.core.Tracer):
                raise TypeError(f"acs.jax: the static argument '{name}' of op '{self.name}' is traced; pass it as an input")
        key = (self, tuple((name, type(value), value) for name, value in sorted(static.items())))
        try:
            hash(key)
        except TypeError:
            raise TypeError(f"acs.jax: a static argument of op '{self.name}' has no hash ({static!r}); give tuples instead of "
                            "lists, and arrays as inputs") from None
        return key


def op(outputs: Any, *, vmap_method: str | None = "sequential", input_output_aliases: Mapping[int, int] | None = None,
       capture: bool = True, has_side_effect: bool = False, options: Mapping[str, Any] | None = None
       ) -> Callable[[Callable[..., None]], Op]:
    """
    Decorator: a function that launches kernels becomes an op for JAX's programs.

    The function is called as ``function(context, *inputs, *outputs, **static)``: :class:`Call`, an :class:`Array` for each
    input and output, and the arguments that the op was called with by name. These must have a hash. It launches, and returns
    nothing. It must write all outputs completely. What it raises becomes JAX's error, with its text.

    ``outputs``  a jax.ShapeDtypeStruct, or a sequence of them; or a function that is called with such of the inputs, and
                 with the static arguments, and returns them.
    ``vmap_method``, ``input_output_aliases`` (input: output), ``has_side_effect``  as of jax.ffi.ffi_call. An aliased input
                 and its output are one memory.
    ``capture``  XLA may capture the ops in a CUDA graph and run that again, without a call of the function. False: the
                 function is called each time.
    ``options``  of the contexts, as of :class:`acs.Context`, without backend. Ops with equal options share contexts.

    The function, its static arguments and the contexts are kept until the process ends. Threads: XLA calls functions on
    threads of its own, several at once, also of one op. Raises TypeError and ValueError for wrong arguments,
    :class:`acs.OptionError` for wrong options.
    """
    aliases = dict(input_output_aliases or {})
    if len(set(aliases.values())) != len(aliases):
        raise ValueError(f"acs.jax: input_output_aliases {aliases} give one output to two inputs")
    settings = {"vmap_method": vmap_method, "has_side_effect": has_side_effect,
                "input_output_aliases": aliases}
    checked = _options(options or {})

    def decorate(function: Callable[..., None]) -> Op:
        if not callable(function):
            raise TypeError(f"acs.jax: an object of type {type(function).__name__} cannot be called; the decorator is "
                            "acs.jax.op(outputs=...)")
        return Op(function, outputs, settings, capture, checked)

    return decorate


__all__ = ["Array", "Call", "Op", "op"]
