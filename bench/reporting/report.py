"""One results directory as Markdown: the head, then a section for each kind of benchmark that is there.

Called by the commands `report` and `--performance`. Writes SVG through Pictures and nothing else.
"""
import os

from . import devices, growth, head, jobs, memory, metg, micro, mixes, overhead, patterns, physics, results, tasks, workloads


class Pictures:
    """Where SVG goes and how Markdown refers to it; `directory` None: there is none."""

    def __init__(self, directory, links, prefix=""):
        self.directory, self.links, self.prefix = directory, links, prefix

    def __call__(self, name, svg):
        if self.directory is None:
            return None
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, self.prefix + name), "w", encoding="utf-8") as file:
            file.write(svg)
        return "/".join(part for part in (self.links, self.prefix + name) if part)


def lines_of(directory, pictures):
    runs = results.read_directory(directory)

    def of(*programs):
        return [run for run in runs if run.program in programs]
    summary = head.Summary(directory)
    empty = [run.name for run in runs if "rows" in run.fields.data and not run.fields.data["rows"]]
    lines = head.lines_of(runs, summary)
    lines += [f"Without any row: {', '.join(empty)}.", ""] if empty else []
    lines += patterns.section(of("acs-bench")) + metg.section(of("acs-bench"), pictures)
    lines += workloads.section(of("acs-workloads")) + physics.section(of("physics-bench"))
    lines += jobs.section(of("acs-jobs")) + memory.section(of("acs-memory"))
    lines += growth.section(of("acs-memory-growth"))
    lines += tasks.section(of("acs-tasks"))
    lines += devices.section(of("acs-devices")) + mixes.section(of("acs-mixes"))
    lines += overhead.section(of("acs-bench")) + micro.section(of("acs-micro"))
    return lines + head.printed_lines(summary)
