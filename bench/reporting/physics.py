"""The section on the physics sample: a step's time by number of worlds, for ACS and its rivals, and who wins.

Called for the runs of physics-bench; compare.py reads the same rows.
"""
from .results import Outcome, Row, Spread, is_acs, is_default, is_rival
from .text import TableRemarks, cell, number, plain, table

_BOUNDS = (("front_end_us", "front end, us"), ("path_us", "longest path, us"), ("graph_us", "as one graph, us"),
           ("chain_us", "one after another, us"))
_FIGURES = (("step p50", lambda o: o.total.median), ("step p99", lambda o: o.p99),
            ("steps without a wait", lambda o: o.back.median))


def _spread(fields, middle):
    return Spread(fields.positive(middle), fields.positive("min"), fields.positive("max"))


def _outcome(fields):
    name, check = fields.need("runner", str), fields.get("check", str, "")
    if check == "left out" or "step_us" not in fields.data:
        return Outcome(name, left_out=fields.get("left_out", str) or "it does not run on this backend")
    if check == "differs":
        return Outcome(name, wrong=fields.get("wrong", str) or "the final state is not that of one stream")
    step = fields.object("step_us")
    outcome = Outcome(name, _spread(step, "p50"))
    outcome.p99, outcome.submit, outcome.checked = step.positive("p99"), None, check == "same"
    if "submit_us" in fields.data:
        outcome.submit = fields.object("submit_us").need("p50", (int, float))
    middle = fields.positive("back_to_back_us")
    outcome.back = Spread(middle, middle, middle)
    if "back_to_back" in fields.data:
        ends = fields.object("back_to_back")
        outcome.back = Spread(middle, ends.positive("min"), ends.positive("max"))
    return outcome


def tables_of(run):
    """{(backend, order, scenes): {worlds: Row}} in the order of the file."""
    found = {}
    for fields in run.fields.objects("rows"):
        key = (fields.get("backend", str, ""), fields.get("order", str, ""), fields.measure("scenes"))
        found.setdefault(key, {}).setdefault(fields.positive("worlds"), []).append(fields)
    return {key: {worlds: Row(rows[0], [_outcome(f) for f in rows]) for worlds, rows in by_worlds.items()}
            for key, by_worlds in found.items()}


def _step_cell(row, outcome):
    return cell(row, outcome, lambda o: f"{number(o.total.median)} / {number(o.p99)}")


def _back_cell(row, outcome):
    figure = _FIGURES[2][1]
    return cell(row, outcome, lambda o: number(o.back.median), lambda o: row.loses(o, figure))


def _submit_cell(row, outcome):
    return number(outcome.submit) if outcome and outcome.total else cell(row, outcome, None)


def _winner_cell(row, figure):
    rival, acs = row.best(is_rival, figure), row.best(is_default, figure) or row.best(is_acs, figure)
    if not rival or not acs:
        return "-"
    ratio = figure(rival) / figure(acs)
    said = f"{number(ratio)} ({acs.name}, {rival.name})"
    return said + (f" {rival.name} wins, ACS loses" if ratio < 1 else f" {acs.name} wins")


def _bounds_table(by_worlds, gpu):
    """The front end's and the edges' costs are those of a GPU, so the CPU's table leaves them out."""
    rows, bounds = [], _BOUNDS if gpu else _BOUNDS[3:]
    for worlds, row in by_worlds.items():
        bound = row.fields.object("bound") if "bound" in row.fields.data else None
        if bound:
            facts = [plain(bound.measure(n)) for n in ("kernels", "edges", "depth")]
            rows.append([plain(worlds)] + facts + [number(bound.measure(n) or None) for n, _ in bounds])
    head = ["worlds", "kernels", "edges", "depth"] + [title for _, title in bounds]
    unknown = [k for k in range(len(head)) if k > 3 and all(r[k] == "-" for r in rows)]
    kept = [k for k in range(len(head)) if k not in unknown]
    if not rows:
        return []
    return ["For comparison (fused and maximum-size runners launch other numbers of kernels):", ""] + \
        table([head[k] for k in kept], [[r[k] for k in kept] for r in rows])


def _runners_table(head, names, by_worlds, shown):
    rows = [[f"`{n}`"] + [shown(row, row.outcomes.get(n)) for row in by_worlds.values()] for n in names]
    return [head + ":", ""] + table(["worlds"] + [plain(w) for w in by_worlds], rows)


def _title(key):
    backend, order, scenes = key
    issued = {"scene": "scene after scene", "interleaved": "interleaved"}.get(order, order)
    return f"{plain(scenes)} scenes issued {issued}, on the {'GPU' if backend == 'cuda' else 'CPU'}"


def _lines(key, by_worlds):
    columns = [f"{plain(w)} worlds" for w in by_worlds]
    names, remarks = list(dict.fromkeys(n for row in by_worlds.values() for n in row.outcomes)), TableRemarks(columns)
    for column, row in zip(columns, by_worlds.values()):
        for outcome in row.outcomes.values():
            remarks.add(outcome, column)
    timed = [o for row in by_worlds.values() for o in row.outcomes.values() if o.total]
    checked = "compared with one stream's bit for bit" if timed and all(o.checked for o in timed) else "not compared"
    lines = [f"#### {_title(key)}", "", f"Final states: {checked}.", ""] + _bounds_table(by_worlds, key[0] == "cuda")
    lines += _runners_table("A step, waited for, us: p50 / p99", names, by_worlds, _step_cell) + remarks.lines()
    lines += _runners_table("A step where steps follow each other without a wait, us", names, by_worlds, _back_cell)
    lines += _runners_table("Until a step is submitted, us, p50", names, by_worlds, _submit_cell)
    lines += ["The best rival's time divided by that of ACS with its default options; below 1 ACS loses:", ""]
    rows = [[title] + [_winner_cell(row, figure) for row in by_worlds.values()] for title, figure in _FIGURES]
    return lines + table(["worlds"] + [plain(w) for w in by_worlds], rows)


def section(runs):
    lines = []
    for run in runs:
        tables = tables_of(run)
        if tables:
            lines += [f"### Physics: `{run.name}`", ""]
        lines += [line for key, by_worlds in tables.items() for line in _lines(key, by_worlds)]
    return lines
