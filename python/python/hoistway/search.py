"""The space and the objective of `hoistway.tune` for other searches: here for Optuna.

    >>> import optuna
    >>> from hoistway.search import Objective
    >>> objective = Objective("my-load.fio", objective="min queries:read:p99 subject to log:write:iops >= 0.9*none")
    >>> study = optuna.create_study(direction=objective.direction)
    >>> study.optimize(objective, n_trials=50)
    >>> print(objective.setting(study.best_trial), study.best_value)

Several processes share a study by its storage, as Optuna's documentation tells. `pip install 'hoistway[search]'` installs it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ._experiment import JobLike, Profile, number
from ._tune import at_least_one, search_of
from ._tuning import Setting

if TYPE_CHECKING:
    from optuna.trial import BaseTrial, FrozenTrial, Trial

__all__ = ["Judged", "Knob", "Objective"]

DEFAULT = "default"
"""What leaving a knob alone is called."""

_NEXT_TO_NOTHING = 1e-9
"""By so much a condition is missed that asks for more than a limit and gets just that."""


_LEAST_FACTOR = 1e-21
"""What is nothing is so far away."""


class Knob(NamedTuple):
    """A tunable of a scheduler, or a file of `queue/` under it."""

    scheduler: str
    name: str
    is_queue_file: bool
    values: list[str]
    """What is tried beside leaving it as it is."""

    @property
    def parameter(self) -> str:
        """What it is called in a study, such as `mq-deadline.fifo_batch`, or `none:queue.nr_requests` of a file of `queue/`."""
        return f"{self.scheduler}:queue.{self.name}" if self.is_queue_file else f"{self.scheduler}.{self.name}"


class Judged(NamedTuple):
    """How a setting stands."""

    value: float
    """The mean of the objective's figure over the seeds: ns, bytes or I/Os a second. Of maxima the largest."""
    violations: list[float]
    """For each condition by how much it is missed, as the logarithm of a factor: 0 or less if it is kept."""
    document: dict[str, Any]
    """All of it, as the settings of `rounds` in `docs/tune.md`."""


class Objective:
    """A search that `hoistway.tune` could make, one setting at a time: its space is the same, and so are runs of the same seed.

    It is called with a trial of Optuna: it chooses a scheduler (`scheduler`) and a value of each of its knobs among those that `tune`
    tries, tells the trial how far the conditions are from being kept (`Trial.set_constraint`), and returns the figure. Runs are whole,
    and none is made twice.
    """

    def __init__(
        self,
        job: JobLike = None,
        *,
        objective: str,
        over: Sequence[str] = (),
        knobs: Mapping[str, Sequence[object] | None] = {},
        seeds: int = 2,
        device: Profile | None = None,
        files: Mapping[str, Profile] = {},
        kernel: str | None = None,
        host: Profile | None = None,
        cpus: int | None = None,
        memory_bytes: int | None = None,
        set: Mapping[str, object] = {},
        queue: Mapping[str, object] = {},
        runtime: float | None = None,
        ramp: float | None = None,
        seed: int = 1,
        threads: int | None = None,
    ) -> None:
        """Checks all that is asked for.

        Args:
            seeds: Runs of each setting; all settings have the same seeds, drawn from `seed`.
            threads: Runs at a time of one setting. None: as many as there are cores.

        All others are those of `hoistway.tune`.

        Raises:
            Error: What is asked for cannot be.
        """
        self._search = search_of(locals())
        at_least_one("seeds", seeds)
        self._seeds: int = number("seeds", seeds, 32) or 0
        self._threads = at_least_one("threads", threads)
        self.schedulers = self._search.schedulers
        """The schedulers that are searched."""
        self.knobs = [
            Knob(one["scheduler"], one["name"], one["is_queue_file"], one["texts"]) for one in json.loads(self._search.knobs)
        ]
        """What is searched of each."""
        self._conditions = self._search.objective[1]

    @property
    def direction(self) -> str:
        """What a study has to do with the figure: `minimize` or `maximize`."""
        return "maximize" if self._search.is_maximum else "minimize"

    @property
    def runs(self) -> int:
        """How many runs were made, those of schedulers that conditions name among them."""
        return self._search.runs

    def judge(self, setting: Setting) -> Judged:
        """Runs a setting, unless that has been done before.

        Raises:
            Error: It cannot be, or there is no such I/O as the objective names.
            KeyboardInterrupt: Ctrl-C ended the runs early.
        """
        written = {"scheduler": setting.scheduler, "tunables": setting.tunables, "queue_files": setting.queue}
        standing = json.loads(self._search.standing(json.dumps(written), self._seeds, self._threads))
        margins = standing["margins"]
        violations = [_violation(margin) for margin in margins]
        if not standing["holds"] and max(violations) <= 0:
            violations = [max(violation, _NEXT_TO_NOTHING) if violation == 0 else violation for violation in violations]
        name = self._search.objective[0]
        return Judged(standing["figures"][name]["mean"], violations, standing)

    def setting(self, trial: FrozenTrial | Trial) -> Setting:
        """The setting that a trial has tried."""
        return self._setting(trial.params)

    def __call__(self, trial: Trial) -> float:
        """Tries the setting that the trial's sampler chooses."""
        judged = self.judge(self._suggested(trial))
        for condition, violation in zip(self._conditions, judged.violations, strict=True):
            trial.set_constraint(condition, violation)
        return judged.value

    def _suggested(self, trial: BaseTrial) -> Setting:
        scheduler = trial.suggest_categorical("scheduler", self.schedulers)
        chosen = {"scheduler": scheduler}
        for knob in self.knobs:
            if knob.scheduler == scheduler:
                chosen[knob.parameter] = trial.suggest_categorical(knob.parameter, [DEFAULT, *knob.values])
        return self._setting(chosen)

    def _setting(self, chosen: Mapping[str, Any]) -> Setting:
        scheduler = chosen["scheduler"]
        setting = Setting(scheduler, {}, {})
        for knob in self.knobs:
            value = chosen.get(knob.parameter, DEFAULT)
            if knob.scheduler == scheduler and value != DEFAULT:
                (setting.queue if knob.is_queue_file else setting.tunables)[knob.name] = value
        return setting


def _violation(margin: dict[str, Any] | None) -> float:
    """By how much a condition is missed that is kept by this factor; without anything to compare with, as much as can be."""
    factor = 0.0 if margin is None else margin["factor"]
    return -math.log(max(factor, _LEAST_FACTOR))
