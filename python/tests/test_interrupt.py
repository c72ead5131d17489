"""Ctrl-C."""

import signal
import subprocess
import sys

SCRIPT = """
import hoistway, sys
def tell(reached, expected):
    if reached > 0:
        print("running", flush=True)
class Slow(hoistway.Scheduler):
    def insert(self, request):
        print("running", flush=True)
        while True:
            pass
    def dispatch(self, now_ns):
        return None
try:
    hoistway.compare({arguments}, runtime=360000.0, repeats=1, progress=tell)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


def interrupted(arguments: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-c", SCRIPT.format(arguments=arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().split()
    return process.returncode, rest


def test_ctrl_c_ends_runs_that_would_take_days() -> None:
    status, said = interrupted("device='intel-s3520-1600gb'")
    assert (status, said[-1]) == (7, "interrupted")


def test_ctrl_c_ends_a_scheduler_in_python_that_never_returns() -> None:
    status, said = interrupted("device='null', schedulers=[Slow]")
    assert (status, said[-1]) == (7, "interrupted")
