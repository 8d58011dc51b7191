"""Tables of a profile: all of its times, and the summary behind a run."""
import math

ALL_SHARES = tuple(range(100, 0, -10))  # those that the library measures


def _table(rows, indent):
    """Lines of rows whose columns stand below each other; the first one to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(max(map(len, rows)))]
    return [(" " * indent + "  ".join([row[0].ljust(widths[0])] + [row[at].rjust(widths[at]) for at in range(1, len(row))])).rstrip()
            for row in rows]


def size(count):
    """A number of bytes in words."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return ("%d %s" if unit == "B" else "%.3g %s") % (count, unit)
        count /= 1000
    return ""


def _sizes(sizes):
    return "x".join(map(str, sizes)) if sizes[2] != 1 else "%dx%d" % sizes[:2] if sizes[1] != 1 else str(sizes[0])


def title(problem):
    """A problem in words."""
    grid, block, shared, reads, writes = problem.shape
    return "grid %s, block %s, %sreads %s, writes %s" % (
        _sizes(grid), _sizes(block), "shared %s, " % size(shared) if shared else "", size(reads), size(writes))


def _us(us):
    if us == math.inf:
        return "cannot"
    return "%.4g" % us if us < 1000 else "%.0f" % us


def ppmcc(first, second):
    """Pearson's correlation of two lists; None: it is not defined."""
    count = len(first)
    if count < 3:
        return None
    means = sum(first) / count, sum(second) / count
    one, two = [x - means[0] for x in first], [y - means[1] for y in second]
    spread = math.sqrt(sum(x * x for x in one) * sum(y * y for y in two))
    return sum(x * y for x, y in zip(one, two)) / spread if spread > 0 else None


def correlation(problem, one, two):
    """The correlation of the versions' times at two shares, each time in parts of the best at its share."""
    first, second = problem.versions_at(one), problem.versions_at(two)
    both = [version for version in first if version in second]
    if not both:
        return None
    return ppmcc([first[v] / min(first.values()) for v in both], [second[v] / min(second.values()) for v in both])


def correlations(problems, indent):
    """Lines of the matrix of correlations between shares, of several problems on average. Empty: none is known."""
    shares = sorted({share for problem in problems for share in problem.shares()}, reverse=True)
    rows, known = [[""] + ["%d %%" % share for share in shares]], False
    for one in shares:
        row = ["%d %%" % one]
        for two in shares:
            found = [value for value in (correlation(problem, one, two) for problem in problems) if value is not None]
            known |= bool(found) and one != two
            row.append("%.2f" % (sum(found) / len(found)) if found else "-")
        rows.append(row)
    return _table(rows, indent) if known else []


def show(profile):
    """All that a profile has."""
    lines = ["%s, %d multiprocessors" % (profile.gpu, profile.sms)]
    for kernel in profile.kernels.values():
        lines += ["", "kernel %s: %s" % (kernel.name, _count(len(kernel.versions), "version"))]
        for problem in kernel.problems.values():
            lines += ["  " + title(problem)] + _times(kernel, problem)
    for mix in profile.mixes.values():
        lines += ["", "mix of " + ", ".join("%s (rate %g)" % model for model in mix.models)]
        rows = [["model", "fit", "share"]]
        rows += [[name, "%d %%" % mix.settings[name][0] if mix.settings[name][0] else "any", "%d %%" % mix.settings[name][1]]
                 for name, _ in mix.models if name in mix.settings]
        lines += _table(rows, 2)
        if mix.throughput is not None:
            lines.append("  %g requests per second" % mix.throughput)
    return lines


def _times(kernel, problem):
    shares = sorted(set(problem.shares()) | {share for _, share, _ in problem.beside}, reverse=True)
    if not shares:
        return ["    nothing is measured yet"]
    best = {share: min(problem.versions_at(share).values(), default=0) for share in shares}
    rows = [["us, * the best"] + ["%d %%" % share for share in shares]]
    for version in kernel.versions:
        row = [version]
        for share in shares:
            us = problem.times.get((version, share))
            row.append("-" if us is None else ("*" if us == best[share] else "") + _us(us))
        rows.append(row)
        for what in sorted({what for v, _, what in problem.beside if v == version}):
            row = ["  beside " + what]
            for share in shares:
                us = problem.beside.get((version, share, what))
                row.append("" if us is None else _us(us))
            rows.append(row)
    lines = _table(rows, 4)
    matrix = correlations([problem], 4)
    return lines + ["    correlation of the shares (PPMCC):"] + matrix if matrix else lines


def _count(number, word):
    return "%d %s" % (number, word if number == 1 else word + "s")


def is_measured(kernel, problem, everything=False):
    """
    Whether the library would measure nothing more: all versions have times at 100 % and 10 %; with `everything` at all shares. A
    GPU without parts has the share 100 alone.
    """
    shares = set(problem.shares())
    wanted = {100} if shares <= {100} else set(ALL_SHARES) if everything else {100, 10}
    return all((version, share) in problem.times for version in kernel.versions for share in wanted)


def possible(kernel, problem):
    """How many measurements a problem of the kernel has without any sharing. GPUs without parts have one share."""
    return len(kernel.versions) * (1 if problem.shares() == [100] else len(ALL_SHARES))


def summary(profile, everything=False):
    """What was found: the best version at each of three shares, and what the version of the whole GPU costs on a tenth."""
    lines, measured, full = [], 0, 0
    for kernel in profile.kernels.values():
        problems = [problem for problem in kernel.problems.values() if problem.times]
        if not problems:
            continue
        rows = [["", "best at 100 %", "at 50 %", "at 10 %", "that of 100 % at 10 %"]]
        for problem in problems:
            measured += len(problem.times)
            full += possible(kernel, problem)
            rows.append([title(problem)] + [_best(problem, share) for share in (100, 50, 10)] + [_loss(problem)])
        lines += ["kernel %s: %s" % (kernel.name, _count(len(kernel.versions), "version"))] + _table(rows, 2)
        matrix = correlations(problems, 4)
        lines += ["  correlation of the shares (PPMCC%s):" % (", mean of the problems" if len(problems) > 1 else "")] + matrix \
            if matrix else []
    left = [problem for kernel, problem in profile.problems() if not is_measured(kernel, problem, everything)]
    saved = 100 * (full - measured) / full if full else 0
    lines.append("%s; %d of %d saved (%.0f %%)." % (_count(measured, "measurement"), full - measured, full, saved))
    if left:
        lines.append("%s not measured: the program did not launch %s again, or it ended before."
                     % (_count(len(left), "problem") + (" is" if len(left) == 1 else " are"), "it" if len(left) == 1 else "them"))
    return lines


def _best(problem, share):
    times = problem.versions_at(share)
    if not times:
        return "-"
    best = min(times, key=times.get)
    return "%s %s us" % (best, _us(times[best]))


def _loss(problem):
    whole, tenth = problem.versions_at(100), problem.versions_at(10)
    if not whole or not tenth:
        return "-"
    best = min(whole, key=whole.get)
    return "%+.0f %%" % (100 * (tenth[best] / min(tenth.values()) - 1)) if best in tenth else "-"
