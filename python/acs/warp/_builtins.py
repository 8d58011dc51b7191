"""What Warp's builtins, and native code, do with what they are given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from warp._src import context as _context
from warp._src import types as _types
from warp._src.texture import Texture as _Texture

from .._arrays import READ, UPDATE
from ._values import holds_arrays

# Builtins that take an array and write none of it. All others count as updates of each array that they are given.
IGNORING = frozenset(("len", "unot"))  # these look at the descriptor only
READING = frozenset(("tile_load", "tile_load_indexed", "lower_bound", "sample_cdf", "volume_sample_index",
                      "volume_sample_grad_index"))
PASSING = frozenset(("where", "select", "copy", "tuple"))  # these return what they are given

NATIVE_REACH = re.compile(r"\b(static|extern|__device__|__constant__|asm)\b")  # words of a snippet that may name other memory
_NATIVE_POINTER = re.compile(r"\*|\[|->|::")
_NATIVE_CALL = re.compile(r"(\w+)\s*\(")
_NATIVE_WORDS = frozenset(("if", "while", "for", "switch", "return", "sizeof", "defined"))


def is_arithmetic(snippet: str) -> bool:
    """Whether native code only computes: it has no pointers, and calls nothing but intrinsics of the compiler."""
    return not _NATIVE_POINTER.search(snippet) and all(
        name.startswith("__") or name in _NATIVE_WORDS for name in _NATIVE_CALL.findall(snippet))


class _AboutBuiltin(NamedTuple):
    """What the registered signatures of a builtin say."""

    unknown: bool  # it was registered by someone else
    everything: int  # how it accesses memory through handles
    outside: tuple[Any, ...]  # structs that it returns, that lead to memory that no argument names; None: an array
    writes_elements: bool  # it may write through the place of an element, or return it
    takes_arrays: bool
    calls: bool  # it calls functions that it is given


_builtins: dict[str, _AboutBuiltin] = {}


def about_builtin(function: Any) -> _AboutBuiltin:
    about = _builtins.get(function.key)
    if about is None:
        about = _builtins[function.key] = _ask_builtin(function)
    return about


def _ask_builtin(function: Any) -> _AboutBuiltin:
    """
    A parameter that takes nothing but uint64 is a handle or an address, and so are textures. A builtin that returns nothing is
    called for what it writes.
    """
    registered = _context.builtin_functions.get(function.key)
    overloads = list(getattr(registered, "overloads", None) or [function])
    if registered is None or any(each._has_external_builtin_contract for each in overloads):
        return _AboutBuiltin(True, UPDATE, (), True, True, True)
    kinds: dict[str, list[Any]] = {}
    for each in overloads:
        for name, kind in each.input_types.items():
            kinds.setdefault(name, []).append(kind)
    every = [kind for several in kinds.values() for kind in several]
    handles = any(map(_is_texture, every)) or any(all(map(_is_handle, several)) for several in kinds.values())
    results = [_result_of(each) for each in overloads]
    silent = any(result is None for result in results)
    everything = 0 if not handles else UPDATE if silent else READ
    outside = tuple(None if _types.is_array(result) else result for result in results if handles and holds_arrays(result))
    # Values of elements are loaded before a call, but for the builtins from which Warp makes stores and addresses itself.
    writes = all(each.hidden for each in overloads) and any(each.dispatch_func for each in overloads)
    arrays = any(kind is Any or _types.is_array(kind) for kind in every)
    return _AboutBuiltin(False, everything, outside, writes, arrays, any(kind is Callable for kind in every))


def _is_handle(kind: Any) -> bool:
    return kind is _types.uint64 or kind is _types.handle


def _is_texture(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _Texture)


def _result_of(overload: Any) -> Any:
    """The type that a builtin returns, as far as it is known without its arguments; else Any."""
    try:
        return overload.value_func(None, None)
    except Exception:  # some ask about arguments that are not there: they do return something
        return Any
