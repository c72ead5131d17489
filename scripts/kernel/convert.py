"""Turns the text of a guest's trace into a recording in the format iosched-trace/1."""

import gzip
import io
import json
import re

from .failure import Failure

LINE = re.compile(r"^\s*.*-(\d+)\s+\[(\d+)\]\s+(?:\S{4,6}\s+)?(\d+): (\S.*)$")
VALUE = re.compile(r'(\w+)=("[^"]*"|\([a-z]+\)|\S+)')
NOTE = re.compile(r"\d+,\d+\s+\S+\s+m\s+N\s+(.*)")
OPERATIONS = {0: "R", 1: "W", 2: "F", 3: "D"}
# Bits of a bio's or request's flags. In `rwbs` the position counts, hints are in the order of the bits.
FUA, PREFLUSH, READ_AHEAD, SYNC, META = 1 << 17, 1 << 18, 1 << 19, 1 << 11, 1 << 12
HINTS = [(12, "M"), (13, "P"), (14, "X"), (15, "I"), (19, "A"), (20, "B"), (21, "N")]
# Older kernels do not say in their BTF which flag of a request means that it is part of a flush sequence. In recordings of `dd-flush` on 5.10 and 6.1
# every flush that is issued has this flag and no other, and nothing else has it.
OLD_FLUSH_SEQUENCE = 4
REASONS = ["too_idle", "budget_timeout", "budget_exhausted", "no_more_requests", "preempted"]

# bfq's messages about itself: pattern, kind of the line (None: not recorded), its numbers. `+` begins kinds whose numbers belong to the next line.
MESSAGES = [
    (r"calc_finish: serv (\d+), w (\d+)", "+", "service weight"),
    (r"calc_finish: start (\d+), finish (\d+), delta (\d+)", "vtime", "start finish delta"),
    (r"\bexpire \((\d+), slow (\d), num_disp (\d+), short_ttime (\d)\)", "expire", "reason slow in_driver short_think"),
    (r"recalc_budg: last budg (-?\d+), budg left (-?\d+)", "+", "last left"),
    (r"recalc_budg: last max_budg (\d+), min budg (\d+)", "+", "queue_max min"),
    (r"recalc_budg: sync (\d), seeky (\d)", "budget_inputs", "sync seeky"),
    (r"head sect: (\d+), new budget (\d+)", "budget", "head_n budget"),
    (r"raising period dur (\d+)/(\d+) msec, old coeff (\d+), w (\d+)\((\d+)\)", "raised", "since_ms max_ms coeff weight base_weight"),
    (r"new_ioprio (\d+) new_weight (\d+)", "prio", "level weight"),
    (r"set_in_service_queue, cur-budget = (\d+)", "serve", "budget"),
    (r"^add to busy", "busy", ""),
    (r"^del from busy", "idle", ""),
    (r"^allocated", "new", ""),
    (r"bfq_limit_depth\] wr_busy (\d+) sync (\d) depth (\d+)", "limit", "raised_busy sync depth"),
    (r"schedule dispatch", "kick", ""),
    (r"sample (\d+)/(\d+) tot_sects (\d+)", "rate_reset", "samples sequential sectors"),
    (r"may_budget_timeout: wait_request (\d) left (\d) timeout 1", "timed_out", "waiting left"),
    (r"too many requests: allocated (\d+) limit (\d+) level (\d+)", "over_limit", "allocated limit level"),
    (r"updated next rq: new budget (\d+)", "rebudget", "budget"),
    (r"scheduling merge with queue (-?\d+)", "merge_planned", "with"),
    (r"merging with queue", "merge", ""),
    (r"set tentative waker bfq(\d+)", "waker_candidate", "pid"),
    (r"set waker bfq(\d+)", "waker", "pid"),
    (r"splitting queue", "split_queue", ""),
    (r"new max_budget = (\d+)", "max_budget", "budget"),
    (r"check_fifo: returned (?!0+\b)\S+", "fifo", ""),
    (r"is_slow: slow|merge_bfqqs|pending prio change|select_queue|get_request|put_queue|add_request|rq_pos_tree_lookup|dispatch requests", None, ""),
    (r"put_async_bfqq|get_queue, at end|may_budget_timeout|get_entity|exit_bfqq|bfqq_served|check_fifo|goto reset", None, ""),
]
MESSAGES = [(re.compile(pattern), kind, names.split()) for pattern, kind, names in MESSAGES]


class Numbers:
    """Small numbers instead of addresses; an address that is used again gets a new one."""

    def __init__(self):
        self.of, self.last = {}, 0

    def get(self, address):
        return self.of.get(address) or self.new(address) if address else None

    def new(self, address):
        self.last += 1
        self.of[address] = self.last
        return self.last


def number(text):
    """A probe's value; None if the probe could not read it."""
    return None if text is None or text.startswith("(") else int(text, 0)


class Trace:
    """The events of a trace, in the order of its lines."""

    def __init__(self, scheduler, flush_bit):
        self.scheduler = scheduler
        self.flush_sequence_flag = 1 << flush_bit
        self.events = []
        # Lines that are not understood, with their number: a kernel may say something new.
        self.unknown = {}
        self.start = self.tick = None
        self.requests, self.bios = Numbers(), Numbers()
        # What a dispatch says about its request was seen before.
        self.seen = {}
        self.dispatched = {}
        # Requests with the driver, and how many were issued that already were.
        self.issued, self.endless = set(), 0
        # By address, the last event that freed a request there.
        self.freed = {}
        # By (CPU, pid): a question without its answer, an insertion that has begun, a merge that is being tried.
        self.questions, self.insertions, self.merges = {}, {}, {}
        self.batches = 0
        self.held, self.limit = {}, None

    def read(self, lines):
        for line in lines:
            if line.startswith("#") or not line.strip():
                continue
            match = LINE.match(line.rstrip("\n"))
            if not match:
                # Lost events have lines of their own, and are counted elsewhere, too.
                self.note("line: " + line.strip()[:60])
                continue
            pid, cpu, time, rest = int(match[1]), int(match[2]), int(match[3]), match[4]
            if self.start is None:
                self.start = time
            note = NOTE.match(rest)
            if note:
                self.message(time - self.start, cpu, pid, note[1])
                continue
            name, _, values = rest.partition(":")
            self.event(name.strip(), values.strip(), {"t": time - self.start, "e": name.strip(), "cpu": cpu, "pid": pid})

    def note(self, what):
        what = re.sub(r"\d+", "#", what)
        self.unknown[what] = self.unknown.get(what, 0) + 1

    def message(self, time, cpu, pid, text):
        """A message of a scheduler, or of the core about a change of scheduler."""
        change = re.match(r"elv switch: (\S+)", text)
        if change:
            # The old scheduler is drained and gone, the new one in force.
            self.events.append({"t": time, "e": "mark", "cpu": cpu, "pid": pid, "msg": f"switch {change[1]} done"})
            return
        queue = re.match(r"bfq(\d+|SHARED-)([SA]) ", text)
        body = text[queue.end() :] if queue else text
        for pattern, kind, names in MESSAGES:
            found = pattern.search(body)
            if found:
                break
        else:
            self.note("message: " + re.sub(r"[0-9a-f]{16}", "#", body))
            return
        numbers = dict(zip(names, map(int, found.groups())))
        if kind is None:
            return
        if kind == "+":
            self.held.update(numbers)
            return
        event = {"t": time, "e": "bfq", "k": kind}
        if queue:
            event["q"] = queue[1].replace("SHARED-", "shared") + queue[2]
        event.update(numbers)
        if kind == "expire":
            event["reason"] = REASONS[event["reason"]]
        if kind == "limit":
            # Said at each allocation; recorded when it changes.
            if self.limit == numbers:
                return
            self.limit = numbers
        if kind in ("vtime", "budget_inputs"):
            event.update(self.held)
            self.held.clear()
        self.events.append(event)

    def describe(self, event, values):
        """What a bio or request does, and where."""
        flags = number(values["opf"])
        operation = OPERATIONS.get(flags & 0xFF, "N")
        event["op"] = operation
        event["rwbs"] = "".join(
            (
                "F" if flags & PREFLUSH and operation != "F" else "",
                operation,
                "F" if flags & FUA else "",
                "A" if flags & READ_AHEAD else "",
                "S" if flags & SYNC else "",
                "M" if flags & META else "",
            )
        )
        sector = number(values["sector"])
        event["sector"] = 0 if sector == (1 << 64) - 1 else sector
        event["n"] = number(values["len"]) // 512
        hints = "".join(letter for bit, letter in HINTS if flags >> bit & 1)
        if hints:
            event["hint"] = hints
        priority = number(values.get("prio"))
        if priority is not None:
            event["prio"] = [priority >> 13, priority & 7]

    def ticks(self, event, values):
        tick = number(values.get("j"))
        if tick is not None:
            if self.tick is None:
                self.tick = tick
            event["j"] = tick - self.tick

    def event(self, name, text, event):
        values = dict(VALUE.findall(text))
        task = (event["cpu"], event["pid"])
        kind, _, _ = name.partition("_")
        handler = getattr(self, "on_" + kind, None)
        if handler is None:
            self.note("event: " + name)
            return
        event["e"] = kind
        if handler(event, values, task, text) is False:
            return
        # The insertion is over when the task does something else.
        if event["e"] in ("run", "runend", "plug", "getrq", "queue", "dispatch"):
            self.insertions.pop(task, None)
        self.events.append(event)

    def on_queue(self, event, values, task, text):
        event["bio"] = self.bios.new(number(values["bio"]))
        self.describe(event, values)

    def on_getrq(self, event, values, task, text):
        event["bio"] = self.bios.get(number(values["bio"]))
        self.describe(event, values)
        if number_free(values.get("cg")):
            event["cg"] = "/" + values["cg"].strip('"/')

    def on_split(self, event, values, task, text):
        event["bio"] = self.bios.get(number(values["bio"]))
        self.describe(event, values)
        event["at"] = number(values["ns"])

    def on_toback(self, event, values, task, text):
        self.merges[task] = self.requests.get(number(values["rq"]))
        return False

    on_tofront = on_toback

    def on_backmerge(self, event, values, task, text):
        event["bio"] = self.bios.get(number(values["bio"]))
        request = self.merges.pop(task, None)
        if request is not None:
            event["rq"] = request
        self.describe(event, values)

    on_frontmerge = on_backmerge

    def on_plug(self, event, values, task, text):
        pass

    def on_unplug(self, event, values, task, text):
        event["nr"] = number(values["nr"])
        event["explicit"] = bool(number(values["expl"]))

    def on_sinsert(self, event, values, task, text):
        self.batches += 1
        self.insertions[task] = (self.batches, number(values["flags"]) & 1)
        return False

    def request(self, event, values):
        """Request, and bio if the line names one."""
        event["rq"] = self.requests.get(number(values["rq"]))
        bio = number(values.get("bio"))
        if bio and event["e"] in ("insert", "issue"):
            event["bio"] = self.bios.get(bio)

    def placed(self, event, values):
        for key in ("hctx", "ctx", "tag", "stag"):
            event[key] = number(values.get(key))
        if event["e"] in ("insert", "issue"):
            self.ticks(event, values)

    def described_request(self, event, values):
        self.request(event, values)
        self.describe(event, values)
        self.seen[event["rq"]] = {key: event[key] for key in ("op", "sector", "n")}
        self.placed(event, values)

    def flush_sequence(self, event, values):
        if (number(values.get("rqf")) or 0) & self.flush_sequence_flag:
            event["flushseq"] = True

    def on_insert(self, event, values, task, text):
        self.described_request(event, values)
        begun = self.insertions.get(task)
        event["by"] = "sched" if begun else "core"
        if begun:
            event["batch"] = begun[0]
            if begun[1]:
                event["head"] = True
        self.flush_sequence(event, values)

    def on_rqmerge(self, event, values, task, text):
        self.described_request(event, values)
        self.flush_sequence(event, values)

    def on_requeue(self, event, values, task, text):
        self.on_rqmerge(event, values, task, text)
        self.issued.discard(event["rq"])

    def on_issue(self, event, values, task, text):
        self.described_request(event, values)
        token = number(values.get("tok"))
        # Under another scheduler the field is a pointer, or unused.
        if self.scheduler == "kyber" and token is not None and -1 <= token < 1 << 16:
            event["token"] = token
            if token >= 0 and event["rq"] in self.dispatched:
                self.dispatched[event["rq"]]["token"] = token
        self.flush_sequence(event, values)
        # A flush uses the same request for each.
        if not event.get("flushseq"):
            self.endless += event["rq"] in self.issued
            self.issued.add(event["rq"])

    def on_complete(self, event, values, task, text):
        self.described_request(event, values)
        event["err"], event["done"] = number(values["err"]), number(values["nb"]) // 512
        self.flush_sequence(event, values)

    def on_free(self, event, values, task, text):
        self.request(event, values)
        self.placed(event, values)
        self.flush_sequence(event, values)
        self.issued.discard(event["rq"])
        self.requests.of.pop(number(values["rq"]), None)
        self.freed[number(values["rq"])] = event

    def on_ask(self, event, values, task, text):
        self.questions[task] = (number(values["hctx"]), event["t"])
        return False

    def on_dispatch(self, event, values, task, text):
        event["hctx"], event["asked"] = self.questions.pop(task, (None, event["t"]))
        request = self.requests.get(number(values["rq"]))
        event["rq"] = request
        if request in self.seen:
            event.update(self.seen[request])
            self.dispatched[request] = event
        self.ticks(event, values)

    def on_run(self, event, values, task, text):
        event["hctx"] = number(values["hctx"])

    def on_runend(self, event, values, task, text):
        pass

    def on_sdone(self, event, values, task, text):
        event["e"] = "finish"
        address = number(values["rq"])
        if address in self.freed and address not in self.requests.of:
            # Older kernels tell the scheduler within the function that frees: the request is free when that has ended.
            freed = self.freed.pop(address)
            del self.events[next(index for index in reversed(range(len(self.events))) if self.events[index] is freed)]
            event["rq"] = freed["rq"]
            self.events += [event, {**freed, "t": event["t"]}]
            return False
        event["rq"] = self.requests.get(address)

    def on_slat(self, event, values, task, text):
        event["e"] = "sample"
        event["rq"] = self.requests.get(number(values["rq"]))

    def on_itimer(self, event, values, task, text):
        event["e"] = "bfq_idle_timer"

    def on_tracing(self, event, values, task, text):
        event["e"] = "mark"
        event["msg"] = text

    def on_kyber(self, event, values, task, text):
        latency = re.search(r"\d+,\d+ (\S+) (\S+) (?:latency )?p(\d+) (\d+)/(\d+) samples=(\d+)", text)
        adjusted = re.fullmatch(r"\d+,\d+ (\S+) (\d+)", text)
        throttled = re.fullmatch(r"\d+,\d+ (\S+)", text)
        if latency:
            event["e"] = "kyber_latency"
            event["domain"], event["kind"] = latency[1], latency[2]
            event.update(zip(("percentile", "bucket", "buckets", "samples"), map(int, latency.groups()[2:])))
        elif adjusted:
            event.update(e="kyber_adjust", domain=adjusted[1], depth=int(adjusted[2]))
        elif throttled:
            event.update(e="kyber_throttled", domain=throttled[1])
        else:
            self.note("event: kyber: " + text)
            return False


def number_free(text):
    """A text that a probe could read."""
    return text if text and not text.startswith("(") else None


def header(files, scenario, trace, hz):
    """The first line of a recording, from what the guest said about itself."""
    system = {"queue": {}, "device": {}}
    for line in files["system"].splitlines():
        key, _, value = line.partition("=")
        where, space, name = key.partition(" ")
        if space and where in system:
            system[where][name] = value.strip()
        else:
            system[key] = value
    queue, device = system["queue"], system["device"]

    def whole(value):
        return int(value) if re.fullmatch(r"-?\d+", value or "") else value

    weights = {}
    for line in files.get("cgroups", "").splitlines():
        path, _, weight = line.partition(" ")
        weights[path.strip("/")] = weight if weight.startswith("default") or not weight else f"default {weight}"
    processes = []
    for line, job in zip(files["processes"].splitlines(), scenario["jobs"]):
        _, pid, comm, priority, cgroup = line.split()
        weight = weights.get(cgroup.strip("/"))
        processes.append({"pid": int(pid), "comm": comm, "ioprio": [int(part) for part in priority.split(":")], "cgroup": cgroup, "weight": weight, "job": job})
    numbers = "nr_requests nomerges rotational max_sectors_kb max_segments wbt_lat_usec rq_affinity fua read_ahead_kb logical_block_size async_depth".split()
    settings = {"nr_hw_queues": int(device["submit_queues"]), "queue_depth": int(device["hw_queue_depth"])}
    settings.update({name: whole(queue.get(name)) for name in numbers})
    settings["write_cache"] = queue.get("write_cache")
    return {
        "format": "iosched-trace/1",
        "name": scenario["name"],
        "kernel": system["kernel"],
        "scheduler": scenario["scheduler"],
        "tunables": {name.partition("/")[2]: whole(value) for name, value in sorted(queue.items()) if name.startswith("iosched/")},
        "queue": settings,
        "device": {
            "model": "null_blk",
            "completion_ns": int(device["completion_nsec"]),
            "irqmode": int(device["irqmode"]),
            "size_mib": int(device["size"]),
            "memory_backed": int(device["memory_backed"]),
            "cache_size_mib": int(device["cache_size"]),
            "mbps": int(device["mbps"]),
            "blocking": int(device["blocking"]),
            "shared_tags": int(device.get("shared_tags", 0)),
        },
        "cpus": int(system["cpus"]),
        "hz": hz,
        "clock": "icount",
        "processes": processes,
        "cgroups": weights,
        "workload": scenario["jobs"],
        "hook": scenario.get("hook"),
        "notes": scenario.get("notes", ""),
        "events": len(trace.events),
    }


def convert(files, scenario, hz, flush_bit=None):
    """The lines of a recording, and what was not understood; a recording with lost events is refused. `flush_bit` is the number of the flag of a
    request that is part of a flush sequence, if the kernel says it."""
    name = scenario["name"]
    bad = [line[4:] for line in files["log"].splitlines() if line.startswith("BAD ")]
    if bad:
        others = [line for line in files["log"].splitlines() if "load:" in line]
        raise Failure(f"{name}: {'; '.join(bad + others)}")
    for part in ("trace", "stats", "missed", "system", "processes"):
        if part not in files:
            raise Failure(f"{name}: the guest did not send its {part} (expected all of them); its log ends with: {' | '.join(files['log'].splitlines()[-4:])}")
    lost = sum(int(line.split(":")[1]) for line in files["stats"].splitlines() if line.startswith(("overrun", "dropped")))
    if lost:
        raise Failure(f"{name}: {lost} events were lost (expected none; fewer I/Os of the scenario need less room)")
    # A kprobe misses what happens while another one is being recorded. What 5.10 counts of `free` is more than it misses.
    missed = {words[0]: int(words[2]) for words in map(str.split, files["missed"].splitlines()) if words[2] != "0" and words[0] != "free"}
    if missed:
        listed = ", ".join(f"{count} of {probe}" for probe, count in sorted(missed.items()))
        raise Failure(f"{name}: kprobes missed events ({listed}; expected none)")
    trace = Trace(scenario["scheduler"], OLD_FLUSH_SEQUENCE if flush_bit is None else flush_bit)
    trace.read(files["trace"].splitlines())
    if not trace.events:
        raise Failure(f"{name}: the trace has no events (expected the scenario's load)")
    if trace.endless:
        raise Failure(f"{name}: {trace.endless} requests were issued again before they were freed (expected none; the kernel's probes missed events)")
    lines = [header(files, scenario, trace, hz), *trace.events]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode(), trace.unknown


def packed(recording):
    """The contents of a recording's file; the same recording makes the same bytes."""
    out = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, out, mtime=0) as file:
        file.write(recording)
    return out.getvalue()
