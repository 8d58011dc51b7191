"""The summary of a set of results, a page beside its archive: where it was measured, how, and what it shows.

Called by the command line. What a person knows of the set is in its file note.txt.
"""
from . import cases, head, results
from .micro import figures_of
from .sets import ENDING
from .text import code, escaped, number, ranged, table


def _rows(run):
    """What a run shows: a row for each group of comparisons, or one that says what else the file has."""
    rows = []
    for group in cases.groups_of(run):
        won = f"{len(group.cases) - len(group.lost())} of {len(group.cases)}"
        rows.append([code(run.name), escaped(group.title), won] + [number(speed) for speed in group.speeds()])
    return rows or [[code(run.name), "figures of its own, without a rival", "-", "-", "-", "-"]]


def _calls(run):
    """What acs-micro measured of a launch."""
    rows = [[escaped(name.split("/", 1)[1]), ranged(spread), escaped(unit)] for name, unit, spread in figures_of(run)
            if name.startswith("caller/acs_launch")]
    return table(["the call of a launch", "cost", "unit"], rows) if rows else []


def lines_of(result_set):
    runs = results.read_set(result_set)
    archive = result_set.name + ENDING
    lines = [f"# {result_set.name}", "",
             f"Made from [{archive}]({archive}) by `bench/report --summary`; a test compares.", ""]
    note = result_set.texts.get("note.txt", "").strip()
    lines += note.split("\n") + [""] if note else []
    lines += head.lines_of_set(runs)
    lines += ["What it shows. *Speed* is the time of the best rival over that of ACS: below 1 ACS loses.", ""]
    lines += table(["file", "what", "ACS is faster in", "speed: least", "mean", "most"],
                   [row for run in runs for row in _rows(run)])
    lines += [line for run in runs if run.program == "acs-micro" for line in _calls(run)]
    others = [name for name in result_set.names(".txt") if name != "note.txt"]
    return lines + ([f"Texts: {', '.join(code(name) for name in others)}.", ""] if others else [])
