"""docs/performance.md and what lies behind it: for each GPU the newest run of every benchmark, by file name.

Called by the command line. The first page is front.md with tables from front.py, of the GPU on which most benchmarks ran. The
pages behind it have all tables of all GPUs.
"""
import os
import re

from . import front, head, report, sets
from .results import read_run
from .text import code, words_table

_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = "performance"
_PLACE = re.compile(r"<!-- (\w+) -->")


def _is_bench(run):
    return run.program == "acs-bench" and run.on_gpu()


# Pages behind the first: name, title, which runs, and texts that are shown as they were printed. The names are those that
# cases.py gives to groups.
_PAGES = (
    ("patterns", "Patterns of kernels", _is_bench, ()),
    ("first", "The first passes", lambda run: run.program == "acs-first", ()),
    ("workloads", "Programs of the papers", lambda run: run.program == "acs-workloads", ()),
    ("physics", "Physics", lambda run: run.program == "physics-bench", ("physics-gpu.txt",)),
    ("launches", "What a launch costs", lambda run: run.program == "acs-micro" or
     (run.program == "acs-bench" and not run.on_gpu()), ("chain.txt", "latency.txt")),
    ("jobs", "Job loops", lambda run: run.program == "acs-jobs", ()),
    ("memory", "Allocate and free", lambda run: run.program in ("acs-memory", "acs-memory-growth"), ()),
    ("tasks", "Tasks with their memory", lambda run: run.program == "acs-tasks", ()),
    ("devices", "Several GPUs: GrCUDA's suite", lambda run: run.program == "acs-devices", ()),
    ("mixes", "Several GPUs: HuntKTm's jobs", lambda run: run.program == "acs-mixes", ()),
)


def newest(of_gpu):
    """Of sets, newest first: ({file name: newest run}, {file name: newest set with that text})."""
    runs, texts = {}, {}
    for results in of_gpu:
        for name in results.names(".json"):
            if name not in runs:
                runs[name] = read_run(results, name)
        for name in results.names(".txt"):
            texts.setdefault(name, results)
    return dict(sorted(runs.items())), texts


class _Pictures:
    """Takes the SVG of a page; returns what the page calls it."""

    def __init__(self, files, gpu):
        self.files, self.gpu = files, gpu

    def __call__(self, name, svg):
        self.files[f"{_FOLDER}/{self.gpu}-{name}"] = svg
        return f"{self.gpu}-{name}"


def _text(lines):
    return "\n".join(lines).rstrip("\n") + "\n"


def _page(title, wanted, printed, by_gpu, files):
    """A page's lines; nothing where no GPU has such runs."""
    lines = []
    for gpu, (runs, texts) in by_gpu.items():
        of_page = [run for run in runs.values() if wanted(run)]
        if not of_page:
            continue
        lines += [f"## {gpu}", ""] + head.lines_of(of_page) + report.sections_of(of_page, _Pictures(files, gpu))
        for name in printed:
            if name in texts:
                shown = texts[name].texts[name].rstrip("\n").split("\n")
                lines += [f"### `{name}` of {texts[name].name}", "", "```", *shown, "```", ""]
    intro = [f"# {title}", "",
             "[Performance](../performance.md) has the results in short, [method](method.md) says how to read the tables.", ""]
    return intro + lines if lines else []


def _contents(pages):
    return [f"- [{title}]({_FOLDER}/{name}.md)" for name, title in pages] + [""]


def _sets_table(by_gpu):
    """Which set each shown file is from."""
    rows = []
    for gpu, (runs, _) in by_gpu.items():
        names = {}
        for run in runs.values():
            names.setdefault(run.results.name, []).append(run)
        for name, of_set in names.items():
            machines = dict.fromkeys(head.machine_of(run) for run in of_set)
            commits = dict.fromkeys(head.commit_of(run) for run in of_set)
            rows.append([f"[{name}](../bench/results/{name}.md)", "; ".join(machines), ", ".join(commits),
                         ", ".join(code(run.stem) for run in of_set)])
    return words_table(["set", "machine", "commits", "files shown"], rows)


def _filled(path, tables):
    """A text whose places `<!-- name -->` are filled in."""
    lines = []
    with open(path, encoding="utf-8") as file:
        for line in file.read().rstrip("\n").split("\n"):
            place = _PLACE.fullmatch(line)
            made = tables[place[1]] if place else [line]
            lines += made[:-1] if place and made and not made[-1] else made
    return lines


def files_of(root):
    """{path below docs: text} of the document."""
    found = sets.of_root(root)
    by_gpu = {gpu: newest(of_gpu) for gpu, of_gpu in found.items()}
    runs, texts = by_gpu[max(found, key=lambda gpu: (len(by_gpu[gpu][0]), found[gpu][0].parts()["date"]))]
    files, pages = {}, []
    for name, title, wanted, printed in _PAGES:
        lines = _page(title, wanted, printed, by_gpu, files)
        if lines:
            files[f"{_FOLDER}/{name}.md"] = _text(lines)
            pages.append((name, title))
    tables = {"beside": front.beside(runs), "wins": front.wins(runs), "physics": front.losing_physics(runs),
              "losses": front.losses(runs), "launches": front.launches(runs, texts), "board": front.board(runs),
              "pages": _contents(pages), "sets": _sets_table(by_gpu)}
    files["performance.md"] = _text(_filled(os.path.join(_HERE, "front.md"), tables))
    files[f"{_FOLDER}/method.md"] = _text(_filled(os.path.join(_HERE, "method.md"), {}))
    return files
