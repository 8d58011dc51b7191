"""Do two runs of one preset agree? Medians of each row and runner, with the spread that each run printed.

Two figures agree where their ranges from least to most overlap, or their medians differ by no more than a given part.
Runs that were wrong, or that only one of the two has, do not agree. Called by the command line.
"""
from . import micro, physics
from .errors import BadInput
from .results import read_path
from .text import number, plain, ranged

_SETTINGS = ("size", "width", "steps", "fields", "ctas", "functions", "check", "ops", "kernels", "kernel_us", "pairs",
             "use", "devices", "scale", "processes")


class Figure:
    """One median with its spread; `bad` says why there is none."""

    def __init__(self, spread=None, bad=""):
        self.spread, self.bad = spread, bad

    def __str__(self):
        return ranged(self.spread) if self.spread else self.bad


def _of_outcome(outcome, spread=None):
    return Figure(spread or outcome.total) if outcome.total else Figure(bad="WRONG" if outcome.wrong else "left out")


def _setting(row, name):
    value = row.fields.data[name]
    return f"{name} {plain(value) if isinstance(value, (int, float)) else value}"


def _harness_figures(run):
    for row in run.rows:
        words = [row.fields.data["work"]] + [_setting(row, n) for n in _SETTINGS if n in row.fields.data]
        for outcome in row.outcomes.values():
            yield f"{', '.join(words)}: {outcome.name}, us", _of_outcome(outcome)


def _physics_figures(run):
    for key, by_worlds in physics.tables_of(run).items():
        for worlds, row in by_worlds.items():
            where = ", ".join(str(k) for k in key if k != "") + f", {plain(worlds)} worlds"
            for outcome in row.outcomes.values():
                yield f"{where}: {outcome.name}, step us", _of_outcome(outcome)
                back = outcome.back if outcome.total else None
                yield f"{where}: {outcome.name}, steps without a wait us", _of_outcome(outcome, back)


def _figures_of(run):
    if run.program == "physics-bench":
        return _physics_figures(run)
    if run.program == "acs-micro":
        return ((f"{name}, {unit}", Figure(spread)) for name, unit, spread in micro.figures_of(run))
    return _harness_figures(run)


def _read(path):
    """By name; what recurs, in another file or for another repetition of a row, is numbered in the order of files."""
    figures, seen = {}, {}
    for run in read_path(path):
        for name, figure in _figures_of(run):
            name = f"{run.program}{'' if run.on_gpu() or run.program == 'acs-micro' else ' on the CPU'}: {name}"
            seen[name] = seen.get(name, 0) + 1
            figures[name if seen[name] == 1 else f"{name} (no. {seen[name]})"] = figure
    return figures


def _overlap(a, b):
    return a.low <= b.high and b.low <= a.high


def _inside(a, b):
    return b.low <= a.median <= b.high and a.low <= b.median <= a.high


def _near(a, b, within):
    return abs(a.median - b.median) <= within * min(a.median, b.median)


def compare(first, second, agree, within):
    """Prints the comparison. Returns whether at least the share `agree` agrees."""
    one, two = _read(first), _read(second)
    names, missing = list(dict.fromkeys([*one, *two])), Figure(bad="not there")
    pairs = [(n, one.get(n, missing), two.get(n, missing)) for n in names]
    pairs = [(n, a, b) for n, a, b in pairs if not (a.bad == b.bad == "left out")]
    timed = [(n, a, b) for n, a, b in pairs if a.spread and b.spread]
    if not timed:
        raise BadInput(f"{first} and {second}: have no row and runner in common")
    good = {n for n, a, b in timed if _overlap(a.spread, b.spread) or _near(a.spread, b.spread, within)}
    inside = sum(_inside(a.spread, b.spread) for _, a, b in timed)
    ratios = sorted(max(a.spread.median, b.spread.median) / min(a.spread.median, b.spread.median) for _, a, b in timed)
    near = f", or medians within {number(100 * within)} %" if within else ""
    print(f"{len(good)} of {len(pairs)} agree (ranges overlap{near})")
    print(f"in {inside} each median lies in the other's range; medians differ by "
          f"{100 * (ratios[len(ratios) // 2] - 1):.1f} % (median), {100 * (ratios[-1] - 1):.1f} % (most)")
    for name, a, b in pairs:
        if name not in good:
            print(f"  {name}: {a} and {b}")
    enough = len(good) >= agree * len(pairs)
    share = 100 * len(good) / len(pairs)
    print(f"{'enough' if enough else 'NOT ENOUGH'}: {share:.1f} %, asked for {100 * agree:.1f} %")
    return enough
