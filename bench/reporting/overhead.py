"""What a task costs on the CPU: kernels of 0 us on the host backend, by number of tasks, beside StarPU and OpenMP.

Called for the runs of acs-bench. Other numbers of tasks may lie in other files, so these tables go across files.
"""
from .results import is_acs, is_rival
from .text import TableRemarks, cell, number, plain, ranged, table

# The project's target: this part of what StarPU costs, end to end.
TARGET = 0.25


class _Column:
    def __init__(self, run, row):
        self.run, self.row, self.ops = run, row, row.number("ops")
        self.title = f"{plain(self.ops)} tasks"

    def per_task(self, name):
        outcome = self.row.outcomes.get(name)
        return outcome.total.over(self.ops) if outcome and outcome.total else None

    def less_serial(self, name):
        """What the runner adds to a loop that calls the bodies; None where there is no such loop to compare with."""
        serial, own = self.per_task("serial"), self.per_task(name)
        return own.median - serial.median if serial and own and name != "serial" else None

    def over_starpu(self, name):
        """(end to end, less serial) over StarPU's; None where it is not known, or StarPU adds nothing."""
        own, starpu = self.per_task(name), self.per_task("starpu")
        less, starpu_less = self.less_serial(name), self.less_serial("starpu")
        ratio = own.median / starpu.median if own and starpu else None
        return ratio, less / starpu_less if less is not None and starpu_less and starpu_less > 0 else None


def _tables(runs):
    """By pattern and what else tasks differ in: columns by number of tasks."""
    tables = {}
    for run in runs:
        for row in run.rows if not run.on_gpu() else []:
            if row.number("kernel_us") == 0:
                key = (row.fields.need("work", str), row.number("fields"), row.number("functions"), row.number("check"))
                tables.setdefault(key, []).append(_Column(run, row))
    for columns in tables.values():
        columns.sort(key=lambda c: (c.ops, c.run.name))
        titles = [c.title for c in columns]
        for column in columns:
            if titles.count(column.title) > 1:
                column.title += f" ({plain(column.row.number('width'))} wide, `{column.run.name}`)"
    return tables


def _title(key):
    work, fields, functions, check = key
    more = [f"{plain(fields)} cells per point"] if fields else []
    more += [f"{plain(functions)} functions"] if functions and functions > 1 else []
    more += ["marks checked by each task"] if check else []
    return ", ".join([work] + more)


def _cost_cell(column, name):
    def shown(outcome):
        less = column.less_serial(name)
        return ranged(outcome.total.over(column.ops)) + (f", less serial {number(less)}" if less is not None else "")
    # A loop without any runtime is what the figures are told apart from, not a rival of runtimes.
    return cell(column.row, column.row.outcomes.get(name), shown,
                lambda o: column.row.loses(o, rivals=lambda n: is_rival(n) and n != "serial"))


def _growth(columns, name):
    costs = [c.per_task(name) for c in columns if c.per_task(name)]
    return number(costs[-1].median / costs[0].median) if len(costs) > 1 else "-"


def _ratio_cell(column, name):
    ratio, less = column.over_starpu(name)
    if ratio is None:
        return "-"
    missed = " (misses the target)" if is_acs(name) and ratio > TARGET else ""
    return number(ratio) + (f", less serial {number(less)}" if less is not None else "") + missed


def _lines(key, columns):
    remarks = TableRemarks([c.title for c in columns])
    names = list(dict.fromkeys(name for c in columns for name in c.row.outcomes))
    for column in columns:
        for outcome in column.row.outcomes.values():
            remarks.add(outcome, column.title)
    titles, several = [c.title for c in columns], len({c.ops for c in columns}) > 1
    rows = [[f"`{n}`"] + [_cost_cell(c, n) for c in columns] for n in names]
    rows = [row + [_growth(columns, n)] for row, n in zip(rows, names)] if several else rows
    lines = [f"#### {_title(key)}", "", "us per task, end to end:", ""]
    lines += table(["runner"] + titles + (["most over fewest tasks"] if several else []), rows) + remarks.lines()
    if any(c.per_task("starpu") for c in columns):
        rows = [[f"`{n}`"] + [_ratio_cell(c, n) for c in columns] for n in names if n not in ("starpu", "serial")]
        lines += [f"Over StarPU's; the target for ACS is {TARGET}, end to end:", ""] + table(["runner"] + titles, rows)
    return lines


def section(runs):
    tables = _tables(runs)
    if not tables:
        return []
    lines = ["### CPU: overhead per task", "", "Tasks of 0 us on the host backend. *End to end* is the whole run's "
             "time over its tasks; *less serial* is that without what a plain loop over the bodies needs, where "
             "`serial` was run.", ""]
    return lines + [line for key, columns in tables.items() for line in _lines(key, columns)]
