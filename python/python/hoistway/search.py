"""The space and the objective of `hoistway.tune` for other search algorithms: here for Optuna.

    >>> import optuna
    >>> from hoistway.search import Objective
    >>> objective = Objective("my-load.fio", objective="min queries:read:p99 subject to log:write:iops >= 0.9*none")
    >>> study = optuna.create_study(direction=objective.direction)
    >>> study.optimize(objective, n_trials=50)
    >>> print(objective.setting(study.best_trial), study.best_value)

Several processes can share a study by its storage, as Optuna's documentation describes. `pip install 'hoistway[search]'` installs it.
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

__all__ = ["Judged", "Objective", "Tunable"]

DEFAULT = "default"
"""The value of an unset tunable."""

_NEXT_TO_NOTHING = 1e-9
"""The violation of a strict condition whose figure equals its limit exactly."""


_LEAST_FACTOR = 1e-21
"""The violation of a condition without a figure."""


class Tunable(NamedTuple):
    """A tunable of a scheduler, or a file of `queue/` while it runs."""

    scheduler: str
    name: str
    is_queue_file: bool
    values: list[str]
    """The values to try, except the default."""

    @property
    def parameter(self) -> str:
        """Its name in a study, such as `mq-deadline.fifo_batch`, or `none:queue.nr_requests` for a file of `queue/`."""
        return f"{self.scheduler}:queue.{self.name}" if self.is_queue_file else f"{self.scheduler}.{self.name}"


class Judged(NamedTuple):
    """The results of a setting."""

    value: float
    """The mean of the objective's figure over the seeds, in ns, bytes per second or I/Os per second. If it is a maximum, the largest value."""
    violations: list[float]
    """The violation of each condition, as the logarithm of a factor: 0 or less if the condition is met."""
    document: dict[str, Any]
    """The complete results, in the form of the settings of `rounds` in `docs/tune.md`."""


class Objective:
    """The search of `hoistway.tune`, one setting at a time: with the same space, and the same runs for the same seed.

    Optuna calls it with a trial. It lets the trial choose a scheduler (`scheduler`) and a value of each of its tunables among those that `tune`
    tries, passes the violations of the conditions to the trial (`Trial.set_constraint`), and returns the figure. Runs have full length,
    and none is repeated.
    """

    def __init__(
        self,
        job: JobLike = None,
        *,
        objective: str,
        over: Sequence[str] = (),
        vary: Mapping[str, Sequence[object] | None] = {},
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
        from_start: bool = False,
        seed: int = 1,
        threads: int | None = None,
    ) -> None:
        """Checks all arguments.

        Args:
            seeds: Number of runs of each setting. All settings have the same seeds, drawn from `seed`.
            threads: Maximum parallel runs of one setting. Default: the number of cores.

        All other arguments are those of `hoistway.tune`.

        Raises:
            Error: An argument is invalid.
        """
        self._search = search_of(locals())
        at_least_one("seeds", seeds)
        self._seeds: int = number("seeds", seeds, 32) or 0
        self._threads = at_least_one("threads", threads)
        self.schedulers = self._search.schedulers
        """The schedulers in the search."""
        self.tunables = [
            Tunable(one["scheduler"], one["name"], one["is_queue_file"], one["texts"]) for one in json.loads(self._search.tunables)
        ]
        """The tunables of each scheduler."""
        self._conditions = self._search.objective[1]

    @property
    def direction(self) -> str:
        """The direction of a study: `minimize` or `maximize`."""
        return "maximize" if self._search.is_maximum else "minimize"

    @property
    def runs(self) -> int:
        """Number of runs made, including those of schedulers in conditions."""
        return self._search.runs

    def judge(self, setting: Setting) -> Judged:
        """Runs a setting, unless it has run before.

        Raises:
            Error: The setting is invalid, or the load does no I/O as named in the objective.
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
        """The setting of a trial."""
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
        for tunable in self.tunables:
            if tunable.scheduler == scheduler:
                chosen[tunable.parameter] = trial.suggest_categorical(tunable.parameter, [DEFAULT, *tunable.values])
        return self._setting(chosen)

    def _setting(self, chosen: Mapping[str, Any]) -> Setting:
        scheduler = chosen["scheduler"]
        setting = Setting(scheduler, {}, {})
        for tunable in self.tunables:
            value = chosen.get(tunable.parameter, DEFAULT)
            if tunable.scheduler == scheduler and value != DEFAULT:
                (setting.queue if tunable.is_queue_file else setting.tunables)[tunable.name] = value
        return setting


def _violation(margin: dict[str, Any] | None) -> float:
    """The violation of a condition that is met by the factor in `margin`; the largest possible one without a factor."""
    factor = 0.0 if margin is None else margin["factor"]
    return -math.log(max(factor, _LEAST_FACTOR))
