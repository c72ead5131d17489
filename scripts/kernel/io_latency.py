"""Groups under io.latency: loads that a number draws, run by a kernel in a guest and simulated by `hoistway compare` on the same device."""

import json
import os
import random
import re
import subprocess
import tempfile

from . import closed_loop, failure, io_cost, loops, scenarios
from .failure import Failure

# The three kinds: groups beside each other; groups with children; a victim that stops halfway.
KINDS = ("flat", "levels", "stop")
REPEATS = 3
RUNTIME_S = 6
# Time between two looks at io.stat, shorter than a window of most targets.
LOOK_S = 0.1


def experiment(name):
    """An experiment, all of which its name draws."""
    dice = random.Random(name)
    kind = dice.choices(KINDS, (3, 1, 1))[0]
    completion_us = dice.choice((500, 1000, 2000))
    depth = dice.choice([depth for depth in (2, 4, 8, 16) if depth * 1_000_000 // completion_us <= 8000])
    scheduler = dice.choice(("none", "mq-deadline"))
    target_us = int(completion_us * dice.choice((0.8, 1.3, 2, 4)))
    victims = [("v", target_us, dice.choice((1, 1, 2, 4)))]
    peers = []
    for number in range(dice.randint(1, 3)):
        looser_us = dice.choice((0, 0, target_us * 2, target_us * 8))
        peers.append((f"p{number}", looser_us, dice.choice((4, 8, 16, 32))))
    groups = []
    if kind == "levels":
        # The victim and the first peer below `a`, the others below `b`; targets on the upper level as on the lower one.
        groups += [("a", target_us), ("b", peers[-1][1])]
        victims = [("a/v", *victims[0][1:])]
        peers = [(f"a/{peers[0][0]}", *peers[0][1:]), *((f"b/{path}", *rest) for path, *rest in peers[1:] or [("p9", 0, 16)])]
    lines = ["[global]", "ioengine=libaio", "direct=1", "filename=/dev/nullb0", "random_generator=lfsr", "lat_percentiles=1", "time_based"]
    for path, target, iodepth in victims + peers:
        groups.append((path, target))
        stops = kind == "stop" and (path, target, iodepth) in victims
        lines += [f"[{path.replace('/', '-')}]", f"cgroup={path}", "cgroup_nodelete=1", f"runtime={RUNTIME_S // 2 if stops else RUNTIME_S}"]
        lines += [f"rw={dice.choice(('randread', 'randread', 'randwrite'))}", f"bs={dice.choice((4, 4, 64))}k", f"iodepth={iodepth}"]
    settings = {"cpus": "1", "hw_queues": "1", "hw_queue_depth": str(depth), "completion_us": str(completion_us)}
    return {
        "name": name,
        "half": loops.half(name),
        "kind": kind,
        "scheduler": scheduler,
        "settings": settings,
        "targets_us": dict(groups),
        "leaves": [path for path, *_ in victims + peers],
        "job": "\n".join(lines) + "\n",
    }


def record(drawn, kernel, limit_s):
    """What the kernel does: for each job IOPS, mean latency, the lowest and the last depth that was seen, 0 for no limit; and all looks."""
    options = {"scheduler": drawn["scheduler"], "depth": drawn["settings"]["hw_queue_depth"], "completion_us": drawn["settings"]["completion_us"]}
    options |= {"groups": ",".join(f"{path}:100" for path in drawn["targets_us"]), "io_stat_s": LOOK_S}
    options |= {"io_latency": ",".join(f"{path}:{us}" for path, us in drawn["targets_us"].items() if us)}
    text, log, _, _ = closed_loop.run(kernel, drawn["job"], options, limit_s)
    try:
        jobs = json.loads(text)["jobs"]
    except ValueError:
        raise Failure(f"fio's document is not whole: it ends with {text[-40:]!r}") from None
    figures = {name: {"iops": iops, "mean_us": mean} for (name, _), (iops, mean) in loops.figures(jobs).items()}
    for path in drawn["leaves"]:
        depths = [look["groups"][path]["depth"] for look in looks(log) if path in look["groups"]]
        figures[path.replace("/", "-")] |= {"lowest": min((depth for depth in depths if depth), default=0), "last": depths[-1] if depths else 0}
    max_sectors_kb = int(re.search(r"(?m)^QUEUE max_hw_sectors_kb=(\d+)$", log)[1])
    return {"kernel": kernel.release, "groups": figures, "max_sectors_kb": max_sectors_kb, "looks": looks(log)}


# What io.stat has of io.latency; of a drive that does not rotate, missed and total stand for avg_lat and win.
LOOKED_AT = ("depth", "use_delay", "delay_nsec", "missed", "total", "avg_lat", "win")


def looks(log):
    """Each look at io.stat: when, and of each group what it had of LOOKED_AT; a depth of 0 is no limit."""
    found = []
    for line in log.splitlines():
        if line.startswith("UPTIME "):
            found.append({"at_s": float(line.split()[1]), "groups": {}})
        elif line.startswith("IOSTAT ") and " depth=" in line:
            path = line.split()[1].rpartition("/")[0]
            values = dict(re.findall(r"(\w+)=(\w+)", line.replace("depth=max", "depth=0")))
            found[-1]["groups"][path] = {name: int(values[name]) for name in LOOKED_AT if name in values}
    return found


def simulate(drawn, recorded, hoistway, root):
    """The same figures of a simulation: medians of several seeds."""
    data = os.path.join(root, loops.DATA)
    with tempfile.TemporaryDirectory(prefix="hoistway-latency-") as work:
        preset, job = os.path.join(work, "null.device.toml"), os.path.join(work, "load.fio")
        failure.write(preset, loops.device(data, drawn["settings"], recorded["max_sectors_kb"]))
        failure.write(job, drawn["job"])
        command = [hoistway, "compare", job, "--from-start", "--device", preset, "--host", os.path.join(data, "guest-host.toml"), "--cpus", "1"]
        command += ["--kernel", "{}.{}".format(*scenarios.release_of(recorded["kernel"])), "--queue", "wbt_lat_usec=0", "--schedulers", drawn["scheduler"]]
        command += ["--format", "json", "--repeat", str(REPEATS)]
        for path, us in drawn["targets_us"].items():
            command += ["--io-latency", f"{path} target={us}"]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        raise Failure(f"{drawn['name']}: hoistway compare: {(run.stderr.strip().splitlines() or ['failed'])[-1]}")
    runs = json.loads(run.stdout)["runs"]
    groups = {}
    for path in drawn["leaves"]:
        operations = [next(job for job in run["jobs"] if job["name"] == path.replace("/", "-"))["operations"][0] for run in runs]
        latencies = [next(group for group in run["io_latency"][0]["groups"] if group["cgroup"] == path) for run in runs]
        groups[path] = {"iops": io_cost.median(one["iops"] for one in operations)}
        groups[path]["mean_us"] = io_cost.median(one["lat_ns"]["mean"] / 1000 for one in operations)
        groups[path]["lowest"] = io_cost.median(one["lowest_depth"] or 0 for one in latencies)
        groups[path]["last"] = io_cost.median(one["depth"] or 0 for one in latencies)
    return groups


def rows(drawn, recorded, simulated):
    """For each job the kernel's figures and ours: its part of the IOPS of all, IOPS, mean latency, the lowest and the last depth; 0 is no limit."""
    found = []
    kernels = {path: recorded["groups"][path.replace("/", "-")] for path in drawn["leaves"]}
    sums = [sum(group["iops"] for group in groups.values()) for groups in (kernels, simulated)]
    for path in drawn["leaves"]:
        row = {"experiment": drawn["name"], "half": drawn["half"], "kind": drawn["kind"], "group": path, "target_us": drawn["targets_us"][path]}
        for who, groups, whole in (("kernel", kernels, sums[0]), ("our", simulated, sums[1])):
            row[f"{who}_share"] = groups[path]["iops"] / whole
            row |= {f"{who}_{name}": value for name, value in groups[path].items()}
        found.append(row)
    return found


FIGURES = ("share", "iops", "mean_us")
SETTING = ("target_us", 9)
COLUMNS = (("share", "share %", 7, 100), ("iops", "IOPS", 8, 1), ("mean_us", "mean us", 9, 1), ("lowest", "lowest", 5, 1), ("last", "last", 5, 1))


def errors(of):
    """Errors in percent of the kernel's figure, sorted, of each figure."""
    return {figure: sorted(abs(row[f"our_{figure}"] / row[f"kernel_{figure}"] - 1) * 100 for row in of) for figure in FIGURES}
