"""Searches: the same results from threads and processes as on the command line, no matter what is killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest

import hoistway

OBJECTIVE = "min quiet:read:p99 subject to flood:read:iops >= 0.2*none"
PLACE: dict[str, Any] = {
    "objective": OBJECTIVE,
    "device": "intel-s3520-1600gb",
    "over": ["none", "mq-deadline", "kyber"],
    "vary": {"kyber.read_lat_nsec": [500_000, 8_000_000], "mq-deadline.fifo_batch": [1, 4], "queue.nr_requests": [32]},
}
"""13 settings, since none has 32 requests by default."""


@pytest.fixture(scope="module")
def found(job: str) -> hoistway.Tuning:
    return hoistway.tune(job, **PLACE, budget=150, threads=2)


def processes(**arguments: Any) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"), **arguments)


class Killing(ProcessPoolExecutor):
    """An executor one of whose workers is killed when the twentieth run is sent."""

    def __init__(self) -> None:
        super().__init__(2, mp_context=get_context("spawn"))
        self.sent = itertools.count(1)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if next(self.sent) == 20:
            next(iter(self._processes.values())).kill()
        return super().submit(fn, *args, **kwargs)


def test_a_search_finds_the_setting_that_a_comparison_of_all_finds(job: str, found: hoistway.Tuning) -> None:
    vary = PLACE["vary"] | {"queue.nr_requests": [32, 256]}
    whole = hoistway.compare(job, device=PLACE["device"], schedulers=PLACE["over"], vary=vary, repeats=5)
    p99 = {label.removesuffix(" nr_requests=256"): value.mean for label, value in whole.figure("quiet:read:p99").items()}
    assert found.document["settings_possible"] == 13
    best = min(p99.values())
    assert found.holds and found.document["found"]["best"]["figures"]["quiet:read:p99"]["mean"] <= 1.02 * best
    for setting in (found.best, hoistway.Setting("mq-deadline", {"fifo_batch": "4"}, {"nr_requests": "32"})):
        again = hoistway.compare(job, device=PLACE["device"], repeats=1, **setting.arguments())
        run = again.document["runs"][0]
        files = {name: str(value) for name, value in run.get("queue_files", {}).items()}
        assert (run["scheduler"], files) == (setting.scheduler, setting.queue)


def test_a_search_shows_its_conclusion_and_page(found: hoistway.Tuning) -> None:
    assert found.conclusion[0] in " ".join(str(found).split()) and str(found.best) in str(found)
    page = found._repr_html_()
    assert "<svg" in page and str(found.best) in page and "the last round" in page and found.conclusion[0].split(":")[0] in page
    assert str(hoistway.Setting("bfq", {"slice_idle": "0", "low_latency": "0"}, {"nr_requests": "4"})) == "bfq low_latency=0 slice_idle=0 nr_requests=4"
    assert repr(found).startswith("<hoistway.Tuning of (text): min quiet:read:p99")
    assert found.front == [hoistway.Setting.of(standing["setting"]) for standing in found.document["front"]] != []
    assert all(0 < effect["share"] <= 1 for effect in found.effects)


def test_its_figures_are_a_table(found: hoistway.Tuning) -> None:
    frame = polars.DataFrame(found.figures())
    assert frame.height == 2 * len(found.document["runs"])
    is_of_best = (polars.col("setting") == str(found.best)) & (polars.col("figure") == "p99")
    of_best = frame.filter(is_of_best & polars.col("runtime_ns").is_null())
    assert of_best["unit"].unique().to_list() == ["ns"]
    last = found.document["rounds"][-1]["settings"][0]
    rows = of_best.tail(last["seeds"])["value"]
    assert rows.mean() == pytest.approx(last["figures"]["quiet:read:p99"]["mean"])
    assert pyarrow.table(found.figures()).num_rows == frame.height


def test_its_pareto_picture_has_a_point_for_each_setting_of_the_first_round(found: hoistway.Tuning) -> None:
    matplotlib = pytest.importorskip("matplotlib") if "CI" not in os.environ else __import__("matplotlib")
    matplotlib.use("agg")
    ax = found.plot.pareto()
    points = sum(len(drawn.get_offsets()) for drawn in ax.collections)
    assert points == len(found.document["rounds"][0]["settings"]) + 1, "and a star"
    assert ax.get_ylabel() == "quiet, read: p99, ms" and ax.get_xlabel() == "flood, read: iops, I/Os per second"
    assert {text.get_text() for text in ax.get_legend().get_texts()} == set(PLACE["over"])
    with pytest.raises(hoistway.Error, match="x quiet:read:max: not a figure of the objective"):
        found.plot.pareto(x="quiet:read:max")
    text = "[a]\nrw=randread\nsize=1g\nruntime=20ms\ntime_based\n"
    alone = hoistway.tune(text, objective="min a:read:p99", device="null", over=["none", "bfq"], budget=100)
    with pytest.raises(hoistway.Error, match="the objective names only one figure"):
        alone.plot.pareto()


def test_processes_of_which_one_is_killed_find_the_same(job: str, found: hoistway.Tuning) -> None:
    made: list[ProcessPoolExecutor] = []

    def another() -> ProcessPoolExecutor:
        made.append(processes() if made else Killing())
        return made[-1]

    again = hoistway.tune(job, **PLACE, budget=150, executor=another, in_flight=2)
    assert again.json() == found.json()
    assert len(made) == 2


def test_a_broken_executor_is_reported_and_finished_runs_are_kept(job: str, found: hoistway.Tuning, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with pytest.raises(BrokenExecutor, match="a function that creates executors"):
        with Killing() as executor:
            hoistway.tune(job, **PLACE, budget=150, executor=executor, in_flight=2, state=state)
    kept = json.loads(state.read_text())["runs"]
    assert 0 < len(kept) < len(found.document["runs"])
    assert hoistway.tune(job, **PLACE, budget=150, state=state).json() == found.json()
    with pytest.raises(hoistway.Error, match="state .*state.json: `search.objective` differs from this search") as refused:
        hoistway.tune(job, **PLACE | {"objective": "min quiet:read:mean"}, budget=150, state=state)
    assert refused.value.option == "state"


def other_sources() -> None:
    hoistway._workers.SOURCES = "0.1.0+0"  # type: ignore[attr-defined]


def test_a_worker_of_other_sources_is_refused_by_name(job: str) -> None:
    with processes(initializer=other_sources) as executor:
        with pytest.raises(hoistway.VersionError, match=r"the worker on .*, process \d+ has hoistway 0\.1\.0\+0 \(expected "):
            hoistway.tune(job, **PLACE, executor=executor)


def test_workers_that_always_die_end_the_search(job: str) -> None:
    with pytest.raises(BrokenExecutor, match="died 4 times"):
        hoistway.tune(job, **PLACE, executor=lambda: processes(initializer=os._exit, initargs=(1,)))


def test_a_run_that_a_breaking_executor_forgets_is_made_again(job: str, found: hoistway.Tuning, forgetting: Any) -> None:
    another, made = forgetting
    again = hoistway.tune(job, **PLACE, budget=150, executor=another)
    assert again.document == found.document
    assert len(made) == 2


@pytest.mark.filterwarnings("ignore")
def test_the_lines_of_the_documentation_make_a_picture_and_run_on_a_cluster_when_one_argument_changes(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    matplotlib = pytest.importorskip("matplotlib") if "CI" not in os.environ else __import__("matplotlib")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    lines = page.split("## The best setting")[1].split("```python\n")[1].split("```")[0]
    here: dict[str, Any] = {}
    exec(lines, here)
    assert Path("pareto.png").read_bytes().startswith(b"\x89PNG")
    with Client(cluster) as client, client.get_executor() as executor:
        there: dict[str, Any] = {"cluster": executor}
        assert lines.count("executor=None") == 1
        exec(lines.replace("executor=None", "executor=cluster"), there)
    assert there["tuning"].json() == here["tuning"].json()


def test_progress_counts_the_runs(job: str, found: hoistway.Tuning) -> None:
    told: list[tuple[int, int]] = []
    hoistway.tune(job, **PLACE, budget=150, progress=lambda done, planned: told.append((done, planned)))
    # The planned number is a forecast, since fewer settings than possible may reach the next round.
    done, planned = told[-1]
    assert told == sorted(told) and done == len(found.document["runs"]) <= planned <= done + 8

    def enough(done: int, planned: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        hoistway.tune(job, **PLACE, budget=150, progress=enough)


def test_documents_are_those_of_the_command_line_and_travel(found: hoistway.Tuning, tmp_path: Path) -> None:
    file = tmp_path / "tuned.json"
    found.save(file)
    assert json.loads(file.read_text()) == found.document and found.document["format"] == "hoistway-tune/1"
    assert pickle.loads(pickle.dumps(found)).json() == found.json()


@pytest.mark.parametrize(
    ("changed", "option", "message"),
    [
        ({"objective": "min quiet:read"}, "objective", 'objective: "min quiet:read" is not an objective'),
        ({"objective": "min quite:read:p99"}, "objective", 'there is no job "quite" (did you mean "quiet"?'),
        ({"objective": "min quiet:write:p99"}, "objective", "no such I/O happened (expected one of"),
        ({"over": ["nine"]}, "over", "over nine: unknown scheduler"),
        ({"over": "all"}, "over", "over 'all': expected a list"),
        ({"vary": {"kyber.read_lat": None}}, "vary", "vary kyber.read_lat"),
        ({"vary": {"read_lat": None}}, "vary", "vary read_lat: expected SCHED.TUNABLE"),
        ({"budget": 3}, "budget", "budget 3 runs: too little for 3 schedulers (expected at least"),
        ({"budget": 3, "budget_seconds": 2.0}, "budget", "cannot be combined with budget_seconds"),
        ({"device": "floppy"}, "device", "there is no built-in device `floppy`"),
        ({"kernel": "two"}, "kernel", 'unknown kernel "two"'),
        ({"threads": 0}, "threads", "threads 0: expected a whole number of at least 1"),
    ],
)
def test_invalid_settings_are_refused_with_the_command_lines_messages(job: str, changed: dict[str, Any], option: str, message: str) -> None:
    with pytest.raises(hoistway.Error) as refused:
        hoistway.tune(job, **PLACE | changed)
    assert message in str(refused.value)
    assert refused.value.option == option


SCRIPT = """
import hoistway, sys
def tell(done, planned):
    print("running", flush=True)
try:
    hoistway.tune({job!r}, objective="min a:read:p99", device="intel-s3520-1600gb", over=["none"], vary={{"queue.nr_requests": [32]}},
                  budget=20, state={state!r}, progress=tell)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


def test_ctrl_c_ends_runs_that_would_take_days_and_the_state_has_those_before(tmp_path: Path) -> None:
    # Reads that end at once, and then a process that never ends.
    text = "[a]\nrw=randread\nsize=1g\nnumber_ios=100\n"
    state = str(tmp_path / "state")
    place: dict[str, Any] = {"device": "null", "over": ["none"], "vary": {"queue.nr_requests": [32]}}
    first = hoistway.tune(text, objective="min a:read:p99", **place, budget=20, state=state)
    assert len(json.loads(Path(state).read_text())["runs"]) == len(first.document["runs"])
    endless = SCRIPT.format(job="[a]\nrw=randread\nsize=1g\nruntime=360000\ntime_based\n", state=str(tmp_path / "other"))
    with subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE, text=True) as process:
        # The state file exists when the runs begin.
        while not (tmp_path / "other").exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert process.wait(0.05) is None
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = process.stdout.read().split()
    assert (process.returncode, said[-1]) == (7, "interrupted")
    assert json.loads((tmp_path / "other").read_text())["runs"] == []
