"""What the rules must know of the whole program: its kernels and functions, captures, timers, memory that the host sees."""
import collections
import os
import re

import acs_adopt.text as text

Kernel = collections.namedtuple("Kernel", "name path template params defaults")
Function = collections.namedtuple("Function", "name begin end device member params header scope")  # scope: class or namespace
Class = collections.namedtuple("Class", "name begin end bases local")  # local: in a function
Macro = collections.namedtuple("Macro", "params body")  # params: None where it has no brackets

ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|__attribute__|__align__|alignas|__maxnreg__|__cluster_dims__|"
                       r"__block_size__|__declspec|noexcept|decltype)\s*\(")
SCOPE = re.compile(r"^\s*(?:inline\s+)?(?:namespace\b|extern\b[^()]*$|(?:template\s*<[^{}]*>\s*)?(?:typedef\s+)?"
                   r"(?:class|struct|union|enum)\b[^()]*$|(?:class|struct|union)\b[^(]*:[^:])")
NO_TYPE = ("return", "else", "case", "goto", "throw", "delete", "do", "class", "struct", "new", "typename", "co_return")
NO_FUNCTION = ("if", "for", "while", "switch", "catch", "return", "sizeof", "defined")
# Memory that the host sees without a copy, or a copy that runs on after its call.
SEEN = re.compile(r"\b(cudaMallocManaged|__managed__|cudaHostAlloc|cudaMallocHost|cudaHostRegister|cudaHostGetDevicePointer|"
                  r"cuMemAllocManaged|cuMemHostAlloc|cudaMemAllocationTypePinned)\b")
ASYNC = re.compile(r"\bcudaMemcpyAsync\s*\(")
CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:[A-Za-z_]\w*\s+)*?([A-Za-z_]\w*)\s*(?:<[^{}]*>)?\s*(?:final\s*)?(?::(?!:)([\s\S]*))?$")
OWNER = re.compile(r"(\w+)\s*(?:<[^;{}]*>)?\s*::\s*~?\w+\s*$")
CAPTURE = re.compile(r"\bcu(?:da)?StreamBeginCapture\w*\s*\(")
# Waits of the GPU for something that is no call of this program's order.
OUTER = re.compile(r"\b(cuStreamWaitValue\w*|cuStreamBatchMemOp\w*|cudaWaitExternalSemaphoresAsync\w*|cudaIpc\w+|"
                   r"cudaStreamAttachMemAsync)\s*\(")


DEFINE = re.compile(r"\s*#\s*define\s+(\w+)(\(([^)]*)\))?")
GPU_CODE = re.compile(r"\b(?:__global__|__device__)\b")
# What may stand between the brackets of the parameters and other brackets of the same header.
AFTER_PARAMETERS = re.compile(r"\b(?:const|noexcept|override|final|volatile|requires|try|throw)\b|->|:|=")
NUMBERS = frozenset("bool char short int long unsigned signed float double size_t ssize_t half __half dim3 "
                    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint ushort uchar ulong ptrdiff_t "
                    "intptr_t uintptr_t char1 char2 char3 char4 int2 int3 int4 uint2 uint3 uint4 float1 float2 float3 float4 "
                    "double2 double3 double4 long2 cuComplex cuFloatComplex cuDoubleComplex "
                    "cudaTextureObject_t cudaSurfaceObject_t".split())


def macros(source):
    """The macros that a file defines, by name."""
    found = {}
    for begin, end in source.directives:
        match = DEFINE.match(source.plain, begin, end)
        if match:
            params = match.group(3)
            body = source.plain[match.end():end].replace("\\\n", " \n").replace("\\\r\n", " \r\n")
            found[match.group(1)] = Macro(params if params is None else [p.strip() for p in params.split(",")], body)
    return found


def expanded(words, known, depth=8):
    """The text with macros that have no brackets replaced."""
    if depth == 0:
        return words
    return re.sub(r"[A-Za-z_]\w*", lambda m: expanded(known[m.group(0)].body, known, depth - 1)
                  if m.group(0) in known and known[m.group(0)].params is None else m.group(0), words)


def declared(header):
    """(name, position of the bracket of its parameters) of the function that a header declares, or None."""
    at = 0
    while True:
        match = re.compile(r"([~\w]+)\s*\(").search(header, at)
        if not match:
            return None
        close = text.closing(header, match.end() - 1)
        following = re.compile(r"[^()]*?[\w>*&]\s*\(").match(header, close + 1) if close > 0 else None
        if not following or AFTER_PARAMETERS.search(following.group(0)):
            return match.group(1), match.end() - 1
        at = close + 1  # an attribute, or a macro that stands for one


def without_attributes(header):
    """The header of a function without attributes that have brackets."""
    while True:
        match = ATTRIBUTE.search(header)
        if not match:
            return header
        end = text.closing(header, match.end() - 1)
        if end < 0:
            return header
        header = header[:match.start()] + " " * (end + 1 - match.start()) + header[end + 1:]


def one_branch(source):
    """The code, with what is between #else and #endif left out where its brackets do not match by themselves."""
    code, stack = source.code, []
    for begin, end in source.directives:
        word = re.match(r"\s*#\s*(\w*)", source.plain[begin:end]).group(1)
        if word in ("if", "ifdef", "ifndef"):
            stack.append(None)
        elif word in ("else", "elif", "endif") and stack:
            if stack[-1] is not None:
                branch = code[stack[-1]:begin]
                if branch.count("{") != branch.count("}"):
                    code = code[:stack[-1]] + text.blank(branch) + code[begin:]
            if word == "endif":
                stack.pop()
            else:
                stack[-1] = end
    return code


def parameters(header, open_at):
    """The parameters of a header, each with single spaces."""
    close = text.closing(header, open_at)
    found = [" ".join(header[a:b].split()) for a, b in text.split(header, open_at + 1, close) or ()] if close > 0 else []
    return [] if found == ["void"] else found


def without_template(header):
    """The header of a function without template <...>, in which there may be types of functions."""
    match = re.match(r"[\s\S]*?\btemplate\s*<", header)
    depth = 1 if match else 0
    for at in range(match.end() if match else 0, len(header)):
        depth += (header[at] == "<") - (header[at] == ">" and header[at - 1] != "-")
        if depth == 0:
            return header if not match else " " * (at + 1) + without_template(header[at + 1:])
    return header


def scope_of(header):
    """(kind, name, base classes) of what a header that is no function's opens: a class, a namespace or a block."""
    found = CLASS.search(header.rstrip())
    if re.search(r"\b(?:class|struct|union)\b", header):
        bases = re.sub(r"\b(?:public|protected|private|virtual)\b|<[^{}]*>", " ", found.group(2) or "") if found else ""
        return "class", found.group(1) if found else "", [base.split("::")[-1].strip() for base in bases.split(",") if base.strip()]
    found = re.search(r"\bnamespace\s+(?:\w+\s*::\s*)*(\w+)\s*$", header)
    return "block", found.group(1) if found else "", []


def functions(source, known):
    """The functions and classes that a file defines."""
    code, found, classes, stack, first = one_branch(source), [], [], [], 0
    for match in re.finditer(r"[{};]", code):
        char, at = match.group(0), match.start()
        if char == "{":
            header = without_template(without_attributes(code[first:at]))
            name = declared(header)
            inside = any(kind == "function" for kind, _, _ in stack)
            if not inside and name and not SCOPE.match(header) and name[0] not in NO_FUNCTION and \
                    "=" not in header[:name[1]]:
                owner = OWNER.search(header[:name[1]])
                member = any(kind == "class" for kind, _, _ in stack) or owner is not None
                scope = owner.group(1) if owner else next((word for _, _, word in reversed(stack) if word), "")
                found.append(Function(name[0], at, len(code), bool(GPU_CODE.search(expanded(header, known))), member,
                                      parameters(header, name[1]), header, scope))
                stack.append(("function", len(found) - 1, ""))
            else:
                kind, word, bases = scope_of(header)
                if kind == "class":
                    classes.append(Class(word, at, len(code), bases, inside))
                stack.append((kind, len(classes) - 1, word))
        elif char == "}" and stack:
            kind, number, _ = stack.pop()
            if kind == "function":
                found[number] = found[number]._replace(end=at + 1)
            elif kind == "class":
                classes[number] = classes[number]._replace(end=at + 1)
        first = at + 1
    return found, classes


def templates_shown(header, known):
    """A header with macros that have brackets, and stand for template <...>, replaced. Their parameters stay as they are."""
    for match in reversed(list(re.finditer(r"\b(\w+)\s*\(", header))):
        macro, close = known.get(match.group(1)), text.closing(header, match.end() - 1)
        if macro and close > 0 and re.search(r"\btemplate\b", expanded(macro.body, known)):
            header = header[:match.start()] + expanded(macro.body, known) + header[close + 1:]
    return header


def kernels(source, known):
    """The kernels that a file declares or defines."""
    found = []
    words = ["__global__"] + [name for name in known if "__global__" in expanded(name, known)]
    for match in re.finditer(r"\b(?:" + "|".join(words) + r")\b", source.code):
        end = re.compile(r"[;{]").search(source.code, match.end())
        if not end:
            continue
        header = without_attributes(source.code[match.end():end.start()])
        name = declared(header)
        if not name or header[text.closing(header, name[1]) + 1:].lstrip().startswith("("):
            continue  # none, or a macro makes its name
        params = parameters(header, name[1])
        # template <...> before __global__, with nothing but words and attributes between. Macros may stand for any of it.
        before = re.split(r"[;{}]", source.code[max(0, match.start() - 1000):match.start()])[-1]
        before += expanded(match.group(0), known).partition("__global__")[0]
        before = without_attributes(templates_shown(expanded(before, known), known)).rstrip()
        before = before[:re.search(r"(?:\b[A-Za-z_]\w*\s*(?:\([^(){};]*\)\s*)?)*$", before).start()].rstrip()
        template = None
        if before.endswith(">"):
            open_at = text.opening_angle(before, len(before) - 1)
            if open_at > 0 and text.word_before(before, open_at)[0] == "template":
                inner = text.split(before, open_at + 1, len(before) - 1) or []
                template = [before[a:b] for a, b in inner]
        if template == []:
            continue  # an explicit specialisation
        found.append(Kernel(name[0], source.path, template, params, sum("=" in p for p in params)))
    return found


class Program:
    """All files that were given, and the local headers that they include."""

    def __init__(self, sources, include_dirs=()):
        self.sources = sources
        self.notes = []  # (source, position, text)
        self.headers = {}
        self.sees = {}  # {path: paths of the files that it is made of}
        self.given = {os.path.realpath(s.path) for s in sources}
        for source in sources:
            self.sees[source.path] = self._includes(source, include_dirs, set())
        everything = list(sources) + [s for s in self.headers.values() if os.path.realpath(s.path) not in self.given]
        self.kernels = collections.defaultdict(list)
        self.functions, self.classes = {}, {}
        self.macros = {}
        for source in everything:
            self.macros.update(macros(source))
        for source in everything:
            for kernel in kernels(source, self.macros):
                self.kernels[kernel.name].append(kernel)
            self.functions[source.path], self.classes[source.path] = functions(source, self.macros)
        self.everything = everything
        self.types = self._types()
        self._facts()
        self._captures()
        self._devices()

    def _includes(self, source, dirs, seen):
        seen.add(os.path.realpath(source.path))
        for begin, end in source.directives:
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', source.text[begin:end])
            if not match:
                continue
            for folder in [os.path.dirname(source.path)] + list(dirs):
                path = os.path.join(folder, match.group(1))
                real = os.path.realpath(path)
                if not os.path.isfile(path) or real in seen:
                    continue
                if real not in self.headers:
                    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                        self.headers[real] = text.Source(os.path.relpath(path), file.read())
                    if real not in self.given and re.search(r"<<<|\bcudaMemcpy(?:Async)?\s*\(", self.headers[real].plain):
                        self.notes.append((source, begin, match.group(1) +
                                           " has launches or copies, too: give this file to acs-adopt as well"))
                self._includes(self.headers[real], dirs, seen)
                break
        return seen

    def _facts(self):
        self.prints = None  # the function by which kernels print: only waits of the CUDA runtime write that
        self.seen_by_host = None  # why a blocking copy must wait for all that came before
        self.timed = set()  # names of events whose times are taken
        self.outer = []
        self.thrust = False
        for source in self.everything:
            for function in self.functions[source.path]:
                said = re.findall(r"\b(printf|assert)\s*\(", source.code[function.begin:function.end])
                if function.device and said and self.prints != "printf":
                    self.prints = max(said)
            match = SEEN.search(source.code)
            if match and not self.seen_by_host:
                self.seen_by_host = match.group(1)
            for call in ASYNC.finditer(source.code):
                close = text.closing(source.code, call.end() - 1)
                if "DeviceToDevice" not in source.code[call.end():close] and not self.seen_by_host:
                    self.seen_by_host = "cudaMemcpyAsync"
            for call in re.finditer(r"\bcudaEventElapsedTime\s*\(", source.plain):
                parts = text.split(source.plain, call.end(), text.closing(source.plain, call.end() - 1)) or []
                for begin, end in parts[1:]:
                    self.timed.update(re.findall(r"[A-Za-z_]\w*", source.plain[begin:end]))
            self.outer += [(source, m.start(), m.group(1)) for m in OUTER.finditer(source.code)]
            self.thrust = self.thrust or bool(re.search(r"\bthrust::(?:device|host|universal)_vector\b", source.code))

    def _types(self):
        """What names of types stand for, as far as these files say it."""
        found = {}
        for source in self.everything:
            found.update((m.group(2), m.group(1)) for m in re.finditer(r"\btypedef ([^;{}()]+?)\b(\w+) ?;", source.squeezed))
            found.update((m.group(1), m.group(2)) for m in re.finditer(r"\busing (\w+) ?= ?([^;{}]+);", source.squeezed))
        return found

    def is_macro(self, name):
        """Whether a name is that of a macro with brackets."""
        return name in self.macros and self.macros[name].params is not None

    def is_variable(self, name):
        """Whether a file seems to declare a variable or a parameter of this name."""
        found = re.compile(r"\(\s*(?:\w+\s*::\s*)*\*\s*(?:const\s+)?" + name + r"\b|"
                           r"(?<![\w.>])([A-Za-z_]\w*)(?:\s*<[^;{}()]*>)?(?:\s*[*&]+\s*|\s+)" + name + r"\s*(?:[,)=;\[{]|>(?!>))")
        return any(match.group(1) not in NO_TYPE for source in self.everything for match in found.finditer(source.squeezed))

    def host_functions(self, name):
        """Functions of the host with this name that are no members."""
        return [f for found in self.functions.values() for f in found
                if f.name == name and not f.member and "__global__" not in expanded(f.header, self.macros)]

    def kind_of(self, parameter, named=True):
        """Whether a parameter, or a type, is a "pointer", a "number" or neither of them for certain (None)."""
        kind = re.sub(r"\s*=.*", "", parameter)
        kind = re.sub(r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct|typename|__grid_constant__)\b", " ", kind)
        for _ in range(8):
            if "*" in kind or "[" in kind:
                return "pointer"
            words = re.findall(r"[\w:<>]+", expanded(kind, self.macros))
            words = [word[5:] if word.startswith("std::") else word for word in words]
            if words and words[0] in NUMBERS and all(word in NUMBERS for word in words[:-1 if named and words[1:] else None]):
                return "number"
            if not words or words[0] not in self.types:
                return None
            kind, named = self.types[words[0]], False
        return None

    def _captures(self):
        """(file, line) of the first capture of a stream; None: there is none."""
        self.captures = None
        for source in self.everything:
            match = CAPTURE.search(source.code)
            if match and not self.captures:
                self.captures = (source.path, source.line(match.start()))

    def _devices(self):
        """Whether the program uses several GPUs: it then chooses one in a loop, or in several ways."""
        self.several_devices = None
        chosen = set()
        for source in self.sources:
            for match in re.finditer(r"\bcudaSetDevice\s*\(", source.code):
                if text.word_before(source.code, match.start())[0] in ("cudaError_t", "void", "int"):
                    continue
                close = text.closing(source.code, match.end() - 1)
                argument = " ".join(source.code[match.end():close].split())
                chosen.add(argument)
                looped = self._in_loop(source, match.start(), argument)
                if (looped or len(chosen) > 1) and not self.several_devices:
                    self.several_devices = (source, match.start())

    def _in_loop(self, source, at, argument):
        function = self.function_at(source, at)
        if not function:
            return False
        names = set(re.findall(r"[A-Za-z_]\w*", argument))
        for loop in re.finditer(r"\b(?:for|while)\s*\(", source.code[function.begin:at]):
            open_at = function.begin + loop.end() - 1
            close = text.closing(source.code, open_at)
            body = text.skip_space(source.code, close + 1)
            end = text.closing(source.code, body) if source.code[body] == "{" else source.code.find(";", body)
            if body <= at <= end and (names & set(re.findall(r"[A-Za-z_]\w*", source.code[open_at:close]))):
                return True
        return False

    def function_at(self, source, at):
        """The function whose body a position is in, or None."""
        for function in self.functions[source.path]:
            if function.begin <= at < function.end:
                return function
        return None

    def on_device(self, source, at):
        """Whether a position is in code of the GPU."""
        function = self.function_at(source, at)
        return function is not None and function.device

    def kernels_seen(self, source, name):
        """Declarations of a kernel that this file sees; where it sees none, those of the program."""
        found = self.kernels.get(name, [])
        own = [k for k in found if os.path.realpath(k.path) in self.sees[source.path]]
        return own or found

    def sync_stays(self):
        """Why the runtime's own waits must stay; None: acs_sync does what they do."""
        if self.prints:
            return "kernels call " + self.prints + ", and only waits of the CUDA runtime write what they say"
        if self.thrust:
            return "containers of Thrust run work of their own"
        if self.outer:
            return self.outer[0][2] + " is used"
        return None
