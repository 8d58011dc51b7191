"""The search: which configurations are tried, and at which shares each is measured."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .. import _layout, default
from .._context import Context
from .._errors import ArgumentError, DeviceError, Error
from ._compile import Problem, Unfit
from ._found import Found, Times, score
from ._space import SAMPLERS, Config, Space

Measure = Callable[[Any, int], float]
"""Microseconds of a prepared launch at a share."""


class _Search:
    """Configurations that were tried, and their times."""

    def __init__(self, family: Any, context: Context | None, problems: Sequence[Problem], measure: Measure,
                 check: Callable[[Problem], bool] | None) -> None:
        self.family, self.context, self.problems, self.measure, self.check = family, context, problems, measure, check
        self.configs: list[Config] = []
        self.launches: list[dict[int, Any]] = []  # prepared ones of each configuration, by number of the problem
        self.times: Times = {}
        self.skipped: Counter[str] = Counter()

    def attempt(self, config: Config, shares: Sequence[int]) -> list[float] | None:
        """Compile and measure a configuration. Returns its scores at the shares; None: it is not valid."""
        try:
            launches = self._prepared(config)
            found = {(at, share): self.measure(launch, share) for at, launch in launches.items() for share in shares}
        except Unfit as unfit:
            self.skipped[str(unfit)] += 1
            return None
        except DeviceError:
            raise
        except Error as error:  # too much shared memory, too many threads
            self.skipped[str(error).splitlines()[0][:200]] += 1
            if self.context is not None:
                self.context.clear()
            return None
        number = len(self.configs)
        self.configs.append(config)
        self.launches.append(launches)
        self.times.update({(number, *place): us for place, us in found.items()})
        scores = [score(self.times, number, share, len(self.problems)) for share in shares]
        return None if None in scores else scores  # type: ignore[return-value]

    def _prepared(self, config: Config) -> dict[int, Any]:
        launches = {}
        for at, problem in enumerate(self.problems):
            launch = self.family.prepare(self.context, config, problem)
            if launch is None:
                continue
            if self.check is not None:
                launch()
                if self.context is not None:
                    self.context.sync()
                if not self.check(problem):
                    raise Unfit("its results are wrong")
            launches[at] = launch
        if not launches:
            raise Unfit("it fits none of the problems")
        return launches

    def good(self, share: int, part: int) -> set[int]:
        """The best quarter (if `part` is 4) of the configurations at a share of any problem."""
        good: set[int] = set()
        for problem in range(len(self.problems)):
            order = sorted((us, config) for (config, at, s), us in self.times.items() if at == problem and s == share)
            good.update(config for _, config in order[:-(-len(order) // part)])
        return good

    def fill(self, configs: set[int], shares: Sequence[int], each: Callable[[int, int], None]) -> None:
        """Measure these configurations at shares that lack."""
        for done, config in enumerate(sorted(configs), 1):
            for share in shares:
                for at, launch in self.launches[config].items():
                    if (config, at, share) not in self.times:
                        self.times[config, at, share] = self.measure(launch, share)
            each(done, len(configs))


def _ends(shares: Sequence[int]) -> list[int]:
    return sorted({max(shares), min(shares)}, reverse=True)


class _Progress:
    """Lines on standard error, at most one a second."""

    def __init__(self, wanted: bool, name: str) -> None:
        self._wanted, self._name, self._began, self._said = wanted, name, time.monotonic(), 0.0

    def __call__(self, what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if self._wanted and (now - self._said >= 1 or done == of):
            self._said, took = now, now - self._began
            left = f", about {took / done * (of - done):.0f} s left" if what == "trial" else ""
            print(f"acs.tune: {self._name}: {what} {done} of {of}, {took:.1f} s{left}", file=sys.stderr, flush=True)


def _measured(launch: Any, share: int) -> float:
    return float(launch.context.measure(launch, share=share).us)


def search(family: Any, space: Any, launches: Sequence[Problem], *, context: Context | None = None,
           shares: Sequence[int] = (100, 50, 20, 10), trials: int = 100, sampler: str = "random", seed: int = 0, most: int = 4,
           constraint: Callable[[Config], bool] | None = None, check: Callable[[Problem], bool] | None = None,
           progress: bool = False, measure: Measure | None = None) -> Found:
    """
    Search for configurations of a kernel that are best on shares of the GPU, for these launches.

    ``family``      :class:`Cuda` or :class:`Triton`.
    ``space``       values by name, of which all combinations count; or a list of configurations (``triton.Config``, too).
    ``launches``    :class:`Problem` each.
    ``trials``      configurations that are tried. Each is measured on the largest and the smallest share; the shares between
                    them see those that are in the best quarter at either end.
    ``sampler``     "random", or "optuna" where that is installed.
    ``most``        versions that are kept, the base included.
    ``constraint``  which configurations are valid; others do not count as trials.
    ``check``       called after a launch that ran once: whether its results are right. A configuration with wrong ones is skipped.
    ``measure``     what takes the time of a launch at a share; :meth:`acs.Context.measure` unless you say otherwise.

    Configurations that cannot be compiled or run are skipped and counted. ValueError: none could.
    """
    if sampler not in SAMPLERS:
        raise ValueError(f"acs: there is no sampler '{sampler}'; there are {', '.join(SAMPLERS)}")
    if not launches or not shares or trials < 1 or most < 1:
        raise ValueError("acs: a search needs a launch, a share, a trial and a version at least")
    if not all(isinstance(share, int) and 1 <= share <= 100 for share in shares):
        raise ArgumentError(f"acs: the shares are {list(shares)}; each must be 1 to 100", _layout.ACS_ERR_ARGUMENT)
    notes = []
    if measure is None:
        context, measure = context or default(), _measured
        info = context.share_info(min(shares))
        if info.step_sms == 0 and min(shares) < 100:
            notes.append(f"the device cannot be partitioned ({info.reason}), so only the whole of it was measured")
            shares = (100,)
    work, told = _Search(family, context, launches, measure, check), _Progress(progress, family.name)
    ends = _ends(shares)
    drawing = SAMPLERS[sampler](Space(space), seed, len(ends), constraint or (lambda _: True))
    tried = 0
    while tried < trials:
        config = drawing.ask()
        if config is None:
            break
        tried += 1
        drawing.tell(config, work.attempt(config, ends))
        told("trial", tried, trials)
    good = set().union(*(work.good(share, 4) for share in ends))
    between = [share for share in sorted(set(shares), reverse=True) if share not in ends]
    if between:
        work.fill(good, between, lambda done, of: told("good configuration", done, of))
    names = [problem.name or f"launch {number}" for number, problem in enumerate(launches, 1)]
    return Found(family, sorted(set(shares)), names, work.configs, work.times, most, tried, work.skipped, notes)
