#!/usr/bin/env python3
"""A SimPy model of a closed loop over a queue with tags: a peer for the speed of `hoistway compare`.

  pip install simpy
  benches/simpy_queue.py                        # the processes of crates/sim/tests/data/habr-ssd.fio on a SATA SSD
  benches/simpy_queue.py --processes 1 --depth 32 --tags 64 --seconds 1

Each process keeps `--depth` I/Os of random offset in flight. An I/O waits for one of the `--tags` tags, then for one of
the `--units` units of the drive, which serves it for an exponential time. Offset and latency of every I/O are drawn and
counted. There is no scheduler, no merging and no CPU, so one of our I/Os under `none` does more than one of these.
Prints I/Os, their mean latency, and I/Os per second of CPU time.
"""

import argparse
import random
import time

import simpy


class Drive:
    """A drive with tags and units, and what it has measured."""

    def __init__(self, environment, arguments):
        self.environment = environment
        self.random = random.Random(arguments.seed)
        self.tags = simpy.Resource(environment, arguments.tags)
        self.units = simpy.Resource(environment, arguments.units)
        self.rate_per_us = 1 / arguments.service_us
        self.blocks = arguments.blocks
        self.ios = 0
        self.latency_us = 0.0
        self.offsets = 0

    def io(self):
        """One I/O, from its submission to its end."""
        submitted_us = self.environment.now
        self.offsets ^= self.random.randrange(self.blocks)
        with self.tags.request() as tag:
            yield tag
            with self.units.request() as unit:
                yield unit
                yield self.environment.timeout(self.random.expovariate(self.rate_per_us))
        self.ios += 1
        self.latency_us += self.environment.now - submitted_us

    def slot(self):
        """A place in the queue of a process: one I/O after the other."""
        while True:
            yield from self.io()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=12, help="processes (default: 12)")
    parser.add_argument("--depth", type=int, default=4, help="I/Os of each process in flight (default: 4)")
    parser.add_argument("--tags", type=int, default=32, help="driver tags (default: 32)")
    parser.add_argument("--units", type=int, default=8, help="I/Os that the drive serves at once (default: 8)")
    parser.add_argument("--service-us", type=float, default=200, help="mean time that serves one, us (default: 200)")
    parser.add_argument("--blocks", type=int, default=390_000_000, help="blocks of 4 KiB on the drive")
    parser.add_argument("--seconds", type=float, default=5, help="virtual time, s (default: 5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random numbers (default: 1)")
    arguments = parser.parse_args()
    for name in ("processes", "depth", "tags", "units", "service_us", "blocks", "seconds"):
        if getattr(arguments, name) <= 0:
            parser.error(f"--{name.replace('_', '-')}: {getattr(arguments, name)} (expected more than 0)")
    return arguments


def main():
    arguments = parsed()
    environment = simpy.Environment()
    drive = Drive(environment, arguments)
    for _ in range(arguments.processes * arguments.depth):
        environment.process(drive.slot())
    began = time.process_time()
    environment.run(until=arguments.seconds * 1e6)
    cpu_s = time.process_time() - began
    mean_us = drive.latency_us / max(drive.ios, 1)
    print(f"{drive.ios} I/Os, mean latency {mean_us:.0f} us, {drive.ios / cpu_s:,.0f} I/Os per CPU second")


if __name__ == "__main__":
    main()
