"""The rules for kernel launches: kernel<<<grid, block, shared, stream>>>(arguments)."""
import re

import acs_adopt.gpu_values as gpu_values
import acs_adopt.text as text

NAME = re.compile(r"[A-Za-z_]\w*$")
COLUMNS = 120
REAL = re.compile(r"\b(?:ceilf?|floorf?|roundf?|sqrtf?|powf?|log2f?|float|double)\b|\d\.|\.\d")


BY_HAND = ": write ACS_LAUNCH or ACS_OUTSIDE yourself"


class Left(Exception):
    """A launch that stays as it is, why, and where its kernel begins if that is certain."""

    def __init__(self, why, begin=-1):
        super().__init__(why)
        self.begin = begin


def kernel_before(code, at):
    """What stands before <<<: (begin, end, name or None, number of template arguments or None, kind)."""
    last = text.back(code, at)
    end, template, kind, name = last + 1, None, "name", None
    if last >= 0 and code[last] == ">":
        open_at = text.opening_angle(code, last)
        if open_at < 0:
            raise Left("the kernel's name is not understood")
        template = len(text.split(code, open_at + 1, last) or [])
        last = text.back(code, open_at)
    if last >= 0 and code[last] in ")]":
        kind = "pointer"
        begin = last + 1
        while last >= 0 and code[last] in ")]" and code[begin:begin + 1] != "(":
            begin = text.opening(code, last)
            if begin < 0:
                raise Left("the kernel's name is not understood")
            last = text.back(code, begin)
        if last >= 0 and (code[last].isalnum() or code[last] == "_"):
            if code[begin] == "(" and text.word_before(code, begin)[0] not in text.CONTROL + ("else", "do", "return"):
                raise Left("a macro or a call gives the kernel", gpu_values.chain_begin(code, text.word_before(code, begin)[1]))
            if code[begin] == "(":
                return begin, end, None, template, kind
        else:
            return begin, end, None, template, kind
    match = NAME.search(code[:last + 1])
    if not match:
        raise Left("the kernel's name is not understood")
    name, begin = match.group(0), match.start()
    while True:  # qualifiers
        before = text.back(code, begin)
        if before > 0 and code[before - 1:before + 1] == "::":
            before = text.back(code, before - 1)
        elif before > 0 and (code[before] == "." or code[before - 1:before + 1] == "->"):
            kind = "pointer"
            before = text.back(code, before - (1 if code[before] == ">" else 0))
        else:
            return begin, end, name, template, kind
        if before >= 0 and code[before] == ">":
            before = text.back(code, text.opening_angle(code, before))
        elif before >= 0 and code[before] in ")]":
            before = text.back(code, text.opening(code, before))
        match = NAME.search(code[:before + 1])
        if not match:
            return text.skip_space(code, before + 1), end, name, template, kind
        begin = match.start()


def find_close(code, at):
    """Position of the >>> that ends the configuration which begins at `at`; -1: none that is certain."""
    depth, found = 0, []
    position = at
    while position < len(code):
        char = code[position]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif char == ";":
            break
        elif depth == 0 and code.startswith(">>>", position):
            following = text.skip_space(code, position + 3)
            if code[following:following + 1] == "(":
                parts = text.split(code, at, position)
                angles = sum(1 for m in re.finditer(r"\w<(?![<=])", code[at:position])) - \
                    len(re.findall(r"(?<!-)>", code[at:position]))
                if parts and 2 <= len(parts) <= 4:
                    found.append((abs(angles), position))
        position += 1
    return min(found)[1] if found else -1


def end_of_launch(code, at):
    """(position of >>>, of the opening bracket of the arguments, of the closing one), for the <<< at `at`."""
    close = find_close(code, at + 3)
    if close < 0:
        raise Left("the end of the launch's configuration is not certain")
    open_at = text.skip_space(code, close + 3)
    end = text.closing(code, open_at)
    if end < 0:
        raise Left("the end of the launch is not found")
    return close, open_at, end


def same_kernel(one, other):
    """Whether two declarations are of one kernel: as many parameters, of the same types as far as that is plain."""
    if len(one.params) != len(other.params) or (one.template is None) != (other.template is None):
        return False
    for a, b in zip(one.params, other.params):
        types = [re.sub(r"\s*([*&])\s*", r" \1 ", re.sub(r"\s*=.*", "", p)).strip() for p in (a, b)]
        bare = [re.sub(r"\s*\b\w+(\s*\[\s*\])?$", "", t) for t in types]
        if not {types[0], bare[0]} & {types[1], bare[1]}:
            return False
    return True


def check_kernel(program, source, name, template, kind, count, unpacked):
    """The declaration of the kernel, or None where it is no kernel that is known; Left where a launch must stay."""
    if name is None or kind == "pointer":
        return None
    declared = program.kernels_seen(source, name)
    if not declared and program.is_variable(name):
        return None
    if not declared:
        raise Left("no kernel of this name is in these files, so it may be a template: give the file that declares it, too")
    if program.host_functions(name):
        raise Left("a function of the host has this name, too: give the launch a pointer to the kernel")
    if any(not same_kernel(declared[0], other) for other in declared[1:]):
        raise Left("there are several kernels of this name: give the launch a pointer to one of them")
    kernel = declared[-1]
    if kernel.template is not None:
        needed = sum("=" not in parameter for parameter in kernel.template)
        if any("..." in parameter for parameter in kernel.template) or (template or 0) < needed:
            raise Left("the compiler deduces template arguments of " + name + ": write all of them at the launch")
    if count < len(kernel.params) and not unpacked:
        raise Left("the launch leaves default arguments of " + name + " out: write them")
    return kernel


def null_pointer(program, argument, kernel, i, template):
    """
    Whether an argument 0 or NULL is a pointer: ACS_ARGS forwards values, and then only nullptr is one. Left where the type of
    the parameter is not known.
    """
    if argument not in ("0", "NULL"):
        return False
    if not kernel or i >= len(kernel.params):
        kind = "pointer" if argument == "NULL" else None
    else:
        parameter = kernel.params[i]
        kind = program.kind_of(parameter)
        names = [re.sub(r"\s*=.*", "", p).split()[-1] for p in kernel.template or ()]
        given = [names.index(word) for word in re.findall(r"\w+", parameter)[:-1] if word in names]
        if kind is None and given and given[0] < len(template):
            kind = program.kind_of(template[given[0]], False)
    if kind is None:
        raise Left(argument + " may be a pointer here: write nullptr, or its type before it")
    return kind == "pointer"


def rewrite(program, source, begin, launch, close, open_at, end, found):
    """The text of ACS_LAUNCH for a launch, and a remark or None."""
    code, (_, name_end, name, template, kind) = source.code, found
    parts = text.split(code, launch + 3, close)
    arguments = text.split(code, open_at + 1, end)
    if arguments is None:
        raise Left("the arguments are not understood")
    written = [source.part(a, b) for a, b in arguments]
    if any(code[text.skip_space(code, a)] == "{" for a, b in arguments):
        raise Left("an argument is a list in braces: write its type before it")
    kernel = check_kernel(program, source, name, template, kind, len(written), any("..." in code[a:b] for a, b in arguments))
    if len(parts) == 4 and re.search(r"\+\+|--|[^=!<>]=[^=]", code[parts[3][0]:parts[3][1]]):
        raise Left("the stream's expression changes something")
    sizes = [source.part(a, b) for a, b in parts[:3]] + ["0"] * (3 - len(parts[:3]))
    for i in range(2):
        size = code[parts[i][0]:parts[i][1]].strip()
        if size.startswith("{"):
            sizes[i] = "dim3(" + sizes[i][1:-1].strip() + ")"
        elif REAL.search(size) and not size.startswith("dim3"):
            sizes[i] = "dim3(" + sizes[i] + ")"
    if kind == "pointer" and name is None:
        name = source.part(begin, name_end)
    changed = False
    inside = re.search(r"<([\s\S]*)>\s*$", source.part(begin, name_end)) if template else None
    given = [inside.group(1)[a:b] for a, b in text.split(inside.group(1), 0, len(inside.group(1))) or ()] if inside else []
    for i, argument in enumerate(written):
        if null_pointer(program, argument, kernel, i, given):
            written[i], changed = "nullptr", True
    text_of = ", ".join(written) if changed else source.part(open_at + 1, end)
    made = "ACS_ARGS(" + text_of + ")" if written else "ACS_NO_ARGS"
    remark = None
    if kernel and any(re.search(r"\bcuda(?:Texture|Surface)Object_t\b", parameter) for parameter in kernel.params):
        made += ", ACS_USES_ANY"
        remark = "a texture or surface hides memory, so the launch has no footprint"
    elif kernel is None:
        made += ", ACS_USES_ANY"
        remark = "a pointer gives the kernel, so it has no footprint"
    head = "ACS_LAUNCH(" + source.part(begin, name_end) + ", " + ", ".join(sizes) + ","
    return head, made, remark


def layout(source, begin, open_at, head, made, statement):
    """The launch as text: one line, or two where that is too long or the arguments have several lines."""
    if not statement:
        return "((void)" + head + " " + made + "))"
    lines = made.split("\n")
    if len(lines) == 1 and source.column(begin) + len(head.split("\n")[-1]) + len(made) + 3 <= COLUMNS:
        return head + " " + made + ")"
    margin = source.indent(begin) + " " * len("ACS_LAUNCH(")
    # Lines of arguments keep their place relative to the first one.
    moved = len(margin.expandtabs()) + len("ACS_ARGS(") - source.column(open_at + 1)
    for i, line in enumerate(lines[1:], 1):
        bare = line.lstrip(" ")
        if bare.strip() and not bare.startswith("\t"):
            lines[i] = " " * max(len(margin), len(line) - len(bare) + moved) + bare
    return head + "\n" + margin + "\n".join(lines) + ")"


def whole(code, at, begin, end, left):
    """(begin, end) of a launch that stays; end is -1 where it is not certain."""
    if end < 0 <= left.begin:
        try:
            return left.begin, end_of_launch(code, at)[2]
        except Left:
            pass
    return begin, end


def apply(program, source, report):
    """Rewrite the launches of a file."""
    code = source.code
    for match in re.finditer(r"<<<", code):
        at = match.start()
        if program.on_device(source, at) or source.inside(report.kept, at):
            continue
        begin = at
        close = open_at = end = -1
        try:
            found = kernel_before(code, at)
            begin = found[0]
            close, open_at, end = end_of_launch(code, at)
            refused = report.refused(source)
            if refused:
                report.left(source, begin, "launch", refused)
                continue
            if source.crosses_directive(begin, end):
                raise Left("a preprocessor line is in the middle of it")
            head, made, remark = rewrite(program, source, begin, at, close, open_at, end, found)
        except Left as why:
            begin, end = whole(code, at, begin, end, why)
            if end > 0:
                report.around(source, begin, end + 1)
                report.drained(source, begin, "launch", str(why))
            else:
                report.left(source, begin, "launch", str(why) + BY_HAND)
            continue
        statement = text.is_statement(code, begin, end + 1)
        source.edit(begin, end + 1, layout(source, begin, open_at, head, made, statement))
        report.rewritten(source, begin, "launch")
        if remark:
            report.note(source, begin, remark)


def apply_macros(program, source, report):
    """Launches in bodies of macros stay, with ACS drained before and the device after."""
    for first, last in source.directives:
        body = source.plain[first:last]
        define = re.match(r"\s*#\s*define\b\s*\w+", body)
        for match in re.finditer(r"<<<", body) if define else ():
            at = first + match.start()
            limit = source.plain[:last]
            if source.inside(report.kept, at):
                continue
            why = "it is in a macro: write ACS_LAUNCH there"
            refused = report.refused(source)
            try:
                joined = limit.replace("\\\n", " \n").replace("\\\r\n", " \r\n")
                begin = kernel_before(joined, at)[0]
                _, _, end = end_of_launch(joined, at)
            except Left:
                refused, begin = refused or why + BY_HAND, at
            if refused or "#" in source.plain[begin:end + 1]:
                report.left(source, begin, "launch", refused or why)
                continue
            report.around(source, begin, end + 1)
            report.drained(source, begin, "launch", why)
