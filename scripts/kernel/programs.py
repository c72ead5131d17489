"""Programs to be recorded under every scheduler: fio job files that their names draw, with their devices, and what the guest gives of a run.

From the recording under one scheduler the runs under the others are predicted (`hoistway-evidence replay-pairs`).
"""

import gzip
import os
import random
import re

from . import closed_loop, failure, scenarios
from .failure import Failure

SCHEDULERS = ("none", "mq-deadline", "bfq")
# What `hoistway record` records: a request merged into another one completes with it.
EVENTS = (
    "bio_queue getrq bio_backmerge bio_frontmerge rq_insert rq_issue rq_requeue rq_complete split bio_remap plug unplug".split()
)
RUN_S = 3
FILE_MIB = 24


def closed(dice):
    return [f"rw={dice.choice(('randread', 'read', 'randwrite', 'write', 'randrw'))}", f"bs={dice.choice((4, 8, 16, 64))}k", f"iodepth={dice.choice((1, 2, 4, 8, 16))}"]


def thinking(dice):
    lines = [f"rw={dice.choice(('randread', 'randwrite', 'randrw'))}", f"bs={dice.choice((4, 8, 16))}k", f"thinktime={dice.choice((300, 1000, 3000, 8000))}"]
    return lines + [f"numjobs={dice.randint(1, 4)}"]


def paced(dice):
    lines = [f"rw={dice.choice(('randread', 'randwrite'))}", f"bs={dice.choice((4, 16))}k", f"rate_iops={dice.choice((40, 150, 400))}"]
    return lines + [f"rate_process={dice.choice(('linear', 'poisson'))}", f"iodepth={dice.choice((1, 16))}"]


def batches(dice):
    batch = dice.choice((4, 8))
    lines = [f"rw={dice.choice(('randread', 'write'))}", f"bs={dice.choice((4, 16))}k", f"iodepth={2 * batch}", f"iodepth_batch_submit={batch}"]
    return lines + [f"iodepth_batch_complete_min={dice.choice((1, batch))}"]


def syncs(dice):
    lines = ["rw=write", f"bs={dice.choice((4, 8, 16))}k", f"fdatasync={dice.choice((1, 4))}"]
    return lines + ([f"thinktime={dice.choice((500, 2000))}"] if dice.random() < 0.5 else [])


def committing(dice):
    """A database that writes to a file through the page cache and syncs."""
    lines = ["rw=randwrite", f"bs={dice.choice((4, 8, 16))}k", "direct=0", "ioengine=psync", f"fsync={dice.choice((1, 2, 8))}"]
    return lines + [f"thinktime={dice.choice((500, 2000))}"]


def copying(dice):
    return ["rw=write", f"bs={dice.choice((64, 128))}k", "direct=0", "ioengine=psync", f"fsync={dice.choice((16, 32))}"]


def with_priority(dice):
    return [f"prioclass={dice.choice((1, 2, 2, 3))}", f"prio={dice.randint(0, 7)}"]


def draw(name):
    """The job file and the device of a program."""
    dice = random.Random(name)
    has_files = dice.random() < 0.25
    has_priorities = dice.random() < 0.25
    lines = ["[global]", "ioengine=libaio", "direct=1", "random_generator=lfsr", "time_based", f"runtime={RUN_S}"]
    lines += ["directory=/mnt", f"size={FILE_MIB}m"] if has_files else ["filename=/dev/nullb0"]
    kinds = [closed, closed, thinking, paced, batches, syncs] + [committing, committing, copying] * has_files
    for number in range(dice.randint(2, 4)):
        lines += [f"[job{number}]", *dice.choice(kinds)(dice)]
        lines += with_priority(dice) if has_priorities and dice.random() < 0.6 else []
    # One CPU: several of a guest run in turns, which no machine does.
    device = {"cpus": "1", "hw_queues": "1", "depth": str(dice.choice((1, 2, 4, 8, 32)))}
    # At most 16,000 commands a second, which the guest's processor can make.
    least_us = int(device["depth"]) * 1_000_000 // 16_000
    device["completion_us"] = str(dice.choice([us for us in (250, 500, 1000, 2000, 4000) if us >= least_us]))
    return "\n".join(lines) + "\n", device | {"files": str(int(has_files)), "nr_requests": dice.choice(("", "64"))}


def settings(program, device, kernel, log):
    """The lines that `replay-pairs` reads."""
    lines = [f"what={program}", f"null_blk=size=1024 submit_queues={device['hw_queues']} hw_queue_depth={device['depth']} completion_nsec={device['completion_us']}000"]
    lines += [f"cpus={device['cpus']}", f"kernel={kernel.release}", "clock_hz=1000000000"]
    return "\n".join(lines + re.findall(r"(?m)^QUEUE (\S+=.*)$", log)) + "\n"


def record(kernel, program, scheduler, folder, limit_s):
    """Records a program under a scheduler, unless that is done."""
    base = os.path.join(folder, f"{program}.{scheduler}")
    if os.path.exists(base + ".settings"):
        return False
    job, device = draw(program)
    options = device | {"scheduler": scheduler, "trace": ",".join(f"block/block_{event}" for event in EVENTS), "trace_from_s": "0"}
    document, log, _, trace = closed_loop.run(kernel, job, options | {"trace_for_s": "600", "trace_clock": "x86-tsc"}, limit_s)
    lost = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", trace)
    if not lost or lost[1] != lost[2]:
        raise Failure(f"{program} under {scheduler}: {lost[0] if lost else 'no trace'} (expected every event)")
    os.makedirs(folder, exist_ok=True)
    failure.write(os.path.join(folder, program + ".fio"), job)
    failure.write(base + ".fio.json.gz", gzip.compress(document.encode(), mtime=0))
    failure.write(base + ".ftrace.txt.gz", gzip.compress(trace.encode(), mtime=0))
    failure.write(base + ".settings", settings(program, device, kernel, log))
    return True


def names(seed, count):
    return [f"program-{seed}-{number}" for number in range(count)]


def schedulers(asked):
    for name in asked:
        if name not in scenarios.SCHEDULERS:
            raise Failure(f"--scheduler {name} (expected one of {', '.join(scenarios.SCHEDULERS)})")
    return asked or SCHEDULERS
