"""METG(50 %): the smallest granularity of tasks at which a runner still does useful work half of the time; its curves.

The definition and the interpolation are those of bench/acs-bench/metg.h. Called for runs of acs-bench; svg.py draws.
"""
import math
import re

from .groups import groups_of
from .results import is_acs
from .svg import Line, draw
from .text import number, table


# Fewer points than this make no curve worth a picture.
_CURVE = 4


def metg_of(curve):
    """
    Where a curve of (granularity in us, efficiency) falls below one half, on the straight line between its neighbours,
    granularity in logarithms. Returns (us, ""), or (smallest or largest granularity, "below" or "above").
    """
    falling = sorted(curve, reverse=True)
    for k, (granularity, efficiency) in enumerate(falling):
        if efficiency >= 0.5:
            continue
        if k == 0:
            return granularity, "above"
        above, efficient = falling[k - 1]
        part = (efficient - 0.5) / (efficient - efficiency)
        return math.exp(math.log(above) + part * (math.log(granularity) - math.log(above))), ""
    return falling[-1][0], "below"


def _points(row, outcome):
    ideal, workers = row.number("ideal_us"), row.number("workers")
    if not ideal or not workers or not outcome.total:
        return []
    total = outcome.total.median
    return [(total * workers / row.number("ops"), ideal / total)]


def curves_of(group):
    """By runner: its points, or None where a run was wrong, which leaves nothing to be believed."""
    curves = {}
    for name in group.runners():
        outcomes = [(group.rows[us], group.rows[us].outcomes.get(name)) for us in group.kernel_times() if us > 0]
        if any(o.wrong for _, o in outcomes if o):
            curves[name] = None
        else:
            curves[name] = [point for row, o in outcomes if o for point in _points(row, o)]
    return curves


def _cell(curve):
    if curve is None:
        return "**WRONG**"
    if not curve:
        return "-"
    us, beyond = metg_of(curve)
    return f"{beyond} {number(us)}".strip()


def _svg(group, curves):
    looks = group.run.runners()
    lines = [Line(name, sorted(curve), is_acs(name), looks.index(name)) for name, curve in curves.items() if curve]
    return draw(f"{group.title}: efficiency over granularity", lines) if lines else None


def svg_name(run, group, groups):
    """One file per group: pattern names may hold what file names may not."""
    title = group.title if [g.pattern for g in groups].count(group.pattern) > 1 else group.pattern
    return re.sub(r"[^A-Za-z0-9_]+", "-", f"{run.stem}-{title}").strip("-") + ".svg"


def section(runs, pictures):
    """`pictures` takes (name, SVG) and returns what links to it, or None where no SVG is wanted."""
    lines = []
    for run in runs:
        groups = groups_of(run)
        curves = {id(g): curves_of(g) for g in groups}
        groups = [g for g in groups if any(c is None or len(c) > 1 for c in curves[id(g)].values())]
        if not groups:
            continue
        names = [n for n in run.runners() if any(curves[id(g)].get(n) != [] for g in groups)]
        lines += [f"### METG(50 %), us, on the {'GPU' if run.on_gpu() else 'CPU'}: `{run.name}`", "",
                  "Granularity is elapsed time x workers / tasks. *Below*: still efficient at the smallest granularity "
                  "measured; *above*: not efficient at the largest.", ""]
        rows = [[f"`{n}`"] + [_cell(curves[id(g)].get(n, [])) for g in groups] for n in names]
        lines += table(["runner"] + [g.title for g in groups], rows)
        for group in groups:
            drawn = any(curve and len(curve) >= _CURVE for curve in curves[id(group)].values())
            svg = _svg(group, curves[id(group)]) if drawn else None
            link = pictures(svg_name(run, group, groups), svg) if svg else None
            lines += [f"![{group.title}: efficiency over granularity]({link})", ""] if link else []
    return lines
