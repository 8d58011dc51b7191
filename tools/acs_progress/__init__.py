"""Progress of long runs of the Python tools: one line on standard error, with what is done and the time that is left.

On a terminal it is one line that changes. Elsewhere it is a line each 5 s, or each BENCH_PROGRESS_S seconds, and one at the
end. Nothing of it goes to standard output. The benchmarks' own is bench/harness/progress.c, in the same words. Ctrl-C is
KeyboardInterrupt: a tool that catches it keeps what it has, and ends with the status INTERRUPTED.
"""
import os
import sys
import time

INTERRUPTED = 130
TERMINAL_S, LINES_S = 0.2, 5  # least time between two lines


class Screen:
    """Standard error with one line that changes, if it is a terminal. Other lines pass."""

    def __init__(self, out=None, is_progress=None):
        self.out = out or sys.stderr.buffer
        self.terminal = self.out.isatty()
        self.is_progress = is_progress  # whether a line of bytes is one of progress
        self.shown = False

    def line(self, raw):
        """A line that some program wrote."""
        if self.is_progress and self.is_progress(raw):
            self.progress(raw)
            return
        self.end()
        self.out.write(raw)
        self.out.flush()

    def progress(self, raw):
        """Take the place of the line of progress before."""
        if self.terminal:
            self.out.write(b"\r\033[K" + raw.rstrip(b"\n"))
        else:
            self.out.write(raw)
        self.out.flush()
        self.shown = self.terminal

    def hide(self):
        """Take the line off: something else is printed."""
        if self.shown:
            self.out.write(b"\r\033[K")
            self.out.flush()
            self.shown = False

    def end(self):
        """Leave the line where it is."""
        if self.shown:
            self.out.write(b"\n")
            self.out.flush()
            self.shown = False


def time_left(seconds):
    """As people say it."""
    if seconds < 100:
        return "%.0f s" % seconds
    return "%.0f min" % (seconds / 60) if seconds < 6000 else "%.0f h" % (seconds / 3600)


class Progress:
    """A run of so many steps."""

    def __init__(self, program, steps, out=None, now=time.monotonic):
        self.program, self.steps, self.done, self.skipped = program, steps, 0, 0
        self.screen, self.now = Screen(out), now
        self.every = float(os.environ.get("BENCH_PROGRESS_S", TERMINAL_S if self.screen.terminal else LINES_S))
        self.begun = self.told = now()

    def step(self, what):
        """A step is done."""
        self.done += 1
        self._tell(what)

    def skip(self):
        """The step was done by an earlier run, and took no time now."""
        self.done += 1
        self.skipped += 1

    def hide(self):
        """Take the line off a terminal: something else is printed."""
        self.screen.hide()

    def _tell(self, what):
        now, last = self.now(), self.done >= self.steps
        if now - self.told < self.every and (self.screen.terminal or not last):
            return
        self.told = now
        text = "%s: %d of %d (%.0f %%)" % (self.program, self.done, self.steps, 100 * min(1, self.done / max(1, self.steps)))
        own = self.done - self.skipped
        if own > 0 and not last:
            text += ", about %s left" % time_left((now - self.begun) * (self.steps - self.done) / own)
        self.screen.progress(("%s: %s\n" % (text, what)).encode())
