"""Closed loops: fio job files that a kernel runs in a guest, and that `hoistway compare` simulates on the same device and host."""

import csv
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass

from . import closed_loop, failure, scenarios
from .failure import Failure

# Device, host and settings of these loads are those of the closed-loop tests.
DATA = "crates/experiment/tests/closed_loop/data"
LOADS = ("reader-writers", "prio-classes", "seq-random-d1")
# One seed of ours is one run by chance, as the kernel's is: the page shows the median and the range of these.
REPEATS = 5


@dataclass
class Cell:
    """A load under a scheduler."""

    load: str
    scheduler: str
    data: str
    # The row of settings.csv.
    settings: dict

    def job(self):
        with open(os.path.join(self.data, self.load + ".fio")) as file:
            return file.read()

    def nr_requests(self):
        return self.settings["nr_requests"] if self.settings["nr_requests"] != "default" and self.scheduler != "none" else ""


def cells(root):
    """All loads under all schedulers."""
    data = os.path.join(root, DATA)
    with open(os.path.join(data, "settings.csv"), newline="") as file:
        rows = {row["scenario"]: row for row in csv.DictReader(file)}
    return [Cell(load, scheduler, data, rows[load]) for load in LOADS for scheduler in scenarios.SCHEDULERS]


def figures(jobs):
    """Of each job and direction with I/O: the means over its clones of IOPS and latency."""
    sums = {}
    for job in jobs:
        for direction in ("read", "write"):
            part = job[direction]
            if part["total_ios"]:
                sums.setdefault((job["jobname"], direction), []).append((part["iops"], part["lat_ns"]["mean"] / 1000))
    return {key: [sum(values) / len(values) for values in zip(*clones)] for key, clones in sums.items()}


def ours(cell, kernel, hoistway):
    """The same figures, simulated: those of all seeds, sorted."""
    with open(os.path.join(cell.data, "null.device.toml")) as file:
        device = file.read()
    for name in ("hw_queues", "hw_queue_depth", "completion_us"):
        device = device.replace(f"@{name}@", cell.settings[name])
    with tempfile.TemporaryDirectory(prefix="hoistway-loop-") as work:
        preset = os.path.join(work, "null.device.toml")
        with open(preset, "w") as file:
            file.write(device)
        command = [hoistway, "compare", os.path.join(cell.data, cell.load + ".fio"), "--device", preset, "--host", os.path.join(cell.data, "guest-host.toml")]
        command += ["--cpus", cell.settings["cpus"], "--kernel", "{}.{}".format(*scenarios.release_of(kernel.release)), "--queue", "wbt_lat_usec=0"]
        command += ["--schedulers", cell.scheduler, "--format", "fio-json"]
        command += ["--nr-requests", cell.nr_requests()] if cell.nr_requests() else []
        found = {}
        for seed in range(1, REPEATS + 1):
            run = subprocess.run([*command, "--seed", str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if run.returncode:
                raise Failure(f"hoistway compare: {(run.stderr.strip().splitlines() or ['failed'])[-1]}")
            for key, values in figures(json.loads(run.stdout)["jobs"]).items():
                found.setdefault(key, []).append(values)
    return {key: [sorted(values) for values in zip(*runs)] for key, runs in found.items()}


def run(cell, kernel, hoistway, folder, limit_s):
    """The rows of a cell, and whether the guest had to run for them; its document is kept in `folder`."""
    os.makedirs(folder, exist_ok=True)
    kept = os.path.join(folder, f"{cell.load}.{cell.scheduler}.json")
    worked = not os.path.exists(kept)
    if worked:
        names = {"scheduler": cell.scheduler, "cpus": cell.settings["cpus"], "hw_queues": cell.settings["hw_queues"]}
        names |= {"depth": cell.settings["hw_queue_depth"], "completion_us": cell.settings["completion_us"], "nr_requests": cell.nr_requests()}
        text, _, _ = closed_loop.run(kernel, cell.job(), names, limit_s)
        try:
            json.loads(text)
        except ValueError:
            raise Failure(f"fio's document is not whole: it ends with {text[-40:]!r}") from None
        failure.write(kept, text)
    with open(kept) as file:
        kernels = figures(json.load(file)["jobs"])
    simulated = ours(cell, kernel, hoistway)
    rows = []
    for (job, direction), (iops, mean) in sorted(kernels.items()):
        our_iops, our_mean = simulated.get((job, direction), ([0], [0]))
        row = {"load": cell.load, "scheduler": cell.scheduler, "job": job, "direction": direction}
        row |= {"kernel_iops": iops, "our_iops": our_iops[len(our_iops) // 2], "our_iops_least": our_iops[0], "our_iops_most": our_iops[-1]}
        rows.append(row | {"kernel_mean_us": mean, "our_mean_us": our_mean[len(our_mean) // 2]})
    return rows, worked
