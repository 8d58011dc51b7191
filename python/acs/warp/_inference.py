"""
What the code of a Warp kernel does with the memory that its arguments name.

Every array counts as updated until the code proves that its elements are only read, or never touched. The proof is a pass over
the syntax trees (`_syntax`). It resolves names as Warp does, at its first call for a kernel. A global that is rebound between
that call and the build of Warp's module is not noticed. The result is kept as long as the kernel lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from warp._src import types as _types

from .._arrays import UPDATE
from ._syntax import Kernel
from ._values import Effects, Root, is_array_in_arguments, leaves_of, whole_value


class ArrayUse(NamedTuple):
    """One array that a kernel touches through its packed arguments."""

    argument: int
    """Index among the kernel's arguments; those of the adjoint follow."""
    offset: int
    """Bytes from the start of the packed argument to the descriptor, an array_t or an indexedarray_t."""
    kind: str
    """The descriptor: "array" or "indexed"."""
    updates: bool
    """False: the code only reads elements. True: it may write them, too."""
    itemsize: int
    """Bytes of an element."""
    gradient: bool = False
    """Whether the memory of the descriptor's ``grad`` is updated, too: in backward launches."""


class KernelUses(NamedTuple):
    """The memory that a kernel touches."""

    arrays: tuple[ArrayUse, ...]
    """Arrays of the arguments. Those whose elements the kernel cannot touch are left out."""
    everything: int
    """0, or READ or UPDATE: how the kernel accesses memory that no array of its arguments names."""


def _look(kernel: Any) -> Effects:
    """What the kernel's code does."""
    seen = Kernel()
    arguments = {a.label: whole_value(Root(i), a.type) for i, a in enumerate(kernel.adj.args)}
    seen.look(kernel.adj, arguments)
    for i, argument in enumerate(kernel.adj.args):
        for _, kind in leaves_of(Root(i), argument.type):
            if not is_array_in_arguments(kind):
                seen.effects.anything()  # an array of another library
    return seen.effects


def _offset(kind: Any, path: Sequence[str]) -> int:
    """Bytes from the start of a packed argument to a field."""
    offset = 0
    for name in path:
        offset += getattr(kind.ctype, name).offset
        kind = kind.vars[name].type
    return offset


def _uses(kernel: Any, effects: Effects, adjoint: bool) -> Iterator[ArrayUse]:
    count = len(kernel.adj.args)
    for i, argument in enumerate(kernel.adj.args):
        for root, kind in leaves_of(Root(i), argument.type):
            if not is_array_in_arguments(kind):
                continue
            indexed = "indexed" if _types.matches_array_class(kind, _types.indexedarray) else "array"
            offset, size = _offset(argument.type, root.path), int(_types.type_size_in_bytes(kind.dtype))
            if adjoint:
                yield ArrayUse(i, offset, indexed, True, size, True)
                gradients = indexed if root.path else "array"  # the gradient of an indexed argument is a plain array
                yield ArrayUse(count + i, offset, gradients, True, size, True)
            elif root in effects.updated:
                yield ArrayUse(i, offset, indexed, True, size)
            elif root in effects.read:
                yield ArrayUse(i, offset, indexed, False, size)


_known: weakref.WeakKeyDictionary[Any, list[KernelUses | None]] = weakref.WeakKeyDictionary()


def kernel_uses(kernel: Any, adjoint: bool = False) -> KernelUses:
    """
    The memory that a concrete kernel touches; of a generic one, ask for its overloads. ``adjoint`` asks for the backward
    launch: its packed arguments are the forward ones followed by the adjoint ones, in the same order, and the indices of the
    uses run on. There, every array and its gradient counts as updated.
    """
    if kernel.is_generic:
        raise TypeError(f"acs: the kernel {kernel.key} is generic; its overloads have types")
    found = _known.get(kernel)
    if found is None:
        found = _known[kernel] = [None, None]
    uses = found[adjoint]
    if uses is None:
        effects = _look(kernel)
        everything = effects.everything
        if adjoint and (everything or effects.custom_gradient):
            everything = UPDATE
        uses = found[adjoint] = KernelUses(tuple(sorted(_uses(kernel, effects, adjoint))), everything)
    return uses
