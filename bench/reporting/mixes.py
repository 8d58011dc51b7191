"""The section on acs-mixes: HuntKTm's workloads of many jobs on several devices of little memory.

Called for the runs of acs-mixes. The paper's figures are of other GPUs, twice as many, and of jobs of scale 1.
"""
import math

from .text import TableRemarks, cell, code, escaped, number, plain, ranged, table

_BASES = ("one", "one-process")


def _work(row):
    return escaped(row.fields.data["work"])


def _add_figures(row):
    """What only this program writes of a way, on the outcomes that ran."""
    for outcome, fields in row.ran():
        outcome.peak = fields.measure("peak_bytes") or None
        outcome.copied = fields.measure("copied_bytes")
        outcome.ms = outcome.total.over(1000)


def _time_cell(row, outcome):
    return cell(row, outcome, lambda o: ranged(o.ms), lambda o: False)


def _peak_cell(row, outcome):
    return cell(row, outcome, lambda o: number(o.peak / 1e9) if o.peak else "-", lambda o: False)


def _rate_cell(row, outcome):
    def rate(o):
        return "-" if o.copied is None else number(o.copied / 1e3 / o.total.median)
    return cell(row, outcome, rate, lambda o: False)


def _speed(row, outcome):
    """Over one job at a time; None where one of the two has no time."""
    base = next((row.outcomes[name] for name in _BASES if name in row.outcomes), None)
    if not base or not base.total or not outcome or not outcome.total:
        return None
    return base.total.median / outcome.total.median


def _speed_cell(row, outcome):
    if outcome is None or not outcome.total:
        return cell(row, outcome, lambda o: "-", lambda o: False)
    speed = _speed(row, outcome)
    return "-" if speed is None else number(speed)


def _mean(rows, name):
    speeds = [_speed(row, row.outcomes.get(name)) for row in rows]
    if not speeds or any(speed is None for speed in speeds):
        return "-"
    return number(math.exp(sum(math.log(speed) for speed in speeds) / len(speeds)))


def _paper(rows, name):
    for row in rows:
        for fields in row.fields.objects("runners"):
            if fields.need("name", str) == name:
                return number(fields.measure("paper_speed"))
    return "-"


def _exhausted(rows):
    """Who found no memory: said in any case, since all jobs are to find some."""
    lines = []
    for row in rows:
        for fields in row.fields.objects("runners"):
            count = fields.measure("exhausted")
            if count:
                lines.append(f"- {_work(row)}: {plain(count)} jobs of {code(fields.need('name', str))}")
    if not lines:
        return ["Every job found memory.", ""]
    return ["Jobs that found no memory:", ""] + lines + [""]


def _jobs_cell(row):
    large, small = row.fields.measure("large"), row.fields.measure("small")
    return "-" if large is None or small is None else f"{plain(large)} + {plain(small)}"


def _lines_for(rows, remarks):
    names = list(dict.fromkeys(name for row in rows for name in row.outcomes))
    lines = []
    for title, shown, mean in (("Speed over one job at a time on each device", _speed_cell, True),
                               ("ms: median, least and most", _time_cell, False),
                               ("Most device memory at once, GB, of all devices", _peak_cell, False),
                               ("GB a second that are copied", _rate_cell, False)):
        cells = [[_work(row), _jobs_cell(row)] + [shown(row, row.outcomes.get(name)) for name in names] for row in rows]
        if mean:
            cells.append(["*geometric mean*", ""] + [_mean(rows, name) for name in names])
            cells.append(["*the paper's, on 4 A100*", ""] + [_paper(rows, name) for name in names])
        lines += [f"{title}:", ""] + table(["work", "large + small"] + [code(name) for name in names], cells)
    for row in rows:
        for outcome in row.outcomes.values():
            remarks.add(outcome, _work(row))
    return lines + _exhausted(rows)


def _gigabytes(row, name):
    value = row.fields.measure(name)
    return "not known" if value is None else f"{number(value / 1e9)} GB"


def _run_lines(run):
    remarks = TableRemarks([_work(row) for row in run.rows])
    for row in run.rows:
        _add_figures(row)
    first = run.rows[0]
    apart = "each a process of its own" if first.fields.measure("processes") else "in one process"
    where = "GPUs" if run.on_gpu() else "virtual devices"
    lines = [f"### HuntKTm's workloads on several {where}: {code(run.name)}", "",
             f"Jobs of {plain(first.fields.measure('scale'))} times the paper's bytes, {apart}, on devices of "
             f"{_gigabytes(first, 'limit_bytes')} each. All jobs are there at once; from then to the last result "
             "on the host.", ""]
    for devices in sorted({row.fields.need("devices", (int, float)) for row in run.rows}):
        rows = [row for row in run.rows if row.fields.data["devices"] == devices]
        lines += [f"#### {devices:.0f} devices", ""] + _lines_for(rows, remarks)
    return lines + remarks.lines()


def section(runs):
    return [line for run in runs if run.rows for line in _run_lines(run)]
