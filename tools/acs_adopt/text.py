"""The text of one source file: what is code in it, which brackets belong together, and where statements begin."""
import re

OPEN = {")": "(", "]": "[", "}": "{"}
CLOSE = {value: key for key, value in OPEN.items()}
TOKEN = re.compile(
    r'//(?:[^\n\\]|\\[\s\S])*|/\*[\s\S]*?(?:\*/|\Z)|\b(?:u8|u|U|L)?R"([^\s()\\]{0,16})\([\s\S]*?\)\1"'
    r"|\"(?:[^\"\\\n]|\\[\s\S])*\"?|\d[\w.']*|'(?:[^'\\\n]|\\[\s\S])*'?")
DIRECTIVE = re.compile(r"^[ \t]*#", re.M)
CONTROL = ("if", "for", "while", "switch", "constexpr")


def blank(text):
    """The text with each character but line ends as a space."""
    return re.sub(r"[^\n]", " ", text)


class Source:
    """
    text: as read. plain: the same without comments and contents of strings, at the same positions. code: plain without
    preprocessor lines. joined: plain with lines of macros joined. squeezed: code with single spaces, for names. directives: (begin, end) of each of these. edits: (begin, end, new text), made by the rules.
    """

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.line_comments = []
        self.plain = self._mask()
        self.directives = self._find_directives()
        code = self.plain
        for begin, end in self.directives:
            code = code[:begin] + blank(code[begin:end]) + code[end:]
        self.code = code
        self.joined = self.plain.replace("\\\n", " \n").replace("\\\r\n", " \r\n")
        self.squeezed = " ".join(code.split())
        self.edits = []

    def _mask(self):
        parts, at = [], 0
        for match in TOKEN.finditer(self.text):
            token = match.group(0)
            if token[0].isdigit():
                continue
            parts.append(self.text[at:match.start()])
            if token.startswith("//"):
                self.line_comments.append(match.span())
            if token[0] == "/":
                parts.append(blank(token))
            else:
                quote = token.index('"') if '"' in token else 0
                parts.append(token[:quote + 1] + blank(token[quote + 1:-1]) + token[-1:] if len(token) > 1 else token)
            at = match.end()
        parts.append(self.text[at:])
        return "".join(parts)

    def _find_directives(self):
        found, at = [], 0
        while True:
            match = DIRECTIVE.search(self.plain, at)
            if not match:
                return found
            end = match.end()
            while True:
                end = self.text.find("\n", end)
                if end < 0:
                    end = len(self.text)
                    break
                if not self.text[:end].rstrip("\r").endswith("\\"):
                    break
                end += 1
            # A comment that began in this line may end in a later one: the rest of that line belongs to it.
            found.append((match.start(), end))
            at = end

    def line(self, at):
        """Number of the line of a position."""
        return self.text.count("\n", 0, at) + 1

    def indent(self, at):
        """White space that the line of a position begins with."""
        begin = self.text.rfind("\n", 0, at) + 1
        return re.match(r"[ \t]*", self.text[begin:]).group(0)

    def column(self, at):
        """Columns before a position in its line."""
        return at - self.text.rfind("\n", 0, at) - 1

    def crosses_directive(self, begin, end):
        """Whether a preprocessor line lies between two positions, or begins or ends there."""
        return any(first < end and begin < last for first, last in self.directives)

    def inside(self, ranges, at):
        """Whether a position lies in one of these ranges."""
        return any(begin <= at < end for begin, end in ranges)

    def part(self, begin, end):
        """The text of an argument: no space around it, and no line comment that would swallow what follows."""
        while begin < end and self.text[begin].isspace():
            begin += 1
        while end > begin and self.text[end - 1].isspace():
            end -= 1
        for first, last in self.line_comments:
            if begin <= first < end <= last:
                return self.text[begin:first] + "/*" + self.text[first + 2:end].replace("*/", "* /") + " */"
        return self.text[begin:end]

    def edit(self, begin, end, new):
        """Replace text, unless an edit around it does so."""
        if not any(first < end and begin < last for first, last, _ in self.edits):
            self.edits.append((begin, end, new))

    def result(self):
        """The text with all edits."""
        text = self.text
        for begin, end, new in sorted(self.edits, reverse=True):
            text = text[:begin] + new + text[end:]
        return text


def skip_space(code, at):
    """The next position that is no white space."""
    while at < len(code) and code[at].isspace():
        at += 1
    return at


def back(code, at):
    """The last position before `at` that is no white space; -1: none."""
    at -= 1
    while at >= 0 and code[at].isspace():
        at -= 1
    return at


def closing(code, at):
    """Position of the bracket that closes the one at `at`; -1: none."""
    stack = []
    for position in range(at, len(code)):
        char = code[position]
        if char in CLOSE:
            stack.append(char)
        elif char in OPEN:
            if not stack or stack.pop() != OPEN[char]:
                return -1
            if not stack:
                return position
    return -1


def opening(code, at):
    """Position of the bracket that opens the one at `at`; -1: none."""
    stack = []
    for position in range(at, -1, -1):
        char = code[position]
        if char in OPEN:
            stack.append(char)
        elif char in CLOSE:
            if not stack or stack.pop() != CLOSE[char]:
                return -1
            if not stack:
                return position
    return -1


def opening_angle(code, at):
    """Position of the < that belongs to the > at `at`; -1: none."""
    depth, position = 0, at
    while position >= 0:
        char = code[position]
        if char == ">" and code[position - 1] != "-":
            depth += 1
        elif char == "<":
            depth -= 1
            if depth == 0:
                return position
        elif char in ")]}":
            position = opening(code, position)
            if position < 0:
                return -1
        elif char in "({[;":
            return -1
        position -= 1
    return -1


def closing_angle(code, at, end):
    """Position of the > that closes the template arguments which begin with the < at `at`; -1: they are none."""
    if at == 0 or not (code[at - 1].isalnum() or code[at - 1] == "_") or code[at + 1:at + 2] in ("<", "="):
        return -1
    depth, position = 0, at
    while position < end:
        char = code[position]
        if char == "<":
            depth += 1
        elif char == ">" and code[position - 1] != "-":
            depth -= 1
            if depth == 0:
                return position
        elif char in "([":
            position = closing(code, position)
            if position < 0:
                return -1
        elif not (char.isalnum() or char.isspace() or char in "_:,*&.+-/%'"):
            return -1
        if code[position:position + 2] in ("&&", "||"):
            return -1
        position += 1
    return -1


def split(code, begin, end):
    """(begin, end) of each part between commas outside brackets and template arguments. Nothing but space: none."""
    parts, first, at = [], begin, begin
    while at < end:
        char = code[at]
        if char in CLOSE:
            at = closing(code, at)
            if at < 0 or at >= end:
                return None
        elif char == "<":
            close = closing_angle(code, at, end)
            if close >= 0:
                at = close
        elif char == ",":
            parts.append((first, at))
            first = at + 1
        at += 1
    if parts or code[begin:end].strip():
        parts.append((first, end))
    return parts


def word_before(code, at):
    """The identifier that ends just before a position, with white space between: (word, where it begins)."""
    last = back(code, at)
    begin = last
    while begin >= 0 and (code[begin].isalnum() or code[begin] == "_"):
        begin -= 1
    return code[begin + 1:last + 1], begin + 1


def is_statement(code, begin, end):
    """Whether the expression from begin to end is a whole statement: nothing uses its value."""
    after = skip_space(code, end)
    if after >= len(code) or code[after] != ";":
        return False
    last = back(code, begin)
    if last < 0 or code[last] in ";{}":
        return True
    if code[last] == ")":
        open_at = opening(code, last)
        return open_at >= 0 and word_before(code, open_at)[0] in CONTROL
    if code[last] == ":" and code[last - 1] != ":":
        first = last
        while first > 0 and code[first - 1] not in ";{}":
            first -= 1
        return "?" not in code[first:last]
    return word_before(code, begin)[0] in ("else", "do")
