#!/usr/bin/env python3
"""check.py <source folder> [acs-bench]: what the Python tools' progress says, by a clock of the test; that Ctrl-C keeps what
tests/mutants/run has; what the budget of CPU seconds says; and, with the program, that Ctrl-C keeps what acs-bench has.
Nothing depends on speed: the interrupted run raises the signal itself, or would take minutes by itself.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools"))

from acs_progress import INTERRUPTED, Progress, time_left  # noqa: E402 (the path must be set before)


class Terminal(io.BytesIO):
    def isatty(self):
        return True


def lines_tell_done_total_and_time_left():
    now, out = [100], io.BytesIO()
    told = Progress("tool", 4, out, lambda: now[0])
    for second, what in ((101, "too early"), (110, "two"), (111, "too early"), (112, "the last one has a line")):
        now[0] = second
        told.step(what)
    assert out.getvalue() == (b"tool: 2 of 4 (50 %), about 10 s left: two\n"
                              b"tool: 4 of 4 (100 %): the last one has a line\n"), out.getvalue()
    assert time_left(480) == "8 min"


def on_a_terminal_one_line_changes():
    now, out = [0], Terminal()
    told = Progress("tool", 2, out, lambda: now[0])
    now[0] = 1
    told.step("one")
    told.hide()
    told.hide()
    now[0] = 2
    told.step("two")
    assert out.getvalue() == (b"\r\033[Ktool: 1 of 2 (50 %), about 1 s left: one\r\033[K"
                              b"\r\033[Ktool: 2 of 2 (100 %): two"), out.getvalue()


def ctrl_c_keeps_the_mutants_that_were_tried():
    loader = importlib.machinery.SourceFileLoader("mutants", str(ROOT / "tests" / "mutants" / "run"))
    mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    loader.exec_module(mutants)

    def try_mutant(_scratch, mutant, _seconds):
        if mutant.name == "c":
            os.kill(os.getpid(), signal.SIGINT)
        return mutant.name == "a", "test_x", 1.0, "said"

    mutants.try_mutant = try_mutant
    named = [type("Mutant", (), {"name": name}) for name in "abcd"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = mutants.hunt_all(None, named, 60)
    assert status == INTERRUPTED
    assert "interrupted: 1 of 2 mutants were found, 2 are left; go on with --from c" in said.getvalue(), said.getvalue()


def ctrl_c_keeps_the_rows_of_acs_bench():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.json")
        times = ",".join(str(k) for k in range(1, 2000))
        command = [sys.argv[2], "--backend", "host", "--width", "4", "--steps", "8", "--kernel-us", times, "--runner",
                   "serial", "--reps", "100", "--json", path]
        with subprocess.Popen(command, env={**os.environ, "BENCH_PROGRESS_S": "0"}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as program:
            for line in program.stderr:
                if line.startswith("acs-bench: 1 of 1999 ("):
                    program.send_signal(signal.SIGINT)
                    break
            said = program.stderr.read()
        assert program.returncode == INTERRUPTED, program.returncode
        assert "go on with the same command and --go-on" in said, said[-300:]
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        assert data["complete"] is False
        assert len(data["rows"]) >= 1 and "partial" not in data["rows"][0] and data["rows"][0]["kernel_us"] == 1


def budget_counts_by_the_machines_speed():
    def judge(loop):
        return subprocess.run([sys.executable, str(ROOT / "tools" / "cpu-budget"), "--loop", loop, "dev", "1000"],
                              capture_output=True, text=True)

    slow, fast = judge("1000"), judge("0.001")
    assert slow.returncode == 0 and "over the budget" not in slow.stdout, slow
    assert fast.returncode == 1 and "over the budget of scripts/cpu-budget.txt" in fast.stdout, fast


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs in the background ignore it
os.environ.pop("BENCH_PROGRESS_S", None)
lines_tell_done_total_and_time_left()
on_a_terminal_one_line_changes()
ctrl_c_keeps_the_mutants_that_were_tried()
budget_counts_by_the_machines_speed()
if len(sys.argv) > 2:
    ctrl_c_keeps_the_rows_of_acs_bench()
