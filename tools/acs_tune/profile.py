"""
Profiles: the times of versions of kernels, as the library writes them and people edit them. Reading finds all errors of a file
at once. docs/variants.md has the format.
"""
import math
import re

HEAD = "acs-variants 1"
LINE_BYTES = 255  # with the end of the line
VERSIONS_MOST = 63  # with "base"
MODELS_MOST = 16
BESIDE = ("memory", "itself")
UNFIT = "-1"  # the time of a version that cannot run a problem; math.inf in a Problem
FORMS = {
    "acs-variants": HEAD,
    "gpu": 'gpu "NVIDIA H100 80GB HBM3" sms 132',
    "kernel": "kernel conv2d",
    "version": "version t64x64",
    "problem": "problem grid 49 1 1 block 256 1 1 shared 0 reads 548864 writes 802816",
    "time": "time base 100 12.41",
    "beside": "beside base 50 25.1 memory",
    "mix": "mix resnet18 1 bert 1",
    "setting": "setting resnet18 fit 50 share 30",
    "throughput": "throughput 1234.5",
}
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,47}")
_GPU = re.compile(r'gpu\s+"([^"]+)"\s+sms\s+([0-9]+)\s*(#.*)?')
_COMMENT = re.compile(r"(^|\s)#.*")


class Error:
    """A line that is not valid."""

    def __init__(self, line, text, why, form):
        self.line, self.text, self.why, self.form = line, text, why, form

    def __str__(self):
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        valid = "; a valid line is '%s'" % self.form if self.form else ""
        return "line %d: '%s': %s%s" % (self.line, shown, self.why, valid)


class Problem:
    """A launch of a kernel, and what was measured of it."""

    def __init__(self, shape, line=0):
        self.shape, self.line = shape, line  # grid, block: 3 numbers each; shared, reads, writes: bytes
        self.times = {}   # (version, share): us
        self.beside = {}  # (version, share, what): us

    def versions_at(self, share):
        """Times at a share by version."""
        return {version: us for (version, at), us in self.times.items() if at == share and us < math.inf}

    def shares(self):
        """Shares with a time, the largest first."""
        return sorted({share for _, share in self.times}, reverse=True)

    def __str__(self):
        return "grid %s block %s shared %d reads %d writes %d" % (
            (" ".join(map(str, self.shape[0])), " ".join(map(str, self.shape[1]))) + self.shape[2:])


class Kernel:
    """A kernel with its versions and problems."""

    def __init__(self, name, line=0):
        self.name, self.line = name, line
        self.versions = []
        self.problems = {}  # by shape


class Mix:
    """A mix of models, and the plan for it."""

    def __init__(self, models, line=0):
        self.models, self.line = models, line  # (name, rate) each
        self.settings = {}  # by name: (fit, share)
        self.throughput = None


class Profile:
    """What a file has."""

    def __init__(self):
        self.gpu, self.sms = None, 0
        self.kernels = {}  # by name
        self.mixes = {}    # by models
        self.errors = []

    def problems(self):
        """Kernel and problem of each."""
        return [(kernel, problem) for kernel in self.kernels.values() for problem in kernel.problems.values()]

    def measurements(self):
        """How many times there are."""
        return sum(len(problem.times) for _, problem in self.problems())


class _Refused(Exception):
    pass


def _whole(word, what, least=0, most=(1 << 64) - 1):
    if not re.fullmatch("[0-9]+", word) or not least <= int(word) <= most:
        raise _Refused("%s is '%s'; it must be a whole number from %d to %d" % (what, word, least, most))
    return int(word)


def _positive(word, what):
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf) or not re.fullmatch(r"[0-9.eE+-]+", word):
        raise _Refused("%s is '%s'; it must be a number above 0" % (what, word))
    return number


def _name(word, what):
    if not _NAME.fullmatch(word):
        raise _Refused("%s is '%s'; it must have 1 to 47 characters of letters, digits and _-.:" % (what, word))
    return word


def _words(words, count, *fixed):
    """Check that a line has so many words, and these at their places."""
    if len(words) != count or any(words[at] != word for at, word in fixed):
        raise _Refused("the line has other words than it must")


class _Reader:
    """Reads the lines of a profile. Each method takes one kind of line."""

    def __init__(self):
        self.profile = Profile()
        self.begun = False
        self.kernel = self.problem = self.mix = None
        self.number = 0

    def line(self, number, text):
        self.number = number
        plain = _COMMENT.sub("", text).strip() if not text.lstrip().startswith("gpu") else text.strip()
        if not plain:
            return
        words = plain.split()
        kind = words[0].replace("-", "_") if words[0] in FORMS else None
        try:
            if len(text.encode()) >= LINE_BYTES:
                raise _Refused("the line has %d bytes; it may have %d" % (len(text.encode()), LINE_BYTES - 1))
            if not self.begun and kind != "acs_variants":
                self.begun = True  # one error is enough
                self.refuse(text, "the first line must be '%s'" % HEAD, None)
            if kind is None:
                raise _Refused("a line begins with one of: " + ", ".join(FORMS))
            getattr(self, "_" + kind)(words, plain)
        except _Refused as refused:
            self.refuse(text, str(refused), FORMS.get(words[0]))

    def refuse(self, text, why, form):
        self.profile.errors.append(Error(self.number, text.strip(), why, form))

    def _acs_variants(self, words, _):
        if self.begun:
            raise _Refused("the file has this line already")
        self.begun = True
        if words[1:] != ["1"]:
            raise _Refused("this version of acs-tune knows the format 1 alone")

    def _gpu(self, _, plain):
        match = _GPU.fullmatch(plain)
        if not match:
            raise _Refused("the line has other words than it must")
        if self.profile.gpu is not None:
            raise _Refused("a profile is for one GPU, and the file has named one already")
        self.profile.sms = _whole(match.group(2), "the number of multiprocessors", 1, (1 << 32) - 1)
        self.profile.gpu = match.group(1)

    def _kernel(self, _, plain):
        self.kernel = self.problem = None
        name = plain[len("kernel"):].strip()
        if not name:
            raise _Refused("the kernel has no name")
        self.kernel = Kernel(name, self.number)
        if name in self.profile.kernels:
            raise _Refused("the kernel is on line %d already" % self.profile.kernels[name].line)
        self.profile.kernels[name] = self.kernel

    def _of(self, what, owner):
        if owner is None:
            raise _Refused("there is no valid '%s' line above it" % what)
        return owner

    def _version(self, words, _):
        kernel = self._of("kernel", self.kernel)
        _words(words, 2)
        name = _name(words[1], "the version")
        if name in kernel.versions:
            raise _Refused("the kernel has this version already")
        if len(kernel.versions) == VERSIONS_MOST:
            raise _Refused("a kernel has at most %d versions" % VERSIONS_MOST)
        kernel.versions.append(name)

    def _problem(self, words, _):
        kernel, self.problem = self._of("kernel", self.kernel), None
        _words(words, 15, (1, "grid"), (5, "block"), (9, "shared"), (11, "reads"), (13, "writes"))
        sizes = [_whole(words[at], "a size", 1, (1 << 32) - 1) for at in (2, 3, 4, 6, 7, 8)]
        rest = [_whole(words[at], "a number of bytes") for at in (10, 12, 14)]
        self.problem = Problem((tuple(sizes[:3]), tuple(sizes[3:]), *rest), self.number)
        if self.problem.shape in kernel.problems:
            raise _Refused("the kernel has this problem on line %d already" % kernel.problems[self.problem.shape].line)
        kernel.problems[self.problem.shape] = self.problem

    def _measured(self, words, count):
        problem = self._of("problem", self.problem)
        _words(words, count)
        if words[1] not in self.kernel.versions:
            raise _Refused("kernel '%s' has no line 'version %s' above it" % (self.kernel.name, words[1]))
        share = _whole(words[2], "the share", 10, 100)
        if share % 10:
            raise _Refused("the share is %d; it must be 10, 20 .. 100" % share)
        return problem, words[1], share, math.inf if words[0] == "time" and words[3] == UNFIT else _positive(words[3], "the time")

    def _time(self, words, _):
        problem, version, share, us = self._measured(words, 4)
        if (version, share) in problem.times:
            raise _Refused("the problem has a time of this version at this share already")
        problem.times[version, share] = us

    def _beside(self, words, _):
        problem, version, share, us = self._measured(words, 5)
        if words[4] not in BESIDE:
            raise _Refused("what ran beside it is '%s'; it must be %s or %s" % (words[4], ", ".join(BESIDE[:-1]), BESIDE[-1]))
        if (version, share, words[4]) in problem.beside:
            raise _Refused("the problem has such a time already")
        problem.beside[version, share, words[4]] = us

    def _mix(self, words, _):
        self.mix = None
        if len(words) < 3 or len(words) % 2 == 0:
            raise _Refused("a mix has names and rates in turn")
        models = tuple((_name(name, "a model"), _positive(rate, "a rate")) for name, rate in zip(words[1::2], words[2::2]))
        if len(models) > MODELS_MOST or len({name for name, _ in models}) != len(models):
            raise _Refused("a mix has at most %d models, each of them once" % MODELS_MOST)
        self.mix = Mix(models, self.number)
        if models in self.profile.mixes:
            raise _Refused("the mix is on line %d already" % self.profile.mixes[models].line)
        self.profile.mixes[models] = self.mix

    def _setting(self, words, _):
        mix = self._of("mix", self.mix)
        _words(words, 6, (2, "fit"), (4, "share"))
        if words[1] not in [name for name, _ in mix.models]:
            raise _Refused("the mix on line %d has no model '%s'" % (mix.line, words[1]))
        if words[1] in mix.settings:
            raise _Refused("the model has a setting already")
        mix.settings[words[1]] = _whole(words[3], "fit", 0, 100), _whole(words[5], "the share", 1, 100)

    def _throughput(self, words, _):
        mix = self._of("mix", self.mix)
        _words(words, 2)
        if mix.throughput is not None:
            raise _Refused("the mix has a throughput already")
        mix.throughput = _positive(words[1], "the throughput")

    def end(self):
        if not self.begun:
            self.number += 1
            self.refuse("", "the file ends, but there is no '%s'" % HEAD, None)
        elif self.profile.gpu is None and not any(error.form == FORMS["gpu"] for error in self.profile.errors):
            self.number += 1
            self.refuse("", "the file ends, but it names no GPU", FORMS["gpu"])
        for mix in self.profile.mixes.values():
            missing = [name for name, _ in mix.models if name not in mix.settings]
            if missing:
                self.number = mix.line
                self.refuse("mix " + " ".join("%s %g" % model for model in mix.models),
                            "model '%s' has no setting" % missing[0], FORMS["setting"])
        self.profile.errors.sort(key=lambda error: error.line)
        return self.profile


def parse(text):
    """The profile that a text is. Its `errors` has what is wrong."""
    reader = _Reader()
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        reader.line(number, line.rstrip("\r"))
    return reader.end()


def read(path):
    """The profile of a file. OSError: it cannot be read."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return parse(file.read())


def text(profile):
    """The text of a profile."""
    lines = [HEAD, 'gpu "%s" sms %d' % (profile.gpu, profile.sms)]
    for kernel in profile.kernels.values():
        lines.append("kernel " + kernel.name)
        lines += ["version " + version for version in kernel.versions]
        for problem in kernel.problems.values():
            lines.append("problem %s" % problem)
            lines += ["time %s %d %s" % (version, share, UNFIT if us == math.inf else "%.6g" % us)
                      for (version, share), us in problem.times.items()]
            lines += ["beside %s %d %.6g %s" % (version, share, us, what)
                      for (version, share, what), us in problem.beside.items()]
    for mix in profile.mixes.values():
        lines.append("mix " + " ".join("%s %.17g" % model for model in mix.models))
        lines += ["setting %s fit %d share %d" % ((name,) + mix.settings[name]) for name, _ in mix.models
                  if name in mix.settings]
        if mix.throughput is not None:
            lines.append("throughput %.6g" % mix.throughput)
    return "\n".join(lines) + "\n"
