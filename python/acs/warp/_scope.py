"""What names mean in a function of Warp code: its arguments and locals, its closure, its module, warp, Python."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Sequence
from typing import Any

import warp
from warp._src import codegen as _codegen
from warp._src import types as _types

from ._values import NOTHING, Several, Value, as_held, depth_of

TUPLE_DEPTH = 3  # tuples in tuples that are followed item by item


class Scope:
    """The names of one function that is called with certain arguments."""

    def __init__(self, adj: Any, arguments: dict[str, Value]) -> None:
        self.adj = adj
        self.names: dict[str, Value] = {label: arguments.get(label, NOTHING) for label in (a.label for a in adj.args)}
        self.references = {a.label for a in adj.args if _types.is_reference(a.type)}
        self.definition = adj.tree.body[0]
        self.parameters = frozenset(self.names)
        self.locals = set(self.names)
        for node in ast.walk(self.definition):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.locals.add(node.id)
        self.ranges: dict[str, Sequence[Any]] = self.constants()  # local names, and the constants that they stand for
        self.changed = False

    def bind(self, name: str, value: Value) -> None:
        known = self.names.get(name, NOTHING)
        merged = known | value
        if depth_of(merged) > TUPLE_DEPTH:
            merged = as_held(merged) | {item for item in merged if not isinstance(item, Several)}
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
