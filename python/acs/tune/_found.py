"""What a search found: times, the versions that are worth keeping, tables of them, and a file for later runs."""

from __future__ import annotations

import json
import math
import pathlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .._errors import StateError
from .._layout import ACS_ERR_STATE
from ._compile import store
from ._space import Config, name_of

FORMAT = 1

Times = dict[tuple[int, int, int], float]
"""Microseconds by number of the configuration, number of the problem, and share."""


def score(times: Times, config: int, share: int, problems: int) -> float | None:
    """What a configuration takes at a share: the geometric mean of the problems; None: it was not measured there for each."""
    known = [times[config, problem, share] for problem in range(problems) if (config, problem, share) in times]
    return math.exp(sum(map(math.log, known)) / len(known)) if len(known) == problems else None


def chosen(times: Times, configs: int, problems: int, shares: Sequence[int], most: int) -> list[int]:
    """
    At most so many configurations, which together lose least against the best at each share of each problem. The first is the
    best on the largest share.
    """
    places = [(problem, share) for problem in range(problems) for share in shares]
    known = {place: {c: times[(c, *place)] for c in range(configs) if (c, *place) in times} for place in places}
    known = {place: of for place, of in known.items() if of}

    def loss(picked: Sequence[int]) -> float:
        total = 0.0
        for of in known.values():
            us = min((of[c] for c in picked if c in of), default=max(of.values()))
            total += math.log(us / min(of.values()))
        return total

    scores = {c: score(times, c, max(shares), problems) for c in range(configs)}
    fit = {c: s for c, s in scores.items() if s is not None}
    if not fit:
        return []
    picked = [min(fit, key=fit.__getitem__)]
    while len(picked) < most:
        left = [c for c in range(configs) if c not in picked]
        best = min(left, key=lambda c: loss([*picked, c]), default=None)
        if best is None or loss([*picked, best]) >= loss(picked):
            break
        picked.append(best)
    return picked


class Found:
    """
    The result of a search.

    ``shares``    percent of the GPU, the largest first.
    ``problems``  names of the problems.
    ``base``      the configuration that is best on the largest share, over all problems.
    ``versions``  other configurations that are worth keeping, by name.
    ``trials``    configurations that were tried; ``skipped``: how many of them were not valid, by reason.
    ``notes``     what restricted the search.
    """

    def __init__(self, family: Any, shares: Sequence[int], problems: Sequence[str], configs: Sequence[Config], times: Times,
                 most: int, trials: int = 0, skipped: Counter[str] | None = None, notes: Sequence[str] = ()) -> None:
        self.family, self.shares, self.problems = family, sorted(shares, reverse=True), list(problems)
        self.configs, self.times, self.trials = list(configs), dict(times), trials
        self.skipped, self.notes = Counter(skipped or {}), list(notes)
        picked = chosen(self.times, len(self.configs), len(self.problems), self.shares, most)
        if not picked:
            reasons = "; ".join(f"{count} times: {reason}" for reason, count in self.skipped.most_common(3))
            raise ValueError(f"acs: none of {trials} configurations could be compiled and run ({reasons or 'none was tried'})")
        self._picked = picked
        self.base = self.configs[picked[0]]
        self.versions = {name_of(self.configs[c]): self.configs[c] for c in picked[1:]}

    def best(self, share: int, problem: int | None = None) -> tuple[Config, float]:
        """The best configuration at a share, and its time: of one problem, or over all (the geometric mean)."""
        found: dict[int, float] = {}
        for config in range(len(self.configs)):
            us = (score(self.times, config, share, len(self.problems)) if problem is None
                  else self.times.get((config, problem, share)))
            if us is not None:
                found[config] = us
        if not found:
            raise ValueError(f"acs: nothing was measured at {share} %")
        first = min(found, key=found.__getitem__)
        return self.configs[first], found[first]

    def declare(self) -> Any:
        """
        Compile the versions, and declare them (:func:`acs.variants`). Returns an object that launches the kernel:
        ``tuned.launch(context, args, reads=..., writes=...)``. Its grid follows from the arguments.
        """
        return self.family.declare(self.base, self.versions)

    def table(self) -> str:
        """The best configuration at each share, and what the best one of the largest share loses there."""
        lines = [f"{self.family.name}: {self.trials} configurations tried, {sum(self.skipped.values())} not valid, "
                 f"{len(self.times)} measurements, {len(self.versions) + 1} versions kept"]
        lines += [f"  {count} times: {reason}" for reason, count in self.skipped.most_common(3)]
        lines += ["  " + note for note in self.notes]
        for at, problem in enumerate(self.problems):
            if not any(place == at for _, place, _ in self.times):
                continue
            rows: list[tuple[str, ...]] = [(problem, "best configuration", "us", f"best of {self.shares[0]} %",
                                            "kept versions")]
            whole = self.configs.index(self.best(self.shares[0], at)[0])
            for share in self.shares:
                config, us = self.best(share, at)
                first = self.times.get((whole, at, share))
                kept = min((self.times[c, at, share] for c in self._picked if (c, at, share) in self.times), default=None)
                rows.append((f"{share} %", name_of(config), f"{us:.4g}", *(
                    "-" if other is None else f"+{100 * (other / us - 1):.0f} %" for other in (first, kept))))
            widths = [max(len(row[column]) for row in rows) for column in range(5)]
            lines += ["  " + "  ".join([row[0].ljust(widths[0]), row[1].ljust(widths[1]),
                                        *(row[c].rjust(widths[c]) for c in (2, 3, 4))]) for row in rows]
        return "\n".join(lines)

    def save(self, path: Any) -> None:
        """Write a file, from which :func:`acs.tune.load` makes the versions without a search."""
        kept = [self.base, *self.versions.values()]
        numbers = {picked: number for number, picked in enumerate(self._picked)}
        data = {"acs-tune": FORMAT, "kernel": self.family.name, "source": self.family.fingerprint, "shares": self.shares,
                "problems": self.problems, "trials": self.trials, "configurations": kept,
                "times": [[numbers[c], p, s, round(us, 4)] for (c, p, s), us in sorted(self.times.items()) if c in numbers]}
        target = pathlib.Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        store(target, (json.dumps(data, indent=1) + "\n").encode())


def load(path: Any, family: Any) -> Found:
    """
    What a search has saved for this kernel. The versions are compiled anew by :meth:`Found.declare`, or come from the compiler's
    cache. Raises FileNotFoundError, ValueError for a file that is not valid, and StateError if the source has changed.
    """
    try:
        data = json.loads(pathlib.Path(path).read_text())
        if data["acs-tune"] != FORMAT:
            raise ValueError(f"its format is {data['acs-tune']}, and {FORMAT} is known")
        configs, shares, problems = list(map(dict, data["configurations"])), list(map(int, data["shares"])), data["problems"]
        times = {(int(c), int(p), int(s)): float(us) for c, p, s, us in data["times"]}
        source, trials = data["source"], int(data["trials"])
        if not all(c < len(configs) and p < len(problems) and s in shares and us > 0 for (c, p, s), us in times.items()):
            raise ValueError("it has times of what it does not name")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"acs: {path} is no file of acs.tune: {error}") from None
    if source != family.fingerprint:
        raise StateError(f"acs: kernel '{family.name}' has changed since {path} was written; search again", ACS_ERR_STATE)
    return Found(family, shares, problems, configs, times, len(configs), trials)
