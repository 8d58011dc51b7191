"""Runs of a program that make the library tune: finding the profile, showing progress, stopping cleanly."""
import os
import re
import signal
import subprocess
import sys
import time

import acs_progress

from . import profile as profiles
from . import tables

PATH_BYTES = 127  # longest text of an option of the library
GO_ON = "the same command goes on from there"
STOP_S = 5        # a program that was told to stop gets this long
_PROGRESS = re.compile(rb"acs-tune: .*\d+ of \d+")


class Failed(Exception):
    """The run ends here. The second argument is the exit status."""


def say(text):
    """A line about the run itself."""
    print("acs-tune: " + text, file=sys.stderr, flush=True)


def _stop(program):
    """End a program that the terminal's Ctrl-C has reached already; one that goes on is told to end."""
    for how in (None, signal.SIGTERM, signal.SIGKILL):
        try:
            if how is not None:
                program.send_signal(how)
            program.wait(STOP_S)
            return
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt:
            program.kill()


def run(words, settings):
    """Run a program with these variables. Returns its exit status; None: Ctrl-C ended it."""
    try:
        program = subprocess.Popen(words, env={**os.environ, **settings}, stderr=subprocess.PIPE, bufsize=0)
    except OSError as error:
        raise Failed("%s cannot be run: %s" % (words[0], error.strerror), 64) from None
    screen = acs_progress.Screen(is_progress=_PROGRESS.match)
    try:
        for raw in iter(program.stderr.readline, b""):
            screen.line(raw)
        return program.wait()
    except KeyboardInterrupt:
        screen.end()
        _stop(program)
        return None
    finally:
        screen.end()
        program.stderr.close()


def _ended(status):
    return "was ended by signal %d" % -status if status < 0 else "ended with status %d" % status


def _cache_folder():
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if cache.startswith("/"):
        return os.path.join(cache, "acs")
    if home.startswith("/"):
        return os.path.join(home, ".cache", "acs")
    raise Failed("neither XDG_CACHE_HOME nor HOME names a folder; name the profile by --profile FILE", 64)


def _is_profile(path):
    """Whether the first line that is no comment is a profile's head."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = (line.split("#")[0].strip() for line in file)
            return next(filter(None, lines), "") == profiles.HEAD
    except OSError:
        return False


class Tuning:
    """The runs of one program."""

    def __init__(self, words, path, settings):
        self.words, self.settings = words, dict(settings)
        self.path = path or os.environ.get("ACS_PROFILE") or None
        self.everything = self.settings.get("ACS_TUNE_SHARING") == "0"
        self.began = time.time()
        if self.path:
            whole = os.path.abspath(self.path)  # the program may change its folder
            self.path = whole if len(os.fsencode(whole)) <= PATH_BYTES else self.path
            if len(os.fsencode(self.path)) > PATH_BYTES:
                raise Failed("the path of the profile has %d bytes; the library takes at most %d"
                             % (len(os.fsencode(self.path)), PATH_BYTES), 64)
            self.settings["ACS_PROFILE"] = self.path
            if os.path.exists(self.path):
                self.profile()  # the library would refuse it, too

    def find(self):
        """Without a name: the profile of the user's cache folder that the program has written, or the only one."""
        if self.path:
            return
        folder = _cache_folder()
        names = [os.path.join(folder, name) for name in (os.listdir(folder) if os.path.isdir(folder) else ())]
        found = sorted((os.stat(path).st_mtime, path) for path in names if _is_profile(path))
        if found and (found[-1][0] >= self.began - 1 or len(found) == 1):
            self.path = found[-1][1]
        elif found:
            raise Failed("%s has %d profiles, and the program wrote none of them; name one by --profile FILE"
                         % (folder, len(found)), 1)

    def profile(self):
        """What the profile has now."""
        try:
            found = profiles.read(self.path) if self.path else None
        except FileNotFoundError:
            found = None
        except OSError as error:
            raise Failed("%s cannot be read: %s" % (self.path, error.strerror), 64) from None
        if found is not None and found.errors:
            raise Failed("%s is no valid profile (acs-tune --check has all errors): %s" % (self.path, found.errors[0]), 1)
        return found

    def listed(self):
        """Run the program to learn its problems."""
        say("running the program once as usual, to see its kernels")
        status = run(self.words, {**self.settings, "ACS_TUNE": "list"})
        if status is None:
            raise Failed("stopped; nothing was measured", 130)
        if status != 0:
            raise Failed("the program %s before anything was measured" % _ended(status), 1)
        self.find()
        profile = self.profile()
        if profile is None:
            raise Failed("the program wrote no profile: does it use ACS on a GPU, with kernels that have versions "
                         "(acs_variants)?", 1)
        if not profile.problems():
            raise Failed("the program launches no kernel that has versions (acs_variants), so there is nothing to tune", 1)
        return profile

    def missing(self, profile):
        """Kernel and problem of each that is to be measured."""
        return [(kernel, problem) for kernel, problem in profile.problems()
                if not tables.is_measured(kernel, problem, self.everything)]

    def measured(self, before):
        """Run the program to measure them. Returns the profile, and whether the program ended well."""
        status = run(self.words, {**self.settings, "ACS_TUNE": "measure"})
        profile = self.profile() or before
        if status is None:
            raise Failed("stopped; %s has %d measurements, and %d of %d problems are left; %s"
                         % (self.path, profile.measurements(), len(self.missing(profile)), len(profile.problems()), GO_ON), 130)
        if status != 0:
            say("the program %s; %s" % (_ended(status), GO_ON))
        return profile, status == 0


def tune(words, path, settings):
    """Measure all versions of all problems of a program. Returns the exit status."""
    tuning = Tuning(words, path, settings)
    profile = tuning.listed()
    missing = tuning.missing(profile)
    say("%d kernels with %d versions, %d problems; %d of them are to be measured, at most %d measurements; the profile is %s"
        % (len(profile.kernels), sum(len(kernel.versions) for kernel in profile.kernels.values()), len(profile.problems()),
           len(missing), sum(len(kernel.versions) * len(tables.ALL_SHARES) for kernel, _ in missing), tuning.path))
    fine = True
    if missing or settings:  # other settings may ask for more
        profile, fine = tuning.measured(profile)
    print("\n".join(tables.summary(profile, tuning.everything)))
    return 0 if fine and not tuning.missing(profile) else 1


def mix(words, path, settings):
    """Search for the plans of a program's mixes. Returns the exit status."""
    tuning = Tuning(words, path, settings)
    status = run(words, {**tuning.settings, "ACS_TUNE": "mix"})
    if status is None:
        raise Failed("stopped; a plan is stored when its search has ended", 130)
    tuning.find()
    profile = tuning.profile()
    if status != 0:
        say("the program %s" % _ended(status))
    if profile is None or not profile.mixes:
        raise Failed("the program has no plan in its profile: does it call acs_mix_plan?", 1)
    only = profiles.Profile()
    only.gpu, only.sms, only.mixes = profile.gpu, profile.sms, profile.mixes
    print("\n".join(tables.show(only)))
    return 0 if status == 0 else 1
