"""
C expressions for the spans of polynomials: acs_span variables, each made of earlier ones by the functions of acs_scan.h. A
polynomial is bounded with the limits that hold where it is used: parts that are multiples of a limited value take the limit.
"""

from .polynomial import Polynomial, of

_RANGES = {"s8": ("INT8_MIN", "INT8_MAX"), "u8": ("0", "UINT8_MAX"), "s16": ("INT16_MIN", "INT16_MAX"),
           "u16": ("0", "UINT16_MAX"), "s32": ("INT32_MIN", "INT32_MAX"), "u32": ("0", "UINT32_MAX"),
           "s64": ("INT64_MIN", "INT64_MAX"), "u64": ("0", "INT64_MAX"),
           "small u16": ("0", "INT16_MAX"), "small u32": ("0", "INT32_MAX"), "small u64": ("0", "INT64_MAX - 1")}
_OPERATIONS = {"div": "divide", "rem": "remainder", "floor": "floor", "and": "and", "or": "or", "shr": "shift_right",
               "min": "minimum", "max": "maximum", "abs": "absolute"}
_AXES = "xyz"


class Spans:
    """Writes the declarations of one function, in `lines`."""

    def __init__(self, affine):
        self.affine, self.lines, self._names, self._holds, self._busy, self._bounds = affine, [], {}, {}, [], {}
        self._open = set()  # (polynomial, limits) that are being bounded
        self.numbers = []  # C expressions of the numbers of a launch: n[i]
        self.uses_grid_size = False  # and not only the indices of its blocks

    def _new(self, expression):
        if expression not in self._names:
            name = f"v{len(self._names)}"
            self._names[expression] = name
            self.lines.append(f"const acs_span {name} = {expression};")
        return self._names[expression]

    def _number(self, expression):
        if expression not in self.numbers:
            self.numbers.append(expression)
        return f"n[{self.numbers.index(expression)}]"

    # ---------------------------------------------------------------------------------------------- limits in scope

    def scope(self, polynomial, limits):
        """Those of the limits, and of the loops in it, that tell something about the polynomial."""
        atoms, found = set(polynomial.atoms()), set()
        while True:
            more = set(limits)
            for atom in atoms:
                if atom.kind == "trip":
                    more |= self.affine.limits_of_loop(self.affine.loop_of_trip[atom])
            new = {limit for limit in more - found if limit.value.atoms() & {a for a in atoms if not a.uniform}}
            if not new:
                return frozenset(found)
            found |= new
            for limit in new:
                atoms |= limit.value.atoms()

    # ------------------------------------------------------------------------------------------------------- bounds

    def whole_bound(self, polynomial, limits):
        """The variable with the span of a polynomial where these limits hold, and those of its loops."""
        return self.bound(polynomial, self.scope(polynomial, limits))

    def bound(self, polynomial, limits):
        """
        The same with no other limits. A limit may lead to a polynomial that is bounded already, such as i <= min(i + 1, n): that
        one is then bounded without limits.
        """
        key = (polynomial, limits, tuple(self._busy))
        if key not in self._bounds:
            if (polynomial, limits) in self._open:
                return self.bound(polynomial, frozenset()) if limits else self._new("acs_span_any()")
            self._open.add((polynomial, limits))
            self._bounds[key] = self._bound(polynomial, limits)
            self._open.discard((polynomial, limits))
        return self._bounds[key]

    def _bound(self, polynomial, limits):
        if polynomial.constant is not None:
            return self._new(f"acs_span_point({_literal(polynomial.constant)})")
        start, terms = self.terms(polynomial, limits)
        sum_ = None if start.constant == 0 else self._uniform(start)
        for coefficient, quantity in terms:
            one = quantity if coefficient.constant == 1 else \
                self._new(f"acs_span_multiply({self._uniform(coefficient)}, {quantity})")
            sum_ = one if sum_ is None else self._new(f"acs_span_add({sum_}, {one})")
        return sum_ or self._new("acs_span_point(0)")

    def terms(self, polynomial, limits):
        """(uniform part, [(uniform coefficient, variable of a quantity)])"""
        rest, start = polynomial.split()
        found = []
        for value in _by_size(limits):
            quotient = self._quotient(rest, value)
            if quotient is not None:
                rest = rest - quotient * value
                found.append((quotient, self._limited(value, limits)))
        for atoms, coefficient in rest.by_varying().items():
            quantity = None
            for atom in atoms:
                one = self._atom(atom, limits)
                quantity = one if quantity is None else self._new(f"acs_span_multiply({quantity}, {one})")
            found.append((coefficient, quantity))
        return start, found

    def spread(self, spread, limits):
        """The variable with the span of a spread."""
        return self._new(f"acs_span_multiply({self.bound(spread.step, limits)}, acs_span_of(0, {spread.count}))")

    def spread_term(self, spread, limits):
        """(coefficient, variable of a quantity), as in terms()."""
        if spread.step.uniform:
            return self.bound(spread.step, frozenset()), self._new(f"acs_span_of(0, {spread.count})")
        return self._new("acs_span_point(1)"), self.spread(spread, limits)

    @staticmethod
    def _quotient(polynomial, value):
        """By how much of `value` the polynomial has to be reduced so that it gets simpler; None: it does not."""
        parts = polynomial.by_varying()
        for atoms, coefficient in value.by_varying().items():
            if atoms in parts:
                quotient = parts[atoms].divide(coefficient)
                if quotient is not None and len((polynomial - quotient * value).by_varying()) < len(parts):
                    return quotient
        return None

    def _limited(self, value, limits):
        """The span of a value that limits speak of."""
        own = sorted((limit for limit in limits if limit.value == value), key=_order)
        span = self.bound(value, _simpler(limits, value))
        for limit in own:
            if limit in self._busy:
                continue
            holds = self._limit_holds(limit)
            low, high = self._side(limit.low, limit, "low"), self._side(limit.high, limit, "high")
            span = self._new(f"acs_span_limit({span}, {holds}, {low}, {high})")
        return span

    def _side(self, side, limit, which):
        if side is None:
            return self._new("acs_span_any()")
        span = self._uniform(side)
        if limit.first is None:
            return span
        first = self.whole_bound(limit.first, limit.entered)
        function = "acs_span_maximum" if which == "high" else "acs_span_minimum"
        return self._new(f"{function}({span}, {first})")

    def _sides(self, limit):
        """Low and high of a limit, as arguments."""
        return ", ".join(self._uniform(side) if side is not None else self._new("acs_span_any()")
                         for side in (limit.low, limit.high))

    def _uniform(self, polynomial):
        if polynomial.constant is not None:
            return self._new(f"acs_span_point({_literal(polynomial.constant)})")
        sum_ = None
        for monomial in sorted(polynomial.terms, key=lambda m: [a.order for a in m]):
            coefficient = polynomial.terms[monomial]
            one = None if coefficient == 1 and monomial else self._new(f"acs_span_point({_literal(coefficient)})")
            for atom in monomial:
                factor = self._atom(atom, frozenset())
                one = factor if one is None else self._new(f"acs_span_multiply({one}, {factor})")
            sum_ = one if sum_ is None else self._new(f"acs_span_add({sum_}, {one})")
        return sum_ or self._new("acs_span_point(0)")

    # -------------------------------------------------------------------------------------------------------- atoms

    def _atom(self, atom, limits):
        kind = atom.kind
        if kind == "slot":
            argument, offset, size, type_ = atom.data
            value = self._number(f"acs_scan_number(in, {argument}, {offset}, {size}, {int(type_[0] == 's')})")
            return self._new(f"acs_span_point({value})")
        if kind in ("ntid", "nctaid", "tid", "ctaid"):
            sizes = "block" if kind in ("tid", "ntid") else "grid"
            value = self._number(f"in->{sizes}[{_AXES.index(atom.data)}]")
            self.uses_grid_size |= kind == "nctaid"
            return self._new(f"acs_span_point({value})" if kind[0] == "n" else f"acs_span_of(0, {value} - 1)")
        if kind == "lane":
            return self._new("acs_span_of(0, 31)")
        if kind == "trip":
            return self._passes(atom, limits)
        if kind == "join":
            spans = [self.bound(p, limits | self.scope(p, own))
                     for p, own in zip(atom.args, self.affine.limits_of_ways(atom.data))]
            joined = spans[0]
            for span in spans[1:]:
                joined = self._new(f"acs_span_union({joined}, {span})")
            return joined
        if kind == "op":
            return self._operation(atom, limits)
        if kind == "unknown" and isinstance(atom.data, tuple):
            low, high = _RANGES["u" + atom.data[1][1:]]
            return self._new(f"acs_span_of({low}, {high})")
        return self._new("acs_span_any()")

    def _operation(self, atom, limits):
        name, type_ = atom.data
        if name in ("popc", "clz"):
            return self._new(f"acs_span_of(0, {type_[1:]})")
        spans = [self.bound(p, limits) for p in atom.args]
        if type_[0] in "us" and name not in ("floor",):
            low, high = _RANGES[type_]
            spans = [s if p.constant is not None and p.constant >= 0 else self._new(f"acs_span_read({s}, {low}, {high})")
                     for s, p in zip(spans, atom.args)]
        elif name in ("floor", "shr"):
            low, high = _RANGES["s" + type_[1:]]
            spans[0] = self._new(f"acs_span_read({spans[0]}, {low}, {high})")
        return self._new(f"acs_span_{_OPERATIONS[name]}({', '.join(spans)})")

    def _passes(self, trip, limits):
        span = self._new("acs_span_of(0, INT64_MAX)")
        for limit in sorted(limits, key=_order):
            parts = limit.value.by_varying()
            step = parts.get((trip,))
            if step is None or limit in self._busy or any(trip in a for a in parts if a != (trip,)):
                continue
            rest = limit.value - step * of(trip)
            if trip in _inner(rest):
                continue
            holds = self._limit_holds(limit)
            self._busy.append(limit)
            inside = self.bound(rest, _simpler(limits, limit.value))
            self._busy.pop()
            span = self._new(f"acs_span_passes({span}, {holds}, {self._uniform(step)}, {inside}, {self._sides(limit)})")
        return span

    # ------------------------------------------------------------------------------------------------------ demands

    def _limit_holds(self, limit):
        """A C expression: whether the comparison behind a limit says what it seems to say."""
        if limit in self._holds:
            return self._holds[limit]
        self._busy.append(limit)
        checks = []
        for demand in sorted(limit.demands, key=lambda d: (d.type, str(_text(d.value)))):
            checks.append(self._tested_demand(demand, limit) if limit.tested else self.demand(demand, frozenset()))
        if limit.exact_step is not None:
            end = limit.high + limit.exact_step if limit.high is not None else limit.low + limit.exact_step
            first = self.whole_bound(limit.first, limit.entered)
            checks.append(f"acs_span_ends({first}, {self._uniform(limit.exact_step)}, {self._uniform(end)})")
        self._busy.pop()
        self._holds[limit] = self._flag(checks)
        return self._holds[limit]

    def _flag(self, checks):
        checks = list(dict.fromkeys(checks))
        if not checks:
            return "1"
        name = f"h{len(self._holds)}_{len(self.lines)}"
        self.lines.append(f"const int {name} = {' && '.join(checks)};")
        return name

    def _tested_demand(self, demand, limit):
        """
        The value that a loop compares does not wrap around: it is one step beyond the limit at most. So the limit is taken
        for granted, and the value may go one step further.
        """
        step = limit.value.by_varying().get((limit.tested,))
        if step is None:
            return "0"
        trip = self._passes_of(limit, step)
        parts = demand.value.by_varying()
        own = parts.get((limit.tested,), Polynomial({}))
        rest = demand.value - own * of(limit.tested)
        if limit.tested in _inner(rest) or any(limit.tested in m for m in rest.terms):
            return "0"
        ahead = self._new(f"acs_span_of(0, acs_span_add({trip}, acs_span_point(1)).high)")
        moved = self._new(f"acs_span_multiply({self._uniform(own)}, {ahead})")
        span = self._new(f"acs_span_add({self.whole_bound(rest, limit.entered)}, {moved})")
        low, high = _RANGES[demand.type]
        return f"acs_span_inside({span}, {low}, {high})"

    def _passes_of(self, limit, step):
        rest = self.whole_bound(limit.value - step * of(limit.tested), limit.entered)
        return self._new(f"acs_span_passes(acs_span_of(0, INT64_MAX), 1, {self._uniform(step)}, {rest}, {self._sides(limit)})")

    def demand(self, demand, limits):
        """A C expression: whether a demand is met."""
        span = self.whole_bound(demand.value, limits)
        for spread in demand.spreads:
            span = self._new(f"acs_span_add({span}, {self.spread(spread, self.scope(spread.step, limits))})")
        low, high = _RANGES[demand.type]
        return f"acs_span_inside({span}, {low}, {high})"


def _text(polynomial):
    """The same for equal polynomials, and else different: to put them in an order."""
    return str(sorted((str([a.order for a in m]), c) for m, c in polynomial.terms.items())) if polynomial is not None else ""


def _simpler(limits, value):
    """The limits of values of fewer parts: those that a value is bounded with before its own limits. So that ends."""
    return frozenset(limit for limit in limits if len(limit.value.by_varying()) < len(value.by_varying()))


def _by_size(limits):
    """The limited values, those of most parts first."""
    return sorted({limit.value for limit in limits}, key=lambda v: (-len(v.by_varying()), _text(v)))


def _order(limit):
    return tuple(_text(p) for p in (limit.value, limit.low, limit.high, limit.first))


def _inner(polynomial):
    """The atoms inside the operations of a polynomial."""
    return {inner for m in polynomial.terms for a in m for p in a.args for inner in p.atoms()}


def _literal(value):
    return f"INT64_C({value})" if abs(value) < 1 << 63 else "INT64_MAX"
