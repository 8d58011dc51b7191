"""The section on acs-tasks: whole programs with their memory, HuntKTm's suite, without and with a plan for it.

Called for the runs of acs-tasks. The paper's figures are of another GPU; its programs have the same arrays but for some small
ones, which the bytes of all blocks tell.
"""
from .text import TableRemarks, cell, code, escaped, number, ranged, table

_PAPER = "*HuntKTm, Table 5*"


def _work(row):
    return escaped(row.fields.data["work"])


def _add_figures(row):
    """What only this program writes of a way, on the outcomes that ran."""
    for outcome, fields in row.ran():
        outcome.peak, outcome.bound = fields.measure("peak_bytes"), fields.measure("bound_bytes")
        outcome.ms = outcome.total.over(1000)


def _gigabytes(value):
    return "-" if value is None else number(value / 1e9)


def _paper(row):
    without, planned = row.fields.measure("paper_without_gb"), row.fields.measure("paper_with_gb")
    return f"{number(without)} / {number(planned)}" if without and planned else "-"


def _peak_cell(row, outcome):
    return cell(row, outcome, lambda o: _gigabytes(o.peak), lambda o: False)


def _bound_cell(row, outcome):
    return cell(row, outcome, lambda o: _gigabytes(o.bound), lambda o: False)


def _time_cell(row, outcome):
    return cell(row, outcome, lambda o: ranged(o.ms), lambda o: False)


def _ratio_cell(row, outcome):
    acs = row.outcomes.get("acs")
    if not acs or not acs.total:
        return "-"
    return cell(row, outcome, lambda o: number(o.total.median / acs.total.median), lambda o: False)


def _run_lines(run):
    names = run.runners()
    planned = [name for name in names if name.startswith("group")]
    remarks = TableRemarks([_work(row) for row in run.rows])
    for row in run.rows:
        _add_figures(row)
        for outcome in row.outcomes.values():
            remarks.add(outcome, _work(row))
    lines = [f"### Tasks with their memory on the {'GPU' if run.on_gpu() else 'CPU'}: {code(run.name)}", "",
             f"Size {escaped(run.rows[0].fields.get('size', str, '') or 'not known')}. From the first allocation to the last "
             "result on the host. `half` has half of the memory, and spills.", ""]
    for title, shown, ways, extra in (
            ("Most device memory at once, GB, and the paper's without / with its memory manager", _peak_cell, names, _paper),
            ("HuntKTm's upper bound of it, GB, from each slot by itself", _bound_cell, planned, None),
            ("ms: median, least and most", _time_cell, names, None),
            ("Times as long as `acs`, which plans nothing", _ratio_cell, [n for n in names if n != "acs"], None)):
        head = ["work", "all blocks"] + [f"`{n}`" for n in ways] + ([_PAPER] if extra else [])
        cells = [[_work(row), _gigabytes(row.fields.measure("bytes"))] + [shown(row, row.outcomes.get(n)) for n in ways] +
                 ([extra(row)] if extra else []) for row in run.rows]
        lines += [f"{title}:", ""] + table(head, cells)
    return lines + remarks.lines()


def section(runs):
    return [line for run in runs if run.rows for line in _run_lines(run)]
