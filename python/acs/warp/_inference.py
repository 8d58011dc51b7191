"""
What the code of a Warp kernel does with the memory that its arguments name.

Every array counts as updated until the code proves that its elements are only read, or never touched. The proof is a pass over
the syntax trees from which Warp generates code: those of the kernel and of each function that it calls. The pass follows the
arrays through names, views, struct fields, tuples, arguments and returned values, and ignores the order of statements: a name
stands for each array that it is ever given. Statements, calls and builtins that the pass does not know count as updates of all
that they are given.

The pass resolves names as Warp does, at its first call for a kernel. A global that is rebound between that call and the build
of Warp's module is not noticed.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import itertools
import math
import re
import struct
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import warp
from warp._src import codegen as _codegen
from warp._src import context as _context
from warp._src import types as _types
from warp._src.texture import Texture as _Texture

from .._arrays import READ, UPDATE


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


class _Root(NamedTuple):
    """An array of a kernel's arguments: the argument, and the struct fields that lead to the array."""

    argument: int
    path: tuple[str, ...] = ()


_OUTSIDE = _Root(-1)  # memory that no argument names: what handles and addresses lead to
_NOWHERE = _Root(-2)  # no memory


@dataclass(frozen=True)
class _View:
    """A whole array, or a view of one with ``ndim`` dimensions left."""

    root: _Root
    ndim: int
    type: Any = None
    """The struct that its elements are, if that holds arrays: they lie outside."""


@dataclass(frozen=True)
class _Element:
    """The place of an element, or of a part of one. An assignment to a name makes a copy of the value."""

    root: _Root


@dataclass(frozen=True)
class _Holder:
    """Anything through which the array may be reached: a local struct, a tuple, a view of unknown dimensions."""

    root: _Root
    type: Any = None
    """The struct, if it is known."""
    field: str | None = None
    """The field of the struct through which the array is reached. None: any field."""


@dataclass(frozen=True)
class _Fields:
    """A struct of the kernel's arguments, or a struct inside it."""

    root: _Root
    type: Any


@dataclass(frozen=True)
class _Callee:
    """A function as a value."""

    function: Any


@dataclass(frozen=True)
class _Several:
    """A tuple, item by item."""

    items: tuple[frozenset[Any], ...]


@dataclass(frozen=True)
class _SliceMark:
    """A slice as a value: an index that keeps its dimension."""


@dataclass(frozen=True)
class _Unknown:
    """A function that is not known, as a value."""


_Value = frozenset[Any]
_NOTHING: _Value = frozenset()
_DESCRIPTOR = frozenset(("shape", "strides", "ndim", "size", "dtype"))  # attributes of an array that are not its memory
_STATIC_MOST = 4096  # most values of a wp.static in loops that are looked at
_TUPLE_DEPTH = 3  # tuples in tuples that are followed item by item

# Builtins that take an array and write none of it. All others count as updates of each array that they are given.
_IGNORING = frozenset(("len", "unot"))  # these look at the descriptor only
_READING = frozenset(("tile_load", "tile_load_indexed", "lower_bound", "sample_cdf", "volume_sample_index",
                      "volume_sample_grad_index"))
_PASSING = frozenset(("where", "select", "copy", "tuple"))  # these return what they are given

_NATIVE_REACH = re.compile(r"\b(static|extern|__device__|__constant__|asm)\b")  # words of a snippet that may name other memory
_NATIVE_POINTER = re.compile(r"\*|\[|->|::")
_NATIVE_CALL = re.compile(r"(\w+)\s*\(")
_NATIVE_WORDS = frozenset(("if", "while", "for", "switch", "return", "sizeof", "defined"))
_STATEMENTS_WITHOUT_EFFECT = (ast.Pass, ast.Break, ast.Continue)


def _is_array_in_arguments(kind: Any) -> bool:
    return _types.matches_array_class(kind, _types.array) or _types.matches_array_class(kind, _types.indexedarray)


def _fields_of(kind: Any) -> Iterable[tuple[str, Any]]:
    """Names and types of a struct's fields."""
    return [(name, variable.type) for name, variable in kind.vars.items()]


def _holds_arrays(kind: Any) -> bool:
    """Whether a value of this type has a descriptor of an array inside."""
    if _types.is_array(kind):
        return True
    if not hasattr(kind, "vars"):
        return False
    return any(_holds_arrays(field) for _, field in _fields_of(kind))


def _holds_address(kind: Any) -> bool:
    """Whether values of this type, or elements of arrays of it, may be addresses."""
    if _types.is_reference(kind):
        return _holds_address(kind.value_type)
    if _types.is_array(kind) or _types.is_tile(kind):
        return _holds_address(kind.dtype)
    if hasattr(kind, "vars"):
        return any(_holds_address(field) for _, field in _fields_of(kind))
    scalar = getattr(kind, "_wp_scalar_type_", kind)
    return scalar not in (int, float, bool, _types.bool) and (
        scalar not in _types.scalar_types or scalar in (_types.int64, _types.uint64))


def _leaves(root: _Root, kind: Any) -> Iterator[tuple[_Root, Any]]:
    """The arrays inside a value of the kernel's arguments."""
    if _types.is_array(kind):
        yield root, kind
    elif isinstance(kind, _codegen.Struct):
        for name, field in _fields_of(kind):
            yield from _leaves(_Root(root.argument, (*root.path, name)), field)


def _roots(value: _Value, elements: bool = False) -> set[_Root]:
    """The arrays that can be reached through a value; ``elements``: places of their elements count, too."""
    found: set[_Root] = set()
    for item in value:
        if isinstance(item, (_View, _Holder)) or (elements and isinstance(item, _Element)):
            if item.root != _NOWHERE:
                found.add(item.root)
            if isinstance(item, _View) and item.type is not None:
                found.add(_OUTSIDE)
        elif isinstance(item, _Fields):
            for root, kind in _leaves(item.root, item.type):
                found |= _roots(frozenset((_view(root, kind),)))
        elif isinstance(item, _Several):
            for each in item.items:
                found |= _roots(each, elements)
    return found


def _held(value: _Value) -> _Value:
    """The value as part of something that is not followed further."""
    functions = {item for item in _flat(value) if isinstance(item, (_Callee, _Unknown, _SliceMark))}
    return frozenset(functions | {_Holder(root) for root in _roots(value)})


def _flat(value: _Value) -> Iterator[Any]:
    for item in value:
        if isinstance(item, _Several):
            for each in item.items:
                yield from _flat(each)
        else:
            yield item


def _depth(value: _Value) -> int:
    return max((1 + max((_depth(each) for each in item.items), default=0) for item in value if isinstance(item, _Several)),
               default=0)


def _copied(value: _Value) -> _Value:
    """What a name holds after an assignment: elements are copied, views are not."""
    return frozenset(item for item in value if not isinstance(item, _Element))


class _Effects:
    """What the code was found to do. Findings are only ever added."""

    def __init__(self) -> None:
        self.read: set[_Root] = set()
        self.updated: set[_Root] = set()
        self.everything = 0
        self.custom_gradient = False

    def reads(self, value: _Value) -> None:
        roots = _roots(value, elements=True)
        self.read |= roots
        if _OUTSIDE in roots:
            self.everything |= READ

    def updates(self, value: _Value) -> None:
        roots = _roots(value, elements=True)
        self.updated |= roots
        if _OUTSIDE in roots:
            self.everything = UPDATE

    def anything(self, value: _Value = _NOTHING) -> None:
        """The code may do anything to what it is given, and to memory that no argument names."""
        self.updates(value)
        self.everything = UPDATE


class _Kernel:
    """The functions of one kernel, and what they do."""

    def __init__(self) -> None:
        self.effects = _Effects()
        self.returned: dict[Any, _Value | None] = {}  # None: the function is being looked at

    def call(self, function: Any, arguments: dict[str, _Value]) -> _Value:
        """Look at a function with Warp code. Returns what it returns."""
        key = (id(function), tuple(sorted(arguments.items(), key=lambda each: each[0])))
        if key in self.returned:
            result = self.returned[key]
            if result is not None:
                return result
            everything = frozenset().union(*arguments.values()) if arguments else _NOTHING
            self.effects.anything(everything)  # a recursion
            return _held(everything)
        self.returned[key] = None
        self.returned[key] = result = _Body(self, function.adj, arguments).run()
        return result


class _Body:
    """One function, called with certain arguments."""

    def __init__(self, kernel: _Kernel, adj: Any, arguments: dict[str, _Value]) -> None:
        self.kernel, self.effects, self.adj = kernel, kernel.effects, adj
        self.names: dict[str, _Value] = {label: arguments.get(label, _NOTHING) for label in (a.label for a in adj.args)}
        self.references = {a.label for a in adj.args if _types.is_reference(a.type)}
        self.definition = adj.tree.body[0]
        self.parameters = frozenset(self.names)
        self.locals = set(self.names)
        for node in ast.walk(self.definition):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.locals.add(node.id)
        self.ranges: dict[str, Sequence[Any]] = self.constants()  # local names, and the constants that they stand for
        self.returned: _Value = _NOTHING
        self.changed = False

    def run(self) -> _Value:
        """Look at all statements until no name gets a further meaning."""
        if not isinstance(self.definition, ast.FunctionDef):
            self.effects.anything(frozenset().union(*self.names.values()) if self.names else _NOTHING)
            return _NOTHING
        while True:
            self.changed = False
            self.statements(self.definition.body)
            if not self.changed:
                return self.returned

    # Names

    def bind(self, name: str, value: _Value) -> None:
        known = self.names.get(name, _NOTHING)
        merged = known | value
        if _depth(merged) > _TUPLE_DEPTH:
            merged = _held(merged) | {item for item in merged if not isinstance(item, _Several)}
        if merged != known:
            self.names[name] = merged
            self.changed = True

    def outer(self, name: str) -> Any:
        """What the name means outside of the function: in its closure, its module, in warp, in Python."""
        found = _codegen.resolve_closure_or_global(self.adj.func, name)
        if found is None:
            found = getattr(warp, name, None)
        return getattr(builtins, name, None) if found is None else found

    def static(self, node: ast.expr) -> tuple[Any, str | None]:
        """
        The object that a dotted name means outside of the function, or None. Where only the last attribute is missing, the
        object before it: builtins of Warp are no attributes of its module. Then the name of the last attribute.
        """
        if hasattr(node, "warp_func"):
            return node.warp_func, None
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or hasattr(node, "warp_func"):
            return None, None
        if path and node.id in self.locals:
            return None, None
        found = self.outer(node.id)
        for place, attribute in enumerate(path):
            if hasattr(found, attribute):
                found = getattr(found, attribute)
            elif place < len(path) - 1:
                return None, None
        return found, path[-1] if path else node.id

    def constant(self, node: ast.expr) -> Any:
        """The value of a condition that Warp decides when it generates code, or None."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and node.id not in self.locals:
            found = _codegen.resolve_closure_or_global(self.adj.func, node.id)
            return found if isinstance(found, (bool, int)) else None
        return None

    def stores(self) -> Counter[str]:
        """How often the code gives a value to each name."""
        return Counter(each.id for each in ast.walk(self.definition) if isinstance(each, ast.Name)
                       and isinstance(each.ctx, ast.Store))

    def constants(self) -> dict[str, Sequence[Any]]:
        """Local names that stand for one constant, as Warp knows it when it evaluates a wp.static."""
        once = {name for name, count in self.stores().items() if count == 1 and name not in self.parameters}
        return {each.targets[0].id: (each.value.value,) for each in ast.walk(self.definition)
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id in once
                and isinstance(each.value, ast.Constant)}

    # Statements

    def statements(self, nodes: Iterable[ast.stmt]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign):
            self.augment(node)
        elif isinstance(node, ast.Expr):
            self.value(node.value)
        elif isinstance(node, ast.If):
            self.branch(node)
        elif isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.While):
            self.value(node.test)
            self.statements(node.body)
            self.statements(node.orelse)
        elif isinstance(node, ast.Return):
            self.give(node)
        elif isinstance(node, ast.Assert):
            self.value(node.test)
        elif not isinstance(node, _STATEMENTS_WITHOUT_EFFECT):
            self.unknown(node)

    def unknown(self, node: ast.AST) -> _Value:
        """Code that this pass does not know: all that its names mean may be updated."""
        value: _Value = frozenset().union(*(self.names.get(each.id, _NOTHING) for each in ast.walk(node)
                                            if isinstance(each, ast.Name)))
        self.effects.anything(value)
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self.bind(each.id, _held(value))
        return _held(value)

    def branch(self, node: ast.If) -> None:
        """Warp generates no code for a branch whose constant condition is false."""
        self.value(node.test)
        decided = self.constant(node.test)
        if decided is None or decided:
            self.statements(node.body)
        if decided is None or not decided:
            self.statements(node.orelse)

    def loop(self, node: ast.For) -> None:
        self.store(node.target, _held(self.value(node.iter)))
        before = dict(self.ranges)
        if isinstance(node.target, ast.Name):
            self.ranges.pop(node.target.id, None)
            limits = self.constant_range(node)
            if limits is not None:
                self.ranges[node.target.id] = limits
            if limits is not None and not limits:
                return  # the loop does nothing
        self.statements(node.body)
        self.ranges = before
        self.statements(node.orelse)

    def constant_range(self, node: ast.For) -> range | None:
        """The numbers of a loop with constant limits, if nothing else in the function gives its name a value."""
        call, target = node.iter, node.target
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            return None
        if not isinstance(target, ast.Name) or self.stores()[target.id] != 1 or target.id in self.parameters:
            return None
        limits = [self.constant(each) for each in call.args]
        return range(*limits) if limits and all(type(each) is int for each in limits) else None

    def give(self, node: ast.Return) -> None:
        if node.value is None:
            return
        value = self.value(node.value)
        if isinstance(node.value, ast.Tuple):
            value = frozenset(_Several(tuple(_copied(each) for each in item.items)) for item in value)
        merged = self.returned | _copied(value)
        if _depth(merged) > _TUPLE_DEPTH:
            merged = _held(merged)
        if merged != self.returned:
            self.returned, self.changed = merged, True

    def assign(self, target: ast.expr, source: ast.expr) -> None:
        value = self.value(source)
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value)
        else:
            self.store(target, _copied(value))

    def unpack(self, targets: Sequence[ast.expr], value: _Value) -> None:
        """Warp binds the names of a tuple to the places of elements, without a copy."""
        for place, target in enumerate(targets):
            for item in value:
                if isinstance(item, _Several) and len(item.items) == len(targets):
                    self.store(target, item.items[place])
                else:
                    self.store(target, _held(frozenset((item,))))

    def store(self, target: ast.expr, value: _Value) -> None:
        """Give a value to a name, or write it to a place."""
        if isinstance(target, ast.Name):
            if target.id in self.references:
                self.effects.updates(self.names[target.id])
            self.bind(target.id, value)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            base = self.value(target.value)
            if isinstance(target, ast.Subscript):
                self.value(target.slice)
                self.effects.updates(base)
                if isinstance(target.value, ast.Attribute) and target.value.attr == "adjoint":
                    self.unknown(target)
            elif _is_chain(target.value):
                self.effects.updates(frozenset(item for item in base if isinstance(item, _Element)))
            else:
                self.effects.updates(base)
            self.keep(target, value)
        else:
            self.unknown(target)

    def keep(self, target: ast.expr, value: _Value) -> None:
        """Arrays that are stored in a field, or in an element, can be reached through the name before it."""
        if not _roots(value):
            return
        node, field = target, None
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            field = node.attr if isinstance(node, ast.Attribute) else None
            node = node.value
        if isinstance(node, ast.Name):
            kinds = {item.type for item in self.names.get(node.id, _NOTHING) if isinstance(item, (_Holder, _Fields))} or {None}
            self.bind(node.id, frozenset(_Holder(root, kind, field) for root in _roots(value) for kind in kinds))
        else:
            self.effects.anything(value)

    def augment(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            before = self.names.get(node.target.id, _NOTHING)
        else:
            before = self.value(node.target)
        result = self.operator(node.op, [before, value])
        self.store(node.target, _held(result))

    def operator(self, operator: ast.operator, operands: list[_Value]) -> _Value:
        """A user's function with the name of the operator goes before Warp's. Those of Warp take no arrays."""
        name = _codegen.builtin_operators.get(type(operator), "")
        found = _codegen.resolve_closure_or_global(self.adj.func, name) if name else None
        if isinstance(found, _context.Function):
            return self.invoke(found, operands, {}, None)
        return _NOTHING

    # Expressions

    def value(self, node: ast.expr) -> _Value:
        """The arrays, places and functions that an expression may stand for. What it does on the way is noted."""
        if isinstance(node, ast.Constant):
            return self.literal(node.value)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.Call):
            return self.called(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return frozenset((_Several(tuple(self.value(each) for each in node.elts)),))
        if isinstance(node, ast.IfExp):
            self.value(node.test)
            return _copied(self.value(node.body) | self.value(node.orelse))
        if isinstance(node, ast.BinOp):
            return self.operator(node.op, [self.value(node.left), self.value(node.right)])
        if isinstance(node, ast.Slice):
            for part in (node.lower, node.upper, node.step):
                if part is not None:
                    self.value(part)
            return frozenset((_SliceMark(),))
        if isinstance(node, ast.BoolOp):
            operands = node.values
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.UnaryOp):
            operands = [node.operand]
        else:
            return self.unknown(node)
        for operand in operands:
            self.value(operand)
        return _NOTHING

    def literal(self, constant: Any) -> _Value:
        if _types.is_struct(constant) and _holds_arrays(constant._cls):
            self.effects.anything()
            return frozenset((_Holder(_OUTSIDE),))
        return frozenset((_Callee(constant),)) if isinstance(constant, _context.Function) else _NOTHING

    def name(self, node: ast.Name) -> _Value:
        if hasattr(node, "warp_func"):
            return frozenset((_Callee(node.warp_func),))
        value = self.names.get(node.id, _NOTHING)
        return value if node.id in self.names else value | self.literal(self.outer(node.id))

    def attribute(self, node: ast.Attribute) -> _Value:
        found, last = self.static(node)
        if found is warp and last in _context.builtin_functions:
            return frozenset((_Callee(_context.builtin_functions[last]),))
        if found is not None:
            return self.literal(found)
        result: set[Any] = set()
        base = self.value(node.value)
        for item in base:
            if isinstance(item, _View):
                if node.attr not in _DESCRIPTOR:
                    self.effects.anything(base)
                    result |= _held(base)
            elif isinstance(item, _Fields):
                root = _Root(item.root.argument, (*item.root.path, node.attr))
                result |= _whole_value(root, _field_type(item.type, node.attr))
            elif isinstance(item, _Several):
                result |= _held(frozenset((item,)))
            elif isinstance(item, _Holder):
                result |= _field_of_local(item, node.attr)
            elif isinstance(item, _Element):
                result.add(item)
        return frozenset(result)

    def subscript(self, node: ast.Subscript) -> _Value:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "adjoint":
            return self.unknown(node)
        base = self.value(node.value)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        removed = self.removed(indices)
        self.effects.reads(frozenset(item for item in base if not isinstance(item, _Several)))
        result: set[Any] = set()
        for item in base:
            if isinstance(item, _View) and removed is not None:
                result |= _part(item, removed)
            elif isinstance(item, _Element):
                result.add(item)
            elif isinstance(item, _Several) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                result |= frozenset().union(*item.items[node.slice.value:][:1])
            else:
                result |= _held(frozenset((item,)))
        return frozenset(result)

    def removed(self, indices: Iterable[ast.expr]) -> int | None:
        """How many dimensions the indices take away. None if it is not known."""
        count = 0
        for index in indices:
            marked = _SliceMark() in _flat(self.value(index))
            if marked and not isinstance(index, ast.Slice):
                return None
            count += not marked
        return count

    # Calls

    def called(self, node: ast.Call) -> _Value:
        if self.adj.is_static_expression(self.static(node.func)[0]):
            return self.deferred(node)
        positional: list[_Value] = []
        starred: _Value = _NOTHING
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                starred |= self.elements(argument.value)
            else:
                positional.append(self.value(argument))
        named: dict[str, _Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                starred |= value
            else:
                named[keyword.arg] = value
        result = self.resolved(node, positional, named, starred if self.has_starred(node) else None)
        self.keep_in_arguments(node, positional, named)
        return result

    @staticmethod
    def has_starred(node: ast.Call) -> bool:
        return any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords)

    def elements(self, node: ast.expr) -> _Value:
        """The places that a starred array stands for."""
        value = self.value(node)
        self.effects.reads(value)
        return frozenset(_Element(item.root) if isinstance(item, _View) else item for item in value)

    def resolved(self, node: ast.Call, positional: list[_Value], named: dict[str, _Value], starred: _Value | None) -> _Value:
        """Find what is called, as Warp does, and note what the call does."""
        given: _Value = frozenset().union(*positional, *named.values(), starred or _NOTHING)
        function = node.func
        if isinstance(function, ast.Name) and function.id in self.names:
            meant = self.names[function.id]
            callees = [item.function for item in meant if isinstance(item, _Callee)]
            if _Unknown() in meant or (not callees and function.id in self.parameters):
                self.effects.anything(given)
                return _held(given)
            if callees:
                return frozenset().union(*(self.invoke(each, positional, named, starred) for each in callees))
        if isinstance(function, ast.Call):
            meant = self.value(function)
            callees = [item.function for item in meant if isinstance(item, _Callee)]
            if callees and _Unknown() not in meant:
                return frozenset().union(*(self.invoke(each, positional, named, starred) for each in callees))
        if _is_type_expression(function, self.locals):
            self.effects.reads(frozenset(item for item in given if isinstance(item, _Element)))
            return _held(given)
        found, last = self.static(function)
        if found is warp.address_of or self.adj.is_grad_expression(found):
            self.effects.anything(given)
            return _held(given) | {_Unknown()}
        if not isinstance(found, _context.Function):
            if isinstance(found, types.ModuleType) and found is not warp and last is not None and not hasattr(found, last):
                found = None
            elif found is not None and last in _context.builtin_functions:
                found = _context.builtin_functions[last]
        if isinstance(found, _context.Function):
            return self.invoke(found, positional, named, starred)
        if isinstance(found, _codegen.Struct):
            return self.construct(found, positional, named, starred)
        if _types.type_is_value(found) or hasattr(found, "_wp_generic_type_str_"):
            return _NOTHING
        self.effects.anything(given)
        return _held(given)

    def deferred(self, node: ast.Call) -> _Value:
        """
        A wp.static that Warp evaluates when it generates code: the functions that it may be, for all numbers of the loops
        around it. Local names that stand for no known constants make it unknown.
        """
        expression = node.args[0] if node.args else node.keywords[0].value
        names = {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)}
        loops = sorted(names & self.locals)
        count = math.prod(len(self.ranges.get(name, ())) for name in loops)
        if any(name not in self.ranges for name in loops) or count > _STATIC_MOST:
            return frozenset((_Unknown(),))
        code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<wp.static>", "eval")
        result: _Value = _NOTHING
        try:
            for numbers in itertools.product(*(self.ranges[name] for name in loops)):
                found = eval(code, self.adj.get_static_evaluation_context(), dict(zip(loops, numbers)))
                result |= self.literal(found)
        except Exception:  # an expression of the user may raise anything: Warp will tell
            return frozenset((_Unknown(),))
        return result

    def construct(self, kind: Any, positional: list[_Value], named: dict[str, _Value], starred: _Value | None) -> _Value:
        """A local struct, with the arrays that it is given."""
        result = {_Holder(_NOWHERE, kind)}
        for name, value in [*zip(kind.vars, positional), *named.items()]:
            result |= {_Holder(root, kind, None if starred is not None else name) for root in _roots(value)}
        return frozenset(result | {_Holder(root, kind) for root in _roots(starred or _NOTHING)})

    def invoke(self, function: Any, positional: list[_Value], named: dict[str, _Value], starred: _Value | None) -> _Value:
        if function.is_builtin():
            return self.builtin(function, positional, named, starred)
        result: _Value = _NOTHING
        for overload in _overloads(function):
            result |= self.user(overload, positional, named, starred)
        return result

    def user(self, function: Any, positional: list[_Value], named: dict[str, _Value], starred: _Value | None) -> _Value:
        """A function of Warp code, or one with native code."""
        labels = [argument.label for argument in function.adj.args]
        if len(positional) + len(named) > len(labels) or any(name not in labels for name in named):
            return _NOTHING  # Warp chooses another overload
        bound: dict[str, _Value] = dict(zip(labels, positional))
        bound.update(named)
        if starred is not None:
            everything = starred.union(*bound.values())
            self.effects.updates(starred)
            bound = {label: everything for label in labels}
        if function.custom_grad_func or function.custom_replay_func:
            self.effects.custom_gradient = True
        for argument in function.adj.args:
            value = bound.get(argument.label, _NOTHING)
            if _types.is_reference(argument.type):
                self.effects.updates(frozenset(item for item in value if isinstance(item, _Element)))
            elif value:
                self.effects.reads(frozenset(item for item in value if isinstance(item, _Element)))
                bound[argument.label] = _copied(value)
        if function.native_snippet is not None:
            return self.native(function, bound)
        return self.kernel.call(function, bound)

    def native(self, function: Any, bound: dict[str, _Value]) -> _Value:
        """Native code may write all arrays that it is given, and all memory whose address it gets."""
        given: _Value = frozenset().union(*bound.values())
        self.effects.updates(given)
        if function.adj_native_snippet is not None or function.replay_snippet is not None:
            self.effects.custom_gradient = True
        snippet = function.native_snippet
        takes_address = any(_holds_address(argument.type) for argument in function.adj.args)
        if _NATIVE_REACH.search(snippet) or (takes_address and not _is_arithmetic(snippet)):
            self.effects.anything()
        return _held(given)

    def builtin(self, function: Any, positional: list[_Value], named: dict[str, _Value], starred: _Value | None) -> _Value:
        given: _Value = frozenset().union(*positional, *named.values(), starred or _NOTHING)
        about = _about_builtin(function)
        for item in _flat(given):
            if isinstance(item, _Callee):
                self.call_back(item.function)
            elif isinstance(item, _Unknown) and about.calls:
                self.effects.anything()
        if about.unknown:
            self.effects.anything(given)
            return _held(given)
        elements = frozenset(item for item in _flat(given) if isinstance(item, _Element))
        if about.writes_elements:
            self.effects.updates(elements)
        else:
            self.effects.reads(elements)
        self.effects.everything |= about.everything
        result: _Value = frozenset(_Holder(_OUTSIDE, kind) for kind in about.outside)
        if function.key == "slice":
            result |= {_SliceMark()}
        if function.key in _PASSING:
            return result | (_copied(given) if function.key != "tuple" else _held(given))
        if function.key in _READING:
            self.effects.reads(given)
        elif about.takes_arrays and function.key not in _IGNORING:
            self.effects.updates(_held(given))
            result |= _held(given)
        return result

    def call_back(self, function: Any) -> None:
        """A function that a builtin calls, with values that are no arrays."""
        if function.is_builtin():
            self.builtin(function, [], {}, None)
        else:
            for overload in _overloads(function):
                self.user(overload, [], {}, None)

    def keep_in_arguments(self, node: ast.Call, positional: list[_Value], named: dict[str, _Value]) -> None:
        """A function with reference parameters may store arrays that it is given in structs that it is given."""
        held = _held(frozenset().union(*positional, *named.values()))
        if not _roots(held) or not self.takes_references(node):
            return
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            while isinstance(argument, (ast.Subscript, ast.Attribute, ast.Starred)):
                argument = argument.value
            if isinstance(argument, ast.Name) and argument.id in self.locals:
                self.bind(argument.id, held)

    def takes_references(self, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Name) and node.func.id in self.names:
            found = [item.function for item in self.names[node.func.id] if isinstance(item, _Callee)]
        else:
            found = [self.static(node.func)[0]]
        for function in found:
            if isinstance(function, _context.Function) and not function.is_builtin():
                for overload in _overloads(function):
                    if any(_types.is_reference(argument.type) for argument in overload.adj.args):
                        return True
        return False


def _is_chain(node: ast.expr) -> bool:
    """Whether the expression is a name with attributes: a local struct, or a field of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_type_expression(node: ast.expr, names: set[str]) -> bool:
    """Whether the expression is the type of a local value: ``type(x)``, ``array.dtype``, ``type(x).dtype``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type" and "type" not in names
    if not isinstance(node, ast.Attribute) or node.attr != "dtype":
        return False
    root: ast.expr = node.value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    return _is_type_expression(root, names) if isinstance(root, ast.Call) else isinstance(root, ast.Name) and root.id in names


def _is_arithmetic(snippet: str) -> bool:
    """Whether native code only computes: it has no pointers, and calls nothing but intrinsics of the compiler."""
    return not _NATIVE_POINTER.search(snippet) and all(
        name.startswith("__") or name in _NATIVE_WORDS for name in _NATIVE_CALL.findall(snippet))


def _overloads(function: Any) -> list[Any]:
    """All functions that Warp may choose for a call. Instances of a template share its code."""
    found = [function, *function.user_templates.values(), *function.user_overloads.values()]
    return list({id(each): each for each in found}.values())


class _AboutBuiltin(NamedTuple):
    """What the registered signatures of a builtin say."""

    unknown: bool  # it was registered by someone else
    everything: int  # how it accesses memory through handles
    outside: tuple[Any, ...]  # structs that it returns, that lead to memory that no argument names; None: an array
    writes_elements: bool  # it may write through the place of an element, or return it
    takes_arrays: bool
    calls: bool  # it calls functions that it is given


_builtins: dict[str, _AboutBuiltin] = {}


def _about_builtin(function: Any) -> _AboutBuiltin:
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
    outside = tuple(None if _types.is_array(result) else result for result in results if handles and _holds_arrays(result))
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


def _field_type(kind: Any, name: str) -> Any:
    return kind.vars[name].type if name in kind.vars else None


def _view(root: _Root, kind: Any) -> _View:
    """A whole array of this type."""
    return _View(root, kind.ndim, kind.dtype if _holds_arrays(kind.dtype) else None)


def _part(view: _View, removed: int) -> _Value:
    """What an index leaves of a view: a view of fewer dimensions, or an element. An element may hold arrays itself."""
    if view.ndim > removed:
        return frozenset((_View(view.root, view.ndim - removed, view.type),))
    inside = () if view.type is None else (_Holder(_OUTSIDE, view.type),)
    return frozenset((_Element(view.root), *inside))


def _whole_local(root: _Root, kind: Any) -> Any:
    """What leads to an array through a local value of this type."""
    if _types.is_array(kind):
        return _view(root, kind)
    return _Holder(root, kind if hasattr(kind, "vars") else None)


def _field_of_local(item: _Holder, name: str) -> _Value:
    """The arrays that are reached through a field of a local struct."""
    if item.type is None or name not in item.type.vars:
        return frozenset((_Holder(item.root),))
    kind = _field_type(item.type, name)
    if not _holds_arrays(kind) or item.field not in (None, name):
        return _NOTHING
    return frozenset((_whole_local(item.root, kind),))


def _whole_value(root: _Root, kind: Any) -> _Value:
    """An argument of a kernel, as a value."""
    if _types.is_array(kind):
        return frozenset((_view(root, kind),))
    return frozenset((_Fields(root, kind),)) if isinstance(kind, _codegen.Struct) else _NOTHING


def _look(kernel: Any) -> _Effects:
    """What the kernel's code does."""
    seen = _Kernel()
    arguments = {a.label: _whole_value(_Root(i), a.type) for i, a in enumerate(kernel.adj.args)}
    _Body(seen, kernel.adj, arguments).run()
    for i, argument in enumerate(kernel.adj.args):
        for _, kind in _leaves(_Root(i), argument.type):
            if not _is_array_in_arguments(kind):
                seen.effects.anything()  # an array of another library
    return seen.effects


def _offset(kind: Any, path: Sequence[str]) -> int:
    """Bytes from the start of a packed argument to a field."""
    offset = 0
    for name in path:
        offset += getattr(kind.ctype, name).offset
        kind = kind.vars[name].type
    return offset


def _uses(kernel: Any, effects: _Effects, adjoint: bool) -> Iterator[ArrayUse]:
    count = len(kernel.adj.args)
    for i, argument in enumerate(kernel.adj.args):
        for root, kind in _leaves(_Root(i), argument.type):
            if not _is_array_in_arguments(kind):
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


# The layout of array_t: data, grad, shape, strides, dimensions, flags. That of indexedarray_t: array_t, indices, shape.
_DIMENSIONS = int(_types.ARRAY_MAX_DIMS)
_descriptor = struct.Struct(f"@QQ{_DIMENSIONS}i{_DIMENSIONS}iHH")
_INDEXED = _types.indexedarray_t
_indices = struct.Struct(f"@{_DIMENSIONS}Q{_DIMENSIONS}i")
_INDEX_BYTES = 4
assert _descriptor.size <= ctypes.sizeof(_types.array_t) and _types.array_t.strides.offset == 16 + 4 * _DIMENSIONS
assert _INDEXED.indices.offset + _indices.size <= ctypes.sizeof(_INDEXED)
assert _INDEXED.shape.offset == _INDEXED.indices.offset + 8 * _DIMENSIONS


def touched(uses: KernelUses, addresses: Sequence[int]) -> list[tuple[int, int, int]]:
    """
    The bytes of the arrays that a launch touches: first byte, number of bytes, READ or UPDATE. ``addresses``: where the packed
    arguments lie. Ranges that occur several times are given once, with the stronger access.
    """
    ranges: dict[tuple[int, int], int] = {}
    for use in uses.arrays:
        address = addresses[use.argument] + use.offset
        fields = _descriptor.unpack(ctypes.string_at(address, _descriptor.size))
        if use.kind == "indexed":
            _add_indices(ranges, address, fields[2 + 2 * _DIMENSIONS])
        if not (fields[0] or fields[1]):
            continue
        before, nbytes = _extent(fields, use.itemsize)
        access = UPDATE if use.updates else READ
        if nbytes and fields[0]:
            key = fields[0] - before, nbytes
            ranges[key] = ranges.get(key, 0) | access
        if nbytes and fields[1] and use.gradient:
            ranges[fields[1] - before, nbytes] = UPDATE
    return [(first, nbytes, access) for (first, nbytes), access in ranges.items()]


def _extent(fields: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Bytes before the first element, and bytes from the lowest to the highest one."""
    before, nbytes = 0, itemsize
    for dimension in range(fields[2 + 2 * _DIMENSIONS]):
        size, stride = fields[2 + dimension], fields[2 + _DIMENSIONS + dimension]
        if size <= 0:
            return 0, 0
        reach = stride * (size - 1)
        if reach < 0:
            before, reach = before - reach, -reach
        nbytes += reach
    return before, nbytes


def _add_indices(ranges: dict[tuple[int, int], int], address: int, ndim: int) -> None:
    """An indexed array reads the arrays of its indices."""
    fields = _indices.unpack(ctypes.string_at(address + _INDEXED.indices.offset, _indices.size))
    for pointer, size in zip(fields[:ndim], fields[_DIMENSIONS:]):
        if pointer and size > 0:
            key = pointer, size * _INDEX_BYTES
            ranges[key] = ranges.get(key, 0) | READ
