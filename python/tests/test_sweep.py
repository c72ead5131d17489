"""Sweeps: the same results from threads, processes and a Dask cluster, no matter what is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import hoistway

JOB = """[r]
filename=/dev/sda
rw=randread
direct=1
ioengine=libaio
iodepth=8
size=10g
number_ios=1000
"""


def space(**changed: Any) -> dict[str, Any]:
    """2 devices x (none + 2 of mq-deadline) x 10 seeds: 60 runs."""
    return {
        "loads": [{"text": {"name": "job", "text": JOB}}],
        "devices": ["intel-s3520-1600gb", "null"],
        "schedulers": ["none", "mq-deadline"],
        "settings": {"mq-deadline": {"fifo_batch": [1, 16]}},
        "seeds": 10,
    } | changed


# The same space as a file.
PLAN = f'''
devices = ["intel-s3520-1600gb", "null"]
schedulers = ["none", "mq-deadline"]
settings = {{ mq-deadline = {{ fifo_batch = [1, 16] }} }}
seeds = 10

[[loads]]
[loads.text]
name = "job"
text = """
{JOB}"""
'''


def table(sweep: hoistway.Sweep) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        sweep.save(file)
        return file.read_text()


@pytest.fixture(scope="module")
def alone() -> str:
    """The table made by one thread."""
    return table(hoistway.sweep(space(), threads=1))


@pytest.mark.parametrize("threads", [0, -1, True, 1.5])
def test_an_invalid_number_of_threads_is_refused_by_name(threads: Any) -> None:
    with pytest.raises(hoistway.Error, match="expected a whole number of at least 1") as raised:
        hoistway.sweep(space(), threads=threads)
    assert raised.value.option == "threads"


def processes(**arguments: Any) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"), **arguments)


def test_threads_change_no_bit(alone: str) -> None:
    assert table(hoistway.sweep(space(), threads=3)) == alone
    assert alone.count("\n") == 1 + 7 * 60


def test_processes_change_no_bit_and_say_how_far_they_are(alone: str) -> None:
    told: list[tuple[int, int]] = []
    with processes() as executor:
        swept = hoistway.sweep(space(), executor=executor, progress=lambda done, all: told.append((done, all)))
    assert table(swept) == alone
    assert told == sorted(told) and told[-1] == (60, 60)


def test_its_figures_are_the_table_that_is_saved(tmp_path: Path) -> None:
    sweep = hoistway.sweep(space())
    sweep.save(tmp_path / "runs.parquet")
    saved, figures = polars.read_parquet(tmp_path / "runs.parquet"), polars.DataFrame(sweep.figures())
    assert figures.columns == saved.columns and figures.height == 7 * 60
    assert figures.with_columns(polars.col(polars.Categorical).cast(polars.String)).equals(saved)
    assert set(pyarrow.table(sweep.figures())["mq-deadline.fifo_batch"].unique().to_pylist()) == {None, "1", "16"}


def test_few_tasks_are_out_at_a_time(alone: str) -> None:
    class Counted(Executor):
        def __init__(self, inner: Executor) -> None:
            self.inner, self.out, self.most = inner, 0, 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            self.out += 1
            self.most = max(self.most, self.out)
            future = self.inner.submit(fn, *args, **kwargs)
            future.add_done_callback(self.back)
            return future

        def back(self, future: object) -> None:
            self.out -= 1

    with processes() as inner:
        executor = Counted(inner)
        assert table(hoistway.sweep(space(), executor=executor, in_flight=3)) == alone
    assert executor.most <= 3


def kill(executor: ProcessPoolExecutor) -> None:
    """Kills all workers once, since a pool that finds one dead ends the others itself."""
    for process in list(executor._processes.values()):
        process.kill()


def test_when_a_worker_dies_its_runs_are_made_again(alone: str) -> None:
    made: list[ProcessPoolExecutor] = []

    def another() -> ProcessPoolExecutor:
        made.append(processes())
        return made[-1]

    killed = False

    def killing(done: int, all: int) -> None:
        # The sweep reports progress again before it notices that the pool is broken.
        nonlocal killed
        if done and not killed:
            killed = True
            kill(made[0])

    assert table(hoistway.sweep(space(), executor=another, in_flight=2, progress=killing)) == alone
    assert len(made) == 2


def test_runs_finished_before_an_executor_broke_are_in_the_cache(tmp_path: Path, alone: str) -> None:
    done_before = 0

    def killing(done: int, all: int) -> None:
        nonlocal done_before
        if done and not done_before:
            kill(executor)
        done_before = done

    with processes() as executor:
        with pytest.raises(BrokenExecutor, match="a function that creates executors"):
            hoistway.sweep(space(), executor=executor, cache=tmp_path, in_flight=2, progress=killing)
    swept = hoistway.sweep(space(), cache=tmp_path)
    assert 0 < swept.made <= 60 - done_before < 60
    assert table(swept) == alone
    again = hoistway.sweep(space(), cache=tmp_path)
    assert (again.made, again.runs) == (0, 60)


def test_a_task_that_always_kills_its_worker_ends_the_sweep() -> None:
    with pytest.raises(BrokenExecutor, match="died 4 times"):
        hoistway.sweep(space(), executor=lambda: processes(initializer=os._exit, initargs=(1,)))


def test_a_task_that_a_breaking_executor_forgets_is_made_again(forgetting: Any, alone: str) -> None:
    another, made = forgetting
    assert table(hoistway.sweep(space(), executor=another)) == alone
    assert len(made) == 2
    with pytest.raises(BrokenExecutor, match="a function that creates executors"):
        hoistway.sweep(space(), executor=type(made[0])(2))


def other_sources() -> None:
    hoistway._workers.SOURCES = "0.1.0+0"  # type: ignore[attr-defined]


def test_a_worker_of_other_sources_is_refused_by_name() -> None:
    with processes(initializer=other_sources) as executor:
        with pytest.raises(hoistway.VersionError, match=r"the worker on .*, process \d+ has hoistway 0\.1\.0\+0 \(expected "):
            hoistway.sweep(space(), executor=executor)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_which_a_worker_is_killed_changes_no_bit(cluster: Any, alone: str) -> None:
    from distributed import Client

    with Client(cluster) as client:
        killed: list[int] = []

        def killing(done: int, all: int) -> None:
            if done and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        with client.get_executor() as executor:
            assert table(hoistway.sweep(space(), executor=executor, in_flight=4, progress=killing)) == alone
        assert killed


@pytest.mark.filterwarnings("ignore")
def test_ray_changes_no_bit(alone: str) -> None:
    ray = pytest.importorskip("ray")

    class RayExecutor(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            return ray.remote(fn).remote(*args, **kwargs).future()

    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    except Exception as error:
        pytest.skip(f"Ray is installed, but does not start here: {error}")
    try:
        assert table(hoistway.sweep(space(), executor=RayExecutor(), in_flight=4)) == alone
    finally:
        ray.shutdown()


MPI = '''
import sys
from mpi4py.futures import MPIPoolExecutor
import hoistway

if __name__ == "__main__":
    plan, file = sys.argv[1:]
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == 2
        hoistway.sweep(plan, executor=executor, in_flight=4).save(file)
'''


def test_ranks_of_mpi_change_no_bit(tmp_path: Path, alone: str) -> None:
    pytest.importorskip("mpi4py")
    (tmp_path / "sweep.py").write_text(MPI)
    (tmp_path / "plan.toml").write_text(PLAN)
    table = tmp_path / "table.csv"
    mpiexec = Path(sys.executable).with_name("mpiexec")
    ranks = [mpiexec, "-n", "3", sys.executable, "-m"]
    tried = subprocess.run([*ranks, "mpi4py.bench", "helloworld"], capture_output=True, text=True, timeout=300)
    if tried.returncode != 0:
        pytest.skip(f"MPI is installed, but does not start here: {tried.stderr}")
    # The first rank distributes the work to the other two.
    subprocess.run([*ranks, "mpi4py.futures", tmp_path / "sweep.py", tmp_path / "plan.toml", table], check=True, timeout=300)
    assert table.read_text() == alone


def test_the_command_line_and_the_package_share_a_folder(tmp_path: Path, alone: str) -> None:
    binary = os.environ.get("HOISTWAY_BINARY")
    if binary is None:
        assert "CI" not in os.environ, "HOISTWAY_BINARY has to be the path of `hoistway`, built of the same sources"
        pytest.skip("HOISTWAY_BINARY, the path of `hoistway`, is not set")
    (tmp_path / "plan.toml").write_text(PLAN)
    runs = tmp_path / "runs"
    half = [binary, "sweep", tmp_path / "plan.toml", "--shard", "1/2", "-o", runs]
    subprocess.run(half, check=True, capture_output=True)
    swept = hoistway.sweep(str(tmp_path / "plan.toml"), cache=runs)
    assert (swept.made, swept.runs) == (30, 60), "the other half is found"
    assert table(swept) == alone
    merged = [binary, "merge", runs, "-o", tmp_path / "merged.csv"]
    subprocess.run(merged, check=True, capture_output=True)
    assert (tmp_path / "merged.csv").read_text() == alone


def test_the_readers_of_parquet_see_the_figures_of_a_comparison(tmp_path: Path) -> None:
    file = str(tmp_path / "runs.parquet")
    hoistway.sweep(space()).save(file)
    wanted: dict[tuple[str, int, str], float] = {}
    compared = hoistway.compare(JOB, device="intel-s3520-1600gb", schedulers=["none"], repeats=10)
    for row in pyarrow.table(compared.figures()).to_pylist():
        wanted[(row["scheduler"], row["seed"], row["figure"])] = row["value"]
    columns = ["scheduler", "seed", "figure", "value"]
    frame = pandas.read_parquet(file)
    assert len(frame) == 7 * 60
    assert set(frame["mq-deadline.fifo_batch"].dropna()) == {"1", "16"}
    of_none = frame[(frame.scheduler == "none") & (frame.device == "intel-s3520-1600gb")]
    rows = [tuple(row) for row in of_none[columns].itertuples(index=False)]
    assert {(scheduler, seed, figure): value for scheduler, seed, figure, value in rows} == wanted
    assert polars.read_parquet(file).height == len(frame)
    query = f"select count(*), sum(value), count(\"mq-deadline.fifo_batch\") from '{file}' where figure = 'p99'"
    count, total, set_ = duckdb.sql(query).fetchall()[0]
    assert (count, set_) == (60, 40)
    assert total == pytest.approx(frame[frame.figure == "p99"].value.sum())
    metadata = pyarrow.parquet.read_metadata(file).metadata
    assert metadata[b"hoistway.version"].startswith(hoistway.__version__.encode() + b"+")
    assert metadata[b"hoistway.schema"] == b"hoistway-sweep-table/1" and len(metadata[b"hoistway.sweep"]) == 32


def test_a_damaged_cache_is_named_and_left_alone(tmp_path: Path) -> None:
    hoistway.sweep(space(), cache=tmp_path)
    file = next((tmp_path / "runs").glob("*.jsonl"))
    file.write_bytes(file.read_bytes()[:-1])
    damaged = file.read_bytes()
    with pytest.raises(hoistway.DataSetError, match=f"{file.name}: is damaged"):
        hoistway.sweep(space(), cache=tmp_path)
    assert file.read_bytes() == damaged


def test_invalid_settings_are_refused_with_the_command_lines_messages(tmp_path: Path) -> None:
    with pytest.raises(hoistway.Error, match=r"`schedulers` non: unknown scheduler \(did you mean \"none\"\?"):
        hoistway.sweep(space(schedulers=["non"], settings={}))
    with pytest.raises(hoistway.Error, match=r"the space has 60 runs, more than 59 .* limit=60\)") as refused:
        hoistway.sweep(space(), limit=59)
    assert refused.value.option == "limit"
    with pytest.raises(hoistway.Error, match="unknown field `sheds`"):
        hoistway.sweep(space(sheds=[]))
    with pytest.raises(hoistway.Error, match="cannot be in a space"):
        hoistway.sweep(space(seeds=object()))
    with pytest.raises(hoistway.Error, match="expected a name that ends in .parquet or .csv"):
        hoistway.sweep(space(seeds=1)).save(tmp_path / "table.txt")
    text = JOB.replace("randread", "sideways")
    with pytest.raises(hoistway.Error) as refused:
        hoistway.sweep(space(loads=[{"text": {"name": "job", "text": text}}]))
    assert (refused.value.file, refused.value.line, refused.value.option) == ("job", 3, "rw")


def test_a_plan_in_toml_names_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    plan = tmp_path / "plan.toml"
    plan.write_text('loads = ["job.fio"]\ndevices = ["null"]\nschedulers = ["none"]\nseeds = [3, 5]\n')
    assert len(hoistway.sweep(plan)) == 2
    loads = [hoistway.Job(name="r", rw="randread", runtime=0.01), "job.fio"]
    with pytest.raises(hoistway.Error, match="job.fio: cannot be read"):
        hoistway.sweep({"loads": loads, "schedulers": ["none"]})
    assert len(hoistway.sweep({"loads": loads[:1], "schedulers": ["none"]})) == 1
    plan.write_text("loads = [")
    with pytest.raises(hoistway.Error, match="plan.toml: "):
        hoistway.sweep(plan)
