"""The tables of the first page, docs/performance.md: each answers one question of a reader. The words around them are in
front.md.

Called by document.py with the newest runs of one GPU, by file name. A table whose file is missing is left out.
"""
import re

from . import cases, head, physics
from .errors import BadInput
from .groups import groups_of
from .metg import curves_of, metg_of
from .micro import figures_of
from .results import is_default, is_rival
from .text import code, escaped, number, plain, table, words_table

_PATTERNS = {"stencil_1d": "stencil", "random:64": "random graph, the same in each run",
             "fresh:64": "random graph, another one in each run", "chains:16": "16 chains", "chains:32": "32 chains"}
# Of the table of all: its columns, by runner.
_COLUMNS = (("one stream", "stream"), ("streams by hand", "streams"), ("graph, updated in each run", "graph-update"),
            ("graph, only replayed", "graph-replay"), ("ACS", "acs"))
_PHYSICS = {"stream": "one stream", "streams": "streams by hand", "fused": "one stream, fused kernels",
            "fused-streams": "streams by hand, a scene's narrow phases fused into one kernel",
            "graph-step": "a graph built in each step", "graph-update": "a graph updated in each step",
            "max-stream": "everything at its maximum size, one stream",
            "graph-max": "everything at its maximum size, one graph", "acs": "ACS", "acs-4": "ACS, 4 streams"}
_CPU = (("plain loop", "serial"), ("OpenMP", "openmp"), ("StarPU", "starpu"), ("ACS", "acs"))
_CHAIN = re.compile(r"kernels of +([\d.]+) us: one stream +([\d.]+) us per kernel, ACS +([\d.]+) us, ratio ([\d.]+)")
_IDLE = re.compile(r"(.*?) +idle for +([\d.]+) us: plain +([\d.]+) us .*?, ACS +([\d.]+) us .*?, ratio ([\d.]+)")
_WORST = 3  # losses shown of a group; the others are counted


def _source(*runs):
    """Where a table's figures are from: said under each."""
    told = [f"`{run.name}`, {run.date[:10]}, commit {head.commit_of(run) or 'not known'}, {escaped(head.machine_of(run))}, "
            f"[command](../bench/results/{run.results.name}.md)" for run in runs]
    return ["From " + "; ".join(told) + ".", ""]


def _median(row, name):
    outcome = row.outcomes.get(name)
    return outcome.total.median if outcome and outcome.total else None


def _beside_row(row, name, ops):
    times = [_median(row, runner) for _, runner in _COLUMNS]
    case = row.best(is_default), row.best(is_rival)
    speed = case[1].total.median / case[0].total.median if all(case) else None
    return [name] + [number(us / ops) if us else "-" for us in times] + [_speed_cell(speed)]


def _speed_cell(speed):
    return "-" if speed is None else f"**{number(speed)}**" if speed < 1 else number(speed)


def beside(runs):
    """ACS beside streams and graphs by hand."""
    rows, sources = [], []
    for file, named in (("targets.json", _PATTERNS), ("workloads.json", {})):
        run = runs.get(file)
        for row in run.rows if run else []:
            work = row.fields.data["work"]
            us = row.number("kernel_us")
            name = named.get(work, escaped(work)) + (f", kernels of {plain(us)} µs" if us else "")
            rows.append(_beside_row(row, name, row.number("kernels") or row.number("ops")))
        sources += [run] if run and run.rows else []
    titles = ["µs per kernel"] + [title for title, _ in _COLUMNS] + ["speed of ACS"]
    return table(titles, rows) + _source(*sources) if rows else []


def wins(runs):
    """By pattern and by how long kernels take, and the shortest kernels that are worth it."""
    run, lines = runs.get("patterns.json"), []
    if run and run.rows:
        groups = groups_of(run)
        times = sorted({us for group in groups for us in group.rows})
        cells = [[group.title] + [_pattern_cell(group.rows.get(us)) for us in times] for group in groups]
        found = [case for group in cases.groups_of(run) for case in group.cases]
        lost = sum(case.lost() for case in found)
        lines += [f"ACS is faster in {len(found) - lost} of {len(found)} cases. Speed of ACS over its best rival:", ""]
        lines += table(["kernels of"] + [f"{plain(us)} µs" for us in times], cells) + _source(run)
    return lines + _metg(runs.get("metg.json"))


def _pattern_cell(row):
    acs, rival = (row.best(is_default), row.best(is_rival)) if row else (None, None)
    return _speed_cell(rival.total.median / acs.total.median) if acs and rival else "-"


def _metg(run):
    groups = groups_of(run) if run else []
    if not groups:
        return []
    rows = []
    for name in run.runners():
        found = [metg_of(curve) if curve else (None, "") for curve in (curves_of(group).get(name) for group in groups)]
        rows.append([code(name)] + [f"{beyond} {number(us)}".strip() for us, beyond in found])
    lines = ["The shortest tasks with which half of the time is useful work, METG(50 %), in µs; less is better:", ""]
    return lines + table(["runner"] + [group.title for group in groups], rows) + _source(run)


def _physics_lines(run, key, by_worlds):
    lines = []
    for worlds, row in by_worlds.items():
        ours = row.outcomes.get("acs")
        rows = []
        for outcome in row.outcomes.values():
            if outcome.total:
                times = outcome.total.median, outcome.p99, outcome.back.median
                share = ours.total.median / outcome.total.median if ours and ours.total and outcome is not ours else None
                rows.append([_PHYSICS.get(outcome.name, code(outcome.name))] + [number(us) for us in times] + [number(share)])
        lines += [f"{plain(key[2])} scenes of {plain(worlds)} worlds, µs a step:", ""]
        lines += table(["runner", "median", "99th percentile", "steps without a wait", "time of ACS over it"], rows)
    return lines + _source(run)


def losing_physics(runs):
    run = runs.get("rivals.json")
    tables = physics.tables_of(run) if run else {}
    return [line for key, by_worlds in tables.items() for line in _physics_lines(run, key, by_worlds)]


def _groups(runs):
    return [group for run in runs.values() for group in cases.groups_of(run)]


def _linked(group):
    return f"[{group.title}](performance/{group.page}.md)"


def losses(runs):
    """The worst cases of each group, so that a reader need not look for them."""
    rows = []
    for group in sorted(_groups(runs), key=lambda group: (not group.run.on_gpu(), group.cases[0].speed)):
        lost = group.lost()
        if lost:
            shown = [f"{escaped(case.what)} {number(1 / case.speed)} ({code(case.rival)})" for case in lost[:_WORST]]
            rows.append([_linked(group), f"{len(lost)} of {len(group.cases)}", "; ".join(shown)])
    return words_table(["what", "lost", f"the {_WORST} worst: time of ACS over that of (rival)"], rows)


def board(runs):
    """All comparisons, a line for each group, those of one page beside each other."""
    rows = []
    for group in sorted(_groups(runs), key=lambda group: (group.page, group.title)):
        won = len(group.cases) - len(group.lost())
        rows.append([_linked(group), f"{won} of {len(group.cases)}"] + [number(speed) for speed in group.speeds()])
    return table(["what", "ACS is faster in", "speed: least", "mean", "most"], rows)


def _calls(run):
    """What the call of a launch costs the program's thread."""
    rows = [[escaped(name.split("/", 1)[1]), number(spread.median)] for name, _, spread in figures_of(run)
            if name.startswith("caller/acs_launch")]
    return table(["the program's thread, ns a call", "median"], rows) + _source(run) if rows else []


def _submitted(row, outcome):
    return number(outcome.submit.median / row.number("ops")) if outcome and outcome.submit else "-"


def _submission(run):
    """Until everything is handed over; the device may still work."""
    rows = []
    for title, name in _COLUMNS:
        if name != "graph-replay" and name in run.runners():
            rows.append([title] + [_submitted(row, row.outcomes.get(name)) for row in run.rows])
    works = [row.fields.data["work"] for row in run.rows]
    return table(["until all is handed over, µs per kernel"] + [_PATTERNS.get(w, w) for w in works], rows) + _source(run)


def _printed(texts, file, pattern, titles):
    """A table out of what a program printed; each line must have the form that it prints."""
    if file not in texts:
        return []
    results, rows = texts[file], []
    for line in results.texts[file].splitlines():
        match = pattern.match(line)
        if not match:
            raise BadInput(f"{results.where(file)}: cannot be read: {line}")
        rows.append([*match.groups()[:-3]] + [number(float(value)) for value in match.groups()[-3:]])
    facts, parts = head.Summary(results).facts, results.parts()
    told = [f"`{file}`", parts["date"] if parts else "", f"commit {facts['commit']}" if facts.get("commit") else "",
            facts.get("GPU", ""), f"[command](../bench/results/{results.name}.md)"]
    return table(titles, rows) + [f"From {', '.join(part for part in told if part)}.", ""]


def _cpu_tasks(overheads):
    """Of the run with most of the rivals: the largest leave some out."""
    if not overheads:
        return []
    run = max(overheads, key=lambda run: sum(_median(row, name) is not None for row in run.rows for _, name in _CPU))
    rows = []
    for row in run.rows:
        times = [_median(row, name) for _, name in _CPU]
        rows.append([escaped(row.fields.data["work"])] + [number(us / row.number("ops")) if us else "-" for us in times])
    title = f"{plain(run.rows[0].number('ops'))} empty tasks on CPU threads, µs a task"
    return table([title] + [t for t, _ in _CPU], rows) + _source(run)


def launches(runs, texts):
    """What a launch costs: the caller, the host, a kernel that waits for the one before, the CPU's tasks."""
    lines = [line for run in runs.values() if run.program == "acs-micro" for line in _calls(run)]
    lines += _submission(runs["targets.json"]) if "targets.json" in runs else []
    lines += _printed(texts, "chain.txt", _CHAIN,
                      ["a chain of kernels of µs", "one stream, µs per kernel", "ACS", "ACS over it"])
    lines += _printed(texts, "latency.txt", _IDLE,
                      ["one kernel, until it is known complete: who issues", "idle before, µs", "plain launch, µs", "ACS",
                       "ACS over it"])
    return lines + _cpu_tasks([runs[file] for file in sorted(runs) if file.startswith("overhead_") and runs[file].rows])
