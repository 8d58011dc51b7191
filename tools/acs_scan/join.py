"""
Fewer accesses that cover the same bytes, so that the code of a kernel whose loops are unrolled stays short. Accesses that differ
by a number, or by a multiple of some sum, become one with a *spread*: it adds a polynomial 0 to `count` times. What is
joined may be larger than its parts, and never smaller.
"""

from dataclasses import dataclass, replace
from math import gcd

from .polynomial import Polynomial

_GROUPS_MOST = 32  # accesses of one pointer that are told apart; more: those are joined that are less alike


@dataclass(frozen=True)
class Spread:
    """`step` times each number from 0 to `count`."""
    step: Polynomial
    count: int


@dataclass(frozen=True)
class Cover:
    """All values of some polynomials: those of `base` with the sum of the spreads."""
    base: Polynomial
    spreads: tuple = ()


def cover(polynomials):
    """The Cover of polynomials: by one step where they lie on a line, else by a spread for each part that differs."""
    all_ = list(dict.fromkeys(polynomials))
    first = all_[0]
    if len(all_) == 1:
        return Cover(first)
    step = _primitive(all_[1] - first)
    places = [0] + [_times(p - first, step) for p in all_[1:]]
    if None not in places:
        low, by = min(places), gcd(*(place - min(places) for place in places))
        return Cover(first + step * _number(low), (Spread(step * _number(by), (max(places) - low) // by),))
    base, spreads = {}, []
    for monomial in sorted({m for p in all_ for m in p.terms}, key=lambda m: [a.order for a in m]):
        numbers = [p.terms.get(monomial, 0) for p in all_]
        low, by = min(numbers), 0
        for number in numbers:
            by = gcd(by, number - low)
        base[monomial] = low
        if by:
            spreads.append(Spread(Polynomial({monomial: by}), (max(numbers) - low) // by))
    return Cover(Polynomial(base), tuple(spreads))


def _number(value):
    return Polynomial({(): value})


def _primitive(polynomial):
    """Divided by the greatest number that divides it; of it and its negative, the one whose first part is positive."""
    by = gcd(*polynomial.terms.values())
    if polynomial.terms[min(polynomial.terms, key=lambda m: [a.order for a in m])] < 0:
        by = -by
    return Polynomial({m: c // by for m, c in polynomial.terms.items()})


def _times(polynomial, step):
    """How many steps it is; None: no whole number of them."""
    if polynomial.terms.keys() != step.terms.keys():
        return None
    monomial, c = next(iter(step.terms.items()))
    times = polynomial.terms[monomial] // c
    return times if step * _number(times) == polynomial else None


def joined(touches):
    """Those of one pointer, all of which have an offset, and are all reads or all writes."""
    keys = (lambda t: (t.offset, t.bytes, t.limits, t.demands),
            lambda t: (t.offset.split()[0], t.bytes, t.limits),
            lambda t: t.offset.split()[0],
            lambda t: None)
    for key in keys:
        groups = {}
        for touch in touches:
            groups.setdefault(key(touch), []).append(touch)
        if key is keys[0]:
            touches = [group[0] for group in groups.values()]
        elif len(groups) <= _GROUPS_MOST:
            break
    return [_one(group) for group in groups.values()]


def _one(touches):
    where = touches[0].where + (f" and {len(touches) - 1} more" if len(touches) > 1 else "")
    all_ = cover([t.offset for t in touches])
    return replace(touches[0], offset=all_.base, spreads=all_.spreads, bytes=max(t.bytes for t in touches),
                   limits=frozenset.intersection(*(t.limits for t in touches)), where=where,
                   demands=_demands({d for t in touches for d in t.demands}))


def _demands(demands):
    """One for those of a type whose parts that differ among threads are alike."""
    groups = {}
    for demand in sorted(demands, key=lambda d: (d.type, str(sorted((str([a.order for a in m]), c)
                                                                   for m, c in d.value.terms.items())))):
        groups.setdefault((demand.type, demand.value.split()[0]), []).append(demand)
    found = set()
    for group in groups.values():
        all_ = cover([d.value for d in group])
        found.add(replace(group[0], value=all_.base, spreads=all_.spreads))
    return frozenset(found)
