"""The section on the papers' workloads: their graphs as computed, and times beside one stream and the bound.

Called for the runs of acs-workloads.
"""
from .patterns import bound_of
from .results import is_rival
from .text import TableRemarks, cell, code, escaped, number, plain, table, words_table

_ONE_STREAM = ("stream", "serial")
_SHAPE = ("workload", "source", "size", "kernels", "edges", "width", "depth", "expected", "host decides")


def _name(row):
    size = row.fields.data.get("size")
    same = [r for r in row.run.rows if r.fields.data.get("work") == row.fields.data["work"]]
    return escaped(row.fields.data["work"]) + (f" ({escaped(size)})" if size and len(same) > 1 else "")


def _expected(row, found):
    """What the workload's source says, `kernels / edges / width / depth` with - for what it leaves open; is it so?"""
    text = row.fields.get("expected", str, "")
    parts = [part.strip() for part in text.split("/")]
    if len(parts) != len(found):
        return escaped(text) or "-"
    if all(part == "-" for part in parts):
        return "-"
    same = all(part in ("-", one) for part, one in zip(parts, found))
    return "the same" if same else f"{escaped(text)} (DIFFERS)"


def _shape_row(row):
    of, data = row.number, row.fields.data
    kernels = of("kernels") if of("kernels") is not None else of("ops")
    width = of("width") or None  # 0: not computed
    found = [plain(kernels), plain(of("edges")), plain(width), plain(of("depth"))]
    decides = {None: "-", 0: "no"}.get(of("decides"), "yes")
    return [_name(row), escaped(data.get("source") or "-"), escaped(data.get("size") or "-")] + found + \
        [_expected(row, found), decides]


def _over_one_stream(row, outcome):
    """How many times as fast as one stream; None where it was not run or is this runner."""
    one = next((row.outcomes[n] for n in _ONE_STREAM if n in row.outcomes), None)
    if one is None or not one.total or one is outcome:
        return None
    return one.total.median / outcome.total.median


def _time_cell(row, outcome):
    def shown(o):
        ratio = _over_one_stream(row, o)
        return number(o.total.median) + (f", {number(ratio)} x" if ratio is not None else "")
    return cell(row, outcome, shown)


def _time_row(row, names):
    bound, rival = bound_of(row), row.best(is_rival)
    return [_name(row), f"{number(bound[0])} ({bound[1]})" if bound else "-", rival.name if rival else "-"] + \
        [_time_cell(row, row.outcomes.get(n)) for n in names]


def _spread_row(row, names):
    cells = [row.outcomes.get(n) for n in names]
    return [_name(row)] + [f"{number(o.total.low)}-{number(o.total.high)}" if o and o.total else "-" for o in cells]


def _submit_row(row, names):
    cells = [row.outcomes.get(n) for n in names]
    return [_name(row)] + [number(o.submit.median) if o and o.submit else "-" for o in cells]


def _run_lines(run):
    names, remarks = run.runners(), TableRemarks([_name(row) for row in run.rows])
    for row in run.rows:
        for outcome in row.outcomes.values():
            remarks.add(outcome, _name(row))
    runners = [f"`{n}`" for n in names]
    lines = [f"### Workloads on the {'GPU' if run.on_gpu() else 'CPU'}: {code(run.name)}", "", "Kernels, edges that no "
             "others imply, width (most kernels that may run at once) and depth (kernels on the longest path) as "
             "computed from what was launched, beside what the workload's source says of them. Where the host decides "
             "on the way, no graph of the whole exists.", ""]
    lines += words_table(_SHAPE, [_shape_row(row) for row in run.rows])
    lines += ["Time in us until everything is complete, and how many times as fast as one stream or a loop:", ""]
    lines += table(["workload", "bound", "best rival"] + runners, [_time_row(row, names) for row in run.rows])
    lines += remarks.lines()
    lines += ["Least and most of these times:", ""]
    lines += table(["workload"] + runners, [_spread_row(row, names) for row in run.rows])
    lines += ["Time in us until everything is submitted:", ""]
    return lines + table(["workload"] + runners, [_submit_row(row, names) for row in run.rows])


def section(runs):
    lines = []
    for run in runs:
        for row in run.rows:
            row.run = run
        lines += _run_lines(run) if run.rows else []
    return lines
