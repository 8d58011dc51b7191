"""
What each pointer of a kernel's arguments is used for: read, written, kept; and by which accesses at which distances from
it. Unknown means everything: if an access has an address that no argument has, the kernel may touch anything.
"""

from dataclasses import dataclass, field

from . import inline
from .affine import Affine
from .polynomial import of
from .values import Values

_WAYS_MOST = 16  # addresses that one instruction may have, by selections; more: the whole allocation of each pointer
_NOT_NEGATIVE = ("trip", "tid", "ctaid", "ntid", "nctaid", "lane")  # kinds of atoms
_LOST = frozenset({("lost",)})
_TABLES = "__cudart_"  # constants of the compiler's own functions, such as sin: nothing writes them
# Functions of the CUDA device library that touch no memory of the program's.
_HARMLESS_CALLS = ("vprintf", "__assertfail", "cudaGraphSetConditional", "__nanosleep")


@dataclass(frozen=True)
class Slot:
    """Eight bytes of an argument that hold an address."""
    argument: int
    offset: int


@dataclass
class Touch:
    """An access at `offset` bytes behind the slot's address; None: anywhere in its allocation, for `why`."""
    slot: Slot
    reads: bool
    writes: bool
    offset: object = None
    bytes: int = 0
    limits: frozenset = frozenset()
    demands: frozenset = frozenset()
    why: str = ""
    where: str = ""
    spreads: tuple = ()  # what the offset is joined of: join.py


@dataclass
class Footprint:
    function: object
    touches: list = field(default_factory=list)
    escapes: dict = field(default_factory=dict)  # slot -> reason
    symbols: dict = field(default_factory=dict)  # name of a __device__ variable -> whether it is written
    anything: list = field(default_factory=list)  # reasons why it may touch anything
    affine: object = None


def scan(function, functions=None):
    """The Footprint of a kernel, which may call these functions ({name: function})."""
    return _Scan(inline.expand(function, functions or {})).run()


def unknown(function, why):
    """The Footprint of a kernel that may touch anything."""
    return Footprint(function, anything=[why])


def _is_not_negative(polynomial):
    return all(c >= 0 and all(a.kind in _NOT_NEGATIVE or (a.kind == "join" and all(map(_is_not_negative, a.args))) for a in m)
               for m, c in polynomial.terms.items())


class _Scan:
    def __init__(self, function):
        self.values = Values(function)
        self.affine = Affine(self.values)
        self.found = Footprint(function, affine=self.affine)
        self._origins, self._stored_in = {}, {"shared": [], "local": []}
        self._bases = set()  # slots that are certainly addresses
        self._addresses = set()  # other nodes that are
        self._certain = set()  # nodes that may be an address that is certainly one

    def run(self):
        self._addresses = {self.values.resolve(n) for n in self.values.pointers}
        self._bases = {self._slot_of(n) for n in self._addresses} - {None}
        stored = {space: [n for access in self.values.accesses if space in self._spaces(access) for n in access.stored]
                  for space in self._stored_in}
        self._stored_in, self._origins, self._certain = stored, {}, set()
        for access in self.values.accesses:
            self._access(access)
        for call in self.values.calls:
            self._call(call)
        for instruction in self.values.unknown:
            self.found.anything.append(f"{instruction.where}: {instruction.name} is not understood")
        return self.found

    @staticmethod
    def _slot_of(node):
        return Slot(*node.data[:2]) if node.kind == "slot" and node.data[2] == 8 and node.data[3][0] in "ub" else None

    def _spaces(self, access):
        """Of a store: those of shared and local memory that it may be in."""
        if access.space in self._stored_in:
            return [access.space]
        return [o[1] for o in self.origins(access.address) if o[0] == "space" and o[1] in self._stored_in]

    # ---------------------------------------------------------------------------------------- where values come from

    def origins(self, node):
        """
        The addresses that a value may be made of: ("slot", Slot), ("symbol", name), ("space", name), ("load",), ("call",). Of
        products, quotients and halves of them: ("lost",).
        """
        node = self.values.resolve(node)
        if node not in self._origins:
            self._find_origins(node)
        return self._origins[node]

    def _find_origins(self, node):
        """Of all nodes behind this one, which may depend on each other: until nothing changes."""
        cone, work = {}, [node]
        while work:
            at = self.values.resolve(work.pop())
            if at not in cone and at not in self._origins:
                cone[at] = [self.values.resolve(a) for a in self._sources(at)]
                work += cone[at]
        certain = {at: at.kind == "symbol" or self._slot_of(at) in self._bases or at in self._addresses for at in cone}
        kept = {at: cone[at] if at.kind != "op" or self._keeps_addresses(at) else [] for at in cone}
        self._until_still(kept, certain, lambda at: certain[at] or any(certain.get(a, self._is_certain(a)) for a in kept[at]))
        found = {at: self._own_origins(at) for at in cone}
        own = dict(found)

        def united(at):
            sets = [found[a] if a in found else self._origins[a] for a in cone[at]]
            sure = [certain.get(a, self._is_certain(a)) for a in cone[at]]
            if at.kind == "op" and not self._keeps_addresses(at):
                return _LOST if any(o[0] in ("slot", "load", "call", "lost") for s in sets for o in s) else frozenset()
            if at.kind == "op" and any(sure):  # what is added to an address is a number
                sets = [s for s, is_sure in zip(sets, sure) if is_sure]
            return own[at].union(*sets)
        self._until_still(cone, found, united)
        self._origins.update(found)
        self._certain.update(at for at in cone if certain[at])

    @staticmethod
    def _until_still(sources, results, compute):
        users = {}
        for at, nodes in sources.items():
            for a in nodes:
                users.setdefault(a, []).append(at)
        work = list(sources)
        waiting = set(work)
        while work:
            at = work.pop()
            waiting.discard(at)
            new = compute(at)
            if new != results[at]:
                results[at] = new
                more = [user for user in users.get(at, ()) if user not in waiting]
                work += more
                waiting.update(more)

    def _is_certain(self, node):
        return node in self._certain

    def _sources(self, node):
        """The nodes whose addresses a value may be."""
        if node.kind == "load" and node.data[3] in ("shared", "local", "generic"):
            spaces = ("shared", "local") if node.data[3] == "generic" else (node.data[3],)
            return [stored for space in spaces for stored in self._stored_in[space]]
        if node.kind in ("phi", "pack", "unpack"):
            return node.args
        if node.kind == "select":
            return node.args[:2]
        return node.args if node.kind == "op" else []

    def _own_origins(self, node):
        kind = node.kind
        if kind == "slot":
            slot = self._slot_of(node)
            return frozenset({("slot", slot)} if slot else ())
        if kind == "any slot":
            return frozenset(self._all_slots(node))
        if kind == "symbol":
            space = self.values.function.spaces.get(node.data, "global")
            return frozenset({("symbol", node.data) if space == "global" else ("space", space)})
        if kind == "parameter address":
            return frozenset({("space", "param")})
        if kind == "load" and node.data[3] not in ("shared", "local") and node.bits == 64 and node.data[4][0] in "ub":
            return frozenset({("load",)})
        return frozenset({("call",)} if kind == "call" and node.bits == 64 and node.data[2][0] in "ub" else ())

    @staticmethod
    def _keeps_addresses(node):
        name = str(node.data[0]).split(".")[0]
        if name == "cvt":
            return node.bits == 64
        return name in ("add", "sub", "and", "or", "xor", "min", "max", "prmt", "lop3", "mad") and node.bits != 16

    def _all_slots(self, node):
        """The slots of an element of an array in a struct: from where the index begins to the end of the struct."""
        parameters = self.values.function.parameters
        if node.data is None:
            return {("slot", Slot(a, o)) for a, p in enumerate(parameters) for o in range(0, p.bytes - 7, 8)}
        return {("slot", Slot(node.data, o)) for o in range(self._first_byte(node), parameters[node.data].bytes - 7, 8)}

    def _first_byte(self, node):
        place = self.affine.of(node.args[0]) - self.affine.of(self.values.node("parameter address", node.data))
        first = place.terms.get((), 0)
        upwards = all(c % 8 == 0 for m, c in place.terms.items() if m) and _is_not_negative(place)
        return first if upwards else 0

    @staticmethod
    def _pointers(origins):
        """The slots among them."""
        return {o[1] for o in origins if o[0] == "slot"}

    # ------------------------------------------------------------------------------------------------------ accesses

    def _access(self, access):
        if access.space in ("shared", "local", "param", "const"):
            return
        where = access.instruction.where
        origins = self.origins(access.address)
        spaces = {o[1] for o in origins if o[0] == "space"}
        symbols = {o[1] for o in origins if o[0] == "symbol"}
        slots = self._pointers(origins)
        if not slots and not symbols and spaces:
            return  # local, shared or parameter memory by a generic address
        self._keep(access, where)
        for symbol in symbols:
            self._note(symbol, access)
        for origin, why in ((("load",), "was read from memory"), (("call",), "a call returned"),
                            (("lost",), "was computed in a way that cannot be followed")):
            if origin in origins:
                self.found.anything.append(f"{where}: {access.instruction.name} at an address that {why}")
        if not slots:
            if not symbols and not origins:
                self.found.anything.append(f"{where}: {access.instruction.name} at an address that no argument has")
            return
        self._touch(access, slots, where)

    def _touch(self, access, slots, where):
        limits = self.affine.limits_of_block(access.block) | self.affine.limits_of_guards(access.guards)
        demands = self.affine.demands(access.address)
        ways = self._ways(access.address, frozenset()) if access.bytes else None
        placed, touches = set(), []
        for way in ways or ():
            if self._is_variable(way, access):
                continue
            slot, offset = self._split(way, slots)
            if slot is None:
                break
            placed.add(slot)
            why = "" if offset.known else "its index was read from memory, or is none that can be followed"
            touches.append(Touch(slot, access.reads, access.writes, None if why else offset, access.bytes, limits, demands,
                                 why, where))
        else:
            if ways and placed >= slots:
                self.found.touches += touches
                return
        for slot in slots:
            why = "its address is chosen in ways that cannot be followed"
            self.found.touches.append(Touch(slot, access.reads, access.writes, None, access.bytes, why=why, where=where))

    def _is_variable(self, address, access):
        """Whether an address is that of a variable; one of global memory is noted."""
        names = [m[0].data for m, c in address.terms.items() if c == 1 and len(m) == 1 and m[0].kind == "symbol"]
        for name in names:
            if self.values.function.spaces.get(name, "global") == "global":
                self._note(name, access)
        return bool(names)

    def _note(self, variable, access):
        if access.writes or not variable.startswith(_TABLES):
            self.found.symbols[variable] = self.found.symbols.get(variable, False) or access.writes

    def _split(self, address, slots):
        """(slot, offset) of an address; (None, None): it has not exactly one pointer, or more than its place."""
        bases = [m[0] for m, c in address.terms.items() if c == 1 and len(m) == 1 and m[0].kind == "slot"
                 and m[0].data[2] == 8 and Slot(*m[0].data[:2]) in slots]
        if len(bases) != 1:
            return None, None
        return Slot(*bases[0].data[:2]), address - of(bases[0])

    def _ways(self, node, above):
        """The addresses that a node may have, as polynomials. None: too many, or they depend on each other."""
        node = self.values.resolve(node)
        if node.kind == "select":
            return self._union(node.args[:2], above | {node})
        if node.kind == "phi" and not self.affine.induction(node):
            return set() if node in above else self._union(node.args, above | {node})
        if node.kind == "op" and node.data[0] in ("add", "sub") and len(node.args) == 2 and node.bits == 64:
            return self._sum(node, above)
        return {self.affine.of(node)}

    def _sum(self, node, above):
        sides = []
        for arg in node.args:
            choice = self._ways(arg, above) if self._pointers(self.origins(arg)) else {self.affine.of(arg)}
            if choice is None:
                return None
            sides.append(choice)
        if len(sides[0]) == 1 and len(sides[1]) == 1:
            return {self.affine.of(node)}
        if above and node in above:
            return None
        found = {a + b if node.data[0] == "add" else a - b for a in sides[0] for b in sides[1]}
        # A pointer that moves by a step in a loop, and is no counter of it, may be anywhere.
        return found if len(found) <= _WAYS_MOST and not self._in_cycle(node, above) else None

    def _in_cycle(self, node, above):
        work, seen = list(node.args), set()
        while work:
            at = self.values.resolve(work.pop())
            if at in above:
                return True
            if at not in seen:
                seen.add(at)
                work += at.args if at.kind in ("phi", "select", "op") else []
        return False

    def _union(self, nodes, above):
        found = set()
        for node in nodes:
            ways = self._ways(node, above)
            if ways is None:
                return None
            found |= ways
        return found if len(found) <= _WAYS_MOST else None

    # ------------------------------------------------------------------------------------------- addresses that stay

    def _keep(self, access, where):
        for node in access.stored:
            for slot in self._kept(node):
                self.found.escapes.setdefault(slot, f"{where}: {access.instruction.name} stores the address")

    def _kept(self, node):
        origins = self.origins(node)
        if self.values.resolve(node).bits < 32:
            return set()
        return {o[1] for o in origins if o[0] == "slot"} | (self._slots_behind(node) if ("lost",) in origins else set())

    def _slots_behind(self, node):
        """Those that a value was computed from in any way."""
        found, seen, work = set(), set(), [node]
        while work:
            at = self.values.resolve(work.pop())
            if at not in seen:
                seen.add(at)
                found |= {self._slot_of(at)} - {None}
                work += self._sources(at)
        return found

    def _call(self, call):
        if call.name in _HARMLESS_CALLS:
            return
        where = f"{call.instruction.where}: the call of {call.name}"
        self.found.anything.append(f"{where} is not followed")
        for node in call.arguments:
            for slot in self._kept(node):
                self.found.escapes.setdefault(slot, f"{where} gets the address")
