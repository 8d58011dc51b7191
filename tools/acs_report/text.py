"""What a recording says, as lines for a terminal: of one, or of two that are compared. The page shows the same with pictures."""
import os
import re
import textwrap

WIDTH = 100
PAIRS_SHOWN = 8
KERNELS_SHOWN = 8
SAME = 0.005  # relative change that is none


def time(ns):
    """"12.3 ms"."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= unit * 0.9995:
            value = ns / unit
            return "%.*f %s" % (0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2, value, name)
    return "%.0f ns" % ns if ns else "0"


def percent(part, whole):
    """"12 %"."""
    value = 100 * part / whole if whole else 0
    return "< 0.1 %" if 0 < value < 0.1 else "%.*f %%" % (0 if value >= 10 or not value else 1, value)


def width(value):
    """Ops at once."""
    return "%.*f" % (0 if value >= 9.95 else 2 if value < 0.95 else 1, value)


def clean(text):
    """A text without control characters, which a terminal would obey."""
    return "".join(sign if sign.isprintable() else "?" for sign in str(text))


class Words:
    """Names of a recording, and its texts without the folder that all files are in."""

    def __init__(self, acs):
        self.acs = acs
        files = {str(label[1]) for label in acs["labels"] if len(label) > 2 and "/" in str(label[1])}
        folder = os.path.commonprefix(list(files))
        self.folder = folder[:folder.rfind("/") + 1]

    def short(self, text):
        """A text with short names of files."""
        return clean(str(text).replace(self.folder, "") if re.fullmatch(r"[\w.+\-/ ]{2,}", self.folder) else text)

    def name(self, label):
        """Name of a label."""
        labels = self.acs["labels"]
        return clean(labels[label][0]) if 0 <= label < len(labels) else "not named"

    def place(self, label):
        """File and line of a label."""
        labels = self.acs["labels"]
        known = 0 <= label < len(labels) and labels[label][1]
        return self.short("%s:%s" % tuple(labels[label][1:3])) if known else ""

    def conflict(self, number):
        """Name of a conflict."""
        names = self.acs.get("conflicts", [])
        return clean(names[number]) if 0 <= number < len(names) else "?"

    def pair(self, pair):
        """Which waits for which."""
        return "%s waits for %s by %s" % (self.name(pair["down"]), self.name(pair["up"]), self.conflict(pair["conflict"]))


def _wrapped(text, indent):
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent)) or []


def span(acs):
    """How long the run took."""
    return acs["summary"].get("span_ns") or acs.get("span_ns") or 0


def idle(acs):
    """How long nothing ran."""
    return max(0, span(acs) - acs["summary"].get("busy_ns", 0))


def summary(acs):
    """The headline."""
    s = acs["summary"]
    if not s.get("ops"):
        return ["%s: no op was recorded." % clean(acs.get("program", "?"))]
    could = "As its footprints say, about %s ops could run at once, on average; it ran %s." % (width(s["width_possible"]),
        width(s["width_achieved"]))
    options = acs.get("options", {})
    if options.get("serial") or options.get("disable"):
        could = "The context ran one op after another (ACS_SERIAL, ACS_DISABLE)."
    lines = ["%s: %d ops in %s. %s" % (clean(acs.get("program", "?")), s["ops"], time(span(acs)), could),
             "Critical path: %s (%s of the time). Nothing ran in %s of the time. Callers waited %s, summed over all waits."
             % (time(s["critical_ns"]), percent(s["critical_ns"], span(acs)), percent(idle(acs), span(acs)),
                 time(s["host_wait_ns"]))]
    parts = [(ns, name) for ns, name in zip(acs.get("path_ns", []), acs.get("path_reasons", [])) if ns]
    if parts:
        lines.append("Where the time went: %s." % ", ".join("%s %s" % (clean(name),
            percent(ns, sum(part[0] for part in parts)))
                                                           for ns, name in sorted(parts, reverse=True)))
    learnt = {"polls": "The times of ops are estimates: their ends were learnt by polls.",
              "graphs": "The times of graphs and single ops are the GPU's own. Ops of a graph share its time, by levels."}
    if acs.get("times") in learnt:
        lines.append(learnt[acs["times"]])
    if 0 < acs.get("sampled", 100) < 100:
        lines.append("The recording has %d %% of the ops. Numbers are those of this part." % acs["sampled"])
    elif len(acs["ops"]) < 0.99 * acs.get("ops_seen", 0):
        lines.append("The recording has %d of %d ops: the newest, without those that did not run." % (len(acs["ops"]), acs["ops_seen"]))
    return lines


def findings(acs):
    """What costs the most."""
    words, lines = Words(acs), []
    for place, finding in enumerate(acs["findings"], 1):
        head = "%d. " % place
        lines += _wrapped("%s (%s, %s of the time)" % (words.short(finding["title"]), time(finding["ns"]),
            percent(finding["ns"], span(acs))), head)
        lines += _wrapped("The cost: " + words.short(finding["how"]), " " * len(head)) if finding.get("how") else []
        lines += _wrapped(words.short(finding.get("text", "")), " " * len(head))
        lines += _wrapped("To do: " + words.short(finding["fix"]), " " * len(head)) if finding.get("fix") else []
    return lines or ["No slowness stands out."]


def table(rows):
    """Columns as wide as they must be; numbers to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    right = [all(re.match(r"-?[0-9]", row[at]) for row in rows[1:] if row[at]) for at in range(len(widths))]
    return ["  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width,
        to_right in zip(row, widths, right)).rstrip()
            for row in rows]


def one(acs):
    """All lines of a recording."""
    words, lines = Words(acs), summary(acs)
    if acs["ops"]:
        lines += ["", "What costs the most:"] + findings(acs)
    if acs["pairs"]:
        rows = [("waited", "on the path", "to gain", "times", "pair", "bytes")]
        rows += [(time(pair["wait_ns"]), *(time(pair[name]) if name in pair else "" for name in ("path_ns", "gain_ns")),
            "%d" % pair["count"], words.pair(pair), words.short(pair.get("range", "")))
                 for pair in acs["pairs"][:PAIRS_SHOWN]]
        lines += ["", "Pairs that serialise, those of the path first; waited: summed over ops; to gain: at most (%d of %d):" % (len(rows) - 1,
            len(acs["pairs"]))] + table(rows)
    if acs["kernels"]:
        rows = [("time", "ops", "longest", "name", "at")]
        rows += [(time(row[2]), "%d" % row[1], time(row[3]), words.name(row[0]),
            words.place(row[0])) for row in acs["kernels"][:KERNELS_SHOWN]]
        lines += ["", "Time by kernel, summed over ops (%d of %d):" % (len(rows) - 1, len(acs["kernels"]))] + table(rows)
    rows = [row for row in acs.get("what_if", []) if row.get("ns")]
    if len(rows) > 1:
        lines += ["", "What other settings would bring, by the simulator:"]
        lines += table([("time", "change", "setting")] + [
            (time(row["ns"]), change(rows[0]["ns"], row["ns"]) if row is not rows[0] else "",
             clean(row["name"]) + (" (%s)" % clean(row["setting"]) if row.get("setting") else "")) for row in rows])
    return lines


# ------------------------------------------------------------------------------------------------------------ two runs

def change(before, after):
    """"-12 %"."""
    if not before:
        return "" if not after else "new"
    by = after / before - 1
    return "gone" if not after else "same" if abs(by) < SAME else "%+.0f %%" % (100 * by)


def by_key(acs, rows, key, cost):
    """{key: cost} of rows; rows with the same key add up."""
    found = {}
    for row in rows:
        at = key(Words(acs), row)
        found[at] = found.get(at, 0) + cost(row)
    return found


def _kernel_key(words, row):
    return words.name(row[0])


def _finding_key(words, finding):
    return re.sub(r"[0-9]+([.,][0-9]+)?", "#", words.short(finding["title"]))


def _came_and_went(title, old, new):
    lines = []
    for what, among, other in (("Gone", old, new), ("New", new, old)):
        rows = sorted((key for key in among if key not in other), key=lambda key: -among[key])
        lines += ["%s %s: %s (%s)" % (what, title, key, time(among[key])) for key in rows]
    return lines


def two(a, b):
    """What changed from the first to the second."""
    x, y = a["summary"], b["summary"]
    rows = [("", "A", "B", "change")]
    for name, before, after, words in (
            ("time", span(a), span(b), time), ("ops", x["ops"], y["ops"], "%d".__mod__), ("ops at once, by footprints",
                x["width_possible"], y["width_possible"], width),
            ("ops at once, as it ran", x["width_achieved"], y["width_achieved"], width), ("critical path",
                x["critical_ns"], y["critical_ns"], time),
            ("nothing ran", idle(a), idle(b), time), ("work", x["work_ns"], y["work_ns"], time), ("callers waited",
                x["host_wait_ns"], y["host_wait_ns"], time)):
        rows.append((name, words(before), words(after), change(before, after)))
    lines = ["A: %s, B: %s" % (clean(a.get("program", "?")), clean(b.get("program", "?")))] + table(rows)
    found = [by_key(acs, acs["findings"], _finding_key, lambda finding: finding["ns"]) for acs in (a, b)]
    pairs = [by_key(acs, acs["pairs"], lambda words, pair: words.pair(pair), lambda pair: pair["wait_ns"]) for acs in (a, b)]
    changed = _came_and_went("finding", *found) + _came_and_went("pair", *pairs)
    lines += [""] + changed if changed else []
    old, new = (by_key(acs, acs["kernels"], _kernel_key, lambda row: row[2]) for acs in (a, b))
    names = sorted({*old, *new}, key=lambda name: -abs(new.get(name, 0) - old.get(name, 0)))
    if names:
        lines += ["", "Time by kernel, most change first:"] + table([("A", "B", "change", "name")] + [
            (time(old.get(name, 0)), time(new.get(name, 0)), change(old.get(name, 0), new.get(name, 0)),
                name) for name in names[:KERNELS_SHOWN]])
    return lines
