"""The section on acs-devices: GrCUDA's suite on several devices, by every policy, beside programs by hand.

Called for the runs of acs-devices. What the paper's scheduler reaches is of its own hand-written programs on other GPUs.
"""
import math

from .text import TableRemarks, cell, code, escaped, number, plain, ranged, table

_HAND, _ONE = "hand", "hand-1"


def _work(row):
    return escaped(row.fields.data["work"])


def _add_figures(row):
    """What only this program writes of a way, on the outcomes that ran."""
    for outcome, fields in row.ran():
        outcome.copied = fields.measure("copied_bytes") or 0
        outcome.ms = outcome.total.over(1000)


def _time_cell(row, outcome):
    return cell(row, outcome, lambda o: ranged(o.ms), lambda o: False)


def _over(row, outcome, name, figure):
    """That of the way of this name over the outcome's."""
    base = row.outcomes.get(name)
    if not base or not base.total or not outcome or not outcome.total or not figure(base) or not figure(outcome):
        return None
    return figure(base) / figure(outcome)


def _ratio_cell(name):
    def show(row, outcome):
        if outcome is None or not outcome.total:
            return cell(row, outcome, lambda o: "-", lambda o: False)
        ratio = _over(row, outcome, name, lambda o: o.total.median)
        return "-" if ratio is None else number(ratio)
    return show


def _bytes_cell(row, outcome):
    if outcome is None or not outcome.total:
        return cell(row, outcome, lambda o: "-", lambda o: False)
    ratio = _over(row, outcome, _HAND, lambda o: o.copied)
    return "-" if ratio is None else number(1 / ratio)


def _mean(rows, name):
    ratios = [_over(row, row.outcomes.get(name), _HAND, lambda o: o.total.median) for row in rows]
    if not ratios or any(ratio is None for ratio in ratios):
        return "-"
    return number(math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios)))


def _lines_for(rows, names, remarks):
    lines = []
    others = [name for name in names if name not in (_HAND, _ONE)]
    for title, shown, ways, mean in (
            ("ms: median, least and most", _time_cell, names, False),
            ("Speed over `hand`: its time over the way's", _ratio_cell(_HAND), others, True),
            ("Speed over one device by hand", _ratio_cell(_ONE), [_HAND] + others, False),
            ("Bytes copied over those of `hand`", _bytes_cell, others, False)):
        cells = [[_work(row)] + [shown(row, row.outcomes.get(name)) for name in ways] for row in rows]
        if mean:
            cells.append(["*geometric mean*"] + [_mean(rows, name) for name in ways])
        lines += [f"{title}:", ""] + table(["work"] + [code(name) for name in ways], cells)
    for row in rows:
        for outcome in row.outcomes.values():
            remarks.add(outcome, _work(row))
    return lines


def _launch_lines(run):
    """Of `--launches`: the only work of its run."""
    remarks, cells = TableRemarks([_work(row) for row in run.rows]), []
    for row in run.rows:
        launches = row.fields.positive("ops")
        for name, outcome in row.outcomes.items():
            alone = name.endswith("-1")
            scaled = _over(row, outcome, name if alone else name + "-1", lambda o: o.total.median)
            cells.append(["1" if alone else plain(row.fields.need("devices", (int, float))), code(name),
                          cell(row, outcome, lambda o: f"{launches / o.total.median * 1e6:,.0f}", lambda o: False),
                          "-" if scaled is None else number(scaled)])
            remarks.add(outcome, code(name))
    return [f"### Launches to several {'GPUs' if run.on_gpu() else 'virtual devices'}: {code(run.name)}", "",
            "Empty kernels one by one. `acs`: from one thread, to each device in turn, launched; `acs-auto` and so on: by "
            "`ACS_ISSUE`, in bundles. `hand`: a thread and eight streams for each device.",
            ""] + run.remark_lines() + table(["devices", "way", "launches a second", "times one"], cells) + remarks.lines()


def _run_lines(run):
    if all(row.fields.data["work"] == "launches" for row in run.rows):
        return _launch_lines(run)
    remarks = TableRemarks([_work(row) for row in run.rows])
    for row in run.rows:
        _add_figures(row)
    lines = [f"### GrCUDA's suite on several {'GPUs' if run.on_gpu() else 'virtual devices'}: {code(run.name)}", "",
             f"Size {escaped(run.rows[0].fields.get('size', str, '') or 'not known')}. From the first copy in to the last copy out; "
             "memory is there before. `hand` knows the whole program: copies, streams and events are planned before the clock "
             "starts. *Shared*: inputs lie in pinned memory that moves as devices need it, as arrays do in GrCUDA; else the "
             "program copies them.", ""] + run.remark_lines()
    for devices in sorted({row.fields.need("devices", (int, float)) for row in run.rows}):
        rows = [row for row in run.rows if row.fields.data["devices"] == devices]
        names = list(dict.fromkeys(name for row in rows for name in row.outcomes))
        lines += [f"#### {devices:.0f} devices", ""] + _lines_for(rows, names, remarks)
    return lines + remarks.lines()


def section(runs):
    return [line for run in runs if run.rows for line in _run_lines(run)]
