"""What the engine benchmarks share: modes that take turns, their figures, comparison of states, the table and the JSON.

A subject is one mode of one row: a program that can be stepped, and whose state can be read. It measures wall time around
batches of steps, with the device synchronised before and after each batch.
"""
from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import itertools
import json
import pathlib
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from acs_progress import INTERRUPTED, Progress  # noqa: E402 (the path must be set before)

State = dict[str, np.ndarray]
Row = dict[str, Any]
PLAIN_RUNS = 3  # runs of the engine's own graph from one state; their largest difference is the engine's own spread
PACKAGES = ("torch", "triton", "warp-lang", "mujoco", "mujoco-warp", "newton", "numpy", "acs")


def do_nothing() -> None:
    """For subjects that need no reset, or no wait."""


@dataclass
class Subject:
    """One mode of one row. `reset` brings the start state back before each batch, outside of the clock."""

    mode: str
    step: Callable[[], None]
    state: Callable[[], State]
    reset: Callable[[], None] = do_nothing
    synchronize: Callable[[], None] = do_nothing  # wait for the device
    hooks: Callable[[], Any] = contextlib.nullcontext  # what is in place while it runs
    steps: int = 50  # per batch
    steps_before: int = 0  # of each batch, outside of the clock: what recurs is then known
    facts: dict[str, Any] = field(default_factory=dict)
    complaint: Callable[[], str | None] = lambda: None  # says what was wrong with the last run
    samples: list[float] = field(default_factory=list)  # microseconds per step, one for each batch

    def run(self, steps: int) -> float:
        """Seconds that the steps took, until all of them are done."""
        self.reset()
        self.synchronize()
        with self.hooks():
            self.warm_up()
            begin = time.perf_counter()
            for _ in range(steps):
                self.step()
            self.synchronize()
            return time.perf_counter() - begin

    def warm_up(self) -> None:
        """Steps from the start state, and back to it."""
        if self.steps_before:
            for _ in range(self.steps_before):
                self.step()
            self.reset()
            self.synchronize()

    def state_after(self, steps: int) -> State:
        self.run(steps)
        return {name: array.copy() for name, array in self.state().items()}  # on the CPU they are views


class Budget:
    """The time that the whole program may take. Parts that have not begun when it is spent are left out."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begin = seconds, time.perf_counter()

    def used(self) -> float:
        return time.perf_counter() - self.begin

    def is_spent(self) -> bool:
        return self.used() > self.seconds

    def say(self, text: str) -> None:
        print(f"[{self.used():6.1f} s] {text}", flush=True)


def difference(left: State, right: State) -> float:
    """The largest difference of two states, each array relative to its largest element. 0 means equal bit for bit."""
    return max((_array_difference(left[name], right[name]) for name in left), default=0.0)


def _array_difference(left: np.ndarray, right: np.ndarray) -> float:
    if left.tobytes() == right.tobytes():
        return 0.0
    a, b = left.astype(np.float64), right.astype(np.float64)
    apart = np.abs(a - b)
    if not np.isfinite(apart).all():
        return float("inf")
    return max(float(apart.max()) / max(float(np.abs(a).max()), 1e-30), np.finfo(np.float64).tiny)


def spread(states: Iterable[State]) -> float:
    """The largest difference between any two states."""
    return max((difference(a, b) for a, b in itertools.combinations(states, 2)), default=0.0)


def judge(found: float, plain_spread: float) -> str:
    """The verdict of a comparison with the engine's own graph."""
    if found == 0.0:
        return "equal"
    if plain_spread == 0.0:
        return f"differs by {found:.1e}, plain runs do not"
    return f"{found / plain_spread:.2g} of the plain spread {plain_spread:.1e}"


def take_turns(subjects: list[Subject], batches: int, budget: Budget) -> None:
    """Times one batch of each subject in turn, beginning with another subject in each round. One round comes first, untimed."""
    for subject in subjects:
        subject.run(subject.steps)
    for turn in range(batches):
        if budget.is_spent():
            return
        first = turn % max(len(subjects), 1)
        for subject in subjects[first:] + subjects[:first]:
            subject.samples.append(subject.run(subject.steps) / subject.steps * 1e6)


def fill(row: Row, builders: Mapping[str, Callable[[], Subject]], plain: list[State], options: argparse.Namespace,
         budget: Budget) -> None:
    """Builds the modes of a row, compares their states with those of plain runs, times them, and fills the row.

    A mode that fails is told, and the others are measured.
    """
    row["plain_spread"] = spread(plain)
    subjects = []
    for mode, build in builders.items():
        if budget.is_spent():
            row["error"] = "the time is spent: modes or batches are missing"
            break
        try:
            subject = build()
            found = difference(plain[0], subject.state_after(options.compare))
            subject.facts |= {"difference": found, "state": judge(found, row["plain_spread"])}
            if complaint := subject.complaint():
                subject.facts["error"] = complaint
            subjects.append(subject)
        except Exception as error:
            row["modes"][mode] = {"error": f"{type(error).__name__}: {error}"}
            budget.say(f"{row['name']}, {mode} failed: {traceback.format_exc()}")
    try:
        take_turns(subjects, options.batches, budget)
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
        budget.say(f"{row['name']} failed: {traceback.format_exc()}")
    for subject in subjects:
        row["modes"][subject.mode] = figures(subject)
    budget.say(f"{row['name']} done")


def figures(subject: Subject) -> dict[str, Any]:
    """What JSON says about a subject."""
    result: dict[str, Any] = {"steps": subject.steps, "batches": len(subject.samples), **subject.facts}
    if subject.samples:
        quarter, half, three = np.percentile(subject.samples, (25, 50, 75))
        result |= {"median_us": float(half), "quartile1_us": float(quarter), "quartile3_us": float(three),
                   "samples_us": subject.samples}
    return result


def _best(modes: dict[str, Any], names: Iterable[str]) -> float | None:
    return min((modes[name]["median_us"] for name in names if "median_us" in modes.get(name, {})), default=None)


def add_gains(row: Row, engine: Iterable[str], hand: Iterable[str], through_acs: Iterable[str]) -> None:
    """Gains of ACS over the engine's own best, and over the best with what was written by hand among it.

    `null_gain` is the same ratio of two identical modes. A gain that is no further from 1 than it says nothing.
    """
    plain, again = _best(row["modes"], ["graph"]), _best(row["modes"], ["graph_again"])
    row["null_gain"] = plain / again if plain and again else None
    ours = _best(row["modes"], through_acs)
    for name, rivals in (("gain", [*engine, *hand]), ("gain_over_engine", engine)):
        best = _best(row["modes"], rivals)
        row[name] = best / ours if best and ours else None


def table(rows: list[Row], modes: list[str]) -> str:
    """Medians in microseconds per step, as markdown. Below it: states, graphs and errors."""
    head = ["scene", "kernels", *modes, "gain", "gain over the engine", "null gain", "states"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    notes = []
    for row in rows:
        found = row["modes"]
        cells = [f"{found[mode]['median_us']:.0f}" if "median_us" in found.get(mode, {}) else "" for mode in modes]
        gains = [f"{row[name]:.2f}" if row.get(name) else "" for name in ("gain", "gain_over_engine", "null_gain")]
        states = [f"{mode}: {found[mode]['state']}" for mode in modes if "state" in found.get(mode, {})]
        lines.append("| " + " | ".join([row["name"], str(row.get("kernels", "")), *cells, *gains, "; ".join(states)]) + " |")
        for mode in modes:
            for key in ("report", "error"):
                if found.get(mode, {}).get(key):
                    notes.append(f"- {row['name']}, {mode}: {key}: {found[mode][key]}")
        if row.get("error"):
            notes.append(f"- {row['name']}: error: {row['error']}")
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def machine(device: dict[str, Any]) -> dict[str, Any]:
    """Which device, driver and versions the figures are of. `device`: what the engine's library says of it."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    driver = None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout.split("\n")[0]
    return {**device, "driver": driver, "python": sys.version.split()[0], "versions": versions,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "command": sys.argv}


class Report:
    """Rows as they come. The JSON file is written anew after each, so that a run that is stopped loses at most one.

    `rows`: how many are expected. As a context it ends the program at Ctrl-C: the file says that it is incomplete.
    """

    def __init__(self, path: str | None, modes: list[str], settings: dict[str, Any], device: dict[str, Any],
                 rows: int = 1) -> None:
        self.path, self.modes = path, modes
        self.document: dict[str, Any] = {"machine": machine(device), "settings": settings, "rows": [], "complete": False}
        self.told = Progress(pathlib.Path(sys.argv[0]).name, rows)

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type | None, *rest: object) -> None:
        self.told.hide()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            print(f"interrupted; {self.path or 'the table'} has {len(self.document['rows'])} rows; name the others by --scenes",
                  file=sys.stderr)
            sys.exit(INTERRUPTED)

    def write(self) -> None:
        if self.path:
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self.document, file, indent=1)

    def add(self, row: Row) -> None:
        self.document["rows"].append(row)
        self.told.hide()
        print(table([row], self.modes), flush=True)
        self.write()
        self.told.step(row["name"])

    def close(self) -> None:
        self.document["complete"] = True
        self.write()
        rows = self.document["rows"]
        print(f"{self.document['machine']['device']}, microseconds per step, medians\n\n{table(rows, self.modes)}", flush=True)


def words(text: str) -> list[str]:
    """An option's list: a,b,c."""
    return [word for word in text.split(",") if word]


def numbers(text: str) -> list[int]:
    """An option's list: 1,16,256."""
    return [int(word) for word in words(text)]


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all engine benchmarks have."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    options.add_argument("--modes", type=words, help="only these, a,b,c")
    options.add_argument("--batches", type=int, default=9, help="timed batches of each mode")
    options.add_argument("--eager-steps", type=int, default=3, help="steps per batch without a graph")
    options.add_argument("--budget", type=float, default=420, help="seconds after which no further part begins")
    options.add_argument("--json", metavar="PATH", help="all figures, written after each row")
    return options
