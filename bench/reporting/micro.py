"""The section on acs-micro: what the host pays per op, and the dependency check beside a scan of all pairs.

Called for the runs of acs-micro; compare.py reads the same figures.
"""
from .fields import NUMBER
from .results import Spread
from .text import escaped, number, ranged, table


def figures_of(run):
    """[(name, unit, Spread of median, p10 and p90)]."""
    figures = []
    for fields in run.fields.objects("figures"):
        spread = Spread(fields.positive("median"), fields.need("p10", NUMBER), fields.need("p90", NUMBER))
        figures.append((fields.need("name", str), fields.need("unit", str), spread))
    return figures


def _index_rows(figures):
    """Insertion into the window: the index beside the scan of all pairs, one row for each pattern and window."""
    rows = {}
    for name, _, spread in figures:
        for kind in ("index", "all pairs"):
            if name.startswith("insert/") and name.endswith(f", {kind}"):
                rows.setdefault(name[len("insert/"):-len(f", {kind}")], {})[kind] = spread
    return {name: kinds for name, kinds in rows.items() if len(kinds) == 2}


def section(runs):
    lines = []
    for run in runs:
        figures = figures_of(run)
        pairs = _index_rows(figures)
        beside = {f"insert/{name}, {kind}" for name in pairs for kind in ("index", "all pairs")}
        lines += [f"### Host costs per op: `{run.name}`", "", "Median, with 10th and 90th percentile.", ""]
        rows = [[escaped(n), ranged(s), escaped(unit)] for n, unit, s in figures if n not in beside]
        lines += table(["what", "cost", "unit"], rows)
        if pairs:
            rows = [[escaped(name), ranged(kinds["index"]), ranged(kinds["all pairs"]),
                     number(kinds["all pairs"].median / kinds["index"].median)] for name, kinds in pairs.items()]
            lines += ["Insertion of an op into a nearly full window, ns per op:", ""]
            lines += table(["pattern", "index", "all pairs", "all pairs / index"], rows)
    return lines
