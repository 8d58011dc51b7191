"""
PTX text as functions, blocks and instructions. It knows the syntax, and nothing of what an instruction does. The syntax is
in NVIDIA's "Parallel Thread Execution ISA".
"""

import os
import re
from dataclasses import dataclass, field


class PtxError(Exception):
    """Text that is no PTX, or PTX of a kind that this reader does not know."""


@dataclass
class Instruction:
    guard: str           # register of the predicate; "": none
    negated: bool        # runs where the predicate is false
    name: str            # with its suffixes: "ld.global.f32"
    operands: list       # text of each; "{%r1, %r2}" and "[%rd1+4]" are one operand
    line: int            # in the file, from 1
    source: tuple = None  # (file, line) of the program, where .loc says it

    @property
    def parts(self):
        return self.name.split(".")

    @property
    def where(self):
        """The line of the program, where that is known; else the line of the PTX."""
        return f"{os.path.basename(self.source[0])}:{self.source[1]}" if self.source else f"line {self.line}"


@dataclass
class Block:
    index: int
    instructions: list = field(default_factory=list)
    successors: list = field(default_factory=list)    # indices of blocks
    predecessors: list = field(default_factory=list)


@dataclass
class Parameter:
    name: str
    bytes: int
    bits: int = 0         # of a number or pointer; 0: an array of bytes (a struct)
    float: bool = False


@dataclass
class Function:
    name: str
    kernel: bool
    parameters: list
    blocks: list
    threads: tuple = None  # .reqntid: the exact size of a block
    spaces: dict = field(default_factory=dict)  # name of a variable -> "global", "shared", "local" or "const"
    results: list = field(default_factory=list)  # names of what a function returns


_BITS = {"pred": 1}
for _kind in "bsuf":
    for _size in (8, 16, 32, 64, 128):
        _BITS[f"{_kind}{_size}"] = _size


def bits_of(suffix):
    """Bits of a type such as "u32"; 0: the suffix is no type."""
    return _BITS.get(suffix, 0)


def _without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


_HEAD = re.compile(r"(?:\.visible|\.weak|\.extern|\.common)?\s*\.(entry|func)\b")
_PARAMETER = re.compile(r"\.(?:param|reg)\s+(?:\.align\s+\d+\s+)?\.(\w+)(?:\s+\.ptr(?:\s*\.(?!align)\w+)*)?"
                        r"(?:\s*\.align\s+\d+)?\s+([\w$%]+)\s*(?:\[(\d*)\])?")
_VARIABLE = re.compile(r"\.(global|shared|local|const)\s[^;={(]*?\.(?:pred|[bsuf]\d+)\s+([\w$]+)\s*[\[;=]")
_LABEL = re.compile(r"([\w$]+)\s*:\s*")
_INSTRUCTION = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)


def _parameters(text):
    found = []
    for kind, name, count in _PARAMETER.findall(text):
        bits = bits_of(kind)
        if not bits:
            raise PtxError(f"a parameter of type .{kind}")
        array = count != ""
        found.append(Parameter(name, bits // 8 * (int(count) if array else 1), 0 if array else bits, kind[0] == "f"))
    return found


def _matching(text, start, open_, close):
    """Index behind the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] == open_:
            depth += 1
        elif text[i] == close:
            depth -= 1
            if not depth:
                return i + 1
    raise PtxError(f"'{open_}' is never closed")


def _operands(text):
    """Split at commas outside brackets."""
    found, depth, word = [], 0, ""
    for c in text:
        depth += (c in "{[(") - (c in "}])")
        if c == "," and not depth:
            found.append(word.strip())
            word = ""
        else:
            word += c
    return found + [word.strip()] if word.strip() else found


def _statements(body, line):
    """(kind, text, line) of each: a label, a directive, an instruction, or a brace that opens or closes a scope."""
    at = 0
    while at < len(body):
        c = body[at]
        if c in " \t\r\n{}":
            if c in "{}":
                yield "scope", c, line
            line += c == "\n"
            at += 1
            continue
        label = _LABEL.match(body, at)
        if label and not body.startswith("::", label.end(1)):
            yield "label", label.group(1), line
            line += label.group(0).count("\n")
            at = label.end()
            continue
        end = body.find("\n" if re.match(r"\.(loc|file)\b", body[at:at + 6]) else ";", at)
        end = len(body) if end < 0 else end
        text = body[at:end]
        yield ("directive" if c == "." else "instruction"), text.strip(), line
        line += text.count("\n")
        at = end + (end < len(body) and body[end] == ";")


_DECLARED = re.compile(r"\.(?:reg|param)\s+(?:\.align\s+\d+\s+)?\.\w+\s+(.*)", re.S)


class _Scopes:
    """
    Names of registers and parameters that a scope inside a function declares are its own: the same name outside is another
    one. Here they get the number of their scope.
    """

    def __init__(self):
        self.open, self.count, self.names = [], 0, {}

    def brace(self, text):
        if text == "{":
            self.open.append(self.names)
            self.names = dict(self.names)
            self.count += 1
        elif self.open:
            self.names = self.open.pop()

    def declare(self, text):
        match = _DECLARED.match(text) if len(self.open) > 1 else None
        for name in _operands(match.group(1)) if match else ():
            many = re.match(r"([\w$%]+)<(\d+)>", name)
            for one in ([f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name.split("[")[0].strip()]):
                self.names[one] = f"{one}${self.count}"

    def renamed(self, text):
        if not self.names:
            return text
        return re.sub(r"(?<![\w$%.])%?[A-Za-z_$][\w$]*", lambda m: self.names.get(m.group(0), m.group(0)), text)


class _Body:
    """Builds the blocks of one function."""

    def __init__(self, files):
        self.blocks, self.labels, self.tables, self.files, self.source = [Block(0)], {}, {}, files, None

    def label(self, name):
        if self.blocks[-1].instructions:
            self.blocks.append(Block(len(self.blocks)))
        self.labels[name] = self.blocks[-1].index

    def directive(self, text, pending):
        loc = re.match(r"\.loc\s+(\d+)\s+(\d+)", text)
        if loc:
            self.source = (self.files.get(loc.group(1), "?"), int(loc.group(2)))
        table = re.match(r"\.branchtargets\s+(.*)", text, re.S)
        if table and pending:
            self.tables[pending] = _operands(table.group(1))

    def instruction(self, text, line, scopes):
        match = _INSTRUCTION.match(text)
        if not match:
            raise PtxError(f"line {line}: '{text[:60]}' is no instruction")
        bang, guard, name, rest = match.groups()
        self.blocks[-1].instructions.append(Instruction(scopes.renamed(guard or ""), bool(bang), name,
                                                        _operands(scopes.renamed(rest)), line, self.source))
        if name.split(".")[0] in ("bra", "brx", "ret", "exit", "trap"):
            self.blocks.append(Block(len(self.blocks)))

    def _target(self, label):
        if label not in self.labels:
            raise PtxError(f"there is no label {label}")
        return self.labels[label]

    def finish(self):
        """Connect the blocks."""
        for block in self.blocks:
            last = block.instructions[-1] if block.instructions else None
            kind = last.parts[0] if last else ""
            nexts = []
            if kind == "bra":
                nexts.append(self._target(last.operands[0]))
            elif kind == "brx":
                nexts += [self._target(label) for label in self.tables.get(last.operands[1], [])]
            if (kind not in ("bra", "brx", "ret", "exit", "trap") or last.guard) and block.index + 1 < len(self.blocks):
                nexts.append(block.index + 1)
            block.successors = nexts
            for index in dict.fromkeys(nexts):
                self.blocks[index].predecessors.append(block.index)
        return self.blocks


def _function(text, head, files):
    """The function whose .entry or .func is at `head`, or None for a declaration; and where its text ends."""
    at = head.end()
    before = re.compile(r"\s*(\([^)]*\))?\s*([\w$]+)\s*").match(text, at)
    if not before:
        raise PtxError("a function without a name")
    at, name, parameters = before.end(), before.group(2), []
    results = [p.name for p in _parameters(before.group(1) or "")]
    if text[at:at + 1] == "(":
        end = _matching(text, at, "(", ")")
        parameters, at = _parameters(text[at:end]), end
    end = re.compile(r"[{;]").search(text, at)
    if not end or end.group(0) == ";":
        return None, (end.end() if end else len(text))
    sizes = re.search(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", text[at:end.start()])
    stop = _matching(text, end.start(), "{", "}")
    body, scopes, pending = _Body(files), _Scopes(), None
    for kind, statement, line in _statements(text[end.start():stop], text.count("\n", 0, end.start()) + 1):
        if kind == "label":
            body.label(statement)
            pending = statement
        elif kind == "directive":
            body.directive(statement, pending)
            scopes.declare(statement)
        elif kind == "scope":
            scopes.brace(statement)
        else:
            body.instruction(statement, line, scopes)
    threads = tuple(int(s or 1) for s in sizes.groups()) if sizes else None
    return Function(name, head.group(1) == "entry", parameters, body.finish(), threads, results=results), stop


def target(text):
    """The architecture that the text is for, such as "sm_90"."""
    found = re.search(r"^\s*\.target\s+(\w+)", text, re.M)
    return found.group(1) if found else "an unknown architecture"


def read(text):
    """All functions with a body, in their order. PtxError: the text is not understood."""
    if ".version" not in text:
        raise PtxError("the text has no .version: it is no PTX")
    text = _without_comments(text)
    spaces = {name: space for space, name in _VARIABLE.findall(text)}
    files = dict(re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', text))
    found, at = [], 0
    while True:
        head = _HEAD.search(text, at)
        if not head:
            return found
        function, at = _function(text, head, files)
        if function:
            function.spaces = spaces
            found.append(function)
