"""
Values as polynomials, and the conditions under which a block runs as limits of polynomials. Arithmetic of 32 bits is
taken as if it did not wrap around. Where a value is widened, a *demand* says which range it must lie in for that. The launch
checks demands.
"""

from dataclasses import dataclass, replace

from . import ptx
from .polynomial import Atom, Polynomial, number, of

_ZERO, _ONE = number(0), number(1)
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq", "lo": "hs", "hs": "lo", "hi": "ls",
             "ls": "hi"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@dataclass(frozen=True)
class Demand:
    """The polynomial, with any of its spreads (join.py), lies in the range of this type, such as "u32". "small u32": in its lower half."""
    value: Polynomial
    type: str
    spreads: tuple = ()


@dataclass(frozen=True)
class Limit:
    """
    low <= value <= high, where the demands hold; low and high are uniform, or None.
    first       in a loop's first pass the value may be this instead, within the limits `entered`
    exact_step  the loop ends at equality; so this step must lead there from `first`
    tested      the pass of the loop in each of which the comparison is made; None: not in each. The value of a pass is then
                at most one step beyond the limit before it is compared. So it does not wrap around if that fits its type.
    """
    value: Polynomial
    low: Polynomial
    high: Polynomial
    demands: frozenset
    first: Polynomial = None
    exact_step: Polynomial = None
    tested: Atom = None
    entered: frozenset = frozenset()


class Affine:
    def __init__(self, values):
        self.values, self.flow = values, values.flow
        self._raw, self._expanded, self._demands, self._inductions, self._block_limits = {}, {}, {}, {}, {}
        self._loop_limits, self._busy = {}, set()
        self.loop_of_trip = {}

    # ------------------------------------------------------------------------------------------------- polynomials

    def raw(self, node):
        """The polynomial of a node, in which each phi is an atom."""
        node = self.values.resolve(node)
        if node not in self._raw:
            self._raw[node] = self._polynomial(node)
        return self._raw[node]

    def of(self, node):
        """The polynomial of a node, in which a loop's counters are its first value plus its step times the pass."""
        return self.expand(self.raw(node))

    def _polynomial(self, node):
        kind = node.kind
        if kind == "const":
            half = 1 << (node.bits - 1) if node.bits > 1 else 2
            return number((node.data + half) % (2 * half) - half if node.bits > 1 else node.data)
        if kind == "special":
            name, axis = node.data
            return of(Atom("lane" if name == "laneid" else name, axis))
        if kind == "slot":
            whole = node.data[3][0] in "usb" and node.data[2] <= 8
            return of(Atom("slot", node.data)) if whole else of(Atom("unknown", node.number))
        if kind == "phi":
            return of(Atom("phi", node))
        if kind in ("symbol", "parameter address"):
            return of(Atom("symbol", node.data))
        if kind == "select":
            return self._join(node, [self.raw(a) for a in node.args[:2]])
        if kind == "op":
            return self._operation(node)
        if kind == "load" and node.data[4] in ("u8", "b8", "u16", "b16"):
            return of(Atom("unknown", (node.number, node.data[4])))
        return of(Atom("unknown", node.number))

    @staticmethod
    def _join(node, ways):
        """One of several values: which, `limits_of_ways` tells of the node."""
        return ways[0] if all(way == ways[0] for way in ways) else of(Atom("join", node, ways))

    def limits_of_ways(self, node):
        """The limits that hold for each value of a selection, or for each way into the block of a phi."""
        if node.kind == "select":
            return [self.limits_of_guards([(node.args[2], truth)]) for truth in (True, False)]
        return [self.limits_of_block(b) | frozenset(limit for condition in self.edge(b, node.data)
                                                    for limit in self.limits(condition))
                for b in self.flow.predecessors(node.data)]

    def _operation(self, node):
        name, kind = node.data[0], node.data[-1]
        args = node.args
        if not ptx.bits_of(kind):
            return of(Atom("unknown", node.number))
        if name in ("add", "sub") and len(args) == 2 and kind[0] in "usb":
            a, b = self.raw(args[0]), self.raw(args[1])
            return self._remainders(a + b if name == "add" else a - b)
        if name == "mul" and kind[0] in "us" and ("lo" in node.data or "wide" in node.data):
            return self._read(args[0], node) * self._read(args[1], node)
        if name == "mad" and kind[0] in "us" and ("lo" in node.data or "wide" in node.data):
            return self._remainders(self._read(args[0], node) * self._read(args[1], node) + self.raw(args[2]))
        if name == "neg" and kind[0] == "s":
            return -self.raw(args[0])
        if name == "not" and kind[0] == "b":
            return number(-1) - self.raw(args[0])
        if name == "cvt":
            return self._convert(node, args[0])
        if name == "shl" and self.raw(args[1]).constant is not None:
            return self.raw(args[0]) * number(1 << (self.raw(args[1]).constant & 63))
        return self._opaque(node, name, kind, args)

    def _opaque(self, node, name, kind, args):
        raws = [self.raw(a) for a in args]
        last = raws[-1].constant if raws else None
        if name == "shr" and kind[0] in "ub" and last is not None:
            return of(Atom("op", ("div", "u" + kind[1:]), (raws[0], number(1 << last))))
        if name == "shr" and kind[0] == "s" and last is not None:
            return of(Atom("op", ("floor", kind), (raws[0], number(1 << last))))
        if name == "and" and len(raws) == 2:
            for x, mask in (raws, raws[::-1]):
                c = mask.constant
                if c is not None and c > 0 and c & (c + 1) == 0:
                    return of(Atom("op", ("rem", "u" + kind[1:]), (x, number(c + 1))))
        if name == "bfi" and len(args) == 4:
            inserted, below, place, width = raws[0], raws[1], raws[2].constant, raws[3].constant
            if place is not None and width is not None and place + width == node.bits:
                low = of(Atom("op", ("rem", f"u{node.bits}"), (below, number(1 << place))))
                return inserted * number(1 << place) + low
        if name in ("div", "rem", "and", "or", "min", "max", "shr", "abs", "popc", "clz") and kind[0] in "usb":
            return of(Atom("op", (name, kind), raws))
        return of(Atom("unknown", node.number))

    @staticmethod
    def _remainders(p):
        """x - y * (x / y) is x % y."""
        for monomial, c in p.terms.items():
            for atom in monomial:
                if atom.kind == "op" and atom.data[0] == "div" and c < 0:
                    x, y = atom.args
                    if p + y * of(atom) == x:
                        return of(Atom("op", ("rem", atom.data[1]), (x, y)))
        return p

    def _read(self, arg, node):
        """An operand of a multiplication: the wide ones read it as a number of 32 bits."""
        value = self.raw(arg)
        return self._demand(node, value, node.data[-1]) if "wide" in node.data else value

    def _demand(self, node, value, kind):
        if value.constant is not None:
            return number(_wrapped(value.constant, kind))
        if not self._fits(value, kind):
            self._demands.setdefault(node, set()).add(Demand(value, kind))
        return value

    @staticmethod
    def _fits(value, kind):
        """A single index or small load always does."""
        if len(value.terms) == 1:
            (monomial, c), = value.terms.items()
            if c == 1 and len(monomial) == 1 and monomial[0].kind in ("tid", "ctaid", "ntid", "nctaid", "lane"):
                return kind[1:] != "16"
        return False

    def _convert(self, node, arg):
        to, kind = node.data[1], node.data[2]
        if to[0] == "f" or kind[0] == "f" or len(node.data) > 3:
            return of(Atom("unknown", node.number))
        value = self.raw(arg)
        if ptx.bits_of(to) <= ptx.bits_of(kind):
            return value if ptx.bits_of(to) >= 32 else self._demand(node, value, to)
        return self._demand(node, value, kind)

    # ------------------------------------------------------------------------------------------------------- loops

    def expand(self, polynomial):
        if polynomial not in self._expanded:
            self._expanded[polynomial] = polynomial.replace(self._expand_atom)
        return self._expanded[polynomial]

    def _expand_atom(self, atom):
        if atom.kind == "phi":
            found = self.induction(atom.data)
            if found:
                first, step, loop = found
                return first + step * of(self.trip(loop))
            return self._expand_join(atom)
        if not atom.args:
            return of(atom)
        return of(Atom(atom.kind, atom.data, [self.expand(p) for p in atom.args]))

    def _expand_join(self, atom):
        """A phi that is no counter: one of its values, unless it depends on itself."""
        node = atom.data
        if node in self._busy or node.data in self.flow.loops:
            return of(Atom("unknown", node.number))
        self._busy.add(node)
        ways = [self.of(arg) for arg in node.args]
        self._busy.discard(node)
        return self._join(node, ways)

    def trip(self, loop):
        atom = Atom("trip", loop.number)
        self.loop_of_trip[atom] = loop
        return atom

    def induction(self, phi):
        """(first value, step, loop) of a loop's counter or pointer; None: it is neither."""
        if phi not in self._inductions:
            self._inductions[phi] = None  # while it is being found out
            self._inductions[phi] = self._find_induction(phi)
        return self._inductions[phi]

    def _find_induction(self, phi):
        loop = self.flow.loops.get(phi.data)
        if not loop:
            return None
        ways = list(zip(self.flow.predecessors(phi.data), phi.args))
        entries = [a for b, a in ways if b not in loop.latches]
        steps = {self.raw(a) - of(Atom("phi", phi)) for b, a in ways if b in loop.latches}
        if len(steps) != 1 or not entries:
            return None
        step = self.expand(steps.pop())
        if not step.uniform:
            return None
        firsts = {self.of(a) for a in entries}
        return (firsts.pop(), step, loop) if len(firsts) == 1 else None

    # ------------------------------------------------------------------------------------------------------ limits

    def conditions(self, predicate, truth):
        """The comparisons (operation, type, a, b) that hold where the predicate has this truth."""
        predicate = self.values.resolve(predicate)
        if predicate.kind == "compare":
            operation, kind = predicate.data
            both = self._both_positive(predicate, truth)
            if both:
                return [("ge", kind, arg, predicate.args[1]) for arg in both]
            return [(operation if truth else _OPPOSITE.get(operation, ""), kind, *predicate.args)]
        if predicate.kind != "op":
            return []
        name, args = predicate.data[0], predicate.args
        if name == "not":
            return self.conditions(args[0], not truth)
        if (name == "and" and truth) or (name == "or" and not truth):
            return self.conditions(args[0], truth) + self.conditions(args[1], truth)
        if name == "xor":
            for a, b in (args, args[::-1]):
                b = self.values.resolve(b)
                if b.kind == "const":
                    return self.conditions(a, truth != bool(b.data))
        return []

    def _both_positive(self, compare, truth):
        """(a, b) where the comparison is that a | b >= 0: so neither is negative."""
        operation, kind = compare.data
        left, right = (self.values.resolve(a) for a in compare.args)
        if kind[0] != "s" or right.kind != "const" or right.data != 0:
            return None
        if (operation, truth) not in (("lt", False), ("ge", True)):
            return None
        return left.args if left.kind == "op" and left.data[0] == "or" and len(left.args) == 2 else None

    def edge(self, block, successor):
        """The comparisons that hold on a way between two blocks."""
        last = self.flow.blocks[block].instructions[-1] if self.flow.blocks[block].instructions else None
        if not last or not last.guard or last.parts[0] != "bra" or len(set(self.flow.blocks[block].successors)) < 2:
            return []
        taken = self.flow.blocks[block].successors[0] == successor
        predicate = self.values.value(last.guard, block, len(self.flow.blocks[block].instructions) - 1)
        return self.conditions(predicate, taken != last.negated)

    def limits_of_block(self, block):
        """Limits that hold whenever the block runs."""
        if block not in self._block_limits:
            found, at = set(), block
            while at != 0 and self.flow.idom[at] != at:
                above = self.flow.idom[at]
                if self.flow.predecessors(at) == [above]:
                    for condition in self.edge(above, at):
                        found.update(self._tested(limit, at) for limit in self.limits(condition))
                at = above
            self._block_limits[block] = frozenset(found)
        return self._block_limits[block]

    def _tested(self, limit, block):
        """The limit holds in this block. Is it compared in each pass of the one loop that its value counts?"""
        trips = [a for a in limit.value.atoms() if a.kind == "trip"]
        if len(trips) != 1:
            return limit
        loop = self.loop_of_trip[trips[0]]
        each = block in loop.blocks and all(self.flow.dominates(block, latch) for latch in loop.latches)
        return replace(limit, tested=trips[0]) if each else limit

    def limits_of_guards(self, guards):
        return frozenset(limit for predicate, truth in guards for condition in self.conditions(predicate, truth)
                         for limit in self.limits(condition))

    def limits(self, condition):
        operation, kind, left, right = condition
        if kind[0] not in "usb" or operation not in ("lt", "le", "gt", "ge", "eq", "lo", "ls", "hi", "hs"):
            return []
        unsigned = kind[0] == "u" or operation in _UNSIGNED
        operation = _UNSIGNED.get(operation, operation)
        a, b = (number(_wrapped(p.constant, ("u" if unsigned else "s") + kind[1:])) if p.constant is not None else p
                for p in (self.of(left), self.of(right)))
        if not a.known or not b.known:
            return []
        demands = self.demands(left) | self.demands(right)
        if operation == "eq":
            return self._ordered(a, b, 0, False, kind, demands) + self._ordered(b, a, 0, False, kind, demands)
        if operation in ("gt", "ge"):
            a, b = b, a
        return self._ordered(a, b, operation in ("lt", "gt"), unsigned, kind, demands)

    @staticmethod
    def _ordered(a, b, strict, unsigned, kind, demands):
        """Limits for a < b (strict) or a <= b."""
        bits, found = kind[1:], []
        demands = set(demands)
        if unsigned:
            demands |= {Demand(b, "small u" + bits), Demand(a, "s" + bits)}
        else:
            demands |= {Demand(a, "s" + bits), Demand(b, "s" + bits)}
        if not all(_meets(d.value.constant, d.type) for d in demands if d.value.constant is not None):
            return []  # such as x <= 4294967288 of unsigned numbers, which is so for x = -16, too
        demands = frozenset(d for d in demands if d.value.constant is None)
        varies, rest = (a - b).split()
        if varies:
            found.append(_limit(varies, None, -rest - (_ONE if strict else _ZERO), demands))
        if unsigned:
            varies, rest = a.split()
            if varies:
                found.append(_limit(varies, -rest, None, demands))
        return found

    def limits_of_loop(self, loop):
        """Limits of what a loop's counters are in its passes, from the comparisons before it goes back."""
        if loop.head not in self._loop_limits:
            self._loop_limits[loop.head] = frozenset()
            found = set()
            if len(loop.latches) == 1:
                trip = self.trip(loop)
                back = {trip: of(trip) - _ONE}
                for condition in self._before_back(loop):
                    found.update(replace(limit, entered=self.limits_of_block(loop.head))
                                 for limit in self._back_limits(condition, loop, trip, back))
            self._loop_limits[loop.head] = frozenset(found)
        return self._loop_limits[loop.head]

    def _before_back(self, loop):
        """The comparisons that hold when the loop goes back: those of its last block, and of the blocks that lead to it."""
        latch = loop.latches[0]
        found, at = list(self.edge(latch, loop.head)), latch
        while at != loop.head:
            above = self.flow.idom[at]
            if self.flow.predecessors(at) == [above]:
                found += self.edge(above, at)
            at = above
        return found

    def _back_limits(self, condition, loop, trip, back):
        """What held when the pass before this one ended, in terms of this pass; or this is the first."""
        found = []
        ends_at = condition[0] == "ne"
        if ends_at:
            found += self._until_equal(condition, trip, back)
        for limit in self.limits(condition):
            if any(a.kind == "trip" and a != trip for m in limit.value.terms for a in m) or not _linear(limit.value, trip):
                continue
            value = limit.value.replace(lambda a: back.get(a, of(a)))
            found.append(_after_first(value, limit.low, limit.high, limit.demands, trip, None))
        return found

    def _until_equal(self, condition, trip, back):
        """A loop that goes on until a == b, where a has a step of a known sign: a < b or a > b before."""
        _, kind, left, right = condition
        a, b = self.of(left), self.of(right)
        if kind[0] not in "usb" or not a.known or not b.known:
            return []
        varies, rest = (a - b).split()
        step = varies.by_varying().get((trip,))
        if step is None or step.constant is None or not _linear(varies, trip):
            return []
        demands = self.demands(left) | self.demands(right)
        high, low = (-rest - step, None) if step.constant > 0 else (None, -rest - step)
        value = varies.replace(lambda x: back.get(x, of(x)))
        return [_after_first(value, low, high, demands, trip, step)]

    # ----------------------------------------------------------------------------------------------------- demands

    def demands(self, node):
        """Demands of all nodes that the polynomial of this one was made of."""
        found, seen, work = set(), set(), [node]
        while work:
            node = self.values.resolve(work.pop())
            if node in seen:
                continue
            seen.add(node)
            self.raw(node)
            found |= self._demands.get(node, set())
            work += node.args if node.kind in ("op", "phi", "select") else []
        return frozenset(Demand(self.expand(d.value), d.type) for d in found)


def _wrapped(value, kind):
    """A number as a type such as "u32" has it."""
    size = 1 << int(kind[1:])
    value %= size
    return value - size if kind[0] == "s" and value >= size // 2 else value


def _meets(value, kind):
    """Whether a number lies in the range of a demand's type."""
    small, bits = kind.startswith("small "), int(kind.split()[-1][1:])
    if small or kind[0] == "s":
        return (0 if small else -(1 << bits - 1)) <= value < 1 << bits - 1
    return 0 <= value < 1 << bits


def _linear(polynomial, trip):
    return not any(trip in p.atoms() for m in polynomial.terms for a in m if a != trip for p in a.args) \
        and all(m.count(trip) <= 1 for m in polynomial.terms)


def _limit(varies, low, high, demands, first=None, exact_step=None):
    """Of a value and its negative only one is used, so that limits of both sides meet."""
    lead = max(varies.terms, key=lambda m: (len(m), [a.order for a in m]))
    if varies.terms[lead] < 0:
        varies, low, high = -varies, None if high is None else -high, None if low is None else -low
        first = None if first is None else -first
        exact_step = None if exact_step is None else -exact_step
    return Limit(varies, low, high, demands, first, exact_step)


def _after_first(value, low, high, demands, trip, exact_step):
    """`value` may have got a constant from the change of the pass: it goes to the other side."""
    varies, rest = value.split()
    first = varies.replace(lambda a: _ZERO if a == trip else of(a))
    low, high = (None if side is None else side - rest for side in (low, high))
    limit = _limit(varies, low, high, demands, first, exact_step)
    return replace(limit, tested=trip)
