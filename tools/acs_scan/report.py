"""What acs-scan found, for people: the accesses to each pointer of each kernel as formulas, and how much was found."""

import shutil
import subprocess

from .join import joined


def names_of(functions):
    """{mangled name: the name as it is written}, by c++filt where there is one."""
    mangled = sorted({f.name for f in functions})
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if not tool or not mangled:
        return {name: name for name in mangled}
    done = subprocess.run([tool], input="\n".join(mangled), stdout=subprocess.PIPE, universal_newlines=True, check=False)
    lines = done.stdout.splitlines()
    return dict(zip(mangled, lines)) if len(lines) == len(mangled) else {name: name for name in mangled}


def _slot_name(slot):
    return f"argument {slot.argument}" + (f", byte {slot.offset}" if slot.offset else "")


_DEPTH_MOST = 6  # of operations inside each other that are shown: a formula may be in another one twice, and so on


def _atom(atom, depth):
    kind = atom.kind
    if kind == "slot":
        return f"a{atom.data[0]}" + (f"[{atom.data[1]}]" if atom.data[1] else "")
    if kind in ("tid", "ctaid", "ntid", "nctaid"):
        return {"tid": "threadIdx", "ctaid": "blockIdx", "ntid": "blockDim", "nctaid": "gridDim"}[kind] + "." + atom.data
    if kind == "lane":
        return "lane"
    if kind == "trip":
        return f"pass{atom.data}"
    if depth > _DEPTH_MOST:
        return "..."
    if kind == "join":
        return "(" + " or ".join(formula(p, depth + 1) for p in atom.args) + ")"
    if kind == "op":
        sign = {"div": " / ", "rem": " % ", "floor": " / ", "and": " & ", "or": " | ", "shr": " >> "}.get(atom.data[0])
        inside = [f"({formula(p, depth + 1)})" if sign and len(p.terms) > 1 else formula(p, depth + 1) for p in atom.args]
        return f"({sign.join(inside)})" if sign else f"{atom.data[0]}({', '.join(inside)})"
    return "?"


def formula(polynomial, depth=0):
    """A polynomial as text."""
    words = []
    for monomial, coefficient in sorted(polynomial.terms.items(), key=lambda t: (-len(t[0]), [a.order for a in t[0]])):
        factors = [_atom(a, depth) for a in monomial]
        number = abs(coefficient)
        if number != 1 or not factors:
            factors.insert(0, str(number))
        words.append(("- " if coefficient < 0 else "+ ") + "*".join(factors))
    text = " ".join(words) or "0"
    return text[2:] if text.startswith("+ ") else text


def _spread(spread):
    factor = formula(spread.step)
    return " + " + (f"({factor})" if len(spread.step.terms) > 1 else factor) + f"*(0 to {spread.count})"


def _use(reads, writes):
    return "reads and writes" if reads and writes else "reads" if reads else "writes"


def _conditions(limits):
    words = set()
    for limit in limits:
        value = formula(limit.value)
        if limit.high is not None:
            words.add(f"{value} <= {formula(limit.high)}")
        if limit.low is not None:
            words.add(f"{value} >= {formula(limit.low)}")
    return sorted(words)


def describe(footprint, scope_of):
    """Lines about a kernel's pointers. scope_of(touch): the limits that matter."""
    lines = []
    for slot in sorted({t.slot for t in footprint.touches}, key=lambda s: (s.argument, s.offset)):
        mine = [t for t in footprint.touches if t.slot == slot]
        use = _use(any(t.reads for t in mine), any(t.writes for t in mine))
        unknown = [t for t in mine if t.offset is None]
        if unknown:
            lines.append(f"{_slot_name(slot)}: {use}, the whole allocation: {unknown[0].why} ({unknown[0].where})")
            continue
        lines.append(f"{_slot_name(slot)}: {use}")
        shown = {}
        for kind in ("reads", "writes"):
            for t in joined([t for t in mine if getattr(t, kind)]):
                where = _conditions(scope_of(t))
                text = f"{t.bytes} bytes at {formula(t.offset)}" + "".join(map(_spread, t.spreads))
                shown.setdefault(text + (" where " + " and ".join(where) if where else ""), set()).add(kind)
        lines += [f"    {' and '.join(sorted(uses))} {text}" for text, uses in shown.items()]
    for slot, why in footprint.escapes.items():
        lines.append(f"{_slot_name(slot)}: is kept: its block stays where it is ({why})")
    for name, written in footprint.symbols.items():
        lines.append(f"variable {name}: {'written' if written else 'read'}")
    lines += [f"may touch anything: {why}" for why in footprint.anything[:1]]
    return lines


def counts(footprints):
    """(kernels, with all ranges, that may touch anything, pointers, with ranges) of a list of footprints."""
    pointers = ranges = kernels = anything = 0
    for f in footprints:
        slots = {t.slot for t in f.touches}
        known = slots - {t.slot for t in f.touches if t.offset is None}
        pointers += len(slots)
        ranges += len(known)
        anything += bool(f.anything)
        kernels += slots == known and not f.anything
    return len(footprints), kernels, anything, pointers, ranges


