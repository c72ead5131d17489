#!/usr/bin/env python3
"""How many runs three ways of searching need to come within 2 % of the best setting of a space; writes the tables of docs/search.md.

The best is known: every setting of the space runs with seeds that no search uses. Needs `pip install '.[search]'`.

    python python/compare_searches.py [--searches 5] [--load NAME ...]
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import optuna

import hoistway
from hoistway.search import Objective

TRUTH_SEEDS = 4
"""Runs of each setting that say how good it is."""
TRUTH_SEED = 1_000_003
"""They are drawn from it, and are none of a search's."""
TRIAL_SEEDS = 2
"""Runs of each setting that Optuna tries."""
BUDGET = 60
"""Whole runs, or as much virtual time."""
HALVING_BUDGETS = (10, 15, 20, 30, 40, 50, 60)
NEAR = 1.02

VARIED: dict[str, list[int]] = {
    "mq-deadline.fifo_batch": [1, 4, 64],
    "mq-deadline.writes_starved": [1, 8],
    "kyber.read_lat_nsec": [125_000, 500_000, 8_000_000],
    "kyber.write_lat_nsec": [625_000, 2_500_000, 40_000_000],
    "bfq.slice_idle": [0, 2, 32],
    "bfq.low_latency": [0],
    "queue.nr_requests": [32],
}

LOADS: dict[str, dict[str, Any]] = {
    "example": {
        "objective": "min mixed:read:p99 subject to writers:write:iops >= 0.95*none",
        "vary": VARIED,
        "runtime": 1.8,
    },
    "backup-beside-oltp": {
        "job": "backup-beside-oltp",
        "objective": "max backup:read:bandwidth subject to transactions:read:iops >= 5000",
        "vary": VARIED | {"mq-deadline.writes_starved": [1], "mq-deadline.fifo_batch": [1], "mq-deadline.prio_aging_expire": [1, 10, 100]},
        "runtime": 1.8,
        "ramp": 0.2,
    },
    "database": {
        "job": "database",
        "objective": "min log:write:p99 subject to queries:read:iops >= 0.9*none",
        "vary": VARIED,
        "runtime": 1.0,
        "ramp": 0.2,
    },
}


class Answer(NamedTuple):
    """What a search would answer after it has spent so much."""

    runs: int
    whole_runs: float
    """The virtual time of them, in runs that are whole."""
    setting: str


def settings(objective: Objective) -> Iterator[hoistway.Setting]:
    """All of a space."""
    for scheduler in objective.schedulers:
        tunables = [tunable for tunable in objective.tunables if tunable.scheduler == scheduler]
        for values in itertools.product(*([None, *tunable.values] for tunable in tunables)):
            setting = hoistway.Setting(scheduler, {}, {})
            for tunable, value in zip(tunables, values, strict=True):
                if value is not None:
                    (setting.queue if tunable.is_queue_file else setting.tunables)[tunable.name] = value
            yield setting


def truth(load: dict[str, Any]) -> dict[str, float]:
    """By what factor each setting is worse than the best that keeps the conditions; infinite of those that do not."""
    objective = Objective(**load, seeds=TRUTH_SEEDS, seed=TRUTH_SEED)
    judged = {str(setting): objective.judge(setting) for setting in settings(objective)}
    kept = {name: one.value for name, one in judged.items() if max(one.violations) <= 0}
    best = max(kept.values()) if objective.direction == "maximize" else min(kept.values())
    worse = {name: max(best / value, value / best) for name, value in kept.items()}
    return {name: worse.get(name, math.inf) for name in judged}


def halving(load: dict[str, Any], seed: int) -> Iterator[Answer]:
    """Ours, anew with each budget; runs that it has made before are taken from its state."""
    whole_ns = (load["runtime"] + load.get("ramp", 0)) * 1e9
    with tempfile.TemporaryDirectory() as folder:
        for budget in HALVING_BUDGETS:
            try:
                tuned = hoistway.tune(**load, budget_seconds=budget * whole_ns / 1e9, seed=seed, state=Path(folder) / "state")
            except hoistway.Error as error:
                if error.option == "budget":
                    continue
                raise
            runs = tuned.document["runs"]
            spent = sum(whole_ns if run["runtime_ns"] is None else run["runtime_ns"] + load.get("ramp", 0) * 1e9 for run in runs)
            yield Answer(len(runs), spent / whole_ns, str(tuned.best))


def optuna_with(sampler: Callable[[int], Any]) -> Callable[[dict[str, Any], int], Iterator[Answer]]:
    """A search by Optuna."""

    def search(load: dict[str, Any], seed: int) -> Iterator[Answer]:
        # Runs of its own, as the other searches have.
        objective = Objective(**load, seeds=TRIAL_SEEDS, seed=seed)
        study = optuna.create_study(direction=objective.direction, sampler=sampler(seed))
        while objective.runs < BUDGET and len(study.trials) < 4 * BUDGET:
            study.optimize(objective, n_trials=1)
            feasible = [trial for trial in study.trials if max(trial.constraints.values()) <= 0]
            answer = study.best_trial if feasible else min(study.trials, key=lambda trial: max(trial.constraints.values()))
            yield Answer(objective.runs, objective.runs, str(objective.setting(answer)))

    return search


SEARCHES: dict[str, Callable[[dict[str, Any], int], Iterator[Answer]]] = {
    "successive halving (`tune`)": halving,
    "Optuna, TPE": optuna_with(lambda seed: optuna.samplers.TPESampler(seed=seed)),
    "Optuna, random": optuna_with(lambda seed: optuna.samplers.RandomSampler(seed=seed)),
}


def needed(answers: list[Answer], worse: dict[str, float]) -> Answer | None:
    """From where on all answers are near the best; None if the last one is not."""
    near = [worse[answer.setting] <= NEAR for answer in answers]
    if not near or not near[-1]:
        return None
    after = max((place for place, is_near in enumerate(near) if not is_near), default=-1)
    return answers[after + 1]


def spread(values: list[float], missed: int) -> str:
    """Median, and in brackets the quartiles; those that never come near count as more than all others."""
    all_values = sorted(values) + [math.inf] * missed

    def shown(share: float) -> str:
        value = all_values[min(int(share * len(all_values)), len(all_values) - 1)]
        return f"over {BUDGET}" if math.isinf(value) else f"{value:.0f}"

    return f"{shown(0.5)} ({shown(0.25)} to {shown(0.75)})"


def table(name: str, load: dict[str, Any], searches: int) -> Iterator[str]:
    begin = time.monotonic()
    worse = truth(load)
    kept = sum(not math.isinf(factor) for factor in worse.values())
    near = sum(factor <= NEAR for factor in worse.values())
    best = min(worse, key=lambda setting: worse[setting])
    yield f"`{name}`: `{load['objective']}`. {len(worse)} settings: {kept} keep the condition, {near} come within 2 % of the best,"
    yield f"`{best}`."
    yield ""
    yield "| search | runs until within 2 % | as virtual time, in whole runs | never within 2 % | answer at the end, worse than the best by |"
    yield "| --- | --- | --- | --- | --- |"
    for search, way in SEARCHES.items():
        found = [list(way(load, seed)) for seed in range(1, searches + 1)]
        reached = [answer for answers in found if (answer := needed(answers, worse))]
        missed = searches - len(reached)
        last = sorted(worse[answers[-1].setting] for answers in found)
        after = "misses the condition" if math.isinf(statistics.median(last)) else f"{100 * (statistics.median(last) - 1):.1f} %"
        runs = spread([answer.runs for answer in reached], missed)
        whole = spread([answer.whole_runs for answer in reached], missed)
        yield f"| {search} | {runs} | {whole} | {missed} of {searches} | {after} |"
    yield ""
    yield f"({time.monotonic() - begin:.0f} s)"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--searches", type=int, default=5, help="searches of each kind, with seeds from 1")
    parser.add_argument("--load", action="append", choices=list(LOADS), help="only this load; may be given several times")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for name in given.load or LOADS:
        for line in table(name, LOADS[name], given.searches):
            print(line, flush=True)


if __name__ == "__main__":
    main()
