"""What a report begins with: machine, date, commit, commands and options, from the result files and summary.txt.

Called for a set, for a page of docs/performance and for the summary of a set. Says "not known" where neither knows.
"""
from .fields import NUMBER
from .text import code, command, escaped, words_table

_SUMMARY_KEYS = ("gpu-check", "command", "options", "commit", "machine", "GPU")


class Summary:
    """What summary.txt says: facts of its first paragraph, steps that failed, and what steps printed."""

    def __init__(self, results):
        self.facts, self.failed, self.printed = {}, [], []
        head, _, steps = results.texts.get("summary.txt", "").partition("\n\n")
        for line in head.split("\n"):
            words = line.split(None, 1)
            if words and words[0] in _SUMMARY_KEYS:
                self.facts[words[0]] = words[1].strip() if len(words) > 1 else ""
        self._read_steps(steps.split("\n"))

    def _read_steps(self, lines):
        step = ""
        for line in lines:
            if not line.startswith(" "):
                step = line
                self.failed += [" ".join(line.split())] if "FAILED" in line else []
            elif line.strip() and not step.startswith("micro"):  # that one has left a file
                self.printed += ([step] if step not in self.printed else []) + [line]


def printed_lines(summary):
    """The section with what steps of gpu-check printed."""
    if not summary.printed:
        return []
    printed = [line.rstrip() for line in summary.printed]
    return ["### As `tools/gpu-check` printed it", "", "```"] + printed + ["```", ""]


def _cuda_version(value):
    """13000 and "13.0" are the same; 0 and "" are none."""
    if isinstance(value, NUMBER):
        return f"{int(value) // 1000}.{int(value) % 1000 // 10}" if value else ""
    return value


def _cpu(run):
    cpus = run.machine.get("cpus", NUMBER)
    return run.machine.get("cpu", str, "") + (f", {cpus:.0f} CPUs" if cpus else "")


def _driver(run):
    """The version out of what the driver says of itself, which may be a whole line."""
    words = run.machine.get("driver", str, "").split()
    return next((word for word in words if word[0].isdigit() and "." in word), "")


def _cuda(run, *names):
    return next((_cuda_version(run.machine.data[name]) for name in names if name in run.machine.data), "")


# What is known of a machine; runs on its CPU say nothing of its GPU.
_FACTS = (
    ("CPU", _cpu),
    ("GPU", lambda run: run.machine.get("gpu", str, "") if run.on_gpu() else ""),
    ("driver", lambda run: _driver(run) if run.on_gpu() else ""),
    ("CUDA of the driver", lambda run: _cuda(run, "driver_cuda", "cuda_driver") if run.on_gpu() else ""),
    ("CUDA runtime", lambda run: _cuda(run, "runtime_cuda", "cuda_runtime") if run.on_gpu() else ""),
)


def _options(run):
    value = run.machine.data.get("options", "")
    return " ".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _of_files(runs, fact):
    """Each value that is known once, with its files where there are several."""
    values = {}
    for run in runs:
        value = fact(run)
        if value:
            values.setdefault(value, []).append(run.name)
    if len(values) < 2:
        return escaped(next(iter(values), "not known"))
    return "<br>".join(f"{escaped(value)} ({', '.join(names)})" for value, names in values.items())


def commit_of(run):
    return run.commit or Summary(run.results).facts.get("commit", "")


def machine_of(run):
    """`NVIDIA H200, driver 580.1`, or the CPU of a run without a GPU."""
    if not run.on_gpu():
        return _cpu(run)
    driver = _driver(run)
    return run.machine.get("gpu", str, "") + (f", driver {driver}" if driver else "")


def _facts_table(runs, more):
    rows = [[title, _of_files(runs, fact)] for title, fact in _FACTS]
    rows = [row for row in rows if row[1] != "not known"] + more
    rows.append(["commit", _of_files(runs, commit_of)])
    options = _of_files(runs, lambda run: _options(run) or Summary(run.results).facts.get("options") or "defaults")
    return words_table(["", ""], rows + [["options of ACS", options]])


def lines_of(runs):
    """Machine and commands of runs, which may come from several sets."""
    rows = [[code(run.name), run.results.name, run.date or "not known", code(run.command())] for run in runs]
    several = len({run.results.name for run in runs}) > 1
    titles = ["file", "set", "date", "command"]
    if not several:
        titles, rows = titles[:1] + titles[2:], [row[:1] + row[2:] for row in rows]
    return _facts_table(runs, []) + words_table(titles, rows)


def lines_of_set(runs):
    """The same for all runs of one set, with what tools/gpu-check told of it."""
    summary = Summary(runs[0].results)
    seen = [summary.facts[key] for key in ("machine", "GPU") if summary.facts.get(key)]
    more = [["`tools/gpu-check` saw", escaped("; ".join(seen))]] if seen else []
    if summary.facts.get("command"):
        more.append(["its command", code(command(summary.facts["command"].split()))])
    rows = [[code(run.name), run.date or "not known", code(run.command())] for run in runs]
    lines = _facts_table(runs, more) + words_table(["file", "date", "command"], rows)
    if summary.failed:
        lines += ["**Steps that failed:**", ""] + [f"- {escaped(line)}" for line in summary.failed] + [""]
    return lines
