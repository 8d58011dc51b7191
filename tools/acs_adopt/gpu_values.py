"""Which names of a program hold what is of the GPU: memory, streams, handles of libraries. Rather too many than too few."""
import re

import acs_adopt.program as programs
import acs_adopt.text as text

WORD = re.compile(r"[A-Za-z_]\w*")
NAME = re.compile(r"(?<![\w#])([A-Za-z_]\w*)\s*(?=[(<])")
# Types of what a library needs to use the GPU.
HANDLE = re.compile(r"\b(?:cudaStream_t|CUstream|cudaGraphExec_t|cufftHandle|\w*[hH]andle_t|\w+Comm_t)\s*(?:const\s*)?[*&\s]*"
                    r"((?:\w+(?:\s*\[[^\]]*\])?\s*,\s*\*?\s*)*\w+)")
MEMORY = re.compile(r"\b(?:CUdeviceptr\b|(?:\w+\s*::\s*)*(?:device|universal)_(?:ptr|vector|uvector|buffer)\s*<[^;(){}]*>)"
                    r"\s*(?:const\s*)?[*&\s]*(\w+)")
MAKES_MEMORY = re.compile(r"(?:cudaMalloc\w*|cudaHostAlloc|cudaHostGetDevicePointer|cudaGetSymbolAddress|cuMem(?:Host)?Alloc\w*)$")
COPY = re.compile(r"cudaMemcpy(?:Async)?$")
# Calls that give what they are given.
SAME = frozenset("static_cast reinterpret_cast const_cast raw_pointer_cast device_pointer_cast move forward addressof get data "
                 "begin end cbegin cend".split())
# Functions whose result is a status, or nothing of the GPU.
KNOWN = re.compile(r"(?:cuda|cu[A-Z]|nccl|cublas|cufft|cusparse|cusolver|curand|npp|cudnn|nvjpeg|cutensor)\w+$|sizeof$")
KEYWORDS = frozenset("if for while switch return sizeof alignof alignas decltype static_assert typeid noexcept catch new delete "
                     "else do case throw defined and or not operator constexpr template typename static_cast reinterpret_cast "
                     "const_cast dynamic_cast co_return co_await int long float double char bool unsigned short void auto".split())
TRUTH = re.compile(r"[=!]=|&&|\|\||^\s*!")
ASSIGN = re.compile(r"(?<![=!<>+\-*/%|&^])=(?!=)")


LAMBDA = re.compile(r"\b(\w+)\s*=\s*\[[^\]]*\]\s*\(")
NOT_DECLARES = frozenset("return else do throw case goto new delete co_return and or not if for while switch".split())


class Call:
    """One call, or what looks like one: name(arguments)."""

    def __init__(self, source, code, begin, name, open_at, close, angle):
        self.source, self.code, self.begin, self.name = source, code, begin, name
        self.open, self.close, self.angle = open_at, close, angle
        self.parts = text.split(code, open_at + 1, close) or []
        self.chain = re.sub(r"\s+", "", code[begin:open_at])
        receiver = re.match(r"([\s\S]*?)(\.|->)\s*(?:template\s+)?\w+\s*(?:<[\s\S]*>)?\s*$", code[begin:open_at])
        self.receiver = receiver.group(1) if receiver else ""
        self.is_member = receiver is not None
        self.arrow = self.is_member and receiver.group(2) == "->"


def chain_begin(code, at):
    """Where the expression begins whose last name is at `at`: object.part->name, space::name."""
    while True:
        last = text.back(code, at)
        if last >= 1 and code[last - 1:last + 1] in ("::", "->"):
            last -= 2
        elif last >= 0 and code[last] == "." and not code[last - 1:last].isdigit():
            last -= 1
        else:
            return at
        scope = code[last + 1:last + 3] == "::"
        last = text.back(code, last + 1)
        while last >= 0 and (code[last] in ")]" or (code[last] == ">" and scope)):
            at = text.opening_angle(code, last) if code[last] == ">" else text.opening(code, last)
            if at < 0:
                return last + 1
            last = text.back(code, at)
        word, begin = text.word_before(code, last + 1)
        if word in ("return", "else", "case", "throw", "do"):
            return text.skip_space(code, begin + len(word))
        if word:
            at = begin
        elif scope:
            return text.skip_space(code, last + 1)  # ::name
        else:
            return at  # (object).name, or what is no name: sizeof...(types)


def calls(source, code, begin, end):
    """The calls between two positions, in rising order."""
    for match in NAME.finditer(code, begin, end):
        at, angle = match.end(), None
        if code[at] == "<":
            angle = text.closing_angle(code, match.end(1), end) if at == match.end(1) else -1
            if angle < 0:
                continue
            at = text.skip_space(code, angle + 1)
            if code[at:at + 1] != "(":
                continue
        close = text.closing(code, at)
        if 0 <= close < end:
            yield Call(source, code, chain_begin(code, match.start()), match.group(1), at, close, angle)


def names_in(code, open_at):
    """Names of the parameters in these brackets."""
    close = text.closing(code, open_at)
    parts = text.split(code, open_at + 1, close) if close > 0 else None
    return [(WORD.findall(re.sub(r"\s*=.*|\[.*", "", code[a:b])) or [""])[-1] for a, b in parts or ()]


def is_declaration(call):
    """Whether it declares a variable or a function: a type stands before its name."""
    code, begin = call.code, call.begin
    first = max(code.rfind(char, 0, begin) for char in ";{}")
    before = re.sub(r"^\s*\w+\s*:(?!:)", "", code[first + 1:begin])
    for group in (r"<[^<>;{}]*>", r"\([^()]*\)", r"\[[^\[\]]*\]"):
        while re.search(group, before):
            before = re.sub(group, "", before)
    head, *others = before.split(",")
    if set(WORD.findall(before)) & NOT_DECLARES or (others and not re.match(r"[\s*&]*$", others[-1])):
        return False
    if others:  # one more of a list
        return re.match(r"\s*(?:[A-Za-z_][\w:]*[\s*&]+)+[A-Za-z_]\w*\s*(?:=|$)", head) is not None
    return re.match(r"\s*(?:::\s*)?[A-Za-z_][\w:\s*&]*$", head) is not None


def assignments(code, begin, end):
    """What is assigned between two positions: (target, value), as text; elements of lists in braces one by one."""
    found = []
    for match in ASSIGN.finditer(code, begin, end):
        left = code[max(code.rfind(char, begin, match.start()) for char in ";{}(,") + 1:match.start()]
        at = match.end()
        while at < end and code[at] not in ";,)}":
            close = text.closing(code, at) if code[at] in "([{" else -1
            at = close + 1 if close > 0 else at + 1
        target = re.search(r"[A-Za-z_]\w*(?:\s*(?:\.|->|\[[^\]]*\])\s*\w*)*\s*$", left)
        value = code[match.end():at]
        if target and not re.search(r"\]\s*(?:\([^)]*\))?[^{};()]*\{", value):  # no lambda
            found.append((target.group(0), value))
    for match in re.compile(r"[\w>]\s+(\w+)\s*\{").finditer(code, begin, end):
        close = text.closing(code, match.end() - 1)
        if match.group(1) not in KEYWORDS and close > 0 and ";" not in code[match.end():close]:
            found += [(match.group(1), code[a:b]) for a, b in text.split(code, match.end(), close) or ()]
    for match in re.compile(r"\bfor\s*\([^;()]*?(\w+)\s*:(?!:)\s*([^;)]*)\)").finditer(code, begin, end):
        found.append(match.groups())
    return found


class Values:
    """The names, and whether an expression holds one of them."""

    def __init__(self, program):
        self.program = program
        self.memory, self.handles, self.returns, self.holders = set(), set(), set(), set()
        self.own = {f.name for found in program.functions.values() for f in found}
        self.pointers = {m.group(1) for source in program.everything for m in re.finditer(r"\* ?(\w+) ?\(", source.squeezed)}
        self.bodies = []  # (source, code, begin, end) of functions of the host, and of macros
        for source in program.everything:
            self.bodies += [(source, source.code, f.begin, f.end) for f in program.functions[source.path] if not f.device]
            self.bodies += [(source, source.joined, programs.DEFINE.match(source.joined, begin, end).end(), end)
                            for begin, end in source.directives if programs.DEFINE.match(source.joined, begin, end)]
        self.calls = [call for source, code, begin, end in self.bodies for call in calls(source, code, begin, end)]
        self.parameters = {}  # {function or macro: lists of the names of its parameters}
        for found in program.functions.values():
            for function in found:
                names = "(" + ", ".join(function.params) + ")"
                self.parameters.setdefault(function.name, []).append(names_in(names, 0))
        for name, macro in program.macros.items():
            if macro.params:
                self.parameters.setdefault(name, []).append(macro.params)
        for source in program.everything:
            for match in LAMBDA.finditer(source.code):
                self.parameters.setdefault(match.group(1), []).append(names_in(source.code, match.end() - 1))
        self.found = {}  # what chains() found
        self.scalars = self._scalars()
        self.assigned = [pair for _, code, begin, end in self.bodies for pair in assignments(code, begin, end)]
        self.returned = []  # (function of the program, what it returns)
        for found in program.functions.items():
            code = next(source.code for source in program.everything if source.path == found[0])
            self.returned += [(f.name, m.group(1)) for f in found[1] if f.name not in ("main", "operator") and not f.device and
                              program.kind_of(f.header.split("(")[0]) != "number"
                              for m in re.compile(r"\breturn\b([^;]*);").finditer(code, f.begin, f.end)]
        self._seeds()
        for _ in range(12):
            before = self._count()
            self._spread()
            if self._count() == before:
                break

    def _count(self):
        return len(self.memory) + len(self.handles) + len(self.returns) + len(self.holders)

    def _scalars(self):
        """Names that are declared as numbers, and never as anything else."""
        numbers, others = set(), set()
        declares = re.compile(r"(?<![\w.>:])((?:(?:const|unsigned|signed|long|short|static|std\s*::)\s*\b)*[A-Za-z_]\w*)"
                              r"(\s*(?:<[^;{}()]*>)?[\s*&]*(?:const\s+|__restrict__\s+)?)\b(\w+)\s*(?=[,)=;\[({])")
        for source in self.program.everything:
            for match in declares.finditer(source.squeezed):
                kind = " ".join((match.group(1) + match.group(2)).split())
                if match.group(1).split()[-1] in KEYWORDS - programs.NUMBERS - {"auto"}:
                    continue
                is_number = self.program.kind_of(kind, False) == "number" and source.squeezed[match.end():match.end() + 1] != "["
                (numbers if is_number else others).add(match.group(3))
        return numbers - others

    def chains(self, expression, deep=False):
        """The objects in an expression, each as its words: ["grid", "d_x"] for grid->d_x[i]."""
        if (expression, deep) in self.found:
            return self.found[expression, deep]
        found = re.findall(r"[A-Za-z_]\w*(?:\s*(?:\.|->|::)\s*[A-Za-z_]\w*)*", self.outer(expression, deep))
        found = [[word for word in WORD.findall(chain) if word != "this"] for chain in found]
        found = [words for words in found if words and words[-1] not in self.scalars and words[-1] not in KEYWORDS]
        self.found[expression, deep] = [] if TRUTH.search(self.outer(expression, deep)) else found
        return self.found[expression, deep]

    def give(self, expression, names):
        """The object of an expression is of the GPU; what it is a member of holds such things."""
        for words in self.chains(expression):
            names.add(words[-1])
            self.holders.update(words[:-1])

    def outer(self, expression, deep=False):
        """
        An expression without indices, and without calls but those that give what they are given. deep: of functions that are
        not known the result counts as such, too.
        """
        made, at = "", 0
        while at < len(expression):
            char = expression[at]
            if char in "([{":
                close = text.closing(expression, at)
                close = len(expression) if close < 0 else close
                before = re.search(r"(?:(\w+)\s*(?:<[^;{}()]*>)?)\s*$", made) if char == "(" else None
                name = before.group(1) if before else None
                inner = " " + self.outer(expression[at + 1:close], deep) + " "
                if name is None or name in ("return", "and", "or", "not"):
                    made += " " if char == "[" else inner if char == "(" else " " + inner
                else:
                    made = made[:before.start()].rstrip(".>-: ") + " "
                    made += name + " " if name in self.returns else inner if self._gives(name, deep) else ""
                at = close + 1
            else:
                made += char
                at += 1
        return made

    def _gives(self, name, deep):
        if name in SAME or name in self.program.types or name.endswith("_ptr") or name in self.pointers:
            return True
        return deep and name not in self.own and not KNOWN.match(name)

    def holds(self, expression, handles=True, deep=False):
        """Whether an expression is, or holds, something of the GPU."""
        names = self.memory | self.returns | (self.handles if handles else set())
        return any(words[-1] in self.holders if words[1:] == [] and words[-1] not in names else bool(names & set(words))
                   for words in self.chains(expression, deep))

    def _seeds(self):
        for source in self.program.everything:
            for match in HANDLE.finditer(source.squeezed):
                self.handles.update(WORD.findall(re.sub(r"\[[^\]]*\]", "", match.group(1))))
            self.memory.update(match.group(1) for match in MEMORY.finditer(source.squeezed))
        self.handles -= KEYWORDS
        for call in self.calls:
            arguments = [call.code[a:b] for a, b in call.parts]
            if MAKES_MEMORY.match(call.name) and arguments:
                self.give(arguments[0], self.memory)
            elif COPY.match(call.name) and len(arguments) > 3:
                for operand in arguments[:1] * ("ToDevice" in arguments[3]) + arguments[1:2] * ("DeviceTo" in arguments[3]):
                    self.give(operand, self.memory)
        for source, code, begin, end in self.bodies:
            for match in re.finditer(r"<<<", code[begin:end]):
                self._launch(code, begin + match.start())

    def _launch(self, code, at):
        """What a launch gives to its kernel, but for numbers."""
        end = code.find(">>>", at)
        open_at = text.skip_space(code, end + 3) if end > 0 else -1
        if open_at < 0 or code[open_at:open_at + 1] != "(":
            return
        name = re.search(r"(\w+)\s*(?:<[^;{}()]*>)?\s*$", code[:at])
        kernels = self.program.kernels.get(name.group(1), []) if name else []
        close = text.closing(code, open_at)
        for i, (a, b) in enumerate(text.split(code, open_at + 1, close) or () if close > 0 else ()):
            if not any(i < len(k.params) and self.program.kind_of(k.params[i]) == "number" for k in kernels):
                self.give(code[a:b], self.memory)

    def _spread(self):
        for call in self.calls:
            given = [(i, self.holds(call.code[a:b], False), self.holds(call.code[a:b])) for i, (a, b) in enumerate(call.parts)]
            for i, memory, any_of in given:
                if not any_of:
                    continue
                into = self.memory if memory else self.handles
                for names in self.parameters.get(call.name, ()):
                    into.update(names[i:i + 1])
                if call.is_member:
                    self.give(call.receiver, into)
                for a, b in call.parts:  # a lambda that is called with it, as by for_each
                    inner = re.match(r"\s*\[[^\]]*\]\s*\(", call.code[a:b])
                    if inner and memory:
                        self.memory.update(names_in(call.code, a + inner.end() - 1))
                if call.name not in self.own and not call.is_member and is_declaration(call):
                    into.add(call.name)
        for target, value in self.assigned:
            if self.holds(value):
                self.give(target, self.memory if self.holds(value, False) else self.handles)
        returns = len(self.returns)
        for name, value in self.returned:
            if self.holds(value, False):
                self.returns.add(name)
        if len(self.returns) > returns:
            self.found = {}
        self.memory -= self.scalars | KEYWORDS
        self.handles -= self.scalars | KEYWORDS
