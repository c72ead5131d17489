"""Closed loops: fio job files that a kernel runs in a guest, and that `hoistway compare` simulates on the same device and host."""

import csv
import json
import os
import random
import re
import subprocess
import zlib
import tempfile
from dataclasses import dataclass

from . import closed_loop, failure, scenarios
from .failure import Failure

# Device, host and settings of these loads are those of the closed-loop tests.
DATA = "crates/experiment/tests/closed_loop/data"
LOADS = ("reader-writers", "prio-classes", "seq-random-d1")
# Fresh loads of a seed.
FRESH = 9
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
    # The job file.
    job: str

    def nr_requests(self):
        return self.settings["nr_requests"] if self.settings["nr_requests"] != "default" and self.scheduler != "none" else ""

    def tunables(self):
        """Tunables of the scheduler that differ from the default: (name, value)."""
        words = (word.removeprefix(self.scheduler + ".") for word in self.settings.get("tunables", "").split() if word.startswith(self.scheduler + "."))
        return [tuple(word.split("=", 1)) for word in words]

    def groups(self):
        """The cgroups that the job file names, as name:weight,name:weight."""
        names, weights = (re.findall(rf"(?m)^{key}=(\w+)$", self.job) for key in ("cgroup", "cgroup_weight"))
        return ",".join(f"{name}:{weight}" for name, weight in zip(names, weights))


def cells(root, seed=None):
    """All loads under all schedulers; with a seed also fresh loads."""
    data = os.path.join(root, DATA)
    with open(os.path.join(data, "settings.csv"), newline="") as file:
        rows = {row["scenario"]: row for row in csv.DictReader(file)}
    loads = []
    for load in LOADS:
        with open(os.path.join(data, load + ".fio")) as file:
            loads.append((load, rows[load], file.read()))
    if seed is not None:
        loads += [fresh(f"fresh-{seed}-{number}") for number in range(FRESH)]
    return [Cell(load, scheduler, data, settings, job) for load, settings, job in loads for scheduler in scenarios.SCHEDULERS]


def stored(root):
    """All stored scenarios under all schedulers."""
    data = os.path.join(root, DATA)
    found = []
    with open(os.path.join(data, "settings.csv"), newline="") as file:
        for row in csv.DictReader(file):
            with open(os.path.join(data, row["scenario"] + ".fio")) as job:
                text = job.read()
            found += [Cell(row["scenario"], scheduler, data, row, text) for scheduler in scenarios.SCHEDULERS]
    return found


def fresh(name):
    """A load that its name draws: two to four jobs, each with a direction, size, depth, pace and number of processes of its own."""
    dice = random.Random(name)
    lines = ["[global]", "ioengine=libaio", "direct=1", "filename=/dev/nullb0", "random_generator=lfsr", "lat_percentiles=1", "time_based", "runtime=3"]
    for number in range(dice.randint(2, 4)):
        lines += [f"[job{number}]", f"rw={dice.choice(('randread', 'randread', 'read', 'randwrite', 'write', 'randrw'))}"]
        lines += [f"bs={dice.choice((4, 4, 4, 16, 64))}k", f"iodepth={dice.choice((1, 1, 2, 4, 8, 16))}"]
        pace = dice.random()
        if pace < 0.25:
            lines.append(f"thinktime={dice.choice((200, 1000, 4000))}")
        elif pace < 0.4:
            lines.append(f"rate_iops={dice.choice((50, 200, 500))}")
        if dice.random() < 0.3:
            lines.append(f"numjobs={dice.randint(2, 4)}")
    settings = {"cpus": "1", "hw_queues": "1", "nr_requests": dice.choice(("64", "default"))}
    settings |= {"hw_queue_depth": str(dice.choice((1, 2, 4, 8, 32))), "completion_us": str(dice.choice((250, 500, 1000, 2000, 4000)))}
    return name, settings, "\n".join(lines) + "\n"


def half(load):
    """Whether a load may be looked at to mend what is wrong, or only judges: by its name, before anybody looks."""
    return "fitted" if load in LOADS or zlib.crc32(load.encode()) & 1 else "judged"


def figures(jobs):
    """Of each job and direction with I/O: the means over its clones of IOPS and latency."""
    sums = {}
    for job in jobs:
        for direction in ("read", "write"):
            part = job[direction]
            if part["total_ios"]:
                sums.setdefault((job["jobname"], direction), []).append((part["iops"], part["lat_ns"]["mean"] / 1000))
    return {key: [sum(values) / len(values) for values in zip(*clones)] for key, clones in sums.items()}


def device(data, settings, max_sectors_kb):
    """The preset of the guest's device."""
    with open(os.path.join(data, "null.device.toml")) as file:
        text = file.read()
    for name in ("hw_queues", "hw_queue_depth", "completion_us"):
        text = text.replace(f"@{name}@", settings[name])
    # What this kernel gives a driver that sets none, of which sysfs rounds 255 sectors down.
    max_sectors = 255 if max_sectors_kb == 127 else 2 * max_sectors_kb
    return re.sub(r"(?m)^max_sectors = .*$", f"max_sectors = {max_sectors}", text)


def ours(cell, kernel, hoistway, max_sectors_kb):
    """The same figures, simulated: those of all seeds, sorted."""
    with tempfile.TemporaryDirectory(prefix="hoistway-loop-") as work:
        preset = os.path.join(work, "null.device.toml")
        with open(preset, "w") as file:
            file.write(device(cell.data, cell.settings, max_sectors_kb))
        job = os.path.join(work, cell.load + ".fio")
        with open(job, "w") as file:
            file.write(cell.job)
        command = [hoistway, "compare", job, "--from-start", "--device", preset, "--host", os.path.join(cell.data, "guest-host.toml")]
        command += ["--cpus", cell.settings["cpus"], "--kernel", "{}.{}".format(*scenarios.release_of(kernel.release)), "--queue", "wbt_lat_usec=0"]
        command += ["--schedulers", cell.scheduler, "--format", "fio-json"]
        command += ["--nr-requests", cell.nr_requests()] if cell.nr_requests() else []
        for name, value in cell.tunables():
            command += ["--set", f"{cell.scheduler}.{name}={value}"]
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
        names |= {"tunables": ",".join(f"{name}:{value}" for name, value in cell.tunables()), "groups": cell.groups()}
        names |= {"depth": cell.settings["hw_queue_depth"], "completion_us": cell.settings["completion_us"], "nr_requests": cell.nr_requests()}
        # fio sets no weights in cgroup v2; the guest has set them.
        job = re.sub(r"(?m)^cgroup_weight=.*\n", "", cell.job)
        text, log, _, _ = closed_loop.run(kernel, job, names, limit_s)
        try:
            document = json.loads(text)
        except ValueError:
            raise Failure(f"fio's document is not whole: it ends with {text[-40:]!r}") from None
        document["max_sectors_kb"] = int(re.search(r"(?m)^QUEUE max_hw_sectors_kb=(\d+)$", log)[1])
        failure.write(kept, json.dumps(document))
    with open(kept) as file:
        document = json.load(file)
    kernels = figures(document["jobs"])
    if {job for job, _ in kernels} != {job["jobname"] for job in document["jobs"]}:
        raise Failure(f"{kept}: a job did no I/O in the guest (expected I/O of each)")
    simulated = ours(cell, kernel, hoistway, document["max_sectors_kb"])
    rows = []
    for (job, direction), (iops, mean) in sorted(kernels.items()):
        our_iops, our_mean = simulated.get((job, direction), ([0], [0]))
        row = {"load": cell.load, "half": half(cell.load), "scheduler": cell.scheduler, "job": job, "direction": direction}
        row |= {"kernel_iops": iops, "our_iops": our_iops[len(our_iops) // 2], "our_iops_least": our_iops[0], "our_iops_most": our_iops[-1]}
        rows.append(row | {"kernel_mean_us": mean, "our_mean_us": our_mean[len(our_mean) // 2]})
    return rows, worked
