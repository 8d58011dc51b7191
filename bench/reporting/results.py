"""A set of results as data: one Run for each JSON file, with its machine, and rows of runners where it has such.

Called by the commands; everything else works on what this returns. Never formats, and never looks at a field that the
program does not need, so that benchmark programs may add fields.
"""
import os

from .errors import BadInput
from .fields import NUMBER, parse
from .sets import ResultSet
from .text import command

PROGRAMS = ("acs-bench", "acs-first", "acs-workloads", "physics-bench", "acs-micro", "acs-memory", "acs-jobs", "acs-tasks",
            "acs-devices", "acs-mixes", "acs-memory-growth")
# Runners that know the run beforehand: how fast it could be, not something that a dynamic program can have.
BOUNDS = ("graph-replay", "graph-known")
# ACS switched off issues one stream in program order: no mode that schedules, and nobody's rival.
NEITHER = ("acs-off",)


def is_default(name):
    """ACS with its default options: what a user gets."""
    return name == "acs"


def is_acs(name):
    return name.startswith("acs") and not name.startswith("acs-sw") and name not in NEITHER


def is_rival(name):
    return not is_acs(name) and name not in BOUNDS and name not in NEITHER


class Spread:
    """Median with least and most, as the programs print them."""

    def __init__(self, median, low, high):
        self.median, self.low, self.high = median, low, high

    @staticmethod
    def of(samples):
        ordered, n = sorted(samples), len(samples)
        median = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
        return Spread(median, ordered[0], ordered[-1])

    def over(self, divisor):
        return Spread(self.median / divisor, self.low / divisor, self.high / divisor)


class Outcome:
    """How a runner did in one row. `total` is None where there is no time that may be shown: wrong or left out."""

    def __init__(self, name, total=None, submit=None, wrong="", left_out="", remark=""):
        self.name, self.total, self.submit = name, total, submit
        self.wrong, self.left_out, self.remark = wrong, left_out, remark


class Row:
    """One program run by all runners. `fields` is the row as it was read."""

    def __init__(self, fields, outcomes):
        self.fields, self.outcomes = fields, {o.name: o for o in outcomes}
        if len(self.outcomes) != len(outcomes):
            fields.refuse("runners", "names a runner twice")

    def ran(self):
        """Each outcome with a time, and what the program wrote of it."""
        for fields in self.fields.objects("runners"):
            outcome = self.outcomes[fields.need("name", str)]
            if outcome.total:
                yield outcome, fields

    def number(self, name):
        return self.fields.measure(name)

    def best(self, wanted, figure=lambda o: o.total.median):
        """The outcome with the smallest figure among the runners whose names are `wanted`; None if there is none."""
        return min((o for o in self.outcomes.values() if o.total and wanted(o.name)), key=figure, default=None)

    def loses(self, outcome, figure=lambda o: o.total.median, rivals=is_rival):
        """Is this a mode of ACS that is slower than the best rival?"""
        rival = self.best(rivals, figure)
        return bool(outcome.total and rival and is_acs(outcome.name) and figure(outcome) > figure(rival))


class Run:
    """One JSON file of a set: a run of a benchmark program."""

    def __init__(self, results, name):
        fields = parse(results.texts[name], results.where(name))
        words = fields.need("program", str).split()
        if not words or words[0] not in PROGRAMS:
            fields.refuse("program", f"must be one of {', '.join(PROGRAMS)}, not '{' '.join(words)}'")
        self.fields, self.results, self.program = fields, results, words[0]
        self.name, self.stem = name, os.path.splitext(name)[0]
        self.machine = fields.object("machine") if "machine" in fields.data else fields
        self.date = self._text("date")
        self.commit = self._text("commit")
        self.rows = []

    def _text(self, name):
        value = self.fields.get(name, str) or self.machine.get(name, str) or ""
        return "" if value == "unknown" else value

    def command(self):
        value = self.fields.data.get("command", "")
        if isinstance(value, list):  # acs-micro lists its arguments
            return command([self.program] + [a.need("argument", str) for a in self.fields.objects("command")])
        return command(self.fields.get("command", str, "").split())

    def remark_lines(self):
        """What was found out about the run later: the text beside its file."""
        text = self.results.texts.get(f"{self.stem}.remark.txt")
        return [] if text is None else [" ".join(text.split()), ""]

    def on_gpu(self):
        return self.machine.get("gpu", str, "none") not in ("", "none")

    def runners(self):
        """Names in the order of first appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.outcomes))


def _outcome(fields):
    name, wrong, left_out = fields.need("name", str), fields.get("wrong", str, ""), fields.get("left_out", str, "")
    remark = "; ".join(text for text in (fields.get("setting", str, ""), fields.get("note", str, "")) if text)
    total, submit = fields.numbers("total_us"), fields.numbers("submit_us")
    if not total and not left_out and not wrong:
        left_out = "no times in the file"
    if any(t <= 0 for t in total):
        fields.refuse("total_us", "has a time that is not more than 0")
    if wrong or left_out:
        return Outcome(name, wrong=wrong, left_out=left_out, remark=remark)
    return Outcome(name, Spread.of(total), Spread.of(submit) if submit else None, remark=remark)


def _harness_row(fields):
    fields.need("work", str)
    return Row(fields, [_outcome(o) for o in fields.objects("runners")])


def read_run(results, name):
    run = Run(results, name)
    if run.program in ("acs-bench", "acs-first", "acs-workloads", "acs-memory", "acs-jobs", "acs-tasks",
                       "acs-devices", "acs-mixes"):
        # A row that was under way when the program was interrupted has fewer samples than it should.
        run.rows = [_harness_row(row) for row in run.fields.objects("rows") if not row.data.get("partial")]
    if run.program == "acs-bench":
        for row in run.rows:
            row.fields.positive("ops")
            row.fields.need("kernel_us", NUMBER)
    return run


def read_set(results):
    """All runs of a set, by file name."""
    names = results.names(".json")
    if not names:
        raise BadInput(f"{results.path}: has no result file (*.json)")
    return [read_run(results, name) for name in names]


def read_path(path):
    return read_set(ResultSet(path))
