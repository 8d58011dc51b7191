"""The section on acs-memory --growth: what the calls cost by which an allocator gets memory from the device.

Called for the runs of that program. Each row of the file is one kind of call, for pieces of one size, idle or beside work.
"""
from .fields import NUMBER
from .results import Spread
from .text import code, escaped, number, ranged, table


def _calls(run):
    """(way, call, bytes) in the order of the file: {busy: (Spread of us, times waited, times)}."""
    calls = {}
    for row in run.fields.objects("rows"):
        size, busy = row.positive("bytes"), row.need("busy", NUMBER)
        for fields in row.objects("runners"):
            times = fields.numbers("calls_us")
            if not times:
                fields.refuse("calls_us", "has no times")
            key = fields.need("name", str), fields.need("call", str), size
            calls.setdefault(key, {})[bool(busy)] = Spread.of(times), fields.need("waited", NUMBER), len(times)
    return calls


def _cell(figures):
    if figures is None:
        return "-"
    spread, waited, times = figures
    return ranged(spread) + (f", waited for it {number(waited)} of {number(times)} times" if waited else "")


def section(runs):
    lines = []
    for run in runs:
        rows = [[escaped(way), f"{number(size / 2 ** 20)}", escaped(call), _cell(seen.get(False)), _cell(seen.get(True))]
                for (way, call, size), seen in _calls(run).items()]
        lines += [f"### Getting memory from the device: {code(run.name)}", "",
                  "us per call: median, least and most; beside work that runs on the device for some 40 ms.", ""]
        lines += table(["way", "MiB", "call", "idle device", "beside work"], rows)
    return lines
