"""Spaces of configurations, and what draws from them: at random, or Optuna."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from .._errors import unsupported

Config = dict[str, Any]
"""Values by names: macros of CUDA C++; constants and options of Triton."""

_LISTED = 1 << 16  # spaces up to this size are shuffled as a list; of larger ones numbers are drawn until new ones come


class Space:
    """Configurations: all combinations of values by name, or a list of configurations (dicts, or of ``triton.Config``)."""

    def __init__(self, space: Any) -> None:
        self.names: tuple[str, ...] = ()
        self._values: list[list[Any]] = []
        self._list: list[Config] = []
        if isinstance(space, Mapping):
            self.names, self._values = tuple(space), [list(values) for values in space.values()]
            self.size = math.prod(map(len, self._values))
        else:
            self._list = [config_of(given) for given in space]
            self.size = len(self._list)
        if self.size == 0:
            raise ValueError("acs: the space has no configurations")

    def at(self, number: int) -> Config:
        """Configuration `number`, from 0."""
        if self._list:
            return dict(self._list[number])
        config = {}
        for name, values in zip(self.names, self._values):
            number, at = divmod(number, len(values))
            config[name] = values[at]
        return config

    def values(self, name: str) -> list[Any]:
        """The values of a name."""
        return self._values[self.names.index(name)]

    def place_of(self, config: Config) -> int:
        """The number of a configuration of a list."""
        return self._list.index(config)

    def drawn(self, seed: int) -> Iterator[Config]:
        """All configurations in a random order, each once."""
        draw = random.Random(seed)
        if self.size <= _LISTED:
            numbers = list(range(self.size))
            draw.shuffle(numbers)
            yield from map(self.at, numbers)
            return
        seen: set[int] = set()
        while len(seen) < self.size:
            number = draw.randrange(self.size)
            if number not in seen:
                seen.add(number)
                yield self.at(number)


def config_of(given: Any) -> Config:
    """A configuration from a dict, or from a ``triton.Config``."""
    if isinstance(given, Mapping):
        return dict(given)
    if hasattr(given, "kwargs") and hasattr(given, "num_warps"):
        return {**given.kwargs, "num_warps": given.num_warps, "num_stages": given.num_stages}
    raise TypeError(f"acs: an object of type {type(given).__name__} is no configuration; give a dict or a triton.Config")


def digest(*what: Any) -> str:
    """A short text that differs where these differ."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:12]


def name_of(config: Config) -> str:
    """A name for a version, the same in each process."""
    name = "-".join(f"{key}{value}" for key, value in config.items())
    return name if re.fullmatch(r"[A-Za-z0-9_.:-]{1,47}", name) and name != "base" else "config-" + digest(config)


class Sampler(Protocol):
    """What proposes configurations."""

    def ask(self) -> Config | None:
        """The next one; None: there are no more."""

    def tell(self, config: Config, scores: Sequence[float] | None) -> None:
        """What it took at each share that was measured, less is better; None: it is not valid."""


class Random:
    """Proposes configurations at random, each once."""

    def __init__(self, space: Space, seed: int, _: int, fits: Callable[[Config], bool]) -> None:
        self._drawn, self._fits = space.drawn(seed), fits

    def ask(self) -> Config | None:
        return next((config for config in self._drawn if self._fits(config)), None)

    def tell(self, config: Config, scores: Sequence[float] | None) -> None:
        pass


class Optuna:
    """Proposes what Optuna does. Each share has a study; they ask in turn, and each learns from all trials."""

    _TRIES = 30  # proposals in a row that the constraint refuses, or that came before; then one is drawn at random

    def __init__(self, space: Space, seed: int, studies: int, fits: Callable[[Config], bool]) -> None:
        try:
            import optuna
        except ImportError:
            raise unsupported("sampler='optuna' needs the package optuna, which is not installed; sampler='random' needs "
                              "nothing") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna, self._space, self._fits = optuna, space, fits
        self._studies = [optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed + at)) for at in range(studies)]
        self._turn, self._seen, self._drawn = 0, set[str](), space.drawn(seed)
        self._trial: Any = None
        choices = {name: tuple(range(len(space.values(name)))) for name in space.names} or {"": tuple(range(space.size))}
        self._distributions: dict[str, Any] = {name: optuna.distributions.CategoricalDistribution(of)
                                               for name, of in choices.items()}

    def _config(self, params: Mapping[str, int]) -> Config:
        if not self._space.names:
            return self._space.at(params[""])
        return {name: self._space.values(name)[params[name]] for name in self._space.names}

    def _params(self, config: Config) -> dict[str, int]:
        if not self._space.names:
            return {"": self._space.place_of(config)}
        return {name: self._space.values(name).index(config[name]) for name in self._space.names}

    def _is_new(self, config: Config) -> bool:
        """Whether a configuration is valid, and comes for the first time."""
        name = name_of(config)
        known = name in self._seen
        self._seen.add(name)
        return not known and self._fits(config)

    def ask(self) -> Config | None:
        study = self._studies[self._turn]
        for _ in range(self._TRIES):
            self._trial = study.ask(self._distributions)
            config = self._config(self._trial.params)
            if self._is_new(config):
                return config
            study.tell(self._trial, state=self._optuna.trial.TrialState.FAIL)
        self._trial = None
        return next((config for config in self._drawn if self._is_new(config)), None)

    def tell(self, config: Config, scores: Sequence[float] | None) -> None:
        states, params = self._optuna.trial.TrialState, self._params(config)
        for at, study in enumerate(self._studies):
            if self._trial is not None and at == self._turn:
                study.tell(self._trial, None if scores is None else scores[at],
                           states.FAIL if scores is None else states.COMPLETE)
            elif scores is not None:
                study.add_trial(self._optuna.trial.create_trial(params=params, distributions=self._distributions,
                                                                value=scores[at]))
        self._turn = (self._turn + 1) % len(self._studies)


SAMPLERS: dict[str, Callable[[Space, int, int, Callable[[Config], bool]], Sampler]] = {"random": Random, "optuna": Optuna}
