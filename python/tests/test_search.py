"""Searches by Optuna with the space and the objective of `tune`."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hoistway
from hoistway.search import Objective

optuna = pytest.importorskip("optuna") if "CI" not in os.environ else __import__("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

PLACE: dict[str, Any] = {
    "objective": "min quiet:read:p99 subject to flood:read:iops >= 1.01*none",
    "device": "intel-s3520-1600gb",
    "over": ["none", "mq-deadline", "kyber"],
    "vary": {"kyber.read_lat_nsec": [500_000, 8_000_000], "mq-deadline.fifo_batch": [1, 4], "queue.nr_requests": [32]},
}


def test_its_space_is_that_of_tune(job: str) -> None:
    objective = Objective(job, **PLACE)
    tuned = hoistway.tune(job, **PLACE, budget=150)
    named = [{"scheduler": k.scheduler, "name": k.name, "is_queue_file": k.is_queue_file, "texts": k.values} for k in objective.tunables]
    assert named == tuned.document["knobs"]
    assert (objective.schedulers, objective.direction) == (PLACE["over"], "minimize")
    free = Objective(job, **PLACE | {"over": ["kyber"], "vary": {}})
    assert {tunable.parameter for tunable in free.tunables} >= {"kyber.read_lat_nsec", "kyber.write_lat_nsec"}
    wanted = Objective(job, **PLACE | {"objective": "max flood:read:iops"})
    assert wanted.direction == "maximize"


def test_a_setting_has_the_figures_of_a_comparison_with_its_seeds(job: str) -> None:
    objective = Objective(job, **PLACE, seeds=3, seed=5, from_start=True)
    setting = hoistway.Setting("kyber", {"read_lat_nsec": "500000"}, {})
    judged = objective.judge(setting)
    place: dict[str, Any] = {"device": PLACE["device"], "schedulers": ["none", "kyber"], "set": {"kyber.read_lat_nsec": 500_000}}
    compared = hoistway.compare(job, **place, seed=5, repeats=3, from_start=True)
    p99, iops = compared.figure("quiet:read:p99"), compared.figure("flood:read:iops")
    assert judged.value == pytest.approx(p99["kyber"].mean)
    missed = -judged.violations[0]
    assert missed == pytest.approx(math.log(iops["kyber"].mean / (1.01 * iops["none"].mean)), abs=0.01)
    assert objective.runs == 6
    objective.judge(setting)
    assert objective.runs == 6, "nothing runs twice"


def test_a_study_finds_the_best_of_those_that_keep_the_condition(job: str) -> None:
    objective = Objective(job, **PLACE)
    study = optuna.create_study(direction=objective.direction, sampler=optuna.samplers.TPESampler(seed=1))
    study.optimize(objective, n_trials=40)
    tried = [(trial.value, max(trial.constraints.values()), objective.setting(trial)) for trial in study.trials]
    for value, violation, setting in tried:
        judged = objective.judge(setting)
        assert (judged.value, max(judged.violations)) == (value, violation)
    assert study.best_value == min(value for value, violation, _ in tried if violation <= 0)
    assert any(violation > 0 for _, violation, _ in tried) and len({str(setting) for *_, setting in tried}) > 5


WORKER = """
import sys
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from hoistway.search import Objective
objective = Objective({job!r}, **{place!r}, threads=1)
sampler = optuna.samplers.RandomSampler(seed=int(sys.argv[1]))
study = optuna.load_study(study_name="s", storage=JournalStorage(JournalFileBackend({file!r})), sampler=sampler)
study.optimize(objective, n_trials=8)
"""


def test_two_processes_share_a_study_by_its_storage(job: str, tmp_path: Path) -> None:
    file = str(tmp_path / "journal")
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(file))
    study = optuna.create_study(study_name="s", storage=storage, direction="minimize")
    script = WORKER.format(job=job, place=PLACE, file=file)
    workers = [subprocess.Popen([sys.executable, "-c", script, str(seed)], stderr=subprocess.PIPE, text=True) for seed in (1, 2)]
    ends = [(worker.communicate()[1], worker.returncode) for worker in workers]
    assert [status for _, status in ends] == [0, 0], ends
    objective = Objective(job, **PLACE)
    assert len(study.trials) == 16
    for trial in study.trials:
        judged = objective.judge(objective.setting(trial))
        assert (trial.value, list(trial.constraints.values())) == (judged.value, judged.violations), "the same bits, wherever it was made"


def test_an_impossible_objective_is_refused_before_any_trial(job: str) -> None:
    with pytest.raises(hoistway.Error, match="over nine: unknown scheduler"):
        Objective(job, **PLACE | {"over": ["nine"]})
    with pytest.raises(hoistway.Error, match="seeds 0: expected a whole number of at least 1"):
        Objective(job, **PLACE, seeds=0)
    objective = Objective(job, **PLACE | {"objective": "min quiet:write:p99"})
    with pytest.raises(hoistway.Error, match="quiet:write:p99: no such I/O happened under none") as refused:
        objective.judge(hoistway.Setting("none", {}, {}))
    assert refused.value.option == "objective"
    with pytest.raises(hoistway.Error, match="is not among the compared schedulers"):
        objective.judge(hoistway.Setting("bfq", {}, {}))
