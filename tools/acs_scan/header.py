"""The header that acs-scan writes: a footprint function for each kernel, and their declaration when the program starts."""

import re
from collections import Counter
from dataclasses import replace

from .join import joined
from .spans import Spans

_LINES_MOST = 400  # of the code for one kernel's ranges; pointers beyond have their whole allocations


def _variable_key(name):
    """The key of the token that stands for a __device__ variable: FNV-1a of its name."""
    value = 0xcbf29ce484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


class _Function:
    def __init__(self, footprint, number):
        self.footprint, self.name = footprint, f"acs_scan_kernel_{number}"
        self.spans = Spans(footprint.affine)
        self.body, self._seen = [], set()

    def text(self):
        f = self.footprint
        sizes = ", ".join(str(p.bytes) for p in f.function.parameters) or "0"
        slots = sorted({t.slot for t in f.touches}, key=lambda s: (s.argument, s.offset))
        for i, slot in enumerate(slots):
            self._slot(i, [t for t in f.touches if t.slot == slot])
        self.body = _folded(self.body)
        lines = self._ranges() if self.body else []
        lines += [f"static size_t {self.name}(const acs_footprint_input *in, acs_segment *out, size_t capacity)", "{",
                  f"    static const uint32_t sizes[] = {{{sizes}}};", "    size_t at = 0;"]
        if slots:
            lines.append(f"    acs_scan_pointer p[{len(slots)}];")
        lines += [f"    if (!acs_scan_fits(in, sizes, {len(f.function.parameters)}))", "        return ACS_FOOTPRINT_REFUSED;"]
        if slots:
            lines += self._kept()
        if self.spans.uses_grid_size:
            lines.append("    if (in->grid_is_most) { /* a smaller grid may reach other bytes */")
            for i, slot in enumerate(slots):
                lines += [f"        acs_scan_whole(&p[{i}].{kind});" for kind in ("reads", "writes")
                          if any(getattr(t, kind) for t in f.touches if t.slot == slot)]
            lines.append("    }")
        lines += _packed([f"p[{i}].address = acs_scan_address(in, {slot.argument}, {slot.offset});"
                          for i, slot in enumerate(slots)])
        lines += self._others()
        lines.append(f"    return acs_scan_end({'p' if slots else 'NULL'}, {len(slots)}, out, capacity, at);")
        return "\n".join(lines + ["}"])

    def _ranges(self):
        """The function that computes all ranges from the numbers of a launch."""
        unused = [] if self.spans.numbers else ["    (void)n;"]
        return [f"/* n: {', '.join(self.spans.numbers) or 'nothing'} */", f"static void {self.name}_ranges(const int64_t *n, acs_scan_pointer *p)", "{",
                *unused, *("    " + line for line in self.body), "}"]

    def _kept(self):
        """Look for the ranges of these numbers among those computed before."""
        if self.spans.numbers:
            return [f"    ACS_SCAN_RANGES(p, {self.name}_ranges, {', '.join(self.spans.numbers)});"]
        return ["    memset(p, 0, sizeof p);", f"    {self.name}_ranges(NULL, p);"]

    def _others(self):
        """What has no range: addresses that are kept, variables, anything."""
        f = self.footprint
        lines = []
        for slot in sorted(f.escapes, key=lambda s: (s.argument, s.offset)):
            lines.append(f"    at = acs_scan_keep(out, capacity, at, acs_scan_address(in, {slot.argument}, {slot.offset})); "
                         f"/* {f.escapes[slot]} */")
        for name, written in sorted(f.symbols.items()):
            lines.append(f"    at = acs_scan_add(out, capacity, at, ACS_TOKEN{'' if written else '_IN'}"
                         f"(UINT64_C({_variable_key(name):#x}))); /* {name} */")
        if f.anything:
            lines.append(f"    at = acs_scan_add(out, capacity, at, ACS_ALL_MEMORY); /* {f.anything[0]} */")
        return lines

    def _slot(self, i, touches):
        for kind in ("reads", "writes"):
            mine = [t for t in touches if getattr(t, kind)]
            unknown = [t for t in mine if t.offset is None]
            if unknown:
                self.body.append(f"acs_scan_whole(&p[{i}].{kind}); /* {unknown[0].where}: {unknown[0].why} */")
                continue
            for touch in joined(mine):
                self._touch(f"p[{i}].{kind}", touch)

    def _touch(self, shape, touch):
        if len(self.body) > _LINES_MOST:
            self.body.append(f"acs_scan_whole(&{shape}); /* {touch.where}: the kernel has too many conditions */")
            return
        scope = self.spans.scope(touch.offset, touch.limits)
        start, terms = self.spans.terms(touch.offset, scope)
        checks = sorted({self.spans.demand(d, touch.limits) for d in touch.demands})
        first = self.spans.bound(start, frozenset())
        pairs = [(self.spans.bound(c, frozenset()), q) for c, q in terms]
        pairs += [self.spans.spread_term(s, self.spans.scope(s.step, touch.limits)) for s in touch.spreads]
        self._flush()
        condition = " && ".join(dict.fromkeys(checks)) or "1"
        line = f"acs_scan_touch(&{shape}, {condition}, {first}, {'t' if pairs else 'NULL'}, {len(pairs)}, {touch.bytes});"
        if pairs:
            line = f"{{ const acs_scan_term t[] = {{{', '.join(f'{{{c}, {q}}}' for c, q in pairs)}}}; {line} }}"
        if (shape, line) not in self._seen:
            self._seen.add((shape, line))
            self.body.append(f"{line} /* {touch.where} */")

    def _flush(self):
        self.body += self.spans.lines
        self.spans.lines.clear()


_DEFINED = re.compile(r"const acs_span (v\d+) = (.*);$")
_VARIABLE = re.compile(r"\bv\d+\b")
_COLUMNS = 112  # of lines that expressions are put into


def _folded(lines):
    """The lines without the variables that are used once, or are a number: their expressions stand where they are used."""
    uses, found, open_ = Counter(_VARIABLE.findall("\n".join(lines))), [], {}

    def put(name):
        found.append(f"const acs_span {name} = {open_.pop(name)};")

    for line in lines:
        defined = _DEFINED.match(line)
        head, text = (f"const acs_span {defined.group(1)} = ", defined.group(2)) if defined else ("", line)
        for name in dict.fromkeys(_VARIABLE.findall(text)):
            if name in open_:
                longer = re.sub(rf"\b{name}\b", open_[name], text)
                if len(head + longer) <= _COLUMNS:
                    text = longer
                    if uses[name] == 2:
                        del open_[name]
                else:
                    put(name)
        if defined and (uses[defined.group(1)] == 2 or text.startswith("acs_span_point(INT64_C(")):
            open_[defined.group(1)] = text
        else:
            found.append(head + text + (";" if defined else ""))
    return found


def _packed(statements):
    """Lines of several statements."""
    lines = []
    for one in statements:
        if lines and len(lines[-1]) + len(one) < _COLUMNS:
            lines[-1] += " " + one
        else:
            lines.append("    " + one)
    return lines


def code(footprint):
    """The functions of one kernel, whose names have @ for its number."""
    found = _Function(footprint, "@").text()
    if found.count("\n") > 2 * _LINES_MOST:  # one address alone is that long
        touches = [replace(t, offset=None, why="the kernel has too many conditions") for t in footprint.touches]
        found = _Function(replace(footprint, touches=touches), "@").text()
    return found


def guard(title):
    """The macro of a header, which stands in it once it was included."""
    return "ACS_SCAN_" + re.sub(r"\W", "_", title).upper()


def text(kernels, title):
    """
    The text of the header, of (Footprint, code()) of each kernel. A kernel may have several, of versions for different GPUs,
    or of files whose names are alike: then it has the segments of all.
    """
    parts = ["/*", " * Footprints of the kernels of a program, written by acs-scan. Included in one file of the program, it",
             " * declares them all when the program starts. ACS_LAUNCH without a footprint then uses them.", " */",
             f"#ifndef {guard(title)}", f"#define {guard(title)}", "", "#include <acs_scan.h>", ""]
    names = {}
    for footprint, body in kernels:
        names.setdefault(plain_name(footprint.function.name), {})[body] = None
    entries = []
    for name, bodies in names.items():
        number = len(entries)
        functions = []
        for i, body in enumerate(bodies):
            functions.append(f"acs_scan_kernel_{number}" + (f"_{i}" if len(bodies) > 1 else ""))
            parts += [f"/* {name} */", body.replace("acs_scan_kernel_@", functions[-1]), ""]
        if len(functions) > 1:
            parts += _all_of(f"acs_scan_kernel_{number}", functions)
        entries.append((name, f"acs_scan_kernel_{number}"))
    parts += ["static const acs_scan_entry acs_scan_entries[] = {"]
    parts += [f'    {{"{name}", {function}}},' for name, function in entries]
    parts += ["    {NULL, NULL}};", "__attribute__((constructor)) static void acs_scan_declare_all(void)", "{",
              "    acs_scan_declare(acs_scan_entries);"]
    return "\n".join(parts + ["}", "", "#endif", ""])


def _all_of(name, functions):
    """A function with the segments of several, but for those whose parameters have other sizes than the arguments."""
    lines = [f"static size_t {name}(const acs_footprint_input *in, acs_segment *out, size_t capacity)", "{",
             f"    static const acs_footprint all[] = {{{', '.join(functions)}}};",
             f"    return acs_scan_all(all, {len(functions)}, in, out, capacity);"]
    return lines + ["}", ""]


_FILE_PART = re.compile(r"([1-9][0-9]*)(?=_GLOBAL__N__|_INTERNAL_)")


def plain_name(name):
    """
    The name of a kernel without the part that nvcc makes from the path of its file, for a kernel that is static or in an
    anonymous namespace. acs_declare leaves it out, too (acs.h).
    """
    out, at = "", 0
    for match in _FILE_PART.finditer(name):
        end = match.end() + int(match.group(1))
        if match.start() >= at and end <= len(name):
            out += name[at:match.start()]
            at = end
    return out + name[at:]
