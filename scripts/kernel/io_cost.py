"""Groups under io.cost: loads that a number draws, run by a kernel in a guest and simulated by `hoistway compare` on the same device."""

import json
import os
import random
import re
import subprocess
import tempfile

from . import closed_loop, failure, loops, scenarios
from .failure import Failure

# The three kinds: all groups want more than they may have; one of them does not; the rate is free to change.
KINDS = ("full", "idle", "free")
REPEATS = 3


def experiment(name):
    """An experiment, all of which its name draws."""
    dice = random.Random(name)
    kind = dice.choices(KINDS, (2, 1, 1))[0]
    completion_us = dice.choice((500, 1000, 2000))
    depth = dice.choice([depth for depth in (2, 4, 8, 16) if depth * 1_000_000 // completion_us <= 8000])
    part = dice.choice((0.5, 0.8, 1.5) if kind == "free" else (0.4, 0.7, 0.9))
    rate = int(min(depth * 1_000_000 // completion_us * part, 4000))
    bytes_rate = rate * 4096 * dice.choice((2, 8, 64))
    sequential = rate * dice.choice((1, 2))
    write_part = dice.choice((1, 0.5))
    model = f"ctrl=user model=linear rbps={bytes_rate} rseqiops={sequential} rrandiops={rate}"
    model += f" wbps={int(bytes_rate * write_part)} wseqiops={int(sequential * write_part)} wrandiops={int(rate * write_part)}"
    if kind == "free":
        latency_us = int(completion_us * dice.choice((0.9, 1.5, 4)))
        qos = f"enable=1 ctrl=user rpct=95 rlat={latency_us} wpct=95 wlat={latency_us} min=50 max=150"
    else:
        qos = "enable=1 ctrl=user rpct=0 wpct=0 min=100 max=100"
    weights = [dice.choice((50, 100, 200, 400)) for _ in range(dice.randint(2, 4))]
    lines = ["[global]", "ioengine=libaio", "direct=1", "filename=/dev/nullb0", "random_generator=lfsr", "lat_percentiles=1", "time_based", "runtime=6"]
    for number, weight in enumerate(weights):
        lines += [f"[g{number}]", f"cgroup=g{number}", "cgroup_nodelete=1", f"rw={dice.choice(('randread', 'randread', 'randwrite', 'read'))}"]
        lines += [f"bs={dice.choice((4, 4, 64))}k"]
        if kind == "idle" and number == 0:
            rate_iops = max(5, int(rate * write_part * weight / sum(weights) * dice.choice((0.05, 0.2))))
            lines += ["iodepth=1", dice.choice((f"rate_iops={rate_iops}", "thinktime=10000"))]
        else:
            lines.append(f"iodepth={dice.choice((1, 4, 8, 16, 32))}")
    settings = {"cpus": "1", "hw_queues": "1", "hw_queue_depth": str(depth), "completion_us": str(completion_us)}
    groups = {f"g{number}": weight for number, weight in enumerate(weights)}
    return {"name": name, "half": loops.half(name), "kind": kind, "settings": settings, "groups": groups, "qos": qos, "model": model, "job": "\n".join(lines) + "\n"}


def record(drawn, kernel, limit_s):
    """What the kernel does: for each group IOPS, mean latency and device time, and the rate of device time, twice a second."""
    options = {"depth": drawn["settings"]["hw_queue_depth"], "completion_us": drawn["settings"]["completion_us"]}
    options |= {"groups": ",".join(f"{name}:{weight}" for name, weight in drawn["groups"].items())}
    options |= {"io_cost_qos": drawn["qos"], "io_cost_model": drawn["model"]}
    text, log, _, _ = closed_loop.run(kernel, drawn["job"], options, limit_s)
    try:
        jobs = json.loads(text)["jobs"]
    except ValueError:
        raise Failure(f"fio's document is not whole: it ends with {text[-40:]!r}") from None
    groups = {name: {"iops": iops, "mean_us": mean} for (name, _), (iops, mean) in loops.figures(jobs).items()}
    for name, figures in groups.items():
        # `cost.usage` grows during the run, so that the last line has the sum.
        figures["device_time_us"] = int(re.findall(rf"(?m)^IOSTAT {name}/io.stat .*cost\.usage=(\d+)", log)[-1])
    rates = [float(rate) for rate in re.findall(r"(?m)^IOSTAT io.stat .*cost\.vrate=([\d.]+)", log)]
    max_sectors_kb = int(re.search(r"(?m)^QUEUE max_hw_sectors_kb=(\d+)$", log)[1])
    return {"kernel": kernel.release, "groups": groups, "rates_percent": rates, "max_sectors_kb": max_sectors_kb}


def simulate(drawn, recorded, hoistway, root):
    """The same figures of a simulation: medians of several seeds; the rate is its mean."""
    data = os.path.join(root, loops.DATA)
    with tempfile.TemporaryDirectory(prefix="hoistway-cost-") as work:
        preset, job = os.path.join(work, "null.device.toml"), os.path.join(work, "load.fio")
        failure.write(preset, loops.device(data, drawn["settings"], recorded["max_sectors_kb"]))
        failure.write(job, drawn["job"])
        command = [hoistway, "compare", job, "--from-start", "--device", preset, "--host", os.path.join(data, "guest-host.toml"), "--cpus", "1"]
        command += ["--kernel", "{}.{}".format(*scenarios.release_of(recorded["kernel"])), "--queue", "wbt_lat_usec=0", "--schedulers", "none"]
        command += ["--io-cost", drawn["qos"], "--io-cost", drawn["model"], "--format", "json", "--repeat", str(REPEATS)]
        for name, weight in drawn["groups"].items():
            command += ["--io-weight", f"{name} {weight}"]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        raise Failure(f"{drawn['name']}: hoistway compare: {(run.stderr.strip().splitlines() or ['failed'])[-1]}")
    runs = json.loads(run.stdout)["runs"]
    groups = {}
    for name in drawn["groups"]:
        operations = [next(job for job in run["jobs"] if job["name"] == name)["operations"][0] for run in runs]
        costs = [next(group for group in run["io_cost"][0]["groups"] if group["cgroup"] == name) for run in runs]
        groups[name] = {"iops": median(one["iops"] for one in operations), "mean_us": median(one["lat_ns"]["mean"] / 1000 for one in operations)}
        groups[name]["device_time_us"] = median(cost["device_time_ms"] * 1000 for cost in costs)
    return {"groups": groups, "rate_percent": median(run["io_cost"][0]["mean_rate_percent"] for run in runs)}


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def rows(drawn, recorded, simulated):
    """For each group the kernel's figures and ours; `share` is its part of the device time of all."""
    found = []
    sums = [sum(group["device_time_us"] for group in figures["groups"].values()) for figures in (recorded, simulated)]
    for name, weight in drawn["groups"].items():
        row = {"experiment": drawn["name"], "half": drawn["half"], "kind": drawn["kind"], "group": name, "weight": weight}
        for who, figures, whole in (("kernel", recorded, sums[0]), ("our", simulated, sums[1])):
            group = figures["groups"][name]
            row |= {f"{who}_share": group["device_time_us"] / whole, f"{who}_iops": group["iops"], f"{who}_mean_us": group["mean_us"]}
        rates = recorded["rates_percent"]
        found.append(row | {"kernel_rate": sum(rates) / len(rates), "our_rate": simulated["rate_percent"]})
    return found


FIGURES = ("share", "iops", "mean_us", "rate")
# What is printed of a group: what it was set to, with the column's width; figures with title, width and factor.
SETTING = ("weight", 6)
COLUMNS = (("share", "share %", 7, 100), ("iops", "IOPS", 8, 1), ("mean_us", "mean us", 9, 1), ("rate", "vrate %", 7, 1))


def errors(of):
    """Errors in percent of the kernel's figure, sorted, of each figure."""
    return {figure: sorted(abs(row[f"our_{figure}"] / row[f"kernel_{figure}"] - 1) * 100 for row in of) for figure in FIGURES}
