"""
Calls of device functions in a kernel: the function's blocks are put in the place of the call. Some calls stay, and the kernel
then may touch anything: of a function without a body in the same PTX, by an address, of a function that calls itself, and with
parameters that are not read as they were written.
"""

import re
from dataclasses import replace

from . import ptx

_MOST = 50000  # instructions of a kernel with its functions; more: calls stay
_PLACE = re.compile(r"\[\s*([\w$]+)\s*(?:\+\s*(\d+)\s*)?\]$")
_NAME = re.compile(r"[\w$]+")
_SPECIAL = re.compile(r"%(n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|clock(64|_hi)?|globaltimer.*|pm\d.*|lanemask_.*|envreg\d+|"
                      r".*_smem_.*|cluster_.*|n?clusterid|current_graph_exec|is_explicit_cluster)$")


class _Stays(Exception):
    """This call cannot be replaced."""


def expand(function, functions):
    """The kernel without its calls of these functions ({name: function}), as far as that can be done."""
    if not any(one.parts[0] == "call" for block in function.blocks for one in block.instructions):
        return function
    return _Expansion(function, functions).run()


def _pieces(one):
    """[(first byte, type, register or number)] of a load or store of a parameter; None: not at a constant byte of it."""
    load = one.parts[0] == "ld"
    match = _PLACE.match(one.operands[load])
    if not match or one.guard:
        return None
    kind = one.parts[-1]
    words = re.findall(r"[^{},\s]+", one.operands[not load])
    return [(int(match.group(2) or 0) + i * ptx.bits_of(kind) // 8, kind, word) for i, word in enumerate(words)]


def _moves(one, name, suffix):
    """A load or store of a parameter as moves from or to registers that stand for its bytes."""
    found = []
    for at, kind, word in _pieces(one):
        register = f"%{name}_{at}{suffix}"
        if one.parts[0] == "st":
            found.append(replace(one, name=f"mov.{kind}", operands=[register, word]))
        elif ptx.bits_of(kind) >= 32 or kind[0] not in "usb":
            found.append(replace(one, name=f"mov.{kind}", operands=[word, register]))
        else:
            sign = "s" if kind[0] == "s" else "u"
            found.append(replace(one, name=f"cvt.{sign}32.{sign}{kind[1:]}", operands=[word, register]))
    return found


def _words(one):
    return {word for text in one.operands for word in _NAME.findall(text)}


def _bytes(instructions, kind):
    return {(at, ptx.bits_of(type_)) for one in instructions if one.parts[0] == kind for at, type_, _ in _pieces(one)}


def _check(loads, stores):
    """Each load must read what one store writes, or the lowest bytes of it: a small number is stored as one of 32 bits."""
    written = dict(_bytes(stores, "st"))
    if any(at < other < at + bits // 8 or (at == other and bits != more)
           for at, bits in _bytes(stores, "st") for other, more in _bytes(stores, "st")):
        raise _Stays
    for at, bits in _bytes(loads, "ld"):
        if written.get(at) != bits and not bits < 32 <= written.get(at, 0):
            raise _Stays


class _Uses:
    """Where the parameters of a function's calls, or its own, are read and written."""

    def __init__(self, blocks):
        self.found = {}
        for block in blocks:
            for one in block.instructions:
                for word in _words(one):
                    self.found.setdefault(word, []).append((block.index, one))

    def of(self, name, call=None, block=None):
        """The loads and stores of a parameter; but for `call` it has no other uses, nor any in another block than that."""
        uses = [(at, one) for at, one in self.found.get(name, ()) if one is not call]
        for at, one in uses:
            kind = one.parts[0] in ("ld", "st") and any(p.split("::")[0] == "param" for p in one.parts[1:])
            if not kind or _pieces(one) is None or (block is not None and at != block):
                raise _Stays
        return [one for _, one in uses]


class _Expansion:
    def __init__(self, function, functions):
        self.function, self.functions = function, functions
        self.count = sum(len(b.instructions) for b in function.blocks)
        self.spaces, self.copies, self.blocks = dict(function.spaces), 0, []

    def run(self):
        self._append(self.function.blocks, (self.function.name,))
        for block in self.blocks:
            for index in dict.fromkeys(block.successors):
                self.blocks[index].predecessors.append(block.index)
        return replace(self.function, blocks=self.blocks, spaces=self.spaces)

    def _new(self):
        self.blocks.append(ptx.Block(len(self.blocks)))
        return self.blocks[-1]

    def _append(self, blocks, above):
        """Copy blocks, with the functions that they call. (index of the first, those behind which the function returns)"""
        firsts, lasts, uses = {}, {}, _Uses(blocks)
        for block in blocks:
            plans, moves = {}, {}
            for one in block.instructions:
                if one.parts[0] == "call":
                    try:
                        plans[id(one)] = self._plan(one, block.index, uses, moves, above)
                    except _Stays:
                        pass
            at = self._new()
            firsts[block.index] = at.index
            for one in block.instructions:
                if id(one) in plans:
                    at = self._call(at, *plans[id(one)], above)
                else:
                    at.instructions += moves.get(id(one), [one])
            lasts[block.index] = at
        for block in blocks:
            lasts[block.index].successors = [firsts[s] for s in block.successors]
        return firsts[blocks[0].index], [lasts[b.index] for b in blocks if _returns(b, blocks)]

    def _plan(self, one, block, uses, moves, above):
        """(function, its parameters' names here, suffix of its registers) of a call to be replaced. Adds to `moves`."""
        groups = [_NAME.findall(text) if text.startswith("(") else text for text in one.operands]
        results = groups.pop(0) if isinstance(groups[0], list) else []
        callee = self.functions.get(groups[0]) if isinstance(groups[0], str) else None
        arguments = groups[1] if len(groups) == 2 and isinstance(groups[1], list) else []
        if one.guard or not callee or callee.kernel or callee.name in above:
            raise _Stays
        size = sum(len(b.instructions) for b in callee.blocks)
        given = [p.name for p in callee.parameters]
        if self.count + size > _MOST or len(groups) > 2 or len(arguments) != len(given) or \
                len(results) != len(callee.results) or any(n.startswith("%") for n in given + callee.results) or \
                "%" in "".join(o for o in one.operands if o.startswith("(")):
            raise _Stays
        inside = _Uses(callee.blocks)
        mine = {name: uses.of(name, one, block) for name in results + arguments}
        for name, parameter in zip(arguments, given):
            _check(inside.of(parameter), mine[name])
        for name, result in zip(results, callee.results):
            _check(mine[name], inside.of(result))
        self.count += size
        self.copies += 1
        suffix = f"$f{self.copies}"
        moves.update((id(use), _moves(use, name, suffix)) for name, all_ in mine.items() for use in all_)
        return callee, dict(zip(given + callee.results, arguments + results)), suffix

    def _call(self, block, callee, names, suffix, above):
        """Put the function behind `block`. The block behind it."""
        entry, ends = self._append(self._copies(callee, names, suffix), above + (callee.name,))
        after = self._new()
        block.successors = [entry]
        for end in ends:
            last = end.instructions[-1] if end.instructions else None
            if last and last.parts[0] == "ret":
                end.instructions[-1] = replace(last, name="bra", operands=["behind"])
            end.successors.insert(0, after.index)
        return after

    def _copies(self, callee, names, suffix):
        """The function's blocks with registers and local variables of their own."""
        def renamed(match):
            name = match.group(0)
            if name.startswith("%"):
                return name if _SPECIAL.match(name) else name + suffix
            if callee.spaces.get(name) != "local":
                return name
            self.spaces[name + suffix] = "local"
            return name + suffix

        found = []
        for block in callee.blocks:
            made = ptx.Block(block.index, [], list(block.successors))
            for one in block.instructions:
                copy = replace(one, guard=re.sub(r"%[\w$]+", renamed, one.guard),
                               operands=[re.sub(r"(?<![\w$])%?[A-Za-z_$][\w$]*", renamed, o) for o in one.operands])
                name = next((n for n in names if n in _words(one)), None)
                made.instructions += _moves(copy, names[name], suffix) if name else [copy]
            found.append(made)
        return found


def _returns(block, blocks):
    """Whether the function may end behind the block, and its caller goes on."""
    kind = block.instructions[-1].parts[0] if block.instructions else ""
    return kind == "ret" or (block is blocks[-1] and kind not in ("exit", "trap", "bra", "brx"))
