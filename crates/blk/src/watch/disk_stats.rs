//! I/O statistics of a device, as `/proc/diskstats` shows them (BL-126 to BL-128).
//!
//! They are a [`Probe`]: only a queue that is observed has their cost.

use std::fmt::Write as _;

use crate::bio::{Direction, Op, Status};
use crate::ground::ids::CpuId;
use crate::ground::kernel::{DiskStatsGeneration, Kernel};
use crate::ground::time::{Hz, Instant, Now, Tick};
use crate::request::Request;
use crate::watch::probe::{Event, Probe};

/// The counters of one kind of I/O.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoCounts {
    /// Requests that have ended.
    pub ios: u64,
    /// Bios and requests that were merged into another request; counted when that ends.
    pub merges: u64,
    /// Sectors of the requests that have ended.
    pub sectors: u64,
    /// Sum of the times from allocation to end, ns, including the time in the plug and the scheduler.
    pub nanos: u64,
}

/// The kinds that are counted separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
enum Kind {
    Read,
    Write,
    Discard,
    Flush,
}

impl Kind {
    fn of(op: Op, generation: DiskStatsGeneration) -> Kind {
        match op {
            Op::Read => Kind::Read,
            Op::Discard if generation > DiskStatsGeneration::ExactWithoutDiscards => Kind::Discard,
            Op::Write | Op::WriteZeroes | Op::Discard => Kind::Write,
            Op::Flush => Kind::Flush,
        }
    }
}

/// The statistics of one device.
#[derive(Clone, Debug)]
pub struct DiskStats {
    generation: DiskStatsGeneration,
    hz: Hz,
    kinds: [IoCounts; 4],
    /// Requests between their allocation and their end.
    in_flight: u64,
    /// Of them, those at the driver, by direction.
    issued: [u64; 2],
    /// Ticks in which there was I/O.
    io_ticks: u64,
    /// The time up to which `io_ticks` is counted.
    stamp: Tick,
    /// The time during which something was in flight, up to `busy_since`, ns. Older kernels show it.
    busy_ns: u64,
    /// Since when something has been in flight.
    busy_since: Instant,
    /// The sum of all end times minus the sum of all start times, ns. Together with the present time for each request in flight
    /// this is the time that all of them took.
    queued_ns: u64,
}

impl DiskStats {
    /// Statistics of a device without I/O so far.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        let generation = kernel.generation();
        DiskStats {
            generation: generation.disk_stats,
            hz: generation.hz,
            kinds: [IoCounts::default(); 4],
            in_flight: 0,
            issued: [0; 2],
            io_ticks: 0,
            stamp: Tick(0),
            busy_ns: 0,
            busy_since: Instant::ZERO,
            queued_ns: 0,
        }
    }

    /// Continues the statistics of another counter, with nothing in flight: `kinds` are reads, writes, discards and flush
    /// commands, `busy_ns` is the time with I/O.
    #[must_use]
    pub fn counted(kernel: Kernel, kinds: [IoCounts; 4], busy_ns: u64, now: Now) -> Self {
        let io_ticks = busy_ns / kernel.generation().hz.tick_ns();
        let queued_ns = kinds.iter().map(|counts| counts.nanos).sum();
        DiskStats { kinds, io_ticks, busy_ns, queued_ns, stamp: now.tick, ..DiskStats::new(kernel) }
    }

    /// Reads.
    #[must_use]
    pub fn reads(&self) -> IoCounts {
        self.kinds[Kind::Read as usize]
    }

    /// Writes, and write-zeroes.
    #[must_use]
    pub fn writes(&self) -> IoCounts {
        self.kinds[Kind::Write as usize]
    }

    /// Discards.
    #[must_use]
    pub fn discards(&self) -> IoCounts {
        self.kinds[Kind::Discard as usize]
    }

    /// Flush commands.
    #[must_use]
    pub fn flushes(&self) -> IoCounts {
        self.kinds[Kind::Flush as usize]
    }

    /// Requests that exist.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Milliseconds in which the device was busy, as this kernel counts them. `now` must be the present time.
    pub fn io_ticks_ms(&mut self, now: Now) -> u64 {
        // Reading brings it up to date.
        self.count_ticks(now, self.in_flight > 0);
        if self.generation <= DiskStatsGeneration::Exact {
            let current_busy_ns = if self.in_flight > 0 { now.at.since(self.busy_since).0 } else { 0 };
            (self.busy_ns + current_busy_ns) / 1_000_000
        } else {
            self.io_ticks * self.hz.tick_ns() / 1_000_000
        }
    }

    /// The sum of the times of all I/Os until now, milliseconds.
    #[must_use]
    pub fn time_in_queue_ms(&self, now: Now) -> u64 {
        if self.generation <= DiskStatsGeneration::Exact {
            self.queued_ns.wrapping_add(self.in_flight.wrapping_mul(now.at.0)) / 1_000_000
        } else {
            self.kinds.iter().map(|counts| counts.nanos / 1_000_000).sum()
        }
    }

    /// The fields of `/sys/block/DEV/stat`, separated by blanks. `/proc/diskstats` has the numbers and the name of the device
    /// before them.
    pub fn line(&mut self, now: Now) -> String {
        let (in_flight, io_ticks) = (self.in_flight, self.io_ticks_ms(now));
        let mut line = String::new();
        let mut add = |value: u64| {
            let blank = if line.is_empty() { "" } else { " " };
            // Writing to a string does not fail.
            let _ = write!(line, "{blank}{value}");
        };
        let fields = |counts: IoCounts| [counts.ios, counts.merges, counts.sectors, counts.nanos / 1_000_000];
        fields(self.reads()).into_iter().chain(fields(self.writes())).for_each(&mut add);
        [in_flight, io_ticks, self.time_in_queue_ms(now)].into_iter().for_each(&mut add);
        if self.generation > DiskStatsGeneration::ExactWithoutDiscards {
            fields(self.discards()).into_iter().for_each(&mut add);
        }
        if self.generation > DiskStatsGeneration::Exact {
            [self.flushes().ios, self.flushes().nanos / 1_000_000].into_iter().for_each(&mut add);
        }
        line
    }

    /// Reads and writes at the driver, as in `/sys/block/DEV/inflight`.
    #[cfg(test)]
    pub(crate) fn at_driver(&self) -> [u64; 2] {
        self.issued
    }

    #[inline]
    fn count_start(&mut self, now: Now) {
        if now.tick != self.stamp {
            self.count_ticks(now, false);
        }
        if self.in_flight == 0 {
            self.busy_since = now.at;
        }
        self.in_flight += 1;
        self.queued_ns = self.queued_ns.wrapping_sub(now.at.0);
    }

    #[inline]
    fn count_end(&mut self, now: Now) {
        if now.tick != self.stamp {
            self.count_ticks(now, true);
        }
        if self.in_flight == 0 {
            // The request began before the statistics did.
            return;
        }
        self.in_flight -= 1;
        self.queued_ns = self.queued_ns.wrapping_add(now.at.0);
        if self.in_flight == 0 {
            self.busy_ns += now.at.since(self.busy_since).0;
        }
    }

    /// Counts the ticks since the last change, when a request begins or ends.
    #[cold]
    fn count_ticks(&mut self, now: Now, was_busy: bool) {
        let ticks = now.tick.0.saturating_sub(self.stamp.0);
        if ticks > 0 {
            self.stamp = now.tick;
            self.io_ticks += match self.generation {
                DiskStatsGeneration::StartsCountOne if !was_busy => 1,
                DiskStatsGeneration::Ticks if !was_busy && self.in_flight == 0 => 0,
                _ => ticks,
            };
        }
    }

    #[inline]
    fn count(&mut self, now: Now, rq: &Request) {
        let counts = &mut self.kinds[Kind::of(rq.op, self.generation) as usize];
        counts.ios += 1;
        counts.merges += (rq.bios.len() as u64).saturating_sub(1);
        counts.sectors += u64::from(rq.sectors);
        counts.nanos += now.at.since(rq.start).0;
    }

    fn count_driver_exit(&mut self, direction: Direction) {
        let issued = &mut self.issued[direction.index()];
        *issued = issued.saturating_sub(1);
    }
}

impl Probe for DiskStats {
    // The request contains what was merged into it, so nothing needs to be recorded for that.
    const WATCHES: bool = false;

    // At each call the kind of event is known, so most of this disappears when it is inlined.
    #[inline(always)]
    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::GetRq(_) => self.count_start(now),
            Event::Absorbed(_) => self.count_end(now),
            Event::Issue(rq) => self.issued[rq.direction().index()] += 1,
            Event::Requeue(rq) => self.count_driver_exit(rq.direction()),
            Event::Complete(rq, status) => {
                self.count_driver_exit(rq.direction());
                if rq.op == Op::Flush && status == Status::Ok {
                    let counts = &mut self.kinds[Kind::Flush as usize];
                    counts.ios += 1;
                    counts.nanos += now.at.since(rq.issued).0;
                }
            }
            Event::End(rq) => {
                self.count_end(now);
                self.count(now, rq);
            }
            Event::Queue(_) | Event::Split(_) | Event::Merge(..) | Event::Plug | Event::Unplug { .. } => {}
            Event::Insert(_) | Event::Dispatch { .. } => {}
            // Drivers that take bios keep their own statistics.
            Event::BioComplete(..) => {}
        }
    }
}
