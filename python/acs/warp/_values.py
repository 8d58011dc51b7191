"""
What expressions of Warp code may stand for, as far as arrays of the kernel's arguments can be reached through them; and what
the code was found to do with these arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from warp._src import codegen as _codegen
from warp._src import types as _types

from .._arrays import READ, UPDATE


class Root(NamedTuple):
    """An array of a kernel's arguments: the argument, and the struct fields that lead to the array."""

    argument: int
    path: tuple[str, ...] = ()


OUTSIDE = Root(-1)  # memory that no argument names: what handles and addresses lead to
NOWHERE = Root(-2)  # no memory


@dataclass(frozen=True)
class View:
    """A whole array, or a view of one with ``ndim`` dimensions left."""

    root: Root
    ndim: int
    type: Any = None
    """The struct that its elements are, if that holds arrays: they lie outside."""


@dataclass(frozen=True)
class Element:
    """The place of an element, or of a part of one. An assignment to a name makes a copy of the value."""

    root: Root


@dataclass(frozen=True)
class Holder:
    """Anything through which the array may be reached: a local struct, a tuple, a view of unknown dimensions."""

    root: Root
    type: Any = None
    """The struct, if it is known."""
    field: str | None = None
    """The field of the struct through which the array is reached. None: any field."""


@dataclass(frozen=True)
class Fields:
    """A struct of the kernel's arguments, or a struct inside it."""

    root: Root
    type: Any


@dataclass(frozen=True)
class Callee:
    """A function as a value."""

    function: Any


@dataclass(frozen=True)
class Several:
    """A tuple, item by item."""

    items: tuple[frozenset[Any], ...]


@dataclass(frozen=True)
class SliceMark:
    """A slice as a value: an index that keeps its dimension."""


@dataclass(frozen=True)
class Unknown:
    """A function that is not known, as a value."""


Value = frozenset[Any]
NOTHING: Value = frozenset()


def is_array_in_arguments(kind: Any) -> bool:
    return _types.matches_array_class(kind, _types.array) or _types.matches_array_class(kind, _types.indexedarray)


def fields_of(kind: Any) -> Iterable[tuple[str, Any]]:
    """Names and types of a struct's fields."""
    return [(name, variable.type) for name, variable in kind.vars.items()]


def holds_arrays(kind: Any) -> bool:
    """Whether a value of this type has a descriptor of an array inside."""
    if _types.is_array(kind):
        return True
    if not hasattr(kind, "vars"):
        return False
    return any(holds_arrays(field) for _, field in fields_of(kind))


def holds_address(kind: Any) -> bool:
    """Whether values of this type, or elements of arrays of it, may be addresses."""
    if _types.is_reference(kind):
        return holds_address(kind.value_type)
    if _types.is_array(kind) or _types.is_tile(kind):
        return holds_address(kind.dtype)
    if hasattr(kind, "vars"):
        return any(holds_address(field) for _, field in fields_of(kind))
    scalar = getattr(kind, "_wp_scalar_type_", kind)
    return scalar not in (int, float, bool, _types.bool) and (
        scalar not in _types.scalar_types or scalar in (_types.int64, _types.uint64))


def leaves_of(root: Root, kind: Any) -> Iterator[tuple[Root, Any]]:
    """The arrays inside a value of the kernel's arguments."""
    if _types.is_array(kind):
        yield root, kind
    elif isinstance(kind, _codegen.Struct):
        for name, field in fields_of(kind):
            yield from leaves_of(Root(root.argument, (*root.path, name)), field)


def roots_of(value: Value, elements: bool = False) -> set[Root]:
    """The arrays that can be reached through a value; ``elements``: places of their elements count, too."""
    found: set[Root] = set()
    for item in value:
        if isinstance(item, (View, Holder)) or (elements and isinstance(item, Element)):
            if item.root != NOWHERE:
                found.add(item.root)
            if isinstance(item, View) and item.type is not None:
                found.add(OUTSIDE)
        elif isinstance(item, Fields):
            for root, kind in leaves_of(item.root, item.type):
                found |= roots_of(frozenset((whole_view(root, kind),)))
        elif isinstance(item, Several):
            for each in item.items:
                found |= roots_of(each, elements)
    return found


def as_held(value: Value) -> Value:
    """The value as part of something that is not followed further."""
    functions = {item for item in flattened(value) if isinstance(item, (Callee, Unknown, SliceMark))}
    return frozenset(functions | {Holder(root) for root in roots_of(value)})


def flattened(value: Value) -> Iterator[Any]:
    for item in value:
        if isinstance(item, Several):
            for each in item.items:
                yield from flattened(each)
        else:
            yield item


def depth_of(value: Value) -> int:
    return max((1 + max((depth_of(each) for each in item.items), default=0) for item in value if isinstance(item, Several)),
               default=0)


def copied(value: Value) -> Value:
    """What a name holds after an assignment: elements are copied, views are not."""
    return frozenset(item for item in value if not isinstance(item, Element))


def field_type(kind: Any, name: str) -> Any:
    return kind.vars[name].type if name in kind.vars else None


def whole_view(root: Root, kind: Any) -> View:
    """A whole array of this type."""
    return View(root, kind.ndim, kind.dtype if holds_arrays(kind.dtype) else None)


def part_of(view: View, removed: int) -> Value:
    """What an index leaves of a view: a view of fewer dimensions, or an element. An element may hold arrays itself."""
    if view.ndim > removed:
        return frozenset((View(view.root, view.ndim - removed, view.type),))
    inside = () if view.type is None else (Holder(OUTSIDE, view.type),)
    return frozenset((Element(view.root), *inside))


def _whole_local(root: Root, kind: Any) -> Any:
    """What leads to an array through a local value of this type."""
    if _types.is_array(kind):
        return whole_view(root, kind)
    return Holder(root, kind if hasattr(kind, "vars") else None)


def field_of_local(item: Holder, name: str) -> Value:
    """The arrays that are reached through a field of a local struct."""
    if item.type is None or name not in item.type.vars:
        return frozenset((Holder(item.root),))
    kind = field_type(item.type, name)
    if not holds_arrays(kind) or item.field not in (None, name):
        return NOTHING
    return frozenset((_whole_local(item.root, kind),))


def whole_value(root: Root, kind: Any) -> Value:
    """An argument of a kernel, as a value."""
    if _types.is_array(kind):
        return frozenset((whole_view(root, kind),))
    return frozenset((Fields(root, kind),)) if isinstance(kind, _codegen.Struct) else NOTHING


class Effects:
    """What the code was found to do. Findings are only ever added."""

    def __init__(self) -> None:
        self.read: set[Root] = set()
        self.updated: set[Root] = set()
        self.everything = 0
        self.custom_gradient = False

    def reads(self, value: Value) -> None:
        roots = roots_of(value, elements=True)
        self.read |= roots
        if OUTSIDE in roots:
            self.everything |= READ

    def updates(self, value: Value) -> None:
        roots = roots_of(value, elements=True)
        self.updated |= roots
        if OUTSIDE in roots:
            self.everything = UPDATE

    def anything(self, value: Value = NOTHING) -> None:
        """The code may do anything to what it is given, and to memory that no argument names."""
        self.updates(value)
        self.everything = UPDATE
