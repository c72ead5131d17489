"""Invalid arguments: exceptions with the messages of the command line, and with file, line and option."""

import os
import pathlib
import pickle
from typing import Any

import pytest

import hoistway
from hoistway import Error, compare


def refused(*arguments: Any, **keywords: Any) -> Error:
    with pytest.raises(Error) as raised:
        compare(*arguments, **({"device": "null"} | keywords))
    return raised.value


def test_a_job_file_that_is_wrong_says_where(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "my.fio"
    file.write_text("[a]\nfilename=/dev/sda\nrw=sideways\n")
    error = refused(file)
    assert (error.file, error.line, error.option) == (str(file), 3, "rw")
    assert str(error).startswith(f"{file}:3: [a] rw:") and "expected read, write" in str(error)
    error = refused("[a]\nfilename=/dev/sda\ndirect=1\nfrobnicate=1\n")
    assert (error.file, error.line, error.option) == ("(text)", 4, "frobnicate")
    error = refused(tmp_path / "none.fio")
    assert (error.file, error.option) == (None, "job") and "cannot be read" in str(error)


def test_a_profile_that_is_wrong_says_where() -> None:
    error = refused(hosts=["\ncpus = 0\n"])
    assert (error.file, error.line, error.option) == ("(hosts)", 2, "cpus")
    error = refused(device=hoistway.device("null") | {"floppy": 1})
    assert (error.file, error.option) == ("(device)", "floppy")
    error = refused(device="floppy")
    assert (error.file, error.option) == (None, "device") and "expected one of" in str(error)


@pytest.mark.parametrize(
    ("keywords", "option", "words"),
    [
        ({"schedulers": ["bfqq"]}, "schedulers", 'schedulers bfqq: unknown scheduler (did you mean "bfq"?'),
        ({"schedulers": "bfq"}, "schedulers", "expected a list"),
        ({"schedulers": [7]}, "schedulers", "expected a name, or a subclass of hoistway.Scheduler"),
        ({"kernels": ["2.6"]}, "kernels", 'unknown kernel "2.6"'),
        ({"set": {"bfq.slice": 1}}, "set", 'set bfq.slice=1: bfq has no tunable "slice"'),
        ({"set": {"slice_idle": 1}}, "set", "set slice_idle: expected SCHED.TUNABLE"),
        ({"set": [1]}, "set", "expected a dictionary"),
        ({"vary": {"slice_idle": [1]}}, "vary", "vary slice_idle: expected SCHED.TUNABLE or queue.FILE"),
        ({"vary": {"bfq.slice_idle": 1}}, "vary", "vary 1: expected a list"),
        ({"vary": {"bfq.slice": [1, 2]}}, "vary", "slice"),
        ({"queue": {"nr_request": 1}}, "queue", "queue nr_request=1: no such file"),
        ({"queue": {"nr_requests": 1.5}}, "queue", "expected a string or a whole number"),
        ({"cpus": 0}, "cpus", "cpus 0: expected 1 to 1024"),
        ({"cpus": 1 << 40}, "cpus", "expected a whole number from 0 to 65535"),
        ({"cpus": "4"}, "cpus", "expected a whole number"),
        ({"repeats": 0}, "repeats", "repeats 0: expected 1 to 1000"),
        ({"repeats": None}, "repeats", "repeats None: expected a whole number"),
        ({"seed": None}, "seed", "seed None: expected a whole number"),
        ({"runtime": 10**400}, "runtime", "expected a number"),
        ({"schedulers": ["\ud800"]}, "schedulers", "schedulers: contains a surrogate"),
        ({"set": {"bfq.slice_idle": "\udcff"}}, "set", "set: contains a surrogate"),
        ({"techniques": [""]}, "techniques", '"" is no technique'),
        ({"runtime": 0}, "runtime", "expected a time between 1 us and 10 years"),
        ({"runtime": float("nan")}, "runtime", "expected a number"),
        ({"focus": "a:read"}, "focus", "focus a:read"),
        ({"focus": "nobody:read:p99"}, "focus", 'there is no job "nobody"'),
        ({"focus": "mixed:trim:p99"}, "focus", "focus mixed:trim:p99"),
        ({"baseline": "cfq"}, "baseline", "not among the compared schedulers"),
        ({"at": [("soon", "scheduler", "bfq")]}, "at", "expected a number"),
        ({"at": [5]}, "at", "expected (seconds, file, value)"),
        ({"io_max": {"nobody": "rbps=1"}}, "io_max", 'no job is in cgroup "nobody"'),
        ({"io_cost": ["enable=2"]}, "io_cost", '"enable=2" at character 1: expected 0 or 1'),
        ({"io_cost": "enable=1"}, "io_cost", "expected a list"),
        ({"io_weight": {"nobody": 5}}, "io_weight", 'no job is in cgroup "nobody"'),
        ({"io_latency": {"nobody": "target=5"}}, "io_latency", 'no job is in cgroup "nobody"'),
        ({"hw_queues": 0}, "hw_queues", "hw_queues 0: expected 1 to 2048"),
        ({"techniques": ["trymerge"]}, "techniques", "techniques trymerge: "),
        ({"techniques": "all"}, "techniques", "techniques 'all': expected a list"),
        ({"guest_weights": {"/dev/sda": 5}}, "guest_weights", "expected guest_schedulers as well"),
        ({"files": {"/dev/sdx": "null"}}, "device", 'no filename "/dev/sdx"'),
        ({"devices": ["null"]}, "devices", "cannot be combined with device"),
        ({"threads": 0}, "threads", "expected a whole number of at least 1"),
        ({"shared_tags": 1}, "shared_tags", "expected True or False"),
        ({"fill_percent": 101}, "fill_percent", "fill_percent 101%: expected 0% to 100%"),
        ({"device": "hdd", "trimmed": True}, "trimmed", "depends on how full it is"),
    ],
)
def test_an_invalid_argument_is_named(keywords: dict[str, Any], option: str, words: str) -> None:
    error = refused(**({"repeats": 1, "runtime": 0.01} | keywords))
    assert error.option == option and words in str(error), str(error)


def test_jobs_with_invalid_fields_are_refused() -> None:
    assert refused(hoistway.Job(name="a\nrw=write")).option == "name"
    assert refused(hoistway.Job(name="a", bs="4k\nrw=write")).option == "bs"
    assert refused(hoistway.Job(name="a", rw="sideways")).line == 5
    assert refused(hoistway.Job(name="a", runtime=-1)).option == "runtime"
    assert refused(hoistway.Job(name=5)).option == "name"
    assert refused(hoistway.Load(["a"])).option == refused(hoistway.Load("a")).option == "jobs"
    assert refused(3).option == refused("[a]\n\ud800=1\n").option == "job"


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")

    def compared(**numbers: Any) -> str:
        queue = {"nr_requests": numbers.pop("nr_requests")}
        load = hoistway.Job(name="a", rw="randread", size="1m")
        return compare(load, device="null", schedulers=["none"], queue=queue, **numbers).json(stable=True)

    plain = compared(repeats=2, seed=7, nr_requests=32, runtime=0.0078125)
    whole = {"repeats": numpy.int64(2), "seed": numpy.uint64(7), "nr_requests": numpy.int32(32)}
    assert compared(**whole, runtime=numpy.float32(0.0078125)) == plain


def test_a_file_that_holds_no_results_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "results.json"
    for text, words in [("[]", "not a result document"), ('{"format": "x/1"}', 'unknown result format "x/1"'), ("{", "EOF")]:
        file.write_text(text)
        with pytest.raises(Error, match="(?i)" + words.replace("(", "\\(")) as raised:
            hoistway.load(file)
        assert raised.value.file == str(file)
    file.write_bytes(b"\xff")
    with pytest.raises(Error, match="not text"):
        hoistway.load(file)
    with pytest.raises(FileNotFoundError):
        hoistway.load(tmp_path / "none.json")
    with pytest.raises(TypeError):
        hoistway.load(0)  # type: ignore[arg-type]


def test_a_path_that_is_not_utf_8_is_accepted(comparison: hoistway.Comparison, tmp_path: pathlib.Path) -> None:
    file = os.path.join(os.fsencode(tmp_path), b"r\xff.json")
    comparison.save(os.fsdecode(file))
    assert hoistway.load(os.fsdecode(file)).document == comparison.document
    with open(file, "w") as opened:
        opened.write("{}")
    with pytest.raises(Error, match="not a result document") as raised:
        hoistway.load(os.fsdecode(file))
    assert raised.value.file is not None and raised.value.file.endswith("r\ufffd.json")


def test_a_figure_that_is_not_there_says_which_are(comparison: hoistway.Comparison) -> None:
    with pytest.raises(Error, match="figure nobody:read:p99: "):
        comparison.figure("nobody:read:p99")


def test_errors_come_whole_from_other_processes() -> None:
    error = pickle.loads(pickle.dumps(Error("a.fio:3: wrong", "a.fio", 3, "bs")))
    assert (str(error), error.file, error.line, error.option) == ("a.fio:3: wrong", "a.fio", 3, "bs")


def test_trace_refuses_unsupported_arguments() -> None:
    with pytest.raises(TypeError, match="'thread'"):
        hoistway.trace(thread=1)
    with pytest.raises(Error, match="a trace covers one kernel"):
        hoistway.trace(device="null", kernels=["6.12", "4.19"])
