"""The table of scenarios, and fresh scenarios of the same kinds.

With a seed every number of a scenario that does not make its kind is drawn anew, within a factor of two or so: the generators of random
addresses, the number of I/Os, depths, batches, lengths, places, pauses, priorities within a class, weights of cgroups, tunables that the
scenario sets, one more tunable in one of three scenarios, the device's depth and time, the order and times of changes of scheduler. The
same seed draws the same scenario, whichever others are drawn.
"""

import fnmatch
import os
import random
import tomllib

from .failure import Failure

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scenarios.toml")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
DEFAULTS = {"cpus": 1, "hw_queues": 1, "nr_requests": 0, "rotational": False, "device": "", "attributes": "", "tunables": "", "cgroups": "", "charged": False}
DEFAULTS |= {"write_back": "", "hook": None, "since": "", "quick": False, "notes": ""}
NEEDED = ("scheduler", "depth", "service_us", "jobs")
SIZE_MIB = 1024

# Tunables that a fresh scenario may set in addition: name, lowest and highest value, in the units of sysfs.
MORE = {
    "none": [],
    "mq-deadline": [("fifo_batch", 1, 32), ("writes_starved", 1, 6), ("read_expire", 20, 800), ("write_expire", 100, 6000), ("front_merges", 0, 1)],
    "kyber": [("read_lat_nsec", 300000, 8000000), ("write_lat_nsec", 1000000, 40000000)],
    "bfq": [("slice_idle", 0, 12), ("fifo_expire_sync", 16, 200), ("back_seek_max", 0, 32768), ("timeout_sync", 40, 200), ("low_latency", 0, 1)],
}


def table(path=TABLE):
    """All scenarios by name, complete and checked."""
    try:
        with open(path, "rb") as file:
            rows = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path}: {error} (expected TOML)") from None
    for name, row in rows.items():
        for key in NEEDED:
            if key not in row:
                raise Failure(f"{path}: [{name}] has no {key}")
        for key in row:
            if key not in NEEDED and key not in DEFAULTS:
                raise Failure(f"{path}: [{name}] {key}: is no key of a scenario (expected {', '.join((*NEEDED, *DEFAULTS))})")
        if row["scheduler"] not in SCHEDULERS:
            raise Failure(f"{path}: [{name}] scheduler = {row['scheduler']} (expected one of {', '.join(SCHEDULERS)})")
        for key, default in DEFAULTS.items():
            row.setdefault(key, default)
        row["name"] = name
    return rows


def chosen(patterns, rows):
    """The scenarios with these names, or whose names match these patterns, in the order of the table; `all` and `quick` are sets."""
    names = set()
    for pattern in patterns:
        if pattern == "quick":
            found = [name for name, row in rows.items() if row["quick"]]
        else:
            found = fnmatch.filter(rows, "*" if pattern == "all" else pattern)
        if not found:
            raise Failure(f"{pattern}: no such scenario (expected all, quick, or a name or pattern of those that --list prints)")
        names.update(found)
    return [row for name, row in rows.items() if name in names]


def release_of(text):
    """(7, 3) of `7.3.4+deb13-amd64`."""
    parts = (text.split("-")[0].split("+")[0].split(".") + ["0"])[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)


def folder(scenario):
    """Recordings lie in a folder for each scheduler, those with a change of scheduler in one of their own."""
    return "switch" if "switch " in (scenario["hook"] or "") else scenario["scheduler"]


def schedulers_of(scenario):
    """The schedulers that the scenario uses, now or after a change."""
    words = (scenario["hook"] or "").replace(";", " ").split()
    later = [words[index + 1] for index, word in enumerate(words[:-1]) if word == "switch"]
    return list(dict.fromkeys([scenario["scheduler"], *later]))


def words_of(text):
    return [tuple(word.split("=", 1)) for word in text.split()]


def text_of(words):
    return " ".join(f"{key}={value}" for key, value in words)


def bytes_of(text):
    unit = {"k": 10, "m": 20, "g": 30}.get(text[-1])
    return int(text[:-1]) << unit if unit else int(text)


def fresh(row, seed):
    """Another scenario of this row's kind."""
    dice = random.Random(f"{row['name']} {seed}")
    out = dict(row)
    out["name"] = f"{row['name']}-s{seed}"

    def scaled(value, low, high, least=1):
        return max(least, round(int(value) * dice.uniform(low, high)))

    def doubled(value, least, most):
        return min(most, max(least, dice.choice((int(value) // 2, int(value), int(value) * 2))))

    out["depth"] = doubled(row["depth"], 1, 64)
    out["service_us"] = scaled(row["service_us"], 0.6, 1.6)
    if row["nr_requests"]:
        # Not less than the driver's tags, so that the tags that wait are the scheduler's.
        out["nr_requests"] = max(doubled(row["nr_requests"], 16, 256), out["depth"])
    tunables = [(name, value if int(value) < 2 else str(doubled(value, 1, 1 << 36))) for name, value in words_of(row["tunables"])]
    more = MORE[row["scheduler"]]
    if more and dice.random() < 1 / 3:
        name, low, high = dice.choice(more)
        if name not in dict(tunables):
            tunables.append((name, str(dice.randint(low, high))))
    out["tunables"] = text_of(tunables)
    out["cgroups"] = " ".join(f"{pair.split(':')[0]}:{dice.randint(1, 10) * 50}" for pair in row["cgroups"].split())
    out["jobs"] = [fresh_job(job, dice, scaled, doubled) for job in row["jobs"]]
    if row["hook"]:
        out["hook"] = fresh_hook(row, dice)
    return out


def fresh_job(job, dice, scaled, doubled):
    words = dict(words_of(job))
    for key, value in list(words.items()):
        if key == "ios":
            words[key] = scaled(value, 0.7, 1.2)
        elif key == "qd" and int(value) > 1:
            words[key] = doubled(value, 2, 96)
        elif key in ("think", "start"):
            words[key] = scaled(value, 0.5, 1.8, 0)
        elif key == "every":
            words[key] = scaled(value, 0.6, 1.6)
        elif key in ("fsync", "sfr") and int(value) > 1:
            words[key] = scaled(value, 0.6, 1.6)
        elif key == "mix":
            words[key] = dice.randint(25, 75)
        elif key == "prio":
            words[key] = f"{value.split(':')[0]}:{dice.randint(0, 7)}"
        elif key == "bs" and "-" not in value and "stride" not in words:
            words[key] = doubled(bytes_of(value), 4096, 256 << 10)
        elif key == "off" and "stride" not in words and "part" not in words:
            size = bytes_of(words.get("size", "64m"))
            words[key] = min(bytes_of(value) + dice.randrange(4096) * 4096, (SIZE_MIB << 20) - size)
    if "batch" in words:
        words["batch"] = dice.randint(1, min(int(words.get("qd", 1)), 2 * int(words["batch"])))
    # Jobs without random addresses have no use for a seed.
    if "rand" in words["rw"] or "order" in words or "-" in str(words.get("bs", "")):
        words["seed"] = dice.randrange(1, 1 << 31)
    return text_of(words.items())


def fresh_hook(row, dice):
    commands = [command.split() for command in row["hook"].split(";")]
    current = row["scheduler"]
    for command in commands:
        if command[0] == "sleep":
            command[1] = f"{float(command[1]) * dice.uniform(0.5, 1.5):.3f}"
        elif command[0] == "switch":
            current = command[1] = dice.choice([name for name in SCHEDULERS if name != current])
    return "; ".join(" ".join(command) for command in commands)
