"""Recordings of block I/O as loads."""

from pathlib import Path

import pytest

import hoistway

RECORDING = Path(__file__).parents[2] / "crates/trace/tests/block/data/sqlite-commits.blktrace.0.gz"


def test_a_recording_is_compared_under_its_task_names() -> None:
    comparison = hoistway.compare(RECORDING, device="sata-ssd", schedulers=["none", "mq-deadline"], repeats=1)
    jobs = {job["name"] for job in comparison.document["runs"][0]["jobs"]}
    assert jobs >= {"python3", "jbd2/loop0-8"}
    assert comparison.document["recording"]["ios"] == 2365 and "replayed under" in str(comparison)


@pytest.mark.parametrize(
    ("replay", "words"),
    [
        ({"speed": "fast"}, "expected a factor"),
        ({"mode": "slow"}, "expected recorded-program, timed or fast"),
        ({"window": (1.0,)}, "expected its beginning and end"),
        ({"streams": "python3"}, "expected a list of names"),
        ({"pace": 1}, "expected some of mode"),
        ({"streams": ["python4"]}, "did you mean"),
    ],
)
def test_invalid_replay_options_are_refused_with_what_was_expected(replay: dict[str, object], words: str) -> None:
    with pytest.raises(hoistway.Error, match=words):
        hoistway.compare(RECORDING, replay=replay, repeats=1)


def test_a_recording_runs_in_real_time() -> None:
    comparison = hoistway.run(RECORDING, target="null:", replay={"speed": 40.0}, ramp=0.0)
    assert "python3" in str(comparison)
