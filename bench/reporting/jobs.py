"""The section on acs-jobs: streams of independent jobs by the baselines of the SET paper, by hand and through ACS.

Called for the runs of acs-jobs. The paper's figures are of other GPUs, kernels and sizes; they are told apart wherever they
stand.
"""
from .text import TableRemarks, cell, code, escaped, number, plain, ranged, table

_BASELINES = ("stream", "graph", "batch", "queue")
# Who is held against whom, by hand: what it costs that nobody gave the jobs buffers of their own.
_RATIOS = (("acs", "buffers"), ("acs-rename", "buffers"), ("acs-rename", "acs-buffers"))
_PAPER = ("SET in the paper", "RTX 3090 / RTX 5090")


def _add_figures(row):
    """What only this program writes of a runner, on the outcomes that ran."""
    jobs = row.fields.positive("jobs")
    for outcome, fields in row.ran():
        outcome.per_job = outcome.total.over(jobs)
        outcome.device = fields.measure("device_bytes")


def _work(row):
    return escaped(row.fields.data["work"])


def _times(row, name, over):
    """How many times as fast `name` is as `over`; None where one of them has no time."""
    one, other = row.outcomes.get(name), row.outcomes.get(over)
    return other.total.median / one.total.median if one and other and one.total and other.total else None


def _time_cell(row, outcome):
    return cell(row, outcome, lambda o: ranged(o.per_job))


def _memory_cell(row, outcome):
    return cell(row, outcome, lambda o: "not known" if o.device is None else f"{number(o.device / 2 ** 20)}", lambda o: False)


def _facts(run):
    rows = [[_work(row), plain(row.fields.positive("jobs")), plain(row.number("ops")), plain(row.number("in_bytes")),
             plain(row.number("out_bytes")), plain(row.number("set_bytes"))] for row in run.rows]
    return table(["work", "jobs", "ops of a job", "bytes in", "bytes out", "bytes of device buffers"], rows)


def _speed_ups(run, baseline, names):
    rows = [[_work(row)] + [number(_times(row, n, baseline)) for n in names] +
            [escaped(row.fields.get(f"paper_{baseline}", str, "") or "-")] for row in run.rows]
    return [f"Times as fast as `{baseline}`:", ""] + \
        table(["work"] + [f"`{n}`" for n in names] + [f"*{_PAPER[0]}, {_PAPER[1]}*"], rows)


def _ratios(run):
    pairs = [pair for pair in _RATIOS if any(_times(row, *pair) for row in run.rows)]
    if not pairs:
        return []
    rows = [[_work(row)] + [number(_times(row, *pair)) for pair in pairs] for row in run.rows]
    return ["ACS beside buffers that were given by hand, times as fast:", ""] + \
        table(["work"] + [f"`{one}` over `{other}`" for one, other in pairs], rows)


def _run_lines(run):
    names = run.runners()
    remarks = TableRemarks([_work(row) for row in run.rows])
    for row in run.rows:
        _add_figures(row)
        for outcome in row.outcomes.values():
            remarks.add(outcome, _work(row))
    lines = [f"### Job loops on the {'GPU' if run.on_gpu() else 'CPU'}: {code(run.name)}", "",
             f"Size {escaped(run.rows[0].fields.get('size', str, '') or 'not known')}.", ""] + _facts(run)
    for title, shown in (("us per job until all are complete: median, least and most", _time_cell),
                         ("Most device memory at once, MiB", _memory_cell)):
        cells = [[_work(row)] + [shown(row, row.outcomes.get(n)) for n in names] for row in run.rows]
        lines += [f"{title}:", ""] + table(["work"] + [f"`{n}`" for n in names], cells)
    for baseline in _BASELINES:
        if any(row.outcomes.get(baseline) and row.outcomes[baseline].total for row in run.rows):
            lines += _speed_ups(run, baseline, [n for n in names if n != baseline])
    return lines + _ratios(run) + remarks.lines()


def section(runs):
    return [line for run in runs if run.rows for line in _run_lines(run)]
