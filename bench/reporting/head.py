"""What a report begins with: machine, date, commit, commands and options, from the result files and summary.txt.

Called by report.py, which also puts at the end what steps of gpu-check printed. Says "not known" where neither knows.
"""
import os

from .errors import BadInput
from .text import code, escaped, words_table

_SUMMARY_KEYS = ("gpu-check", "command", "options", "commit", "machine", "GPU")


class Summary:
    """What summary.txt says: facts of its first paragraph, steps that failed, and what steps printed."""

    def __init__(self, directory):
        self.facts, self.failed, self.printed = {}, [], []
        path = os.path.join(directory, "summary.txt")
        try:
            with open(path, encoding="utf-8") as file:
                head, _, steps = file.read().partition("\n\n")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: cannot be read: {error}") from None
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
    if isinstance(value, (int, float)):
        return f"{int(value) // 1000}.{int(value) % 1000 // 10}" if value else ""
    return value


def _machine(run):
    machine = run.machine
    cpu = machine.get("cpu", str, "")
    cpus = machine.get("cpus", (int, float))
    parts = [cpu + (f", {cpus:.0f} CPUs" if cpus else "")]
    if run.on_gpu():
        sms = machine.get("sms", (int, float))
        parts.append(machine.get("gpu", str) + (f" ({sms:.0f} SMs)" if sms else ""))
        parts.append(f"driver {machine.get('driver', str) or 'not known'}")
        for title, names in (("CUDA of the driver", ("driver_cuda", "cuda_driver")),
                             ("runtime", ("runtime_cuda", "cuda_runtime"))):
            version = next((_cuda_version(machine.data[n]) for n in names if n in machine.data), "")
            parts += [f"{title} {version}"] if version else []
    return "; ".join(p for p in parts if p) or "not known"


def _options(run):
    value = run.machine.data.get("options", "")
    return " ".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _of_files(runs, fact):
    """Each value once, with its files where there are several."""
    values = {}
    for run in runs:
        values.setdefault(fact(run) or "", []).append(run.name)
    if len(values) == 1:
        return escaped(next(iter(values)) or "not known")
    return "<br>".join(f"{escaped(v or 'not known')} ({', '.join(names)})" for v, names in values.items())


def lines_of(runs, summary):
    facts, failed = summary.facts, summary.failed
    rows = [["machine", _of_files(runs, _machine)]]
    rows += [["as `tools/gpu-check` saw it", escaped(facts[key])] for key in ("machine", "GPU") if facts.get(key)]
    rows.append(["commit", _of_files(runs, lambda run: run.commit or facts.get("commit", ""))])
    if facts.get("command"):
        rows.append(["command", code(facts["command"])])
    options = _of_files(runs, lambda run: _options(run) or facts.get("options") or "defaults")
    lines = words_table(["", ""], rows + [["options of ACS", options]])
    rows = [[code(run.name), run.date or "not known", code(run.command())] for run in runs]
    lines += words_table(["file", "date", "command"], rows)
    if failed:
        lines += ["**Steps that failed:**", ""] + [f"- {escaped(line)}" for line in failed] + [""]
    return lines
