"""One launch of a kernel by the interpreter: its blocks one after another, its threads in turns between barriers."""

from functools import reduce

import arithmetic
from interpreter import _LOCAL, _PARAM, _SHARED, _WINDOW, HALF, Fault, Memory, Thread, Unsupported, owner, pointer

HARMLESS_CALLS = ("vprintf", "__assertfail", "cudaGraphSetConditional", "__nanosleep")


class Launch:
    """
    After run(): reads and writes, {(address, bytes): line}; kept, {address that was stored: line}; failure, "" or why it
    ended.
    """

    def __init__(self, module, name, grid, block, arguments, seed=0, hidden=False, budget=300000):
        self.module, self.grid, self.block, self.budget = module, grid, block, budget
        self.program = module.program(name)
        self.memory, self.parameters = Memory(seed, hidden), Memory(seed)
        for parameter, data in zip(self.program.function.parameters, arguments):
            base = self.program.parameters[parameter.name]
            for i in range(0, len(data), 4):
                self.parameters.words[base + i] = int.from_bytes(data[i:i + 4], "little")
        self.reads, self.writes, self.kept, self.failure, self.steps = {}, {}, {}, "", 0
        self.seed, self.shared = seed, None

    def run(self):
        """Itself."""
        names = self.module.names
        names.update(load=self._load, store=self._store, call=self._call, clock=lambda: self.steps, constants=self.memory)
        for axis, grid, block in zip("xyz", self.grid, self.block):
            names["nctaid_" + axis], names["ntid_" + axis] = grid, block
        try:
            for z in range(self.grid[2]):
                for y in range(self.grid[1]):
                    for x in range(self.grid[0]):
                        names["ctaid_x"], names["ctaid_y"], names["ctaid_z"] = x, y, z
                        self.shared = names["shared"] = Memory(self.seed + 1)
                        self._block()
        except (Fault, OverflowError) as fault:
            self.failure = str(fault)
        return self

    # ---------------------------------------------------------------------------------------------------- global memory

    def _window(self, address, thread, parameters):
        for base, memory in ((_SHARED, self.shared), (_LOCAL, thread.local), (_PARAM, parameters)):
            if base <= address < base + _WINDOW:
                return memory, address - base
        raise Fault("an address that is none")

    def _load(self, address, size, way, line, thread, parameters):
        if address >= HALF:
            self.reads.setdefault((address, size), line)
            return self.memory.load(address, size, way)
        memory, at = self._window(address, thread, parameters)
        return memory.load(at, size, way)

    def _store(self, address, size, value, line, thread):
        memory, at = self.memory, address
        if address >= HALF:
            self.writes.setdefault((address, size), line)
        else:
            memory, at = self._window(address, thread, None)
        memory.store(at, size, value, f"i{size}")
        if memory is self.memory and size == 8 and HALF <= value < 1 << 56 and abs(value - pointer(owner(value))) < 1 << 20:
            self.kept.setdefault(value, line)

    # ---------------------------------------------------------------------------------------------------------- threads

    def _advance(self, thread):
        segments, lengths, at = self.program.segments, self.program.lengths, thread.at
        registers, parameters = thread.registers, self.parameters
        while at >= 0:
            self.steps += lengths[at]
            at = segments[at](registers, parameters, thread)
            if self.steps > self.budget:
                raise Fault("too long")
        thread.at = at

    def _block(self):
        nx, ny, nz = self.block
        ready = []
        for i in range(nx * ny * nz):
            thread = Thread()
            thread.x, thread.y, thread.z = i % nx, i // nx % ny, i // (nx * ny)
            thread.warp, thread.lane, thread.at = i // 32, i % 32, 0
            thread.local, thread.registers = Memory(self.seed + 2), [0] * len(self.program.registers)
            ready.append(thread)
        threads = ready
        while ready:
            for thread in ready:
                self._advance(thread)
            threads = [t for t in threads if t.at != -1]
            groups = {}
            for thread in threads:
                kind = self.program.stops[-10 - thread.at][0]
                if kind != "bar":
                    groups.setdefault((thread.warp, thread.at), []).append(thread)
            for group in groups.values():
                self._together(group)
            ready = [t for group in groups.values() for t in group]
            if not ready and threads:
                self._barrier(threads)
                ready = threads

    def _set(self, thread, name, value):
        if name != "_":
            kind = self.program._type(name)
            value = arithmetic.bits_to_float(32, value) if kind[0] == "f" else bool(value) if kind == "pred" else \
                value & 0xffffffff
            thread.registers[self.program.registers[name]] = value

    def _barrier(self, threads):
        for thread in threads:
            _, parts, into, after = self.program.stops[-10 - thread.at]
            thread.at = after
            if into:
                values = [bool(t.value[0]) for t in threads if t.value]
                self._set(thread, into[0], any(values) if "or" in parts else all(values) if "and" in parts else sum(values))

    def _together(self, group):
        kind, parts, into, after = self.program.stops[-10 - group[0].at]
        values = {t.lane: t.value for t in group}
        for thread in group:
            thread.at = after
            if kind == "shfl":
                lane, good = _source(parts, thread.lane, *thread.value[1:])
                self._set(thread, into[0], values.get(lane if good else thread.lane, thread.value)[0])
                if len(into) > 1:
                    self._set(thread, into[1], good)
            elif kind == "vote":
                bits = [bool(v[0]) for v in values.values()]
                self._set(thread, into[0], all(bits) if "all" in parts else any(bits) if "any" in parts else
                          len(set(bits)) == 1 if "uni" in parts else sum(1 << lane for lane, v in values.items() if v[0]))
            else:
                half = 1 << 31 if parts[-1][0] == "s" else 0
                operation = next(p for p in parts if p in ("add", "min", "max", "and", "or", "xor"))
                found = reduce(lambda a, b: {"add": a + b, "min": min(a, b), "max": max(a, b), "and": a & b, "or": a | b,
                                             "xor": a ^ b}[operation], [(v[0] ^ half) - half for v in values.values()])
                self._set(thread, into[0], found)

    def _call(self, name, parameters, arguments, results, thread):
        if name in HARMLESS_CALLS:
            for base in results:
                parameters.words[base] = 0
            return
        if name not in self.module.functions:
            raise Unsupported(f"call of {name[-30:]}")
        callee, mine = self.module.program(name), Memory(self.seed + 3)
        for parameter, base in zip(callee.function.parameters, arguments):
            for i in range(0, parameter.bytes, 4):
                if base + i in parameters.words:
                    mine.words[callee.parameters[parameter.name] + i] = parameters.words[base + i]
        at, registers = 0, [0] * len(callee.registers)
        while at >= 0:
            self.steps += callee.lengths[at]
            at = callee.segments[at](registers, mine, thread)
            if self.steps > self.budget:
                raise Fault("too long")
        if at != -1:
            raise Unsupported("a barrier in a function")
        for i, base in enumerate(results):
            start = callee.parameters.get(f"func_retval{i}", 0)
            for k in range(0, 64, 4):
                if start + k in mine.words:
                    parameters.words[base + k] = mine.words[start + k]


def _source(parts, lane, by, clamp):
    """The lane that a shuffle reads, and whether it is in range."""
    mask, end = clamp >> 8 & 31, clamp & 31
    last, first = lane & mask | end & ~mask & 31, lane & mask
    if "up" in parts:
        return lane - by, lane - by >= last
    at = lane + by if "down" in parts else lane ^ by if "bfly" in parts else first | by & ~mask & 31
    return at, at <= last
