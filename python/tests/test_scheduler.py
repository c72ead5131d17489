"""Schedulers written in Python."""

import collections

import pytest

import hoistway
from hoistway import Request, Scheduler, SchedulerError, compare


class Fifo(Scheduler):
    def __init__(self) -> None:
        self.queue: collections.deque[Request] = collections.deque()

    def insert(self, request: Request) -> None:
        self.queue.append(request)

    def dispatch(self, now_ns: int) -> Request | None:
        return self.queue.popleft() if self.queue else None


class Turns(Scheduler):
    """Processes take turns, as in the library's Rust example."""

    def __init__(self) -> None:
        self.waiting: dict[int, collections.deque[Request]] = {}

    def insert(self, request: Request) -> None:
        self.waiting.setdefault(request.process, collections.deque()).append(request)

    def dispatch(self, now_ns: int) -> Request | None:
        if not self.waiting:
            return None
        process, queue = next(iter(self.waiting.items()))
        del self.waiting[process]
        request = queue.popleft()
        if queue:
            self.waiting[process] = queue
        return request


def run(job: str, *schedulers: str | type[Scheduler], **keywords: object) -> hoistway.Comparison:
    arguments = {"device": "intel-s3520-1600gb", "repeats": 1} | keywords
    return compare(job, schedulers=schedulers, **arguments)  # type: ignore[arg-type]


def iops(comparison: hoistway.Comparison, job: str) -> dict[str, float]:
    return {label: estimate.mean for label, estimate in comparison.figure(f"{job}:read:iops").items()}


def test_a_process_that_takes_turns_with_a_flood_is_served_sooner_than_one_that_waits_behind_it(job: str) -> None:
    job = job.replace("iodepth=64", "iodepth=256")
    comparison = run(job, "mq-deadline", Turns)
    quiet, flood = iops(comparison, "quiet"), iops(comparison, "flood")
    assert list(quiet) == ["mq-deadline", "turns"]
    assert 2 * quiet["turns"] > 3 * quiet["mq-deadline"]
    assert flood["turns"] > flood["mq-deadline"] / 2, "the flood goes on"


def test_results_say_that_a_scheduler_is_written_in_python(job: str) -> None:
    notices = run(job, "none", Turns, Fifo).document["notices"]
    assert [notice for notice in notices if notice.startswith("turns, fifo: written in Python, which makes the simulation slow.")]
    assert not [notice for notice in run(job, "none").document["notices"] if "Python" in notice]


def test_a_scheduler_in_python_gives_the_same_bytes_with_any_number_of_threads(job: str) -> None:
    texts = {run(job, Fifo, Turns, "none", repeats=2, threads=threads).json(stable=True) for threads in (1, 3)}
    assert len(texts) == 1


def test_requests_keep_their_attributes_and_identity() -> None:
    seen: list[Request] = []

    class Looks(Fifo):
        def insert(self, request: Request) -> None:
            request.mark = "mine"
            seen.append(request)
            super().insert(request)

        def finish(self, request: Request, now_ns: int) -> None:
            assert request.mark == "mine" and any(request is other for other in seen)
            assert now_ns > request.time_ns
            finished.append(request)

    finished: list[Request] = []
    job = (
        "[global]\nfilename=/dev/sda\ndirect=1\nruntime=10ms\ntime_based\n"
        "[a]\nrw=randread\nbs=8k\nprioclass=1\nprio=3\n[b]\nrw=randwrite\nbs=4k\nprioclass=3\n"
    )
    run(job, Looks)
    assert finished
    reads = [request for request in seen if request.direction == "read"]
    writes = [request for request in seen if request.direction == "write"]
    assert reads and writes
    assert {(r.bytes, r.priority_class, r.priority_level, r.process, r.is_sync) for r in reads} == {
        (8192, "realtime", 3, 0, True)
    }
    assert {(w.bytes, w.priority_class, w.process) for w in writes} == {(4096, "idle", 1)}
    assert [request.id for request in seen] == list(range(1, len(seen) + 1))
    assert all(request.sector % 8 == 0 for request in seen) and "read of 8192 bytes" in repr(reads[0])


def test_held_back_requests_wait_until_another_ends(job: str) -> None:
    class OneAtATime(Fifo):
        name = "one"

        def __init__(self) -> None:
            super().__init__()
            self.at_device = 0

        def dispatch(self, now_ns: int) -> Request | None:
            if self.at_device:
                return None
            request = super().dispatch(now_ns)
            self.at_device += request is not None
            return request

        def finish(self, request: Request, now_ns: int) -> None:
            self.at_device -= 1

        def has_work(self) -> bool:
            return bool(self.queue) and not self.at_device

    alone, many = iops(run(job, OneAtATime, Fifo), "flood").values()
    assert 0 < alone < many / 3, "the device can do several at a time"


def test_requests_are_merged_only_for_schedulers_that_implement_absorbed() -> None:
    class Merges(Fifo):
        def absorbed(self, survivor: Request, absorbed: Request) -> None:
            assert survivor in self.queue
            self.queue.remove(absorbed)

    job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=write\nbs=4k\nioengine=libaio\niodepth=64\niodepth_batch=1\nruntime=50ms\ntime_based\n"
    merges = {
        run["scheduler"]: run["disks"][0]["write_merges"]
        for run in run(job, Fifo, Merges, device="hgst-he10-8tb").document["runs"]
    }
    assert merges["merges"] > 0 and merges["fifo"] == 0, merges


def test_a_custom_scheduler_can_be_compared_and_be_the_baseline(job: str) -> None:
    document = run(job, "bfq", Turns, baseline=Turns, repeats=2).document
    assert document["baseline"] == "turns"
    with pytest.raises(hoistway.Error, match="turns has no tunables"):
        run(job, Turns, set={"turns.quantum": 1})


def test_it_is_compared_over_guests_and_on_old_kernels(job: str) -> None:
    guests = run(job, Fifo, guest_schedulers=[Turns, "none"], device="null").document
    assert [one["scheduler"] for one in guests["runs"]] == ["turns-over-fifo", "none-over-fifo"]
    assert run(job, Fifo, kernels=["4.4"]).document["kernel"] == "4.4"


def test_a_replaced_scheduler_dispatches_the_requests_it_holds(job: str) -> None:
    class Keeps(Fifo):
        """Dispatches one request at a time."""

        at_device = 0

        def dispatch(self, now_ns: int) -> Request | None:
            if self.at_device:
                return None
            self.at_device = 1
            return super().dispatch(now_ns)

        def finish(self, request: Request, now_ns: int) -> None:
            self.at_device = 0

    after, before = (run(job, Keeps, at=at).document["runs"][0]["simulated_ios"] for at in ([(0.02, "scheduler", "none")], []))
    assert after > 2 * before, "without it the device gets several at a time"


def test_an_exception_in_a_scheduler_ends_the_comparison_and_is_raised(job: str) -> None:
    class InInit(Fifo):
        def __init__(self) -> None:
            raise ZeroDivisionError("init")

    class InInsert(Fifo):
        def insert(self, request: Request) -> None:
            raise ZeroDivisionError("insert")

    class InDispatch(Fifo):
        def dispatch(self, now_ns: int) -> Request | None:
            raise ZeroDivisionError("dispatch")

    class InFinish(Fifo):
        def finish(self, request: Request, now_ns: int) -> None:
            raise ZeroDivisionError("finish")

    class InHasWork(Fifo):
        name = "in-has-work"

        def has_work(self) -> bool:
            raise ZeroDivisionError("has_work")

    for scheduler, where in [
        (InInit, "init"),
        (InInsert, "insert"),
        (InDispatch, "dispatch"),
        (InFinish, "finish"),
        (InHasWork, "has_work"),
    ]:
        with pytest.raises(ZeroDivisionError, match=where):
            run(job, "none", scheduler, repeats=3, runtime=3600.0)


def test_a_lost_or_repeated_request_is_reported_and_nothing_hangs(job: str) -> None:
    class Loses(Fifo):
        def insert(self, request: Request) -> None:
            if request.id != 5:
                super().insert(request)

    class Twice(Fifo):
        def dispatch(self, now_ns: int) -> Request | None:
            request = super().dispatch(now_ns)
            if request is not None and request.id == 7:
                self.queue.append(request)
            return request

    class Hides(Fifo):
        def has_work(self) -> bool:
            return False

    class Invents(Fifo):
        def dispatch(self, now_ns: int) -> Request | None:
            return 5  # type: ignore[return-value]

    class Late(Fifo):
        ended: Request | None = None

        def finish(self, request: Request, now_ns: int) -> None:
            self.ended = request

        def dispatch(self, now_ns: int) -> Request | None:
            return self.ended or super().dispatch(now_ns)

    single = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\ntime_based\nruntime=3600\n"
    for scheduler, words in [
        (Loses, "loses: dispatch returned None although none of its requests is at the device and some wait .1; the oldest is request 5"),
        (Twice, "twice: dispatch returned <Request 7: .*(was dispatched before|has completed)"),
        (Hides, "hides: has_work returned a false value although none of its requests is at the device and some wait .1;"),
        (Invents, "invents: dispatch returned 5 .expected a waiting request, or None"),
        (Late, "late: dispatch returned <Request 1: .*has completed"),
    ]:
        with pytest.raises(SchedulerError, match=words):
            run(single, scheduler)


@pytest.mark.parametrize(
    ("scheduler", "words"),
    [
        (type("Long", (Fifo,), {"name": "much-too-long-a-name"}), "at most 15"),
        (type("Bfq", (Fifo,), {}), "bfq is the name of another scheduler"),
        (type("Half", (Scheduler,), {"insert": Fifo.insert}), "half: has no dispatch"),
        (int, "a subclass of hoistway.Scheduler"),
    ],
)
def test_a_class_that_is_no_scheduler_is_refused(job: str, scheduler: type[Scheduler], words: str) -> None:
    with pytest.raises(hoistway.Error, match=words) as raised:
        run(job, scheduler)
    assert raised.value.option == "schedulers"
    with pytest.raises(hoistway.Error, match="two classes have this name"):
        run(job, Fifo, type("Other", (Fifo,), {"name": "fifo"}))
