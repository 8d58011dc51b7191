"""
The pass over the syntax trees from which Warp generates code: those of a kernel and of each function that it calls.

The pass follows the arrays of the kernel's arguments through names, views, struct fields, tuples, arguments and returned
values, and ignores the order of statements: a name stands for each array that it is ever given. Statements, calls and builtins
that the pass does not know count as updates of all that they are given.
"""

from __future__ import annotations

import ast
import itertools
import math
import types
from collections.abc import Iterable, Sequence
from typing import Any

import warp
from warp._src import codegen as _codegen
from warp._src import context as _context
from warp._src import types as _types

from ._builtins import IGNORING, NATIVE_REACH, PASSING, READING, about_builtin, is_arithmetic
from ._scope import TUPLE_DEPTH, Scope
from ._values import (NOTHING, NOWHERE, OUTSIDE, Callee, Effects, Element, Fields, Holder, Root, Several, SliceMark, Unknown,
                      Value, View, as_held, copied, depth_of, field_of_local, field_type, flattened, holds_address,
                      holds_arrays, part_of, roots_of, whole_value)

_DESCRIPTOR = frozenset(("shape", "strides", "ndim", "size", "dtype"))  # attributes of an array that are not its memory
_STATIC_MOST = 4096  # most values of a wp.static in loops that are looked at
_STATEMENTS_WITHOUT_EFFECT = (ast.Pass, ast.Break, ast.Continue)


class Kernel:
    """The functions of one kernel, and what they do."""

    def __init__(self) -> None:
        self.effects = Effects()
        self.returned: dict[Any, Value | None] = {}  # None: the function is being looked at

    def call(self, function: Any, arguments: dict[str, Value]) -> Value:
        """Look at a function with Warp code. Returns what it returns."""
        key = (id(function), tuple(sorted(arguments.items(), key=lambda each: each[0])))
        if key in self.returned:
            result = self.returned[key]
            if result is not None:
                return result
            everything = frozenset().union(*arguments.values()) if arguments else NOTHING
            self.effects.anything(everything)  # a recursion
            return as_held(everything)
        self.returned[key] = None
        self.returned[key] = result = self.look(function.adj, arguments)
        return result

    def look(self, adj: Any, arguments: dict[str, Value]) -> Value:
        """Look at code with these arguments. Returns what it returns."""
        return _Body(self, adj, arguments).run()


class _Body(Scope):
    """The statements of one function that is called with certain arguments."""

    def __init__(self, kernel: Kernel, adj: Any, arguments: dict[str, Value]) -> None:
        super().__init__(adj, arguments)
        self.kernel, self.effects = kernel, kernel.effects
        self.returned: Value = NOTHING

    def run(self) -> Value:
        """Look at all statements until no name gets a further meaning."""
        if not isinstance(self.definition, ast.FunctionDef):
            self.effects.anything(frozenset().union(*self.names.values()) if self.names else NOTHING)
            return NOTHING
        while True:
            self.changed = False
            self.statements(self.definition.body)
            if not self.changed:
                return self.returned
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

    def unknown(self, node: ast.AST) -> Value:
        """Code that this pass does not know: all that its names mean may be updated."""
        value: Value = frozenset().union(*(self.names.get(each.id, NOTHING) for each in ast.walk(node)
                                            if isinstance(each, ast.Name)))
        self.effects.anything(value)
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self.bind(each.id, as_held(value))
        return as_held(value)

    def branch(self, node: ast.If) -> None:
        """Warp generates no code for a branch whose constant condition is false."""
        self.value(node.test)
        decided = self.constant(node.test)
        if decided is None or decided:
            self.statements(node.body)
        if decided is None or not decided:
            self.statements(node.orelse)

    def loop(self, node: ast.For) -> None:
        self.store(node.target, as_held(self.value(node.iter)))
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
            value = frozenset(Several(tuple(copied(each) for each in item.items)) for item in value)
        merged = self.returned | copied(value)
        if depth_of(merged) > TUPLE_DEPTH:
            merged = as_held(merged)
        if merged != self.returned:
            self.returned, self.changed = merged, True

    def assign(self, target: ast.expr, source: ast.expr) -> None:
        value = self.value(source)
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value)
        else:
            self.store(target, copied(value))

    def unpack(self, targets: Sequence[ast.expr], value: Value) -> None:
        """Warp binds the names of a tuple to the places of elements, without a copy."""
        for place, target in enumerate(targets):
            for item in value:
                if isinstance(item, Several) and len(item.items) == len(targets):
                    self.store(target, item.items[place])
                else:
                    self.store(target, as_held(frozenset((item,))))

    def store(self, target: ast.expr, value: Value) -> None:
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
                self.effects.updates(frozenset(item for item in base if isinstance(item, Element)))
            else:
                self.effects.updates(base)
            self.keep(target, value)
        else:
            self.unknown(target)

    def keep(self, target: ast.expr, value: Value) -> None:
        """Arrays that are stored in a field, or in an element, can be reached through the name before it."""
        if not roots_of(value):
            return
        node, field = target, None
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            field = node.attr if isinstance(node, ast.Attribute) else None
            node = node.value
        if isinstance(node, ast.Name):
            kinds = {item.type for item in self.names.get(node.id, NOTHING) if isinstance(item, (Holder, Fields))} or {None}
            self.bind(node.id, frozenset(Holder(root, kind, field) for root in roots_of(value) for kind in kinds))
        else:
            self.effects.anything(value)

    def augment(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            before = self.names.get(node.target.id, NOTHING)
        else:
            before = self.value(node.target)
        result = self.operator(node.op, [before, value])
        self.store(node.target, as_held(result))

    def operator(self, operator: ast.operator, operands: list[Value]) -> Value:
        """A user's function with the name of the operator goes before Warp's. Those of Warp take no arrays."""
        name = _codegen.builtin_operators.get(type(operator), "")
        found = _codegen.resolve_closure_or_global(self.adj.func, name) if name else None
        if isinstance(found, _context.Function):
            return self.invoke(found, operands, {}, None)
        return NOTHING

    # Expressions

    def value(self, node: ast.expr) -> Value:
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
            return frozenset((Several(tuple(self.value(each) for each in node.elts)),))
        if isinstance(node, ast.IfExp):
            self.value(node.test)
            return copied(self.value(node.body) | self.value(node.orelse))
        if isinstance(node, ast.BinOp):
            return self.operator(node.op, [self.value(node.left), self.value(node.right)])
        if isinstance(node, ast.Slice):
            for part in (node.lower, node.upper, node.step):
                if part is not None:
                    self.value(part)
            return frozenset((SliceMark(),))
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
        return NOTHING

    def literal(self, constant: Any) -> Value:
        if _types.is_struct(constant) and holds_arrays(constant._cls):
            self.effects.anything()
            return frozenset((Holder(OUTSIDE),))
        return frozenset((Callee(constant),)) if isinstance(constant, _context.Function) else NOTHING

    def name(self, node: ast.Name) -> Value:
        if hasattr(node, "warp_func"):
            return frozenset((Callee(node.warp_func),))
        value = self.names.get(node.id, NOTHING)
        return value if node.id in self.names else value | self.literal(self.outer(node.id))

    def attribute(self, node: ast.Attribute) -> Value:
        found, last = self.static(node)
        if found is warp and last in _context.builtin_functions:
            return frozenset((Callee(_context.builtin_functions[last]),))
        if found is not None:
            return self.literal(found)
        result: set[Any] = set()
        base = self.value(node.value)
        for item in base:
            if isinstance(item, View):
                if node.attr not in _DESCRIPTOR:
                    self.effects.anything(base)
                    result |= as_held(base)
            elif isinstance(item, Fields):
                root = Root(item.root.argument, (*item.root.path, node.attr))
                result |= whole_value(root, field_type(item.type, node.attr))
            elif isinstance(item, Several):
                result |= as_held(frozenset((item,)))
            elif isinstance(item, Holder):
                result |= field_of_local(item, node.attr)
            elif isinstance(item, Element):
                result.add(item)
        return frozenset(result)

    def subscript(self, node: ast.Subscript) -> Value:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "adjoint":
            return self.unknown(node)
        base = self.value(node.value)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        removed = self.removed(indices)
        self.effects.reads(frozenset(item for item in base if not isinstance(item, Several)))
        result: set[Any] = set()
        for item in base:
            if isinstance(item, View) and removed is not None:
                result |= part_of(item, removed)
            elif isinstance(item, Element):
                result.add(item)
            elif isinstance(item, Several) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                result |= frozenset().union(*item.items[node.slice.value:][:1])
            else:
                result |= as_held(frozenset((item,)))
        return frozenset(result)

    def removed(self, indices: Iterable[ast.expr]) -> int | None:
        """How many dimensions the indices take away. None if it is not known."""
        count = 0
        for index in indices:
            marked = SliceMark() in flattened(self.value(index))
            if marked and not isinstance(index, ast.Slice):
                return None
            count += not marked
        return count

    # Calls

    def called(self, node: ast.Call) -> Value:
        if self.adj.is_static_expression(self.static(node.func)[0]):
            return self.deferred(node)
        positional: list[Value] = []
        starred: Value = NOTHING
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                starred |= self.elements(argument.value)
            else:
                positional.append(self.value(argument))
        named: dict[str, Value] = {}
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

    def elements(self, node: ast.expr) -> Value:
        """The places that a starred array stands for."""
        value = self.value(node)
        self.effects.reads(value)
        return frozenset(Element(item.root) if isinstance(item, View) else item for item in value)

    def resolved(self, node: ast.Call, positional: list[Value], named: dict[str, Value], starred: Value | None) -> Value:
        """Find what is called, as Warp does, and note what the call does."""
        given: Value = frozenset().union(*positional, *named.values(), starred or NOTHING)
        function = node.func
        if isinstance(function, ast.Name) and function.id in self.names:
            meant = self.names[function.id]
            callees = [item.function for item in meant if isinstance(item, Callee)]
            if Unknown() in meant or (not callees and function.id in self.parameters):
                self.effects.anything(given)
                return as_held(given)
            if callees:
                return frozenset().union(*(self.invoke(each, positional, named, starred) for each in callees))
        if isinstance(function, ast.Call):
            meant = self.value(function)
            callees = [item.function for item in meant if isinstance(item, Callee)]
            if callees and Unknown() not in meant:
                return frozenset().union(*(self.invoke(each, positional, named, starred) for each in callees))
        if _is_type_expression(function, self.locals):
            self.effects.reads(frozenset(item for item in given if isinstance(item, Element)))
            return as_held(given)
        found, last = self.static(function)
        if found is warp.address_of or self.adj.is_grad_expression(found):
            self.effects.anything(given)
            return as_held(given) | {Unknown()}
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
            return NOTHING
        self.effects.anything(given)
        return as_held(given)

    def deferred(self, node: ast.Call) -> Value:
        """
        A wp.static that Warp evaluates when it generates code: the functions that it may be, for all numbers of the loops
        around it. Local names that stand for no known constants make it unknown.
        """
        expression = node.args[0] if node.args else node.keywords[0].value
        names = {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)}
        loops = sorted(names & self.locals)
        count = math.prod(len(self.ranges.get(name, ())) for name in loops)
        if any(name not in self.ranges for name in loops) or count > _STATIC_MOST:
            return frozenset((Unknown(),))
        code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<wp.static>", "eval")
        result: Value = NOTHING
        try:
            for numbers in itertools.product(*(self.ranges[name] for name in loops)):
                found = eval(code, self.adj.get_static_evaluation_context(), dict(zip(loops, numbers)))
                result |= self.literal(found)
        except Exception:  # an expression of the user may raise anything: Warp will tell
            return frozenset((Unknown(),))
        return result

    def construct(self, kind: Any, positional: list[Value], named: dict[str, Value], starred: Value | None) -> Value:
        """A local struct, with the arrays that it is given."""
        result = {Holder(NOWHERE, kind)}
        for name, value in [*zip(kind.vars, positional), *named.items()]:
            result |= {Holder(root, kind, None if starred is not None else name) for root in roots_of(value)}
        return frozenset(result | {Holder(root, kind) for root in roots_of(starred or NOTHING)})

    def invoke(self, function: Any, positional: list[Value], named: dict[str, Value], starred: Value | None) -> Value:
        if function.is_builtin():
            return self.builtin(function, positional, named, starred)
        result: Value = NOTHING
        for overload in _overloads(function):
            result |= self.user(overload, positional, named, starred)
        return result

    def user(self, function: Any, positional: list[Value], named: dict[str, Value], starred: Value | None) -> Value:
        """A function of Warp code, or one with native code."""
        labels = [argument.label for argument in function.adj.args]
        if len(positional) + len(named) > len(labels) or any(name not in labels for name in named):
            return NOTHING  # Warp chooses another overload
        bound: dict[str, Value] = dict(zip(labels, positional))
        bound.update(named)
        if starred is not None:
            everything = starred.union(*bound.values())
            self.effects.updates(starred)
            bound = {label: everything for label in labels}
        if function.custom_grad_func or function.custom_replay_func:
            self.effects.custom_gradient = True
        for argument in function.adj.args:
            value = bound.get(argument.label, NOTHING)
            if _types.is_reference(argument.type):
                self.effects.updates(frozenset(item for item in value if isinstance(item, Element)))
            elif value:
                self.effects.reads(frozenset(item for item in value if isinstance(item, Element)))
                bound[argument.label] = copied(value)
        if function.native_snippet is not None:
            return self.native(function, bound)
        return self.kernel.call(function, bound)

    def native(self, function: Any, bound: dict[str, Value]) -> Value:
        """Native code may write all arrays that it is given, and all memory whose address it gets."""
        given: Value = frozenset().union(*bound.values())
        self.effects.updates(given)
        if function.adj_native_snippet is not None or function.replay_snippet is not None:
            self.effects.custom_gradient = True
        snippet = function.native_snippet
        takes_address = any(holds_address(argument.type) for argument in function.adj.args)
        if NATIVE_REACH.search(snippet) or (takes_address and not is_arithmetic(snippet)):
            self.effects.anything()
        return as_held(given)

    def builtin(self, function: Any, positional: list[Value], named: dict[str, Value], starred: Value | None) -> Value:
        given: Value = frozenset().union(*positional, *named.values(), starred or NOTHING)
        about = about_builtin(function)
        for item in flattened(given):
            if isinstance(item, Callee):
                self.call_back(item.function)
            elif isinstance(item, Unknown) and about.calls:
                self.effects.anything()
        if about.unknown:
            self.effects.anything(given)
            return as_held(given)
        elements = frozenset(item for item in flattened(given) if isinstance(item, Element))
        if about.writes_elements:
            self.effects.updates(elements)
        else:
            self.effects.reads(elements)
        self.effects.everything |= about.everything
        result: Value = frozenset(Holder(OUTSIDE, kind) for kind in about.outside)
        if function.key == "slice":
            result |= {SliceMark()}
        if function.key in PASSING:
            return result | (copied(given) if function.key != "tuple" else as_held(given))
        if function.key in READING:
            self.effects.reads(given)
        elif about.takes_arrays and function.key not in IGNORING:
            self.effects.updates(as_held(given))
            result |= as_held(given)
        return result

    def call_back(self, function: Any) -> None:
        """A function that a builtin calls, with values that are no arrays."""
        if function.is_builtin():
            self.builtin(function, [], {}, None)
        else:
            for overload in _overloads(function):
                self.user(overload, [], {}, None)

    def keep_in_arguments(self, node: ast.Call, positional: list[Value], named: dict[str, Value]) -> None:
        """A function with reference parameters may store arrays that it is given in structs that it is given."""
        held = as_held(frozenset().union(*positional, *named.values()))
        if not roots_of(held) or not self.takes_references(node):
            return
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            while isinstance(argument, (ast.Subscript, ast.Attribute, ast.Starred)):
                argument = argument.value
            if isinstance(argument, ast.Name) and argument.id in self.locals:
                self.bind(argument.id, held)

    def takes_references(self, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Name) and node.func.id in self.names:
            found = [item.function for item in self.names[node.func.id] if isinstance(item, Callee)]
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


def _overloads(function: Any) -> list[Any]:
    """All functions that Warp may choose for a call. Instances of a template share its code."""
    found = [function, *function.user_templates.values(), *function.user_overloads.values()]
    return list({id(each): each for each in found}.values())
