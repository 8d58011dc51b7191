"""Whose a member is that a call names: of a class of the program, of the standard library, or of something else."""
import re

import acs_adopt.gpu_values as gpu_values
import acs_adopt.program as programs
import acs_adopt.text as text

DECLARES = re.compile(r"(?<![\w.>:])((?:::)?(?:\w+ ?:: ?)*[A-Za-z_]\w*(?: ?<[^;{}()]*?>)?(?: ?:: ?\w+)?)( ?(?:const )?[*& ]+(?:const )?)(?=\w)")
NAMES = re.compile(r"([A-Za-z_]\w*) ?(\[[^\]]*\] ?)*(?=[,)=;({]|:(?!:))")
STANDARD = frozenset("array basic_string deque forward_list function future initializer_list istream list map multimap multiset "
                     "mutex ofstream ifstream fstream optional ostream ostringstream istringstream pair priority_queue queue set "
                     "shared_ptr span stack string string_view stringstream thread tuple unique_ptr unordered_map unordered_set "
                     "valarray variant vector weak_ptr atomic bitset condition_variable lock_guard unique_lock".split())


class Objects:
    """Types of the objects of a program, by name. A name may have several."""

    def __init__(self, program, values):
        self.program = program
        self.bodies = {(f.scope, f.name) for found in program.functions.values() for f in found}
        self.classes = [c for found in program.classes.values() for c in found]
        self.parameters = set()  # names of types that stand for any type
        self.loops = {}
        self.types = {}
        self.plain_std = False  # whether names of the standard library may stand without std::
        for source in program.everything:
            code = source.squeezed
            self.plain_std = self.plain_std or bool(re.search(r"\busing (?:namespace std ?;|std ?:: ?\w+ ?;)", code))
            self.parameters.update(re.findall(r"\b(?:class|typename) (?:\.\.\. ?)?(\w+) ?[,>=]", code))
            for match in re.finditer(r"\bfor ?\([^;()]*?(\w+) ?:(?!:) ?([^;)]*)\)", code):
                self.loops.setdefault(match.group(1), []).append(match.group(2))
            for match in re.finditer(r"\bauto ?[*&]* ?(\w+) ?= ?(?:new |(?:std ?:: ?)?make_(?:unique|shared) ?< ?)([\w: ]+)", code):
                self._add(match.group(1), match.group(2).strip() + "*")
            for match in DECLARES.finditer(code):
                self._declared(code, match, values.scalars)

    def _declared(self, code, match, scalars):
        kind = match.group(1)
        if kind in scalars or kind in gpu_values.KEYWORDS | gpu_values.NOT_DECLARES or kind in programs.NO_TYPE + (
                "const", "static", "extern", "using", "namespace", "typedef", "public", "private", "protected", "virtual", "inline"):
            return
        at, kind = match.end(), kind + match.group(2).replace("const", "").replace("&", "").strip()
        while True:  # all names of a list
            name = NAMES.match(code, at)
            if not name:
                return
            self._add(name.group(1), kind + ("*" if name.group(2) else ""))
            following = re.compile(r"(?: ?= ?[^,;(){}]*| ?\{[^{}]*\})? ?, ?[*&]* ?").match(code, name.end())
            if not following:
                return
            at = following.end()

    def _add(self, name, kind):
        self.types.setdefault(name, set()).add(kind)

    def _resolved(self, kind):
        """A type with the names of the program's own replaced."""
        for _ in range(8):
            bare = kind.rstrip("* ")
            if bare not in self.program.types:
                break
            kind = self.program.types[bare].strip() + kind[len(bare):]
        kind = re.sub(r"^(?:(?:const|struct|class|typename) |::)+", "", kind.strip())
        known = any(c.name == re.split(r"[<*]", kind)[0].strip() for c in self.classes)
        plain = re.match(r"(\w+)", kind)
        return "std::" + kind if self.plain_std and plain and plain.group(1) in STANDARD and not known else kind

    def _element(self, kind):
        """What a pointer, an array, or a container of the standard library gives; None: not known."""
        kind = self._resolved(kind)
        if kind.endswith("*"):
            return kind[:-1].strip()
        match = re.match(r"std ?:: ?(\w+) ?<(.*)>$", kind)
        parts = text.split(match.group(2), 0, len(match.group(2))) if match else None
        number = 1 if match and "map" in match.group(1) else 0
        return match.group(2)[slice(*parts[number])].strip() if parts and len(parts) > number else None

    def of(self, expression, scope, depth=0):
        """The types that an object may have; None among them: one that is not known."""
        expression = expression.strip()
        while expression.startswith("(") and text.closing(expression, 0) == len(expression) - 1:
            expression = expression[1:-1].strip()
        if depth > 8:
            return {None}
        if expression == "this":
            return {scope + "*" if scope else None}
        if expression.startswith("*"):
            return self._elements(self.of(expression[1:], scope, depth + 1))
        if expression.endswith("]"):
            at = text.opening(expression, len(expression) - 1)
            return self._elements(self.of(expression[:at], scope, depth + 1)) if at > 0 else {None}
        name = re.search(r"(?:^|[.>:]\s*)([A-Za-z_]\w*)$", expression)
        if not name:
            return {None}
        found = set(self.types.get(name.group(1), ()))
        for container in self.loops.get(name.group(1), ()):
            found.discard("auto")
            found |= self._elements(self.of(container, scope, depth + 1))
        return found or {None}

    def _elements(self, kinds):
        return {self._element(kind) if kind else None for kind in kinds}

    def has_body(self, name, member, depth=0):
        """Whether the program defines this member of the class, or of one that it is derived from."""
        if (name, member) in self.bodies:
            return True
        found = [c for c in self.classes if c.name == name]
        return depth < 8 and any((c.local and not c.bases) or any(self.has_body(b, member, depth + 1) for b in c.bases) for c in found)

    def whose(self, call, scope):
        """Whose a member is: "own", "std", "gpu" of Thrust and its like, "other", or None: not known."""
        kinds = self.of(call.receiver, scope)
        if call.arrow:
            kinds = self._elements(kinds)
        found = {self._whose(kind, call.name) for kind in kinds}
        return "own" if found <= {"own", "std"} else found.pop() if len(found) == 1 else "other" if "other" in found else None

    def _whose(self, kind, member):
        if kind is None:
            return None
        kind = re.sub(r"\s", "", self._resolved(kind))
        if kind.startswith("std::"):
            return "std"
        if kind.startswith(("thrust::", "cuda::")):
            return "gpu"
        name = re.sub(r"<.*", "", kind).split("::")[-1]
        if kind.endswith("*") or not re.match(r"[A-Za-z_]\w*$", name) or name in self.parameters or name in ("auto", "void") or \
                name in programs.NUMBERS:
            return None
        return "own" if self.has_body(name, member) else "other"
