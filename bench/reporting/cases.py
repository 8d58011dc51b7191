"""ACS beside its best rival, row by row: one Case for each row of a run, in groups that a reader can name.

Called by the front page and by the summaries of sets. Whether a time may be shown is decided in results.py: rows in which
ACS or all rivals have no time make no case.
"""
import math

from . import jobs, memory, physics
from .fields import NUMBER
from .results import is_acs, is_default, is_rival
from .text import plain

# Of acs-mixes, whose ways have names of their own.
_PLANNED, _BY_HAND = ("groups", "ledger"), ("one", "one-malloc", "beside", "one-process")


class Case:
    """One comparison: the times of ACS and of its best rival, in the same unit."""

    def __init__(self, what, acs, ours, rival, theirs):
        self.what, self.acs, self.rival = what, acs, rival
        self.speed = theirs / ours

    def lost(self):
        return self.speed < 1


class Group:
    """Cases of one run that belong together, slowest first. `page` is the page of docs/performance that has its tables."""

    def __init__(self, run, title, page, cases):
        self.run, self.title, self.page = run, title, page
        self.cases = sorted((case for case in cases if case), key=lambda case: case.speed)

    def lost(self):
        return [case for case in self.cases if case.lost()]

    def speeds(self):
        """Least, geometric mean and most."""
        speeds = [case.speed for case in self.cases]
        return speeds[0], math.exp(sum(math.log(speed) for speed in speeds) / len(speeds)), speeds[-1]


def case_of(row, what, ours=is_default, rivals=is_rival, figure=lambda o: o.total.median):
    acs, rival = row.best(ours, figure), row.best(rivals, figure)
    return Case(what, acs.name, figure(acs), rival.name, figure(rival)) if acs and rival else None


def _work(row):
    return row.fields.data["work"]


def _patterns(run):
    if not run.on_gpu():
        return _cpu(run)
    times = sorted({row.number("kernel_us") for row in run.rows})
    several = len(times) > 1
    cases = [case_of(row, _work(row) + (f", {plain(row.number('kernel_us'))} µs" if several else "")) for row in run.rows]
    lengths = f"{plain(times[0])} to {plain(times[-1])} µs" if several else f"{plain(times[0])} µs"
    functions = run.rows[0].number("functions") or 1
    lengths += f", {plain(functions)} functions" if functions > 1 else ""
    return [Group(run, f"patterns, kernels of {lengths}", "patterns", cases)]


def _cpu(run):
    """A plain loop is no rival of runtimes. The title says which rivals ran, as the largest run leaves some out."""
    def is_runtime(name):
        return is_rival(name) and name != "serial"
    beside = " and ".join(name for name in run.runners() if is_runtime(name))
    title = f"{plain(run.rows[0].number('ops'))} empty tasks on CPU threads, beside {beside}"
    return [Group(run, title, "launches", [case_of(row, _work(row), rivals=is_runtime) for row in run.rows])]


def _workloads(run):
    return [Group(run, "programs of the papers", "workloads", [case_of(row, _work(row)) for row in run.rows])]


def _physics(run):
    cases = []
    for (_, _, scenes), by_worlds in physics.tables_of(run).items():
        for worlds, row in by_worlds.items():
            cases.append(case_of(row, f"{plain(scenes)} scenes of {plain(worlds)} worlds"))
    return [Group(run, "physics, a step", "physics", cases)]


def _jobs(run):
    """ACS has several ways here; the best one counts, as it does for the rivals."""
    size = run.rows[0].fields.get("size", str, "")
    return [Group(run, f"job loops, size {size}", "jobs", [case_of(row, _work(row), ours=is_acs) for row in run.rows])]


def _memory(run):
    for row in run.rows:
        memory.add_figures(row)
    used = "used by an op" if run.rows[0].fields.get("use", NUMBER, 0) else "not used"
    return [Group(run, f"allocate and free, blocks {used}: {title}", "memory",
                  [case_of(row, _work(row), figure=figure) for row in run.rows if row.best(is_default)])
            for title, figure in (("in the calls", memory.calls), ("until all is complete", memory.complete))]


def _tasks(run):
    cases = [case_of(row, _work(row), rivals=lambda name: name.startswith("stream")) for row in run.rows]
    return [Group(run, "tasks with their memory, time", "tasks", cases)]


def _devices(run):
    """`shared`: arrays move by themselves, as in GrCUDA. Where that was not run, the program copies."""
    if any(_work(row) == "launches" for row in run.rows):
        return []
    auto = "auto shared" if "auto shared" in run.runners() else "auto"
    return [Group(run, f"GrCUDA's suite on {plain(devices)} GPUs", "devices",
                  [case_of(row, _work(row), lambda name: name == auto, lambda name: name == "hand")
                   for row in run.rows if row.fields.data["devices"] == devices])
            for devices in sorted({row.fields.need("devices", NUMBER) for row in run.rows})]


def _mixes(run):
    apart = "as processes" if run.rows[0].fields.measure("processes") else "in one process"
    return [Group(run, f"mixed jobs on {plain(run.rows[0].fields.need('devices', NUMBER))} GPUs, {apart}", "mixes",
                  [case_of(row, _work(row), lambda name: name in _PLANNED, lambda name: name in _BY_HAND)
                   for row in run.rows])]


_OF_PROGRAM = {"acs-bench": _patterns, "acs-workloads": _workloads, "physics-bench": _physics, "acs-jobs": _jobs,
               "acs-memory": _memory, "acs-tasks": _tasks, "acs-devices": _devices, "acs-mixes": _mixes}


def groups_of(run):
    """Groups with at least one case. Programs that compare nothing have none."""
    if run.program not in _OF_PROGRAM or not run.fields.data.get("rows"):
        return []
    return [group for group in _OF_PROGRAM[run.program](run) if group.cases]
