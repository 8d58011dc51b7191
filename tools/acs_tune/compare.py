"""Two or more profiles: one made of them, and what changed from one to the other."""
from . import profile as profiles


class OtherGpu(Exception):
    """Profiles of different GPUs, whose times cannot be compared."""


def _same_gpu(first, second):
    if (first.gpu, first.sms) != (second.gpu, second.sms):
        raise OtherGpu("the profiles are of different GPUs: %s with %d multiprocessors, and %s with %d"
                       % (first.gpu, first.sms, second.gpu, second.sms))


def merge(parts):
    """One profile with what all have. Where two have the same measurement or plan, the later one counts. And how often."""
    merged, replaced = profiles.Profile(), 0
    merged.gpu, merged.sms = parts[0].gpu, parts[0].sms
    for part in parts:
        _same_gpu(merged, part)
        for kernel in part.kernels.values():
            to = merged.kernels.setdefault(kernel.name, profiles.Kernel(kernel.name))
            to.versions += [version for version in kernel.versions if version not in to.versions]
            for shape, problem in kernel.problems.items():
                all_of = to.problems.setdefault(shape, profiles.Problem(shape))
                for name in ("times", "beside"):
                    known, added = getattr(all_of, name), getattr(problem, name)
                    replaced += sum(known[key] != us for key, us in added.items() if key in known)
                    known.update(added)
        for models, mix in part.mixes.items():
            old = merged.mixes.get(models)
            replaced += old is not None and (old.settings, old.throughput) != (mix.settings, mix.throughput)
            merged.mixes[models] = mix
    return merged, replaced


def _best(problem, share):
    times = problem.versions_at(share)
    return min(times, key=times.get) if times else None


def _times_changed(old, new, percent):
    """Lines for the times of a problem, and how many both profiles have."""
    lines, both = [], 0
    for (version, share), before in old.times.items():
        after = new.times.get((version, share))
        if after is None:
            continue
        both += 1
        if abs(after / before - 1) * 100 > percent:
            lines.append("    %s at %d %%: %.4g us, then %.4g (%+.1f %%)"
                         % (version, share, before, after, (after / before - 1) * 100))
    for share in old.shares():
        before, after = _best(old, share), _best(new, share)
        times = new.versions_at(share)
        if after and before != after and before in times and (times[before] / times[after] - 1) * 100 > percent:
            lines.append("    best at %d %%: %s, then %s" % (share, before, after))
    return lines, both


def _only(name, first, second):
    lines = []
    for of, other, words in ((first, second, "is gone"), (second, first, "is new")):
        lines += ["%s '%s' %s" % (name, key, words) for key in of if key not in other]
    return lines


def diff(old, new, percent):
    """Lines that say what changed by more than this percentage, and how many times both profiles have."""
    _same_gpu(old, new)
    lines, both = _only("kernel", old.kernels, new.kernels), 0
    for name, before in old.kernels.items():
        after = new.kernels.get(name)
        if after is None:
            continue
        of_kernel = ["  " + line for line in _only("version", before.versions, after.versions)]
        for what, one, two in (("is gone", before, after), ("is new", after, before)):
            of_kernel += ["  problem %s %s" % (problem, what) for shape, problem in one.problems.items()
                          if shape not in two.problems]
        for shape, problem in before.problems.items():
            if shape in after.problems:
                changed, count = _times_changed(problem, after.problems[shape], percent)
                both += count
                of_kernel += ["  problem %s" % problem] + changed if changed else []
        lines += ["kernel " + name] + of_kernel if of_kernel else []
    for models, mix in old.mixes.items():
        then = new.mixes.get(models)
        if then is not None and then.settings != mix.settings:
            lines.append("mix %s has other settings" % " ".join("%s %g" % model for model in models))
    return lines, both
