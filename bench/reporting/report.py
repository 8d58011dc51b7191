"""One set of results as Markdown: the head, then a section for each kind of benchmark that is there.

Called by the command `report`; the pages of docs/performance have the same sections. Writes SVG through Pictures and
nothing else.
"""
import os

from . import (devices, first, growth, head, jobs, memory, metg, micro, mixes, overhead, patterns, physics, results, tasks,
               workloads)


class Pictures:
    """Where SVG goes and how Markdown refers to it; `directory` None: there is none."""

    def __init__(self, directory, links):
        self.directory, self.links = directory, links

    def __call__(self, name, svg):
        if self.directory is None:
            return None
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(svg)
        return "/".join(part for part in (self.links, name) if part)


def sections_of(runs, pictures):
    """Tables of runs, by the kind of benchmark."""
    def of(*programs):
        return [run for run in runs if run.program in programs]
    lines = patterns.section(of("acs-bench")) + metg.section(of("acs-bench"), pictures)
    lines += first.section(of("acs-first")) + workloads.section(of("acs-workloads"))
    lines += physics.section(of("physics-bench"))
    lines += jobs.section(of("acs-jobs")) + memory.section(of("acs-memory"))
    lines += growth.section(of("acs-memory-growth"))
    lines += tasks.section(of("acs-tasks"))
    lines += devices.section(of("acs-devices")) + mixes.section(of("acs-mixes"))
    return lines + overhead.section(of("acs-bench")) + micro.section(of("acs-micro"))


def lines_of(path, pictures):
    runs = results.read_path(path)
    empty = [run.name for run in runs if "rows" in run.fields.data and not run.fields.data["rows"]]
    incomplete = [run.name for run in runs if run.fields.data.get("complete") is False]
    lines = [f"# {runs[0].results.name}", ""] + head.lines_of_set(runs)
    lines += [f"Without any row: {', '.join(empty)}.", ""] if empty else []
    lines += [f"Interrupted, so that rows are missing: {', '.join(incomplete)}.", ""] if incomplete else []
    return lines + sections_of(runs, pictures) + head.printed_lines(head.Summary(runs[0].results))
