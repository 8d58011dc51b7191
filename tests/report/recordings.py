"""Recordings made by hand, in the form of the object "acs" of a trace: a small simulator plays programs with planted
slownesses. Tests of the page and of acs-report use them; they say nothing of the library's own times.

  recordings.py NAME > trace.json    write one as a trace
  recordings.py --list               names
"""
import bisect
import copy
import heapq
import json
import sys

KINDS = ["kernel", "copy", "fill", "host function"]
METHODS = ["unknown", "launch", "replay", "layers", "gpu", "resident"]
REASONS = ["none", "window", "dependence", "issue", "stream"]
PATH_REASONS = ["run", "result", "overwrite", "memory", "no footprint", "stream", "window", "host wait", "issue", "caller",
                "start"]
PATH_OF_CONFLICT = [1, 1, 2, 2, 4, 3]  # reason of the path by conflict
PAIRS_OF_PATH = PATH_REASONS[1:5]
CONFLICTS = ["none", "RAW", "WAR", "WAW", "all memory", "order"]
NONE, WINDOW, DEPENDENCE, ISSUE, STREAM = range(5)
US = 1000


class Op:
    """A launch of the program, and what the simulation finds of it."""

    def __init__(self, label, us, reads=(), writes=(), blocks=8, kind=0, bytes=0):
        self.label, self.ns, self.reads, self.writes = label, int(us * US), reads, writes
        self.blocks, self.kind, self.bytes = blocks, kind, bytes
        self.entered = self.inserted = self.ready = self.issued = self.began = self.ended = 0
        self.slot = self.waited_for = -1
        self.conflict = self.level = self.critical = 0
        self.reason, self.reason_ns, self.pair = NONE, 0, -1


class Wait:
    """The caller waits for all of its ops."""


class Room:
    """The caller allocates, and frees at once what it allocated before."""

    def __init__(self, bytes, us, label):
        self.bytes, self.ns, self.label = bytes, int(us * US), label


class Program:
    """A machine, and a list of what one caller does on it."""

    def __init__(self, name, window=256, streams=32, sms=132, launch_us=2.0, issue_us=1.0):
        self.name, self.window, self.streams, self.sms = name, window, streams, sms
        self.launch_ns, self.issue_ns = int(launch_us * US), int(issue_us * US)
        self.labels, self.todo, self.findings, self.pair_texts, self.what_if = [], [], [], {}, []

    def label(self, name, file="main.c", line=1):
        """Number of a label."""
        if [name, file, line] not in self.labels:
            self.labels.append([name, file, line])
        return self.labels.index([name, file, line])

    def op(self, label, us, **more):
        """Launch."""
        self.todo.append(Op(label, us, **more))

    def finding(self, kind, ns, title, text, fix, ops=()):
        """A finding; ns may be a function of the played recording."""
        self.findings.append((kind, ns, title, text, fix, ops))


def direct_dependences(ops):
    """(from, to, conflict) by the names that ops read and write: the last writer, and the readers since."""
    writer, readers, found = {}, {}, []
    for place, op in enumerate(ops):
        mine = {}
        for name in op.reads:
            if name in writer:
                mine[writer[name]] = 1
            readers.setdefault(name, []).append(place)
        for name in op.writes:
            for other in readers.get(name, []):
                if other != place:
                    mine.setdefault(other, 2)
            if name in writer and writer[name] != place:
                mine.setdefault(writer[name], 3)
            writer[name], readers[name] = place, []
        found += [(other, place, how) for other, how in sorted(mine.items())]
    return found


class Player:
    """Plays a program: one caller, one scheduler, streams, multiprocessors."""

    def __init__(self, program):
        self.program = program
        self.todo = [copy.copy(item) for item in program.todo]
        self.ops = [item for item in self.todo if isinstance(item, Op)]
        self.upstream = [[] for _ in self.ops]
        self.deps = direct_dependences(self.ops)
        for source, to, how in self.deps:
            self.upstream[to].append((source, how))
        self.downstream = [[] for _ in self.ops]
        for source, to, _ in self.deps:
            self.downstream[source].append(to)
        self.now = self.sequence = 0
        self.events, self.fifo, self.ready, self.streamed = [], [], [], []
        self.in_window = self.sms_used = self.running = 0
        self.free_slots = list(range(program.streams))
        self.issuing, self.caller_waits = False, None
        self.next_item = self.next_op = 0
        self.waits, self.memory, self.counters = [], [], {"t": [], "ready": [], "running": [], "window": []}
        self.live = 0

    def at(self, when, function, *arguments):
        """Call a function at a time."""
        self.sequence += 1
        heapq.heappush(self.events, (when, self.sequence, function, arguments))

    def play(self):
        """Run to the end."""
        self.at(0, self.caller)
        while self.events:
            self.now, _, function, arguments = heapq.heappop(self.events)
            function(*arguments)
            self.advance()
            self.count()
        return self

    def count(self):
        """A point of the counters."""
        values = {"t": self.now, "ready": len(self.ready) + len(self.streamed), "running": self.running,
                  "window": self.in_window}
        again = self.counters["t"][-1:] == [self.now]
        for name, value in values.items():
            if again:
                self.counters[name][-1] = value
            else:
                self.counters[name].append(value)

    def caller(self):
        """The caller's next step."""
        if self.next_item == len(self.todo):
            return
        item = self.todo[self.next_item]
        if isinstance(item, Op):
            item.entered = self.now
            self.fifo.append(self.next_op)
            self.next_op += 1
            self.next_item += 1
            self.at(self.now + self.program.launch_ns, self.caller)
        elif isinstance(item, Wait):
            self.caller_waits = self.now
        else:
            self.live = item.bytes
            self.memory.append([self.now, self.now + item.ns, 0, item.bytes, self.live, 4 * item.bytes,
                                *self.program.labels[item.label][1:], 0])
            self.next_item += 1
            self.at(self.now + item.ns, self.caller)

    def advance(self):
        """All that can happen now."""
        while self.fifo and self.in_window < self.program.window:
            place = self.fifo.pop(0)
            self.in_window += 1
            self.ops[place].inserted = self.now
            if all(0 < self.ops[source].ended <= self.now for source, _ in self.upstream[place]):
                self.become_ready(place)
        if not self.issuing and self.ready and self.free_slots:
            self.issuing = True
            place = self.ready.pop(0)
            self.ops[place].slot = self.free_slots.pop(0)
            self.at(self.now + self.program.issue_ns, self.issued, place)
        while self.streamed and self.sms_used + self.part(self.streamed[0]) <= self.program.sms:
            self.begin(self.streamed.pop(0))
        if self.caller_waits is not None and self.next_op == sum(op.ended > 0 for op in self.ops):
            newest = self.ops[self.next_op - 1] if self.next_op else None
            self.waits.append([0, 1, self.caller_waits, self.now, self.next_op, newest.label if newest else -1])
            self.caller_waits = None
            self.next_item += 1
            self.at(self.now, self.caller)

    def part(self, place):
        """Multiprocessors that an op takes."""
        return min(self.program.sms, self.ops[place].blocks)

    def become_ready(self, place):
        """Its upstream ops have ended."""
        op = self.ops[place]
        op.ready = self.now
        last = max(self.upstream[place], key=lambda one: self.ops[one[0]].ended, default=None)
        if last and self.ops[last[0]].ended > op.entered:
            op.waited_for, op.conflict = last
        self.ready.append(place)

    def issued(self, place):
        """The scheduler has issued it."""
        self.ops[place].issued = self.now
        self.issuing = False
        self.streamed.append(place)

    def begin(self, place):
        """It runs."""
        op = self.ops[place]
        op.began = self.now
        self.running += 1
        self.sms_used += self.part(place)
        self.at(self.now + op.ns, self.end, place)

    def end(self, place):
        """It ended."""
        op = self.ops[place]
        op.ended = self.now
        self.running -= 1
        self.sms_used -= self.part(place)
        self.in_window -= 1
        heapq.heappush(self.free_slots, op.slot)
        for to in self.downstream[place]:
            if self.ops[to].inserted and all(0 < self.ops[up].ended <= self.now for up, _ in self.upstream[to]):
                if not self.ops[to].ready:
                    self.become_ready(to)


def explain(player):
    """Reasons, levels and the critical path."""
    ops, best = player.ops, []
    for place, op in enumerate(ops):
        ups = [source for source, _ in player.upstream[place]]
        op.level = 1 + max((ops[up].level for up in ups), default=0)
        before = max(ups, key=lambda up: best[up][0], default=None)
        best.append((op.ns + (best[before][0] if before is not None else 0), before))
        held = [0, op.inserted - op.entered, op.ready - op.inserted, op.issued - op.ready, op.began - op.issued]
        late = max(0, held[ISSUE] - 2 * player.program.issue_ns)
        held[ISSUE], held[STREAM] = held[ISSUE] - late, held[STREAM] + late
        op.reason = max(range(len(REASONS)), key=held.__getitem__)
        op.reason_ns = held[op.reason]
        if not op.reason_ns:
            op.reason = NONE
    place = max(range(len(ops)), key=lambda at: best[at][0], default=None)
    longest = best[place][0] if ops else 0
    while place is not None:
        ops[place].critical, place = 1, best[place][1]
    return longest


def path_of(player):
    """[[place, from, to, reason], ...], walked back from the op that ended last; without gaps."""
    ops, parts = player.ops, []
    ended = sorted(range(len(ops)), key=lambda place: ops[place].ended)
    ends = [ops[place].ended for place in ended]

    def last_before(when):
        at = bisect.bisect_right(ends, when)
        return ended[at - 1] if at else None

    place, reason, until = ended[-1] if ended else None, 0, ops[ended[-1]].ended if ended else 0
    while place is not None:
        op = ops[place]
        parts.append([place, min(op.began, until), until, reason])
        until = min(op.began, until)
        if op.began > op.ready + 2 * player.program.issue_ns:
            place = last_before(op.began)
            reason = PATH_REASONS.index("stream")
            continue
        parts.append([place, min(op.issued, until), until, PATH_REASONS.index("start")])
        until = min(op.issued, until)
        parts.append([place, min(op.ready, until), until, PATH_REASONS.index("issue")])
        until = min(op.ready, until)
        if op.waited_for >= 0 and op.ready > op.inserted:
            place, reason = op.waited_for, PATH_OF_CONFLICT[op.conflict]
        elif op.inserted > op.entered:
            place, reason = last_before(op.inserted), PATH_REASONS.index("window")
        else:
            wait = max((wait for wait in player.waits if wait[3] <= op.entered), key=lambda one: one[3], default=None)
            parts.append([place, wait[3] if wait else 0, until, PATH_REASONS.index("caller")])
            until = wait[3] if wait else 0
            place, reason = last_before(until) if wait else None, PATH_REASONS.index("host wait")
    return [part for part in reversed(parts) if part[2] > part[1]]


def busy(ops):
    """Time in which at least one op ran."""
    total = end = 0
    for began, ended in sorted((op.began, op.ended) for op in ops):
        total += max(0, ended - max(began, end))
        end = max(end, ended)
    return total


def pairs_of(program, ops):
    """Pairs of labels of which one waited for the other."""
    found = {}
    for op in ops:
        if op.waited_for >= 0 and op.ready > op.inserted:
            key = (ops[op.waited_for].label, op.label, op.conflict)
            pair = found.setdefault(key, {"up": key[0], "down": key[1], "conflict": key[2], "count": 0, "wait_ns": 0})
            pair["count"] += 1
            pair["wait_ns"] += op.ready - op.inserted
            pair["range"], pair["fix"] = program.pair_texts.get(key,
                ("bytes 0 to 64 KiB of the block of main.c:12 (1 MiB)", ""))
    pairs = sorted(found.values(), key=lambda pair: -pair["wait_ns"])
    places = {(pair["up"], pair["down"], pair["conflict"]): place for place, pair in enumerate(pairs)}
    for op in ops:
        if op.waited_for >= 0:
            op.pair = places.get((ops[op.waited_for].label, op.label, op.conflict), -1)
    return pairs


def kernels_of(ops):
    """[label, count, total, longest, waited] by label."""
    found = {}
    for op in ops:
        row = found.setdefault(op.label, [op.label, 0, 0, 0, 0])
        row[1] += 1
        row[2] += op.ns
        row[3] = max(row[3], op.ns)
        row[4] += op.reason_ns
    return sorted(found.values(), key=lambda row: -row[2])


def summary_of(player, longest):
    """Numbers of the whole."""
    ops = player.ops
    work, span = sum(op.ns for op in ops), max((op.ended for op in ops), default=0)
    reasons = [sum(op.reason_ns for op in ops if op.reason == at) for at in range(len(REASONS))]
    return {"ops": len(ops), "kernels": sum(op.kind == 0 for op in ops), "work_ns": work, "busy_ns": busy(ops),
            "critical_ns": longest, "levels": max((op.level for op in ops), default=0),
            "width_possible": work / longest if longest else 0, "width_achieved": work / span if span else 0,
            "span_ns": span, "reasons_ns": reasons,
            "host_wait_ns": sum(wait[3] - wait[2] for wait in player.waits)}


def thinned(counters, most=2000):
    """At most so many points."""
    step = max(1, len(counters["t"]) // most)
    return {name: values[::step] for name, values in counters.items()}


def span_of(program):
    """How long a program takes."""
    return max((op.ended for op in Player(program).play().ops), default=0)


def recording(program):
    """The object "acs" of a program."""
    player = Player(program).play()
    longest = explain(player)
    ops, pairs = player.ops, pairs_of(program, player.ops)
    rows = [[place + 1, op.label, op.kind, 0, op.entered, op.inserted, op.ready, op.issued, op.began, op.ended, 0, op.slot,
        0, 1, -1,
             op.level, op.blocks, 256, op.bytes, op.waited_for, op.conflict, op.pair, op.reason, op.reason_ns, op.critical, 0]
            for place, op in enumerate(ops)]
    made = {"format": 1, "program": program.name, "backend": "sim", "virtual_time": True, "sampled": 100,
        "ops_seen": len(ops),
            "span_ns": max([op.ended for op in ops] + [wait[3] for wait in player.waits] or [0], default=0),
            "options": {"window": program.window, "streams": program.streams, "workers": 1, "devices": 1, "batch": 16,
                "rename": 0, "fifo": 1024, "memory_limit": 0, "memory_slack": 268435456, "repeats": "auto", "issue": "auto"},
            "devices": [{"sms": program.sms, "threads": 2048}], "kinds": KINDS, "methods": METHODS, "reasons": REASONS,
            "conflicts": CONFLICTS, "labels": program.labels, "ops": rows, "bundles": [],
            "deps": [[source, to] for source, to, _ in player.deps], "waits": player.waits, "memory": player.memory,
            "counters": thinned(player.counters), "summary": summary_of(player,
                longest), "kernels": kernels_of(ops), "pairs": pairs}
    made["path_reasons"], made["path"] = PATH_REASONS, path_of(player)
    made["path_ns"] = [sum(part[2] - part[1] for part in made["path"] if part[3] == at) for at in range(len(PATH_REASONS))]
    for place, pair in enumerate(pairs):
        pair["path_ns"] = sum(part[2] - part[1] for part, below in zip(made["path"], made["path"][1:])
                              if PATH_REASONS[part[3]] in PAIRS_OF_PATH and ops[below[0]].pair == place)
        pair["gain_ns"] = pair["path_ns"] // 2
    made["findings"] = sorted(
        ({"kind": kind, "ns": int(ns(made)) if callable(ns) else ns, "title": title, "text": text, "fix": fix,
            "how": "At most, by the simulator: the recorded ops, played without this.", "ops": list(where)}
         for kind, ns, title, text, fix, where in program.findings), key=lambda one: -one["ns"])
    made["what_if"] = [{"name": name, "setting": setting, "ns": span_of(other)} for name, setting, other in program.what_if]
    return made


def share_of_reason(reason, at_most):
    """A cost: what ops waited by a reason, bounded by a part of the span."""
    return lambda made: min(made["summary"]["reasons_ns"][reason], at_most * made["summary"]["span_ns"])


# ------------------------------------------------------------------------------------------------ planted slownesses

def false_dependence():
    """Each op names the whole array, and uses a tile of it."""
    def program(tiles):
        made = Program("tiles")
        scale = made.label("scale_tile", "tiles.cu", 41)
        for _ in range(6):
            for tile in range(16):
                made.op(scale, 40 + 5 * (tile % 3), writes=("tile%d" % tile if tiles else "field",))
        return made
    made = program(False)
    made.pair_texts[(0, 0, 3)] = ("bytes 0 to 16 MiB of the block of tiles.cu:20 (16 MiB)",
        "name the tile in the footprint: ACS_INOUT(tile, bytes)")
    made.finding("false dependence", lambda one: one["summary"]["span_ns"] * 0.9,
        "scale_tile names the whole array at each launch",
                 "96 ops of scale_tile write the same 16 MiB, so they run one after another. Each runs 8 blocks: it can hardly write"
                 " all of it.", "Name the tile that the op writes: ACS_INOUT(tile, tile_bytes).", (10, 11, 12))
    made.what_if = [("as it is", "", made), ("footprints by tile", "", program(True))]
    return made


def war():
    """A buffer is filled again while ops still read it."""
    def program(buffers):
        made = Program("physics")
        find = made.label("find_contacts", "physics.cu", 88)
        solve = made.label("solve_island", "physics.cu", 131)
        move = made.label("integrate", "physics.cu", 160)
        for step in range(12):
            contacts = "contacts%d" % (step % buffers)
            made.op(find, 60, writes=(contacts,), blocks=40)
            for island in range(12):
                made.op(solve, 30 + 20 * (island % 4), reads=(contacts,), writes=("island%d" % island,), blocks=6)
            for island in range(12):
                made.op(move, 12, reads=("island%d" % island,), writes=("body%d" % island,), blocks=4)
        return made
    made = program(1)
    made.pair_texts[(1, 0, 2)] = ("bytes 0 to 64 KiB of the block of physics.cu:33 (1 MiB)",
                                  "make it ACS_RELOCATABLE and set ACS_RENAME, or give each step a buffer of its own")
    made.finding("war", lambda one: one["summary"]["span_ns"] * 0.33,
        "find_contacts waits until solve_island has read contacts (WAR)",
                 "find_contacts of the next step needs nothing of solve_island. It only writes the bytes that solve_island still reads:"
                 " bytes 0 to 64 KiB of the block of physics.cu:33.",
                 "Make the block ACS_RELOCATABLE and set ACS_RENAME=4, or give each step a buffer of its own.", (25, 50, 75))
    made.what_if = [("as it is", "", made), ("renaming", "ACS_RENAME=4", program(4))]
    return made


def host_wait():
    """The caller waits for each step."""
    def program(waits):
        made = Program("train", launch_us=3)
        step = made.label("forward", "train.cu", 52)
        loss = made.label("loss", "train.cu", 60)
        for turn in range(30):
            for part in range(6):
                made.op(step, 15 + 3 * part, writes=("part%d.%d" % (part, turn % 2),))
            made.op(loss, 8, reads=tuple("part%d.%d" % (part, turn % 2) for part in range(6)), writes=("loss%d" % turn,))
            if waits:
                made.todo.append(Wait())
        return made
    made = program(True)
    made.finding("host wait", lambda one: one["summary"]["span_ns"] * 0.4, "The caller waits behind loss, 30 times",
                 "Thread 1 waits for all ops after each loss (train.cu:60). Meanwhile it launches nothing, and then the GPU waits for the"
                 " caller.", "Wait every few steps, or for the one op whose result the caller needs: acs_wait.", (6, 13, 20))
    made.what_if = [("as it is", "", made), ("without the waits", "", program(False))]
    return made


def window():
    """Independent chains, launched one after another, in a window that holds one of them."""
    def program(size):
        made = Program("chains", window=size, launch_us=0.5, issue_us=0.5)
        one = made.label("relax", "chains.cu", 17)
        for chain in range(24):
            for _ in range(16):
                made.op(one, 20, writes=("chain%d" % chain,))
        return made
    made = program(16)
    made.finding("window", lambda one: one["summary"]["span_ns"] * 0.7, "The window of 16 ops is full 97 % of the time",
                 "Ops that could run wait in front of the window. It is full of ops that wait for others.",
                 "Set ACS_WINDOW=512.", (100, 101, 102))
    made.what_if = [("as it is", "", made)] + [("window of %d" % size, "ACS_WINDOW=%d" % size,
        program(size)) for size in (64, 128, 512)]
    return made


def streams():
    """Many ops are ready; few streams."""
    def program(count):
        made = Program("batch", streams=count, launch_us=0.5, issue_us=0.3)
        one, two = made.label("encode", "batch.cu", 9), made.label("decode", "batch.cu", 12)
        for item in range(120):
            made.op(one, 30 + item % 7 * 4, writes=("item%d" % item,))
            made.op(two, 25, reads=("item%d" % item,), writes=("out%d" % item,))
        return made
    made = program(3)
    made.finding("streams", lambda one: one["summary"]["span_ns"] * 0.75,
        "All 3 streams are taken while up to 60 ops are ready",
                 "Ready ops wait for a stream. The GPU has room for them: at most 24 of 132 multiprocessors are used.", "Set ACS_STREAMS=32.",
                 (40, 41, 42))
    made.what_if = [("as it is", "", made)] + [("%d streams" % count, "ACS_STREAMS=%d" % count,
        program(count)) for count in (4, 8, 32)]
    return made


def fills():
    """Each kernel takes all multiprocessors."""
    made = Program("blur", launch_us=1)
    wide, small = made.label("blur_all", "blur.cu", 30), made.label("histogram", "blur.cu", 44)
    for image in range(30):
        made.op(wide, 90, writes=("image%d" % image,), blocks=4096)
        made.op(small, 20, reads=("image%d" % image,), writes=("bins%d" % image,), blocks=4)
    made.finding("fills", lambda one: one["summary"]["span_ns"] * 0.8, "blur_all fills the GPU",
                 "It has 4096 blocks, and 132 multiprocessors run them. No other op fits beside it, so ops that could run at once do not.",
                 "No setting helps. A second GPU would (ACS_DEVICES=2), or a faster kernel.", (10, 12, 14))
    made.what_if = [("as it is", "", made)]
    return made


def allocation():
    """The caller allocates in its loop, and that takes long."""
    def program(allocates):
        made = Program("frames", launch_us=2)
        kernel = made.label("filter", "frames.cu", 61)
        for frame in range(40):
            if allocates:
                made.todo.append(Room((8 + frame % 3) << 20, 180, kernel))
            for part in range(4):
                made.op(kernel, 35, writes=("frame%d.%d" % (frame, part),))
        return made
    made = program(True)
    made.finding("allocation", lambda one: one["summary"]["span_ns"] * 0.75, "40 allocations in the loop take 7.2 ms",
                 "Each frame allocates 8 to 10 MiB (frames.cu:61), and the caller launches nothing meanwhile.",
                 "Allocate before the loop, or raise ACS_POOL so that the blocks are kept.", (4, 8, 12))
    made.what_if = [("as it is", "", made), ("without the allocations", "", program(False))]
    return made


def chain():
    """Each op needs the result of the one before."""
    made = Program("solver")
    one, two = made.label("spmv", "cg.cu", 70), made.label("dot", "cg.cu", 81)
    for _ in range(60):
        made.op(one, 30, reads=("r",), writes=("x",))
        made.op(two, 10, reads=("x",), writes=("r",))
    made.finding("chain", lambda one: one["summary"]["critical_ns"] * 0.95, "The program is one chain of 120 ops",
                 "Each op reads what the op before it wrote. No setting runs them at once.",
                 "Make the ops of the chain shorter, or find work that does not depend on it.", (0, 1, 2))
    made.what_if = [("as it is", "", made), ("window of 1024", "ACS_WINDOW=1024", made),
        ("128 streams", "ACS_STREAMS=128", made)]
    return made


# -------------------------------------------------------------------------------------------------------- odd shapes

def empty():
    """Nothing was recorded."""
    return Program("nothing")


def one():
    """One op."""
    made = Program("one")
    made.op(made.label("only", "one.c", 3), 10)
    return made


def many(count=50000):
    """A large one: 50,000 ops of 30 kernels on 64 streams."""
    made = Program("large", streams=64, launch_us=0.4, issue_us=0.2, window=1024)
    labels = [made.label("kernel_%02d" % at, "large.cu", 10 * at) for at in range(30)]
    for op in range(count):
        made.op(labels[op * 7 % 30], 10 + op * 31 % 40, reads=("cell%d" % ((op * 13 + 1) % 700),),
            writes=("cell%d" % (op % 700),), blocks=2)
    return made


def hostile():
    """Names that try to be markup, and times that are not known."""
    made = Program("</script><script>document.title='taken'</script>")
    bad = made.label("<img src=x onerror=\"document.title='taken'\">", "</script><b>.cu", 1)
    other = made.label("\u202ereversed & <!-- \" ' \\ \u2028", "a&b.cu", 2)
    made.op(bad, 10, writes=("a",))
    made.op(other, 10, reads=("a",), writes=("b",))
    made.op(bad, 10, writes=("a",))
    made.finding("war", 5000, "<b>bold</b> title", "</script><i>text</i>", "<u>fix</u>", (0, 2, 99, -1))
    return made


def bundles():
    """Ops go in bundles of 24 to 3 slots, in which they have lanes."""
    made = Program("graphs", launch_us=0.3, issue_us=0.1)
    one, two = made.label("stencil", "graphs.cu", 21), made.label("reduce", "graphs.cu", 35)
    for turn in range(12):
        for part in range(20):
            made.op(one, 12 + part % 5 * 3, reads=("cell%d" % ((part + 1) % 20),), writes=("cell%d" % part,))
        made.op(two, 9, reads=tuple("cell%d" % part for part in range(20)), writes=("sum",))
    return made


def in_bundles(acs, most=24, slots=3):
    """The same, in bundles: slots by turns, lanes so that ops of one do not overlap."""
    ends = {}
    for place, op in enumerate(acs["ops"]):
        number = place // most
        op[11], op[13], op[14] = number % slots, 3, number
        op[12] = next(lane for lane in range(1000) if ends.get((op[11], lane), 0) <= op[8])
        ends[op[11], op[12]] = op[9]
    groups = [acs["ops"][at:at + most] for at in range(0, len(acs["ops"]), most)]
    acs["bundles"] = [[ops[0][11], 3, min(op[7] for op in ops), min(op[7] for op in ops) + 4000, max(op[9] for op in ops),
        len(ops)]
                      for ops in groups]
    return acs


PLANTED = {"false_dependence": false_dependence, "war": war, "host_wait": host_wait, "window": window, "streams": streams,
    "fills": fills,
           "allocation": allocation, "chain": chain}
ALL = dict(PLANTED, empty=empty, one=one, many=many, hostile=hostile, bundles=bundles)


def named(name):
    """The recording of a name."""
    made = recording(ALL[name]())
    return in_bundles(made) if name == "bundles" else made


def without_times(acs):
    """The same, of which most times are not known."""
    for op in acs["ops"]:
        op[4:10] = [0, 0, 0, 0, 0, op[9] if op[0] % 2 else 0]
    return dict(acs, what_if=[], counters={"t": [], "ready": [], "running": [], "window": []})


def late(acs, by=50000000):
    """A recording whose context was open for some time before the first op: of the same run."""
    acs = json.loads(json.dumps(acs))
    for rows, columns in ((acs["ops"], range(4, 10)), (acs["waits"], (2, 3)), (acs["memory"], (0, 1)), (acs["path"], (1, 2)),
            (acs["bundles"], (2, 3, 4))):
        for row in rows:
            for at in columns:
                row[at] += by
    acs["counters"]["t"] = [at + by for at in acs["counters"]["t"]]
    acs["span_ns"] += by
    acs["memory"] += [[at * 1000, at * 1000 + 900, 0, 64, 64 * at, 1 << 20, "setup.c", 7, 0] for at in range(20)]
    return acs


def trace(acs):
    """The text of a trace file. Names keep their '<', which the library's own writer would not."""
    return json.dumps({"traceEvents": [], "displayTimeUnit": "ns", "acs": acs}, separators=(",", ":"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(ALL))
    else:
        print(trace(named(sys.argv[1])))
