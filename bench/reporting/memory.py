"""The section on acs-memory: what a malloc and a free cost, by ACS, by its rivals, and the memory that they keep.

Called for the runs of acs-memory and of replay_torch.py, which writes the same. Ways may have played part of a trace, so
figures are per pair of malloc and free.
"""
from .results import Spread
from .text import TableRemarks, cell, code, escaped, number, plain, ranged, table

_USED = {True: "An op writes each block between its malloc and its free (`--use`); its own cost is not in the calls', but is "
               "in the time until everything is complete.",
         False: "No op touches a block, so that frees have nothing to wait for: the easy case."}


def add_figures(row):
    """What only these programs write of a way, on the outcomes that ran."""
    for fields in row.fields.objects("runners"):
        outcome = row.outcomes[fields.need("name", str)]
        if not outcome.total:
            continue
        pairs = fields.positive("pairs")
        for name in ("calls_us", "cold_us"):
            if not fields.numbers(name):
                fields.refuse(name, "has no times")
        outcome.calls = Spread.of(fields.numbers("calls_us")).over(pairs)
        outcome.cold = Spread.of(fields.numbers("cold_us")).over(pairs)
        outcome.complete = outcome.total.over(pairs)
        outcome.p99 = fields.measure("malloc_p99_us"), fields.measure("free_p99_us")
        outcome.reserved, outcome.live = fields.measure("reserved_bytes"), fields.positive("live_bytes")


def calls(outcome):
    return outcome.calls.median


def complete(outcome):
    return outcome.complete.median


def _over_reference(row, outcome, figure):
    """How many times as fast as the reference; empty for itself, and where it did not run."""
    reference = row.outcomes.get(row.fields.get("reference", str, ""))
    if reference is None or not reference.total or reference is outcome:
        return ""
    return f", {number(figure(reference) / figure(outcome))} x" if figure(outcome) > 0 else ""


def _calls_cell(row, outcome):
    return cell(row, outcome, lambda o: ranged(o.calls) + _over_reference(row, o, calls), lambda o: row.loses(o, calls))


def _complete_cell(row, outcome):
    return cell(row, outcome, lambda o: number(complete(o)) + _over_reference(row, o, complete),
                lambda o: row.loses(o, complete))


def _p99_cell(row, outcome):
    return cell(row, outcome, lambda o: " / ".join(number(us) for us in o.p99), lambda o: False)


def _cold_cell(row, outcome):
    return cell(row, outcome, lambda o: number(o.cold.median), lambda o: False)


def _memory_cell(row, outcome):
    def shown(o):
        return f"{number(o.reserved / o.live)} ({_mib(o.reserved)})" if o.reserved is not None else "not known"
    return cell(row, outcome, shown, lambda o: False)


def _mib(size):
    return f"{number(size / 2 ** 20)} MiB"


_TABLES = (
    ("In the calls of malloc and free, us per pair: median, least and most", _calls_cell),
    ("Until everything is complete, us per pair: median", _complete_cell),
    ("99th percentile of single calls, us: malloc / free", _p99_cell),
    ("In the calls of the first pass, which begins with nothing reserved, us per pair: median", _cold_cell),
    ("Most bytes reserved at once, over the most bytes live at once", _memory_cell),
)


def _kind_lines(run, rows, used):
    names = list(dict.fromkeys(n for row in rows for n in row.outcomes))
    remarks = TableRemarks([escaped(row.fields.data["work"]) for row in rows])
    for row in rows:
        for outcome in row.outcomes.values():
            remarks.add(outcome, escaped(row.fields.data["work"]))
    facts = [[escaped(row.fields.data["work"]), plain(row.fields.positive("pairs")), _mib(row.fields.positive("live_bytes")),
              escaped(row.fields.get("note", str) or "-")] for row in rows]
    kind = "used" if used else "not used"
    lines = [f"### Allocate and free on the {'GPU' if run.on_gpu() else 'CPU'}, blocks {kind}: {code(run.name)}", "",
             _USED[used], ""]
    lines += table(["trace", "pairs", "most live", "note"], facts)
    reference = rows[0].fields.get("reference", str, "")
    if reference:
        lines += [f"`x`: how many times as fast as `{escaped(reference)}`.", ""]
    for title, shown in _TABLES:
        cells = [[escaped(row.fields.data["work"])] + [shown(row, row.outcomes.get(n)) for n in names] for row in rows]
        lines += [f"{title}:", ""] + table(["trace"] + [f"`{n}`" for n in names], cells)
    return lines + remarks.lines()


def section(runs):
    lines = []
    for run in runs:
        for row in run.rows:
            add_figures(row)
        for used in (False, True):
            rows = [row for row in run.rows if bool(row.fields.get("use", (int, float), 0)) == used]
            lines += _kind_lines(run, rows, used) if rows else []
    return lines
