"""
Integer polynomials over atoms. An atom is a quantity of a launch: an argument, the index of a thread, the number of a loop's
pass, or an operation that is no polynomial, such as a quotient, with polynomials as its arguments. Atoms and polynomials are
immutable, and equal where they are written alike.
"""

UNIFORM = ("slot", "ntid", "nctaid")


class Atom:
    """Atoms that are alike are one object. kind: "slot", "tid", "ctaid", "ntid", "nctaid", "lane", "trip", "op", "join", "symbol" or "unknown"."""

    __slots__ = ("kind", "data", "args", "uniform", "known", "number", "order")
    _made = {}

    def __new__(cls, kind, data=None, args=()):
        key = (kind, data, tuple(args))
        if key not in cls._made:
            atom = super().__new__(cls)
            atom._fill(*key)
            cls._made[key] = atom
        return cls._made[key]

    def _fill(self, kind, data, args):
        self.kind, self.data, self.args = kind, data, args
        self.uniform = kind in UNIFORM or (kind == "op" and all(a.uniform for a in self.args))
        self.known = kind not in ("unknown", "symbol") and all(a.known for a in self.args)
        self.number = len(self._made)
        self.order = (kind, str(data), self.number)

    def __hash__(self):
        return self.number


class Polynomial:
    """terms: {monomial: coefficient}; a monomial is a tuple of atoms, () that of the constant."""

    __slots__ = ("terms", "_hash", "uniform", "known")

    def __init__(self, terms):
        self.terms = {m: c for m, c in terms.items() if c}
        self._hash = hash(frozenset(self.terms.items()))
        self.uniform = all(a.uniform for m in self.terms for a in m)
        self.known = all(a.known for m in self.terms for a in m)

    def __eq__(self, other):
        return isinstance(other, Polynomial) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self):
        return self._hash

    def __bool__(self):
        return bool(self.terms)

    def __add__(self, other):
        sums = dict(self.terms)
        for m, c in other.terms.items():
            sums[m] = sums.get(m, 0) + c
        return Polynomial(sums)

    def __neg__(self):
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        products = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = tuple(sorted(m + n, key=lambda a: a.order))
                products[key] = products.get(key, 0) + c * d
        return Polynomial(products)

    @property
    def constant(self):
        """The number, if it is one; None: it is not."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def atoms(self):
        """All atoms, those inside operations too."""
        found, work = set(), [a for m in self.terms for a in m]
        while work:
            atom = work.pop()
            if atom not in found:
                found.add(atom)
                work += [a for p in atom.args for m in p.terms for a in m]
        return found

    def split(self):
        """(the terms that differ among threads or passes, the others)"""
        varies = {m: c for m, c in self.terms.items() if not all(a.uniform for a in m)}
        return Polynomial(varies), Polynomial({m: c for m, c in self.terms.items() if m not in varies})

    def by_varying(self):
        """{product of varying atoms: its uniform coefficient, a polynomial}"""
        found = {}
        for m, c in self.terms.items():
            key = tuple(a for a in m if not a.uniform)
            rest = tuple(a for a in m if a.uniform)
            found.setdefault(key, {})[rest] = c
        return {k: Polynomial(t) for k, t in found.items()}

    def divide(self, other):
        """The quotient where the division leaves nothing; None: it does, or it is not by one term."""
        if not other.terms:
            return None
        if len(other.terms) > 1:
            return self._divide_by_sum(other)
        (n, d), = other.terms.items()
        terms = {}
        for m, c in self.terms.items():
            left = list(m)
            for atom in n:
                if atom not in left:
                    return None
                left.remove(atom)
            if c % d:
                return None
            terms[tuple(left)] = c // d
        return Polynomial(terms)

    def _divide_by_sum(self, other):
        """Only by a multiple: a constant or one term times `other`."""
        first = max(other.terms, key=lambda m: (len(m), [a.order for a in m]))
        lead = Polynomial({first: other.terms[first]})
        for m, c in self.terms.items():
            quotient = Polynomial({m: c}).divide(lead)
            if quotient is not None and quotient * other == self:
                return quotient
        return None

    def replace(self, change):
        """Each atom by the polynomial change(atom)."""
        total = Polynomial({})
        for m, c in self.terms.items():
            product = number(c)
            for atom in m:
                product = product * change(atom)
            total = total + product
        return total


def number(value):
    return Polynomial({(): value})


def of(atom):
    return Polynomial({(atom,): 1})
