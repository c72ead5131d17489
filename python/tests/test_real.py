"""Runs in real time."""

import pathlib
import signal
import subprocess
import sys

import pytest

import hoistway

JOB = """[global]
filename=data
direct=1
ioengine=libaio
iodepth=8
size=4m
[reads]
rw=randread
number_ios=200
[log]
rw=write
number_ios=50
fsync=5
"""


def test_a_run_is_judged_as_a_comparison() -> None:
    results = hoistway.run(
        JOB,
        target="sim:micron-9100-1600gb",
        schedulers=["none", "mq-deadline"],
        set={"mq-deadline.fifo_batch": 4},
        repeats=2,
        focus="reads:read:p99",
        logs=True,
    )
    document = results.document
    assert document["is_real"] and [run["repeat"] for run in document["runs"]] == [0, 0, 1, 1]
    assert document["runs"][1]["tunables"] == {"fifo_batch": 4}
    assert document["verdicts"][0]["reference"] == "none" and document["runs"][0]["disks"][0]["read_ios"] == 200
    assert results.conclusion[0].startswith("For this load on micron-9100-1600gb in real time: ")
    assert set(results.figure("reads:read:p99")) == {"none", "mq-deadline"}
    assert len(results.ios()) == 4 * 250
    assert "for real" in str(results)


def test_values_that_are_varied_run_in_every_round() -> None:
    results = hoistway.run(JOB, target="sim:sata-ssd", schedulers=["mq-deadline"], vary={"mq-deadline.fifo_batch": [1, 16]}, repeats=2)
    labels = ["mq-deadline fifo_batch=1", "mq-deadline fifo_batch=16"]
    assert [run["variant"]["label"] for run in results.document["runs"]] == 2 * labels


def test_a_file_is_made_and_only_overwritten_if_that_is_allowed(tmp_path: pathlib.Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for _ in range(2):
        document = hoistway.run(JOB, target=f"file:{ours}", schedulers=["bfq"], workers=1).document
        assert document["device"]["name"] == str(ours) and ours.stat().st_size == 4 << 20
    theirs.write_bytes(bytes(4 << 20))
    with pytest.raises(hoistway.Error, match="expected force, or a file that does not exist") as raised:
        hoistway.run(JOB, target=f"file:{theirs}")
    assert raised.value.option == "target" and theirs.read_bytes() == bytes(4 << 20)
    hoistway.run(JOB, target=f"file:{theirs}", force=True)
    assert theirs.read_bytes() != bytes(4 << 20)


@pytest.mark.parametrize(
    ("arguments", "option", "message"),
    [
        ({"target": "disk"}, "target", "target disk: expected file:PATH"),
        ({"schedulers": ["cfq"]}, "schedulers", "\"cfq\" is unknown"),
        ({"schedulers": []}, "schedulers", "schedulers: is empty"),
        ({"set": {"bfq.slice_idle": 0}}, "set", "bfq does not run"),
        ({"queue": {"nr_requests": "x"}}, "queue", "queue nr_requests=x under none: "),
        ({"baseline": "bfq"}, "baseline", "not among the compared schedulers"),
        ({"focus": "x:read:p99"}, "focus", "there is no job \"x\""),
        ({"repeats": 0}, "repeats", "repeats 0: expected 1 to 1000"),
        ({"workers": 0}, "workers", "workers 0: expected a number from 1 to 256"),
        ({"techniques": ["magic"]}, "techniques", "techniques: "),
        ({"job": JOB.replace("direct=1", "direct=0")}, "job", "I/O through the page cache"),
    ],
)
def test_invalid_run_arguments_are_refused_by_name(arguments: dict[str, object], option: str, message: str) -> None:
    given: dict[str, object] = {"job": JOB, "target": "mem:8M"} | arguments
    with pytest.raises(hoistway.Error) as raised:
        hoistway.run(**given)  # type: ignore[arg-type]
    assert raised.value.option == option and message in str(raised.value)


def test_a_scheduler_written_in_python_does_not_run_in_real_time() -> None:
    class Own(hoistway.Scheduler):
        def insert(self, request: hoistway.Request) -> None: ...

        def dispatch(self, now_ns: int) -> None: ...

    with pytest.raises(hoistway.Error, match="schedulers written in Python"):
        hoistway.run(JOB, target="mem:8M", schedulers=[Own])  # type: ignore[list-item]


def test_ctrl_c_ends_a_run() -> None:
    script = "import hoistway; print('begins', flush=True); hoistway.run({!r}, target='null:1G', runtime=3600.0)"
    job = "[r]\nfilename=data\ndirect=1\nrw=randread\ntime_based\n"
    command = [sys.executable, "-c", script.format(job)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "begins\n"
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.stderr.read()
    assert process.returncode != 0
