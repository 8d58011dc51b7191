"""Which rows of acs-bench belong together: one pattern with one setting, at several kernel times.

Rows of different files are never put beside each other, since runners are comparable only where they took turns.
Called by the sections on patterns and METG.
"""
from .text import plain

_SETTINGS = ("width", "steps", "fields", "ctas", "functions", "check")


class Group:
    """Rows of one pattern with one setting, by kernel time."""

    def __init__(self, run, row):
        self.run, self.rows, self.first = run, {}, row
        self.pattern = row.fields.need("work", str)
        self.title = self.pattern

    def add(self, row):
        us = row.fields.need("kernel_us", (int, float))
        if us in self.rows:
            row.fields.refuse("kernel_us", f"is there twice for {self.pattern}: {plain(us)}")
        self.rows[us] = row

    def kernel_times(self):
        return sorted(self.rows)

    def runners(self):
        return list(dict.fromkeys(name for us in self.kernel_times() for name in self.rows[us].outcomes))

    def setting(self):
        """`32 x 128 tasks, 4 CTAs, checked`: what is known of it."""
        of = self.first.number
        words = [f"{plain(of('width'))} x {plain(of('steps'))} tasks"] if of("width") and of("steps") else []
        words += [f"{plain(of('ctas'))} CTAs"] if of("ctas") and self.run.on_gpu() else []
        words += [f"{plain(of('functions'))} functions"] if (of("functions") or 1) > 1 else []
        words += [f"{plain(of('fields'))} cells per point"] if of("fields") else []
        words += ["marks checked"] if of("check") else ["marks not checked"] if of("check") == 0 else []
        return ", ".join(words)

    def shape(self):
        """What is known of the graph, the same at each kernel time."""
        of = self.first.number
        text = f"{plain(of('ops'))} ops"
        return text + (f", {plain(of('edges'))} edges, depth {plain(of('depth'))}" if of("depth") else "")

    def overhead_only(self):
        """On the CPU, kernels of 0 us say what a task costs: overhead.py has them in tables of their own."""
        return not self.run.on_gpu() and self.kernel_times() == [0]


def groups_of(run):
    found = {}
    for row in run.rows:
        key = (row.fields.need("work", str),) + tuple(row.number(s) for s in _SETTINGS)
        found.setdefault(key, Group(run, row)).add(row)
    groups = list(found.values())
    for group in groups:
        if [g.pattern for g in groups].count(group.pattern) > 1:
            group.title = f"{group.pattern}, {group.setting()}"
    return groups
