"""
Turns kernels in PTX into Python functions, for launch.py, which runs them and notes the bytes that they touch. It is an
oracle for acs-scan, of which it uses the reader of PTX alone. Integers are exact, floating-point numbers those of
Python. Memory that nothing wrote holds repeatable random numbers, mostly small ones.
"""

import math
import re

from acs_scan import ptx

import arithmetic

SPACING = 1 << 44            # between the addresses of two pointers; each has half of that before and behind it
HALF = SPACING >> 1
_SHARED, _LOCAL, _PARAM = 1 << 40, 1 << 41, 1 << 42  # where generic addresses show these spaces
_WINDOW = 1 << 40
_VARIABLES = 1 << 57         # addresses of __device__ variables
HIDDEN = 1 << 60             # an allocation that no argument names, for addresses that are read from memory


class Unsupported(Exception):
    """An instruction that this interpreter does not know."""


class Fault(Exception):
    """The launch would fail on a GPU, or is longer than allowed."""


def pointer(number):
    """The address that pointer `number` of a launch gets. No sum or small multiple of some is close to another one."""
    return (number + 1) * SPACING + number * number * 0x13579000000 % 0x4000000000


def owner(address):
    """Inverse of pointer(): which pointer an address belongs to."""
    return (address + HALF) // SPACING - 1


# -------------------------------------------------------------------------------------------------------------- memory

class Memory:
    """Words of four bytes by their address."""

    def __init__(self, seed, hidden=False):
        self.words, self.seed, self.hidden = {}, seed, hidden

    def fresh(self, address, kind):
        r = hash((address, self.seed, 7)) & 0xffffffff
        if kind == "f4":
            return arithmetic.float_to_bits(32, (r & 0xffff) / 32768 - 1)
        if kind[1] == "1":
            return (r if not r % 11 else r & 0x1f1f1f1f)
        if kind[1] == "2":
            return (r if not r % 11 else r & 0x3f003f)
        return -(r >> 8 & 7) & 0xffffffff if not r % 61 else (r >> 8) % 5000 if not r % 17 else (r >> 8) % 51

    def load(self, address, size, kind):
        words = self.words
        if address % size:
            raise Fault("misaligned")
        if size == 4:
            value = words.get(address)
            if value is None:
                value = words[address] = self.fresh(address, kind)
            return value
        if size == 8:
            if address not in words and address + 4 not in words:
                value = self.fresh(address, kind)
                if kind[0] == "f":
                    value = arithmetic.float_to_bits(64, value % 1000 / 500 - 1)
                elif self.hidden and value % 2:
                    value = HIDDEN + value * 1024
                words[address], words[address + 4] = value & 0xffffffff, value >> 32
            return self.load(address, 4, kind) | self.load(address + 4, 4, kind) << 32
        return self.load(address & ~3, 4, kind) >> 8 * (address & 3) & (1 << 8 * size) - 1

    def store(self, address, size, value, kind):
        if address % size:
            raise Fault("misaligned")
        if size == 4:
            self.words[address] = value
        elif size == 8:
            self.words[address], self.words[address + 4] = value & 0xffffffff, value >> 32
        else:
            shift = 8 * (address & 3)
            mask = (1 << 8 * size) - 1 << shift
            self.words[address & ~3] = self.load(address & ~3, 4, kind) & ~mask | value << shift


class Thread:
    __slots__ = ("x", "y", "z", "lane", "warp", "local", "registers", "at", "waiting", "value")


# -------------------------------------------------------------------------------------------- from PTX to Python functions

_SPACES = ("global", "shared", "local", "param", "const")
_IGNORED = {"membar", "fence", "prefetch", "prefetchu", "nanosleep", "griddepcontrol", "discard", "applypriority", "pmevent",
            "brkpt", "setmaxnreg", "createpolicy"}
_FLOAT_FUNCTIONS = {"sqrt": "arithmetic.safe(math.sqrt, {0})",
                    "rsqrt": "arithmetic.safe(lambda v: v ** -0.5 if v > 0 else math.nan, {0})",
                    "rcp": "arithmetic.float_divide(1.0, {0})", "ex2": "arithmetic.safe(math.pow, 2.0, {0})",
                    "lg2": "arithmetic.safe(math.log2, {0})",
                    "sin": "arithmetic.safe(math.sin, {0})", "cos": "arithmetic.safe(math.cos, {0})",
                    "tanh": "math.tanh({0})",
                    "neg": "-({0})", "abs": "abs({0})", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}",
                    "div": "arithmetic.float_divide({0}, {1})", "fma": "{0} * {1} + {2}", "mad": "{0} * {1} + {2}",
                    "min": "min({0}, {1})", "max": "max({0}, {1})", "copysign": "math.copysign({1}, {0})"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
            "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_UNORDERED = {"equ": "not ({0} < {1} or {0} > {1})", "neu": "{0} != {1}", "ltu": "not {0} >= {1}", "leu": "not {0} > {1}",
              "gtu": "not {0} <= {1}", "geu": "not {0} < {1}", "num": "({0} == {0} and {1} == {1})",
              "nan": "({0} != {0} or {1} != {1})", "ne": "({0} < {1} or {0} > {1})"}
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)U?$")


def _signed(text, bits):
    return f"((({text}) ^ {1 << bits - 1}) - {1 << bits - 1})"


def _size(kind):
    return max(ptx.bits_of(kind), 8) // 8


class Module:
    """All functions of a PTX text."""

    def __init__(self, text):
        self.functions = {f.name: f for f in ptx.read(text)}
        text = re.sub(r"//[^\n]*", "", text)
        self.types = {}
        for kind, names in re.findall(r"\.reg\s+\.(\w+)\s+([^;]+);", text):
            for name in names.split(","):
                self.types[name.strip().split("<")[0]] = kind
        self.dynamic = set(re.findall(r"\.extern\s+\.shared[^;]*?([\w$]+)\s*\[\s*\]", text))
        self.most = {name: tuple(int(s or 1) for s in sizes) for name, *sizes in re.findall(
            r"\.entry\s+([\w$]+)\s*\([^)]*\)\s*\.maxntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", text)}
        self.programs, self.places = {}, {}
        self.names = {"arithmetic": arithmetic, "math": math, "Fault": Fault, "HALF": HALF}

    def type_of(self, register):
        """As it is declared; None: it is no register. In a scope it has the scope's number behind it."""
        name = re.sub(r"\$\d+$", "", register)
        return self.types.get(name) or self.types.get(re.sub(r"\d+$", "", name))

    def program(self, name):
        if name not in self.programs:
            self.programs[name] = Program(self, self.functions[name])
        return self.programs[name]

    def place(self, name, space):
        """The address of a variable in its space."""
        if name in self.dynamic:
            return 0xf0000000
        number = self.places.setdefault(name, len(self.places) + 1)
        return number << 20 if space in ("shared", "local") else _VARIABLES + number * SPACING

    def variable(self, address):
        """Name of the __device__ variable at an address, or None."""
        number = (address - _VARIABLES + HALF) // SPACING
        return next((n for n, k in self.places.items() if k == number), None) if address >= _VARIABLES - HALF else None


class Program:
    """A function as Python functions of (registers, parameters, thread) that return which of them is next; -1: the end."""

    def __init__(self, module, function):
        self.module, self.function = module, function
        self.registers, self.parameters = {}, {p.name: i << 16 for i, p in enumerate(function.parameters)}
        self.stops, self.segments, self.lengths, source = [], [], [], []
        groups = [self._split(block) for block in function.blocks]
        firsts, count = [], 0
        for group in groups:
            firsts.append(count)
            count += len(group)
        number = 0
        for block, group in zip(function.blocks, groups):
            for i, instructions in enumerate(group):
                self._next = number + 1
                self._successors = [firsts[s] for s in block.successors]
                lines = [line for one in instructions for line in self._line(one)]
                after = f"return {number + 1 if number + 1 < count else -1}"
                source.append(f"def s{number}(R, P, T):\n" + "\n".join("    " + line for line in [*lines, after]))
                self.lengths.append(len(instructions) + 1)
                number += 1
        self.names = module.names
        exec(compile("\n".join(source), function.name[-40:], "exec"), self.names)
        self.segments = [self.names[f"s{i}"] for i in range(count)]

    @staticmethod
    def _split(block):
        groups = [[]]
        for one in block.instructions:
            groups[-1].append(one)
            if one.parts[0] in ("bar", "barrier", "shfl", "vote", "activemask", "redux"):
                groups.append([])
        return groups

    def _register(self, name):
        return self.registers.setdefault(name, len(self.registers))

    def _type(self, name):
        kind = self.module.type_of(name)
        if not kind:
            raise Unsupported(f"register {name}")
        return kind

    def _is_register(self, text):
        return self.module.type_of(text) is not None

    # ------------------------------------------------------------------------------------------------------- operands

    def _get(self, text, kind):
        """A Python expression for an operand that an instruction reads as `kind`."""
        bits, is_float = ptx.bits_of(kind), kind[0] == "f"
        if text.startswith("!"):
            return f"(not {self._get(text[1:], kind)})"
        if text.startswith("0f") or text.startswith("0d"):
            number = int(text[2:], 16)
            if not is_float:
                return str(number)
            value = arithmetic.bits_to_float(32 if text[1] == "f" else 64, number)
            return f"float('{value!r}')"
        if _NUMBER.match(text):
            value = int(text.rstrip("U"), 0)
            return f"{float(value)}" if is_float else str(value & (1 << bits) - 1)
        if self._is_register(text):
            have = self._type(text)
            value, wide = f"R[{self._register(text)}]", ptx.bits_of(have)
            if (have[0] == "f") != is_float and kind != "pred":
                return f"arithmetic.bits_to_float({bits}, {value})" if is_float else \
                    f"arithmetic.float_to_bits({wide}, {value})"
            return f"({value} & {(1 << bits) - 1})" if not is_float and wide > bits else value
        if text.startswith("%") or text == "WARP_SZ":
            return self._special(text)
        return str(self._address_of(text))

    @staticmethod
    def _special(text):
        name, _, axis = text[1:].partition(".")
        if name == "tid":
            return f"T.{axis}"
        if name in ("ntid", "ctaid", "nctaid") and axis in ("x", "y", "z"):
            return f"{name}_{axis}"
        known = {"laneid": "T.lane", "warpid": "T.warp", "lanemask_lt": "((1 << T.lane) - 1)",
                 "lanemask_eq": "(1 << T.lane)",
                 "lanemask_le": "((2 << T.lane) - 1)", "lanemask_gt": "(-2 << T.lane & 0xffffffff)",
                 "lanemask_ge": "(-1 << T.lane & 0xffffffff)", "smid": "0", "nsmid": "1", "gridid": "0", "clock": "clock()",
                 "clock64": "clock()", "globaltimer": "clock()", "dynamic_smem_size": "4096", "total_smem_size": "4096",
                 "nwarpid": "64", "is_explicit_cluster": "0", "cluster_ctarank": "0", "cluster_nctarank": "1"}
        if text == "WARP_SZ":
            return "32"
        if name not in known:
            raise Unsupported(text)
        return known[name]

    def _address_of(self, text):
        name, _, offset = text.partition("+")
        offset = int(offset, 0) if offset else 0
        if name in self.parameters:
            return self.parameters[name] + offset
        space = self.function.spaces.get(name)
        if not space and not (name in self.module.dynamic):
            raise Unsupported(f"name {name[-20:]}")
        return self.module.place(name, space or "shared") + offset

    def _at(self, text, space):
        """A Python expression for the address "[%rd1+4]"."""
        name, _, offset = text.strip()[1:-1].partition("+")
        name, offset = name.strip(), int(offset, 0) if offset else 0
        if self._is_register(name):
            base = self._get(name, "u64" if ptx.bits_of(self._type(name)) == 64 else "u32")
            return f"({base} + {offset} & 0xffffffffffffffff)" if offset else base
        if space == "param" and name not in self.parameters:
            self.parameters[name] = len(self.parameters) << 16
        return str(int(name, 0) + offset if _NUMBER.match(name) else self._address_of(name) + offset)

    def _put(self, name, value, kind):
        """A Python statement that sets a register."""
        if name == "_":
            return f"{value}"
        have = self._type(name)
        at, bits, wide = f"R[{self._register(name)}]", ptx.bits_of(kind), ptx.bits_of(have)
        if kind == "pred":
            return f"{at} = bool({value})"
        if kind[0] == "f":
            return f"{at} = {value}" if have[0] == "f" else f"{at} = arithmetic.float_to_bits({bits}, {value})"
        if have[0] == "f":
            return f"{at} = arithmetic.bits_to_float({wide}, ({value}) & {(1 << wide) - 1})"
        if kind[0] == "s" and wide > bits:
            value = _signed(f"({value}) & {(1 << bits) - 1}", bits)
            bits = wide
        return f"{at} = ({value}) & {(1 << bits) - 1}"

    # ---------------------------------------------------------------------------------------------------- instructions

    def _line(self, one):
        lines = self._statements(one)
        if not one.guard:
            return lines
        condition = f"if {'not ' if one.negated else ''}R[{self._register(one.guard)}]:"
        return [condition, *("    " + line for line in lines or ["pass"])]

    def _statements(self, one):
        name, parts, operands = one.parts[0], one.parts, one.operands
        if name in _IGNORED or (name == "bar" and parts[1:2] == ["warp"]) or \
                (name == "cp" and "async" in parts and not operands):
            return []
        if name == "bra":
            return [f"return {self._successors[0]}"]
        if name == "brx":
            return [f"return {self._successors!r}[{self._get(operands[0], 'u32')}]"]
        if name in ("ret", "exit"):
            return ["return -1"]
        if name == "trap":
            return ["raise Fault('trap')"]
        method = getattr(self, "_do_" + name, None)
        if method:
            return method(one, parts, operands)
        kind = parts[-1]
        if not ptx.bits_of(kind):
            raise Unsupported(one.name)
        if kind[0] == "f":
            if name not in _FLOAT_FUNCTIONS:
                raise Unsupported(one.name)
            value = _FLOAT_FUNCTIONS[name].format(*(f"({self._get(o, kind)})" for o in operands[1:]))
            return [self._put(operands[0], f"max(0.0, min(1.0, {value}))" if "sat" in parts else value, kind)]
        return self._integer(one, name, parts, operands, kind)

    def _integer(self, one, name, parts, operands, kind):
        bits, signed = ptx.bits_of(kind), kind[0] == "s"
        if "cc" in parts or "sat" in parts:
            raise Unsupported(one.name)
        a, b, c = ([self._get(o, kind) for o in operands[1:4]] + [""] * 3)[:3]
        x, y, z = (_signed(v, bits) if signed and v else v for v in (a, b, c))
        if name in ("shl", "shr") and bits > 1:
            b = self._get(operands[2], "u32")
            value = f"{a} << min({b}, {bits})" if name == "shl" else f"{x} >> min({b}, {bits})"
        elif name in ("mul", "mad") and "wide" in parts:
            wide = f"{kind[0]}{2 * bits}"
            more = f" + {self._get(operands[3], wide)}" if name == "mad" else ""
            return [self._put(operands[0], f"{x} * {y}{more}", wide)]
        elif name in ("mul", "mad"):
            more = f" + {c}" if name == "mad" else ""
            value = f"({x} * {y} >> {bits}){more}" if "hi" in parts else f"{a} * {b}{more}"
        elif name in ("mul24", "mad24"):
            raise Unsupported(one.name)
        elif name in ("popc", "clz", "bfind"):
            value = {"popc": f"({a}).bit_count()", "clz": f"{bits} - ({a}).bit_length()",
                     "bfind": f"arithmetic.bfind({a}, {bits}, {signed}, {'shiftamt' in parts})"}[name]
            kind = "u32"
        elif name in ("bfe", "bfi"):
            rest = [self._get(o, "u32") for o in operands[-2:]]
            value = f"arithmetic.bfe({a}, {rest[0]}, {rest[1]}, {bits}, {signed})" if name == "bfe" else \
                f"arithmetic.bfi({a}, {b}, {rest[0]}, {rest[1]}, {bits})"
        elif name == "lop3":
            value = f"arithmetic.lop3({a}, {b}, {c}, {int(operands[4], 0)}, {(1 << bits) - 1})"
        elif name == "prmt" and len(parts) == 2:
            value = f"arithmetic.prmt({a}, {b}, {c})"
        elif name == "shf":
            value = f"arithmetic.shf({a}, {b}, {c}, {'l' in parts}, {'clamp' in parts})"
        else:
            value = {"add": f"{a} + {b}", "sub": f"{a} - {b}", "neg": f"-{a}", "abs": f"abs({x})", "min": f"min({x}, {y})",
                     "max": f"max({x}, {y})", "and": f"{a} & {b}", "or": f"{a} | {b}", "div": f"arithmetic.divide({x}, {y})",
                     "xor": f"{a} ^ {b}", "not": f"not {a}" if kind == "pred" else f"~{a}",
                     "rem": f"arithmetic.remainder({x}, {y})",
                     "brev": f"int(format({a}, '0{bits}b')[::-1], 2)", "sad": f"abs({x} - {y}) + {c}",
                     "cnot": f"int({a} == 0)"}.get(name)
            if value is None:
                raise Unsupported(one.name)
        return [self._put(operands[0], value, kind)]

    def _do_mov(self, one, parts, operands):
        kind, lanes = parts[-1], re.compile(r"[^{},\s]+")
        if operands[0].startswith("{"):
            into = lanes.findall(operands[0])
            bits = ptx.bits_of(kind) // len(into)
            puts = [self._put(r, f"t >> {i * bits}", f"b{bits}") for i, r in enumerate(into) if r != "_"]
            return [f"t = {self._get(operands[1], kind)}", *puts]
        if operands[1].startswith("{"):
            of = lanes.findall(operands[1])
            bits = ptx.bits_of(kind) // len(of)
            value = " | ".join(f"{self._get(r, f'b{bits}')} << {i * bits}" for i, r in enumerate(of))
            return [self._put(operands[0], value, kind)]
        return [self._put(operands[0], self._get(operands[1], kind), kind)]

    def _do_setp(self, one, parts, operands):
        compare, kind = parts[1], parts[-1]
        a, b = self._get(operands[1], kind), self._get(operands[2], kind)
        if kind[0] == "f":
            value = _UNORDERED[compare].format(a, b) if compare in _UNORDERED else f"{a} {_COMPARE[compare]} {b}"
        else:
            if kind[0] == "s" and compare not in ("lo", "ls", "hi", "hs"):
                a, b = _signed(a, ptx.bits_of(kind)), _signed(b, ptx.bits_of(kind))
            value = f"{a} {_COMPARE[compare]} {b}"
        into = operands[0].split("|")
        lines, values = [f"t = {value}"], ["t", "not t"]
        if len(operands) > 3:
            how = next(p for p in parts if p in ("and", "or", "xor"))
            word = {"and": "and", "or": "or", "xor": "!="}[how]
            values = [f"({v}) {word} {self._get(operands[3], 'pred')}" for v in values]
        return lines + [self._put(r.strip(), v, "pred") for r, v in zip(into, values)]

    def _do_selp(self, one, parts, operands):
        kind = parts[-1]
        a, b = self._get(operands[1], kind), self._get(operands[2], kind)
        return [self._put(operands[0], f"({a} if {self._get(operands[3], 'pred')} else {b})", kind)]

    def _do_cvt(self, one, parts, operands):
        to, kind = parts[-2], parts[-1]
        bits = ptx.bits_of(to)
        if not bits or not ptx.bits_of(kind):
            raise Unsupported(one.name)
        value = self._get(operands[1], kind)
        mode = next((p for p in parts if p in ("rni", "rzi", "rmi", "rpi")), None)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
        if kind[0] == "f":
            if to[0] != "f":
                value = f"arithmetic.to_integer({value}, '{mode}', {low}, {high})"
            else:
                value = f"arithmetic.round_float({value}, '{mode}')" if mode else value
                value = f"max(0.0, min(1.0, {value}))" if "sat" in parts else value
        else:
            value = _signed(value, ptx.bits_of(kind)) if kind[0] == "s" else value
            value = f"float({value})" if to[0] == "f" else f"max({low}, min({high}, {value}))" if "sat" in parts else value
        return [self._put(operands[0], value, to)]

    def _do_cvta(self, one, parts, operands):
        base = next((b for s, b in (("shared", _SHARED), ("local", _LOCAL), ("param", _PARAM)) if s in parts), 0)
        return [self._put(operands[0], f"{self._get(operands[1], 'u64')} {'-' if 'to' in parts else '+'} {base}", "u64")]

    def _do_isspacep(self, one, parts, operands):
        base = {"shared": _SHARED, "local": _LOCAL, "param": _PARAM}.get(parts[1].split("::")[0])
        value = self._get(operands[1], "u64")
        return [self._put(operands[0], f"0 <= {value} - {base} < {_WINDOW}" if base else f"{value} >= {HALF}", "pred")]

    def _space(self, parts):
        found = next((s for s in (p.split("::")[0] for p in parts) if s in _SPACES), "generic")
        memory = {"shared": "shared", "local": "T.local", "param": "P", "const": "constants"}.get(found, "None")
        return memory, found

    def _do_ld(self, one, parts, operands):
        kind, (memory, space) = parts[-1], self._space(parts)
        into, size = re.findall(r"[^{},\s]+", operands[0]), _size(kind)
        way = f"'{'f' if kind[0] == 'f' else 'i'}{size}'"
        lines = [f"t = {self._at(operands[1], space)}"]
        for i, register in enumerate(into):
            at = f"t + {i * size}" if i else "t"
            value = f"load({at}, {size}, {way}, {one.line}, T, P)" if memory == "None" else \
                f"{memory}.load({at}, {size}, {way})"
            if kind[0] == "f":
                value = f"arithmetic.bits_to_float({8 * size}, {value})"
            lines.append(self._put(register, value, kind))
        return lines

    _do_ldu = _do_ld

    def _do_st(self, one, parts, operands):
        kind, (memory, space) = parts[-1], self._space(parts)
        size, lines = _size(kind), [f"t = {self._at(operands[0], space)}"]
        for i, text in enumerate(re.findall(r"[^{},\s]+", operands[1])):
            value = self._get(text, "b" + kind[1:])
            at = f"t + {i * size}"
            lines.append(f"store({at}, {size}, {value}, {one.line}, T)" if memory == "None" else
                         f"{memory}.store({at}, {size}, {value}, 'i{size}')")
        return lines

    def _do_atom(self, one, parts, operands, place=1):
        kind = {"f16x2": "b32", "bf16x2": "b32", "bf16": "b16"}.get(parts[-1], parts[-1])
        memory, space = self._space(parts)
        bits, operation = ptx.bits_of(kind), next((p for p in parts if p in (
            "add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")), None)
        if operation is None or bits not in (16, 32, 64) or any(re.match(r"v\d", p) for p in parts):
            raise Unsupported(one.name)
        b = self._get(operands[place + 1], kind)
        c = self._get(operands[place + 2], kind) if operation == "cas" else "0"
        size, way = bits // 8, f"'{'f' if kind[0] == 'f' else 'i'}{bits // 8}'"
        lines = [f"a = {self._at(operands[place], space)}",
                 f"t = load(a, {size}, {way}, {one.line}, T, P)" if memory == "None" else
                 f"t = {memory}.load(a, {size}, {way})"]
        value = f"arithmetic.bits_to_float({bits}, t)" if kind[0] == "f" else "t"
        value = f"arithmetic.atomic('{operation}', {value}, {b}, {c}, {bits}, {kind[0] == 's'})"
        value = f"arithmetic.float_to_bits({bits}, {value})" if kind[0] == "f" else f"{value} & {(1 << bits) - 1}"
        lines.append(f"store(a, {size}, {value}, {one.line}, T)" if memory == "None" else
                     f"{memory}.store(a, {size}, {value}, 'i4')")
        return lines + ([self._put(operands[0], "t", f"b{bits}")] if place else [])

    def _do_red(self, one, parts, operands):
        return self._do_atom(one, parts, operands, 0)

    def _do_cp(self, one, parts, operands):
        if parts[1] != "async" or "bulk" in parts or len(operands) < 3 or "[" not in operands[0]:
            if parts[2:3] in (["commit_group"], ["wait_group"], ["wait_all"]):
                return []
            raise Unsupported(one.name)
        lines = [f"a, t = {self._at(operands[0], 'shared')}, {self._at(operands[1], 'global')}"]
        return lines + [f"shared.store(a + {i}, 4, load(t + {i}, 4, 'f4', {one.line}, T, P), 'i4')"
                        for i in range(0, int(operands[2]), 4)]

    # ------------------------------------------------------------------------------------------- what threads do together

    def _stop(self, kind, one, into, values):
        self.stops.append((kind, one.parts, [r.strip() for r in into], self._next))
        for register in self.stops[-1][2]:
            self._register(register)
        return [f"T.value = ({', '.join(values)},)" if values else "T.value = ()", f"return {-10 - len(self.stops) + 1}"]

    def _do_bar(self, one, parts, operands):
        if "red" in parts:
            return self._stop("bar", one, [operands[0]], [self._get(operands[-1], "pred")])
        if "arrive" in parts or "cluster" in parts:
            raise Unsupported(one.name)
        return self._stop("bar", one, [], [])

    _do_barrier = _do_bar

    def _do_shfl(self, one, parts, operands):
        return self._stop("shfl", one, operands[0].split("|"), [self._get(operands[1], "b32"), self._get(operands[2], "u32"),
                                                                self._get(operands[3], "u32")])

    def _do_vote(self, one, parts, operands):
        return self._stop("vote", one, [operands[0]], [self._get(operands[1], "pred")])

    def _do_activemask(self, one, parts, operands):
        return self._stop("vote", one, [operands[0]], ["True"])

    def _do_redux(self, one, parts, operands):
        return self._stop("redux", one, [operands[0]], [self._get(operands[1], parts[-1])])

    def _do_call(self, one, parts, operands):
        groups = [re.findall(r"[\w$%]+", o) if o.startswith("(") else o for o in operands]
        results = groups.pop(0) if isinstance(groups[0], list) else []
        name = groups[0]
        arguments = groups[1] if len(groups) > 1 and isinstance(groups[1], list) else []
        for text in results + arguments:
            self.parameters.setdefault(text, len(self.parameters) << 16)
        return [f"call({name!r}, P, {[self.parameters[t] for t in arguments]}, {[self.parameters[t] for t in results]}, T)"]
