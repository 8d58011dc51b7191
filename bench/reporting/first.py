"""The section on acs-first: what each of the first passes of a program costs, through ACS and by rivals.

Called for the runs of acs-first. Times are per kernel, medians over the programs that were run.
"""
from statistics import median

from .results import is_acs, is_rival
from .text import TableRemarks, code, escaped, number, table

_SHOWN = 4  # passes, each by itself; later ones are one median


def _passes(row, fields):
    """Times of each pass, of all programs; the file has one program behind the other."""
    count, times = int(row.fields.positive("passes")), fields.numbers("total_us")
    if len(times) % count:
        fields.refuse("total_us", f"has times of {len(times)} passes, of programs of {count}")
    return [times[k::count] for k in range(count)]


def _best_rivals(passes):
    """By pass, the least median of a rival; empty where there is none."""
    rivals = [p for name, p in passes.items() if is_rival(name)]
    return [min(median(p[k]) for p in rivals) for k in range(len(rivals[0]))] if rivals else []


def _cells(name, passes, kernels, rivals, opened):
    shown = [number(median(p) / kernels) for p in passes[:_SHOWN]] + ["-"] * (_SHOWN - len(passes))
    later = [t for p in passes[_SHOWN:] for t in p]
    worst = max((median(p) / r for p, r in zip(passes, rivals)), default=None) if is_acs(name) else None
    return [f"`{escaped(name)}`"] + shown + [number(median(later) / kernels) if later else "-", number(worst),
                                             number(median(opened) / 1000) if opened else "-"]


def _row_lines(row):
    remarks, kernels = TableRemarks([""]), row.fields.positive("kernels")
    ran = [f for f in row.fields.objects("runners") if row.outcomes[f.need("name", str)].total]
    passes = {f.need("name", str): _passes(row, f) for f in ran}
    rivals = _best_rivals(passes)
    for outcome in row.outcomes.values():
        remarks.add(outcome, "")
    cells = [_cells(name, passes[name], kernels, rivals, f.numbers("open_us")) for name, f in zip(passes, ran)]
    title = f"{escaped(row.fields.data['work'])}, {number(kernels)} kernels a pass:"
    head = ["us per kernel", "1st", "2nd", "3rd", "4th", "later", "worst", "open, ms"]
    return [title, ""] + table(head, cells) + remarks.lines()


def section(runs):
    lines = []
    for run in runs:
        lines += [f"### The first passes on the {'GPU' if run.on_gpu() else 'CPU'}: {code(run.name)}", "",
                  "ACS is opened for each program and has learnt nothing; rivals have their best settings. *worst*: the "
                  "largest factor of a pass over the best rival in that pass.", ""]
        for row in run.rows:
            lines += _row_lines(row)
    return lines
