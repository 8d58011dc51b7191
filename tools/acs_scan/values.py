"""
The values of a function: each register at each use is a node of a graph, whose arguments are the nodes that it was computed
from. Where control flow joins, a phi names one value per way. (Braun et al., "Simple and Efficient Construction of Static
Single Assignment Form", CC 2013, section 2: values are looked up backwards, on demand.) Also the dominators and loops of its
blocks.
"""

import re
from dataclasses import dataclass, field

from . import ptx


class Node:
    """A value. `kind` says what `data` and `args` are; nodes that are equal are one object, but for phis and loads."""

    __slots__ = ("kind", "data", "args", "bits", "number")

    def __init__(self, kind, data, args, bits, number):
        self.kind, self.data, self.args, self.bits, self.number = kind, data, args, bits, number

    def __hash__(self):
        return self.number

    def __repr__(self):
        return f"{self.kind}{self.number}"


@dataclass
class Loop:
    head: int
    blocks: set
    latches: list
    number: int = 0


@dataclass
class Access:
    """
    One instruction that touches memory. `address` is a node; `stored`: nodes whose values go to memory; bytes 0: it touches
    bytes around the address.
    """
    block: int
    reads: bool
    writes: bool
    space: str
    address: object
    bytes: int
    guards: list                 # (predicate, whether it is true)
    stored: list = field(default_factory=list)
    instruction: object = None


@dataclass
class Call:
    block: int
    name: str
    arguments: list
    instruction: object = None


def dominators(count, entry, predecessors, order):
    """Immediate dominators (Cooper, Harvey, Kennedy 2001). `order`: reverse postorder."""
    rank = {b: i for i, b in enumerate(order)}
    idom = [None] * count
    idom[entry] = entry
    changed = True
    while changed:
        changed = False
        for b in order:
            if b == entry:
                continue
            new = None
            for p in predecessors(b):
                if p not in rank or idom[p] is None:
                    continue
                if new is None:
                    new = p
                    continue
                a = p
                while a != new:
                    while rank[a] > rank[new]:
                        a = idom[a]
                    while rank[new] > rank[a]:
                        new = idom[new]
            if new is not None and idom[b] != new:
                idom[b] = new
                changed = True
    return idom


class Flow:
    """Reachable blocks in reverse postorder, dominators, loops."""

    def __init__(self, blocks):
        self.blocks = blocks
        seen, order, stack = {0}, [], [(0, iter(blocks[0].successors))]
        while stack:
            b, rest = stack[-1]
            for s in rest:
                if s not in seen:
                    seen.add(s)
                    stack.append((s, iter(blocks[s].successors)))
                    break
            else:
                order.append(b)
                stack.pop()
        self.order = order[::-1]
        self.reachable = seen
        self.idom = dominators(len(blocks), 0, lambda b: blocks[b].predecessors, self.order)
        self.loops = self._loops()

    def predecessors(self, b):
        return [p for p in self.blocks[b].predecessors if p in self.reachable]

    def dominates(self, a, b):
        while b != a and self.idom[b] != b:
            b = self.idom[b]
        return a == b

    def _loops(self):
        found = {}
        for b in self.order:
            for s in self.blocks[b].successors:
                if self.dominates(s, b):
                    loop = found.setdefault(s, Loop(s, {s}, [], len(found)))
                    if b not in loop.latches:
                        loop.latches.append(b)
                    work = [b]
                    while work:
                        x = work.pop()
                        if x not in loop.blocks:
                            loop.blocks.add(x)
                            work += self.predecessors(x)
        return found


_SPECIAL = re.compile(r"%(tid|ntid|ctaid|nctaid)\.([xyz])$")
_NUMBER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|\d+)U?$")
_SPACES = ("global", "shared", "local", "param", "const")
_LARGEST = 16  # bytes of one lane of an instruction whose type is unknown here
# Instructions whose address operand is not read or written by them, or only as a hint.
_HARMLESS = {"prefetch", "prefetchu", "bar", "barrier", "membar", "fence", "applypriority", "mbarrier",
             "isspacep", "griddepcontrol", "nanosleep", "bra", "brx", "ret", "exit", "trap", "brkpt", "pmevent", "setmaxnreg",
             "createpolicy"}


class Values:
    """The nodes of one function, and its accesses and calls."""

    def __init__(self, function):
        self.function, self.flow = function, Flow(function.blocks)
        self.places = {p.name: i for i, p in enumerate(function.parameters)}
        self._known, self._of_instruction, self._at_entry, self._phis = {}, {}, {}, []
        self.pointers = set()  # nodes that the compiler takes for addresses of global memory
        self._count, self._local = 0, []
        self._definitions = self._find_definitions()
        self._local = self._local_stores()
        if self._local and self._stored_otherwise():
            self._local, self.pointers = [], set()
            self._known, self._of_instruction, self._at_entry = {}, {}, {}
        self.accesses, self.calls, self.unknown = [], [], []
        self._collect()
        self._settle()

    # ------------------------------------------------------------------------------------------------------- nodes

    def node(self, kind, data=None, args=(), bits=64, unique=False):
        key = (kind, data, tuple(args), bits)
        if not unique and key in self._known:
            return self._known[key]
        self._count += 1
        made = Node(kind, data, list(args), bits, self._count)
        if not unique:
            self._known[key] = made
        return made

    def constant(self, value, bits):
        return self.node("const", value, (), bits)

    def resolve(self, node):
        """A phi of one value is that value."""
        while node.kind == "phi":
            others = []
            for a in node.args:
                while a.kind == "same":
                    a = a.args[0]
                if a is not node and a not in others:
                    others.append(a)
            if len(others) != 1:
                return node
            node.kind, node.args = "same", others
        while node.kind == "same":
            node = node.args[0]
            if node.kind == "phi":
                return self.resolve(node)
        return node

    def _settle(self):
        """Find all values that may be asked for, and phis of one value, of which one may make another one."""
        for b in self.flow.order:
            for at, instruction in enumerate(self.function.blocks[b].instructions):
                if instruction.guard:
                    self.value(instruction.guard, b, at)
                for register in self.targets(instruction):
                    self._result(register, b, at)
        left = -1
        while left != len(self._phis):
            left = len(self._phis)
            self._phis = [phi for phi in self._phis if self.resolve(phi) is phi]

    def _find_definitions(self):
        """register -> block -> [index of the instruction]"""
        found = {}
        for block in self.function.blocks:
            for i, instruction in enumerate(block.instructions):
                for register in self.targets(instruction):
                    found.setdefault(register, {}).setdefault(block.index, []).append(i)
        return found

    @staticmethod
    def targets(instruction):
        """Registers that the instruction sets."""
        kind = instruction.parts[0]
        if kind in ("st", "red", "bra", "brx", "ret", "exit", "bar", "barrier") or not instruction.operands:
            return []
        first = instruction.operands[0]
        if first.startswith("["):
            return []
        return re.findall(r"%[\w$]+", first)

    # ------------------------------------------------------------------------------------- the value of a register

    def value(self, register, block, index):
        """Before instruction `index` of the block."""
        rows = self._definitions.get(register, {}).get(block, ())
        earlier = [i for i in rows if i < index]
        if not earlier:
            return self._entry(register, block)
        at = earlier[-1]
        instruction = self.function.blocks[block].instructions[at]
        made = self._result(register, block, at)
        if not instruction.guard:
            return made
        before = self.value(register, block, at)
        guard = self.value(instruction.guard, block, at)
        return self.node("select", None, (before, made, guard) if instruction.negated else (made, before, guard), made.bits)

    def at_end(self, register, block):
        return self.value(register, block, len(self.function.blocks[block].instructions))

    def _entry(self, register, block):
        key = (register, block)
        if key in self._at_entry:
            return self._at_entry[key]
        before = self.flow.predecessors(block)
        rows = self._definitions.get(register, {})
        if len(rows) == 1 and block not in rows and self.flow.dominates(next(iter(rows)), block):
            made = self.at_end(register, next(iter(rows)))
        elif register not in self._definitions or (not before and block == 0):
            made = self.node("undefined", register)
        elif len(before) == 1 and block != 0:
            made = self.at_end(register, before[0])
        else:
            made = self.node("phi", block, (), 0, unique=True)
            self._phis.append(made)
            self._at_entry[key] = made
            ways = [self.at_end(register, b) for b in before]
            if block == 0:
                ways.append(self.node("undefined", register))
            made.args = ways
            made.bits = max(a.bits for a in ways)
            return made
        self._at_entry[key] = made
        return made

    def _result(self, register, block, at):
        key = (block, at, register)
        if key not in self._of_instruction:
            self._of_instruction[key] = self._compute(register, block, at)
        return self._of_instruction[key]

    def operand(self, text, block, at, bits):
        """The node of an operand as it is written."""
        number = _NUMBER.match(text)
        if number:
            value = int(number.group(2), 16 if number.group(2)[:2].lower() == "0x" else 10)
            value = -value if number.group(1) else value
            return self.constant(value, bits)
        special = _SPECIAL.match(text)
        if special:
            return self.node("special", (special.group(1), special.group(2)), (), 32)
        if text == "%laneid":
            return self.node("special", ("laneid", ""), (), 32)
        if text.startswith("%"):
            if text in self._definitions:
                return self.value(text, block, at)
            return self.node("undefined", text, (), bits)
        if re.match(r"[\w$]+(\+\d+)?$", text) and not re.match(r"0[fd]", text):
            name, _, offset = text.partition("+")
            base = self.node("parameter address", self.places[name]) if name in self.places else self.node("symbol", name)
            return self._plus(base, int(offset or 0))
        return self.node("undefined", text, (), bits)

    def _plus(self, base, offset):
        return self.node("op", ("add", "s64"), (base, self.constant(offset, 64)), 64) if offset else base

    def address(self, text, block, at):
        """Of "[%rd1+8]" or "[name+8]"."""
        inside = text.strip()[1:-1].split(",")[0].strip()
        name, _, offset = inside.partition("+")
        name, offset = name.strip(), offset.strip()
        if offset.startswith("%"):
            both = self.operand(name, block, at, 64), self.operand(offset, block, at, 64)
            return self.node("op", ("add", "s64"), both, 64)
        return self._plus(self.operand(name, block, at, 64), int(offset, 0) if offset else 0)

    def guards(self, instruction, block, at):
        if not instruction.guard:
            return []
        return [(self.value(instruction.guard, block, at), not instruction.negated)]

    def _compute(self, register, block, at):
        instruction = self.function.blocks[block].instructions[at]
        parts, operands = instruction.parts, instruction.operands
        bits = next((ptx.bits_of(p) for p in reversed(parts) if ptx.bits_of(p)), 64)
        if parts[0] == "ld" or parts[0] in ("ldu", "atom"):
            return self._load(register, block, at, instruction, bits)
        if instruction.name.startswith("mov.b") and operands[0].startswith("{"):
            return self.node("unpack", operands[0].index(register), (self.operand(operands[1], block, at, bits),), bits // 2)
        if parts[0] == "mov" and operands[1].startswith("{"):
            inside = re.findall(r"[^{},\s]+", operands[1])
            return self.node("pack", None, [self.operand(o, block, at, bits // 2) for o in inside], bits)
        place = re.findall(r"%[\w$]+", operands[0]).index(register)
        args = [self.operand(o, block, at, bits) for o in operands[1:] if not o.startswith("[")]
        if parts[0] == "cvta" and ("global" in parts or len(parts) == 2):
            self.pointers.add(args[0])
        if parts[0] in ("mov", "cvta"):
            return args[0]
        if parts[0] == "call":
            return self.node("call", (block, at, "b64"), (), bits, unique=True)
        if parts[0] in ("setp", "selp", "slct"):
            bits = 1 if parts[0] == "setp" else bits
            if parts[0] == "selp":
                return self.node("select", None, args, bits)
            if parts[0] == "setp" and len(args) == 2 and place == 0 and len(parts) == 3:
                return self.node("compare", (parts[1], parts[2]), args, 1)
            return self.node("op", (instruction.name, place), args, bits)
        if parts[0] == "cvt":
            return self.node("op", ("cvt", parts[-2], parts[-1], *parts[1:-2]), args, ptx.bits_of(parts[-2]) or 64)
        if parts[0] in ("mul", "mad") and "wide" in parts:
            bits *= 2
        return self.node("op", (*parts[:-1], parts[-1]) if place == 0 else (instruction.name, place), args, bits)

    def _load(self, register, block, at, instruction, bits):
        address = self.address(instruction.operands[1], block, at)
        registers = re.findall(r"%[\w$]+", instruction.operands[0])
        if "param" in instruction.parts:
            place = self._parameter_place(address, registers.index(register) * bits // 8)
            if place:
                return self.node("slot", (*place, bits // 8, instruction.parts[-1]), (), bits)
            if self._variable_place(address):
                return self.node("call", (block, at, instruction.parts[-1]), (), bits, unique=True)
            return self.node("any slot", self._whole_parameter(address), (address,), bits)
        space = next((s for s in _SPACES if s in instruction.parts), "generic")
        if space == "local":
            known = self._stored_locally(block, at, address, registers.index(register) * bits // 8, bits)
            if known:
                return known
        return self.node("load", (block, at, registers.index(register), space, instruction.parts[-1]), (address,), bits)

    # A struct that a kernel indexes is copied to local memory. Where one store alone wrote what a load reads, the load is
    # its value.

    def _stored_locally(self, block, at, address, more, bits):
        place = self._variable_place(address)
        if not place:
            return None
        low, high = place[1] + more, place[1] + more + bits // 8
        hits = [s for s in self._local if s[0] == place[0] and s[1] < high and s[2] > low]
        if len(hits) != 1 or hits[0][1:3] != (low, high):
            return None
        _, _, _, text, b, i = hits[0]
        before = i < at if b == block else self.flow.dominates(b, block)
        return self.operand(text, b, i, bits) if before else None

    def _stores(self):
        for b in self.flow.order:
            for i, instruction in enumerate(self.function.blocks[b].instructions):
                if instruction.parts[0] in ("st", "atom", "red", "call"):
                    yield b, i, instruction

    def _local_stores(self):
        """(variable, first byte, end, operand, block, index) of each store to local memory. None: one cannot be followed."""
        found = []
        for b, i, instruction in self._stores():
            if "local" not in instruction.parts:
                continue
            place = self._variable_place(self.address(instruction.operands[0], b, i))
            if not place or instruction.guard or instruction.parts[0] != "st":
                return []
            size = ptx.bits_of(instruction.parts[-1]) // 8
            for lane, text in enumerate(re.findall(r"[^{},\s]+", instruction.operands[1])):
                found.append((place[0], place[1] + lane * size, place[1] + (lane + 1) * size, text, b, i))
        return found

    def _stored_otherwise(self):
        """Whether local memory may also be written by a generic address, or by a function."""
        for b, i, instruction in self._stores():
            parts = set(instruction.parts)
            if instruction.parts[0] == "call" or (not parts & {"local", "global", "shared", "param"}
                                                  and self._may_be_local(instruction, b, i)):
                return True
        return False

    def _may_be_local(self, instruction, block, at):
        address = next(o for o in instruction.operands if o.startswith("["))
        work, seen = [self.address(address, block, at)], set()
        while work:
            node = work.pop()
            if node.kind == "symbol" and self.function.spaces.get(node.data) == "local":
                return True
            if node not in seen:
                seen.add(node)
                work += node.args if node.kind in ("op", "phi", "select", "same") else []
        return False

    def _variable_place(self, address):
        """(variable, byte) of a constant address; None: it is not constant."""
        address, offset = self.resolve(address), 0
        while address.kind == "op" and address.data[0] == "add" and address.args[1].kind == "const":
            address, offset = self.resolve(address.args[0]), offset + address.args[1].data
        return (address.data, offset) if address.kind == "symbol" else None

    @staticmethod
    def _parameter_place(address, more):
        if address.kind == "parameter address":
            return address.data, more
        if address.kind == "op" and address.data[0] == "add" and address.args[0].kind == "parameter address" \
                and address.args[1].kind == "const":
            return address.args[0].data, address.args[1].data + more
        return None

    @staticmethod
    def _whole_parameter(address):
        """The parameter that a computed address lies in; None: unknown."""
        work, seen, found = [address], set(), set()
        while work:
            node = work.pop()
            if node.number in seen:
                continue
            seen.add(node.number)
            if node.kind == "parameter address":
                found.add(node.data)
            elif node.kind in ("op", "phi", "select", "same"):
                work += node.args
        return found.pop() if len(found) == 1 else None

    # ----------------------------------------------------------------------------------------- accesses and calls

    def _collect(self):
        for b in self.flow.order:
            for at, instruction in enumerate(self.function.blocks[b].instructions):
                kind = instruction.parts[0]
                if kind == "call":
                    self._call(b, at, instruction)
                elif kind not in _HARMLESS and any(o.startswith("[") for o in instruction.operands):
                    self._access(b, at, instruction)

    def _call(self, block, at, instruction):
        names = [o for o in instruction.operands if re.match(r"[\w$]+$", o)]
        texts = list(instruction.operands)
        for before in self.function.blocks[block].instructions[:at]:
            texts += before.operands[1:] if before.name.startswith("st.param") else []
        self.calls.append(Call(block, names[0] if names else "a function by its address", self._stored(texts, block, at),
                               instruction))

    def _stored(self, texts, block, at):
        return [self.value(r, block, at) for text in texts for r in re.findall(r"%[\w$]+", text) if r in self._definitions]

    def _access(self, block, at, instruction):
        parts, operands = instruction.parts, instruction.operands
        bits = next((ptx.bits_of(p) for p in reversed(parts) if ptx.bits_of(p)), 0)
        lanes = next((int(p[1:]) for p in parts if re.match(r"v\d$", p)), 1)
        space = next((p for p in parts if p in _SPACES or p.startswith(("shared::", "param::"))), "generic").split("::")[0]
        guards = self.guards(instruction, block, at)

        size_of_all = (bits // 8 or _LARGEST) * lanes

        def add(reads, writes, text, where, stored=(), size=size_of_all):
            self.accesses.append(Access(block, reads, writes, where, self.address(text, block, at), size, guards,
                                        list(stored), instruction))
        if parts[0] in ("ld", "ldu"):
            if space != "param":
                add(True, False, operands[1], space)
        elif parts[0] == "st":
            add(False, True, operands[0], space, self._stored(operands[1:], block, at))
        elif parts[0] in ("atom", "red"):
            where = 1 if parts[0] == "atom" else 0
            add(True, True, operands[where], space, self._stored(operands[where + 1:], block, at))
        elif instruction.name.startswith(("cp.async.ca.", "cp.async.cg.")) and len(operands) > 2 and operands[2].isdigit():
            add(True, False, operands[1], "global", (), int(operands[2]))
        elif parts[0] == "discard" and operands[1:]:
            add(False, True, operands[0], space, (), int(operands[1]))
        elif parts[0] == "wmma" and parts[1] in ("load", "store"):
            load = parts[1] == "load"
            add(load, not load, operands[1 if load else 0], space, (), 0)
        elif parts[0] in ("ldmatrix", "stmatrix"):
            add(True, True, next(o for o in operands if o.startswith("[")), "shared")
        else:
            self.unknown.append(instruction)
