"""What acs-adopt says of a program: what was rewritten, and each place that stays, with the reason."""
import collections
import os
import sys

class Report:
    """Counts, and lines for standard error."""

    def __init__(self, program, options):
        self.program = program
        self.options = options
        self.kept = []
        self.counts = collections.Counter()
        self.lines = []
        self.once = set()
        for source, at, what in program.notes:
            self.note(source, at, what)
        for source, at, name in program.outer:
            self._add(source, at, "left: call: " + name + " makes the GPU wait for, or share with, what is outside this order")
            self.counts["left", "call"] += 1

    def refused(self, source):
        """
        Why nothing may change here; None: it may. Work in graphs and on other GPUs stays, and could not be ordered against
        work that is rewritten. So then all of the program stays.
        """
        if self.program.several_devices and not self.options.one_device:
            return "the program uses several GPUs (cudaSetDevice), see --one-device"
        if self.program.captures:
            return "the program captures graphs (%s:%d)" % self.program.captures
        if os.path.splitext(source.path)[1] == ".c":
            return "a file of C: compile it as C++"
        return None

    def _add(self, source, at, what):
        self.lines.append((source.path, source.line(at), what))

    def rewritten(self, source, at, kind):
        """A place that is done."""
        self.counts["rewritten", kind] += 1

    def left(self, source, at, kind, why):
        """A place that stays and needs the reader."""
        self.counts["left", kind] += 1
        self._add(source, at, "left: " + kind + ": " + why)

    def around(self, source, begin, end):
        """Have ACS drained before the work from begin to end, and the device after it."""
        if source.crosses_directive(begin, end) and source.code[begin:end].strip():  # macros take no such lines
            source.edit(begin, begin, "(::acs::adopt::outside(), ")
            source.edit(end, end, ")")
        else:
            source.edit(begin, end, "ACS_OUTSIDE(" + source.text[begin:end] + ")")

    def around_statement(self, source, begin, end):
        """The same for a statement that may be a macro of a header that was not given, and so no expression."""
        source.edit(begin, end, "{ ::acs::adopt::outside drained; " + source.text[begin:end] + " }")

    def drained(self, source, at, kind, why):
        """A place that stays, and is right but slow."""
        self.counts["drained", kind] += 1
        self._add(source, at, "drained: " + kind + ": " + why)

    def stays(self, source, at, kind, why):
        """A place that stays, and is right with acs::compat. Said once."""
        self.counts["kept", kind] += 1
        if why not in self.once:
            self.once.add(why)
            self._add(source, at, "note: " + kind + " stays: " + why)

    def note(self, source, at, what):
        """Something to know."""
        self._add(source, at, "note: " + what)

    def nothing(self):
        """No launch becomes an op, so nothing changes."""
        self.lines = [line for line in self.lines if not line[2].startswith("note")]
        places = sum(count for (what, _), count in self.counts.items() if what in ("left", "drained"))
        self.counts = collections.Counter({("left", "place"): places} if places else {})
        self.lines = [(path, at, what.replace("drained:", "left:", 1)) for path, at, what in self.lines]

    def finish(self):
        """Write all lines and the sums; the exit status."""
        for path, line, what in sorted(set(self.lines)):
            print("%s:%d: %s" % (path, line, what), file=sys.stderr)
        words = []
        for outcome in ("rewritten", "kept", "drained", "left"):
            kinds = ["%d %s" % (count, kind) for (what, kind), count in sorted(self.counts.items()) if what == outcome]
            if kinds:
                words.append(outcome + ": " + ", ".join(kinds))
        print("acs-adopt: " + ("; ".join(words) or "nothing to do"), file=sys.stderr)
        return 1 if any(what in ("left", "drained") for what, _ in self.counts) else 0
