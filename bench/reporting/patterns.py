"""The section on patterns: what each runner needs per op beside the bound and the best rival, submission apart.

Called for the runs of acs-bench. METG and the CPU's overhead per task are sections of their own.
"""
from .groups import groups_of
from .results import is_acs, is_default, is_rival
from .text import TableRemarks, cell, number, plain, ranged, table

_BOUNDS = (("critical_us", "path"), ("work_us", "work"), ("front_end_us", "front end"))


def bound_of(row):
    """The largest lower bound and its name, or None."""
    known = [(row.number(field), name) for field, name in _BOUNDS if row.number(field)]
    return max(known) if known else None


def _bound_cell(row, ops):
    bound = bound_of(row)
    return f"{number(bound[0] / ops)} ({bound[1]})" if bound else "-"


def _rival_cell(row, ops):
    rival = row.best(is_rival)
    return f"{number(rival.total.median / ops)} {rival.name}" if rival else "-"


def _table(group, first_rows, shown, remarks=None):
    times = group.kernel_times()
    rows = [[title] + [of(group.rows[us], group.rows[us].number("ops")) for us in times] for title, of in first_rows]
    for name in group.runners():
        cells = []
        for us in times:
            row = group.rows[us]
            outcome = row.outcomes.get(name)
            cells.append(shown(row, outcome))
            if remarks and outcome:
                remarks.add(outcome, f"{plain(us)} us")
        rows.append([f"`{name}`"] + cells)
    return table(["us per op; kernels of"] + [f"{plain(us)} us" for us in times], rows)


def _completed(row, outcome):
    return cell(row, outcome, lambda o: ranged(o.total.over(row.number("ops"))))


def _submitted(row, outcome):
    if outcome is None or not outcome.total:
        return cell(row, outcome, None)
    return ranged(outcome.submit.over(row.number("ops"))) if outcome.submit else "-"


def _group_lines(group):
    remarks = TableRemarks([f"{plain(us)} us" for us in group.kernel_times()])
    lines = [f"#### {group.title}", "", f"{group.setting()}; {group.shape()}.", "", "Until everything is complete:", ""]
    lines += _table(group, [("bound", _bound_cell), ("best rival", _rival_cell)], _completed, remarks)
    lines += remarks.lines()
    return lines + ["Until everything is submitted:", ""] + _table(group, [], _submitted)


def _ratio(row, ours):
    """Best rival's time over that of the best of `ours`; None where one of them has none."""
    rival, acs = row.best(is_rival), row.best(ours)
    return rival.total.median / acs.total.median if rival and acs else None


def _ratio_cell(ratio):
    return "-" if ratio is None else number(ratio) + (" (loses)" if ratio < 1 else "")


def _summary(groups):
    lines = _ratios("ACS with its default options over the best rival", groups, is_default)
    if any(is_acs(name) and not is_default(name) for group in groups for name in group.runners()):
        lines += _ratios("The best mode of ACS over the best rival, the mode chosen afterwards", groups, is_acs)
    return lines


def _ratios(title, groups, ours):
    times = sorted({us for group in groups for us in group.rows})
    ratios = [[_ratio(g.rows[us], ours) if us in g.rows else None for us in times] for g in groups]
    known = [r for line in ratios for r in line if r is not None]
    if not known:
        return []
    lost = sum(r < 1 for r in known)
    lines = [f"#### {title}", "",
             f"The rival's time divided by that of ACS; below 1 ACS loses: in {lost} of {len(known)} cases.", ""]
    rows = [[g.title] + [_ratio_cell(r) for r in line] for g, line in zip(groups, ratios)]
    return lines + table(["kernels of"] + [f"{plain(us)} us" for us in times], rows)


def section(runs):
    lines = []
    for run in runs:
        groups = [g for g in groups_of(run) if not g.overhead_only()]
        if groups:
            where = "GPU" if run.on_gpu() else "CPU"
            lines += [f"### Patterns on the {where}: `{run.name}`", ""] + _summary(groups)
            for group in groups:
                lines += _group_lines(group)
    return lines
