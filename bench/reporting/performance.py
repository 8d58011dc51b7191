"""docs/performance.md: an introduction, the newest results of each GPU, and a list of older ones.

Called by the command line. The introduction is a file of its own beside this one; directories are named
<gpu>-<date>[-<suffix>], and the newest is the one whose date, then suffix, comes last.
"""
import os
import re

from . import report
from .errors import BadInput

_HEAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "performance.head.md")
_NAME = re.compile(r"(?P<gpu>[\w.]+(?:-[\w.]+)*?)-(?P<date>\d{4}-\d{2}-\d{2})(?P<suffix>-[\w.-]+)?", re.ASCII)


def _by_gpu(root):
    """{gpu: names of its directories, newest first}."""
    if not os.path.isdir(root):
        raise BadInput(f"{root}: is not a directory")
    found = {}
    for name in sorted(os.listdir(root)):
        if not os.path.isdir(os.path.join(root, name)):
            continue
        match = _NAME.fullmatch(name)
        if not match:
            raise BadInput(f"{os.path.join(root, name)}: is not named <gpu>-<year>-<month>-<day>[-<suffix>]")
        found.setdefault(match["gpu"], []).append((match["date"], match["suffix"] or "", name))
    if not found:
        raise BadInput(f"{root}: has no directory of results")
    return {gpu: [name for _, _, name in sorted(names, reverse=True)] for gpu, names in sorted(found.items())}


def lines_of(root, svg_directory, svg_links):
    with open(_HEAD, encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n") + [""]
    older = []
    for names in _by_gpu(root).values():
        newest = names[0]
        older += names[1:]
        lines += [f"## {newest}", ""]
        lines += report.lines_of(os.path.join(root, newest), report.Pictures(svg_directory, svg_links, f"{newest}-"))
    if older:
        lines += ["## Older results", "", "`bench/report DIR` shows them as above.", ""]
        lines += [f"- [`{name}`](../bench/results/{name})" for name in older] + [""]
    return lines
