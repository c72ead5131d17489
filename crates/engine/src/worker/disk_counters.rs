//! Statistics of the target, in the form of a kernel's statistics of a disk: `/sys/block/DEV/stat`.
//!
//! Each worker counts the events on its own thread, so counting needs no lock. A request may begin on one worker and end on another,
//! so only the sums over all workers are meaningful. As in Linux, the busy time has the resolution of a tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{CpuId, Hz, Kernel, Now};
use hoistway_blk::request::Request;
use hoistway_blk::watch::{DiskStats, Event, IoCounts, Probe};
use hoistway_measure::{DiskIos, DiskSummary, DiskTimes};

/// The statistics of an engine.
#[derive(Debug)]
pub struct DiskCounters {
    workers: Box<[WorkerCounters]>,
    /// Requests in the scheduler.
    held: AtomicI64,
    /// The tick up to which busy time is counted.
    stamp: AtomicU64,
}

/// The counters of one worker, which is the only writer. The alignment keeps workers off each other's cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounters {
    reads: Counts,
    writes: Counts,
    discards: Counts,
    flushes: Counts,
    /// Requests started here minus requests completed here.
    in_flight: AtomicI64,
    /// Ticks in which the target was busy.
    io_ticks: AtomicU64,
    /// Number of times that the scheduler dispatched one of several requests, or none although it had some.
    choices: AtomicU64,
}

#[derive(Debug, Default)]
struct Counts {
    ios: AtomicU64,
    merges: AtomicU64,
    sectors: AtomicU64,
    nanos: AtomicU64,
}

/// Adds to a number that no other thread writes.
fn add(counter: &AtomicU64, increment: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(increment), Relaxed);
}

impl Counts {
    fn sum<'a>(all: impl Iterator<Item = &'a Counts>) -> IoCounts {
        all.fold(IoCounts::default(), |sum, counts| IoCounts {
            ios: sum.ios + counts.ios.load(Relaxed),
            merges: sum.merges + counts.merges.load(Relaxed),
            sectors: sum.sectors + counts.sectors.load(Relaxed),
            nanos: sum.nanos + counts.nanos.load(Relaxed),
        })
    }
}

impl WorkerCounters {
    fn count(&self, now: Now, rq: &Request) {
        let counts = match rq.op {
            Op::Read => &self.reads,
            Op::Write | Op::WriteZeroes => &self.writes,
            Op::Discard => &self.discards,
            Op::Flush => &self.flushes,
        };
        add(&counts.ios, 1);
        add(&counts.merges, (rq.bios.len() as u64).saturating_sub(1));
        add(&counts.sectors, u64::from(rq.sectors));
        add(&counts.nanos, now.at.since(rq.start).0);
    }
}

impl DiskCounters {
    pub fn new(workers: usize) -> Self {
        let workers = (0..workers).map(|_| WorkerCounters::default()).collect();
        DiskCounters { workers, held: AtomicI64::new(0), stamp: AtomicU64::new(0) }
    }

    fn in_flight(&self) -> i64 {
        self.workers.iter().map(|worker| worker.in_flight.load(Relaxed)).sum()
    }

    /// The contents of a kernel's statistics files for a target with this name, after `passed_ns`.
    pub fn summary(&self, kernel: Kernel, (hz, now): (Hz, Now), file: &str, passed_ns: u64) -> DiskSummary {
        self.count_ticks(&self.workers[0], now, false);
        let counts = |select: fn(&WorkerCounters) -> &Counts| Counts::sum(self.workers.iter().map(select));
        let kinds = [
            counts(|worker| &worker.reads),
            counts(|worker| &worker.writes),
            counts(|worker| &worker.discards),
            counts(|worker| &worker.flushes),
        ];
        let sum = |select: fn(&WorkerCounters) -> &AtomicU64| {
            self.workers.iter().map(|worker| select(worker).load(Relaxed)).sum()
        };
        let busy_ns: u64 = sum(|worker| &worker.io_ticks) * hz.tick_ns();
        let mut disk = DiskStats::counted(kernel, kinds, busy_ns, now);
        let ios = |counts: IoCounts| DiskIos { ios: counts.ios, merges: counts.merges, nanos: counts.nanos };
        let times = DiskTimes { in_queue_ms: disk.time_in_queue_ms(now), busy_ms: disk.io_ticks_ms(now), passed_ns };
        let choices = sum(|worker| &worker.choices);
        DiskSummary::of(file, disk.line(now), [ios(disk.reads()), ios(disk.writes())], times, choices)
    }

    /// A request begins or ends in a different tick than the last one.
    #[cold]
    fn count_ticks(&self, own: &WorkerCounters, now: Now, is_end: bool) {
        let stamp = self.stamp.load(Relaxed);
        let is_new = now.tick.0 > stamp && self.stamp.compare_exchange(stamp, now.tick.0, Relaxed, Relaxed).is_ok();
        if is_new && (is_end || self.in_flight() > 0) {
            own.io_ticks.fetch_add(now.tick.0 - stamp, Relaxed);
        }
    }

    fn event(&self, own: &WorkerCounters, now: Now, event: &Event<'_>) {
        match event {
            Event::GetRq(_) => {
                if now.tick.0 != self.stamp.load(Relaxed) {
                    self.count_ticks(own, now, false);
                }
                own.in_flight.store(own.in_flight.load(Relaxed) + 1, Relaxed);
            }
            Event::Absorbed(_) | Event::End(_) => {
                if now.tick.0 != self.stamp.load(Relaxed) {
                    self.count_ticks(own, now, true);
                }
                own.in_flight.store(own.in_flight.load(Relaxed) - 1, Relaxed);
                match event {
                    Event::End(rq) => own.count(now, rq),
                    // It was merged into another request of the scheduler.
                    _ => {
                        self.held.fetch_sub(1, Relaxed);
                    }
                }
            }
            Event::Complete(rq, Status::Ok) if rq.op == Op::Flush => {
                add(&own.flushes.ios, 1);
                add(&own.flushes.nanos, now.at.since(rq.issued).0);
            }
            Event::Insert(rq) if rq.enters_elevator() => {
                self.held.fetch_add(1, Relaxed);
            }
            Event::Dispatch { rq, .. } => {
                let held = self.held.load(Relaxed);
                add(&own.choices, u64::from(held > i64::from(rq.is_some())));
                if rq.is_some() {
                    self.held.fetch_sub(1, Relaxed);
                }
            }
            _ => {}
        }
    }
}

/// The probe of a worker's calls: it counts if the engine keeps statistics.
pub struct WorkerProbe {
    worker: usize,
    statistics: Option<Arc<DiskCounters>>,
}

impl WorkerProbe {
    pub fn new(worker: usize, statistics: Option<Arc<DiskCounters>>) -> Self {
        WorkerProbe { worker, statistics }
    }
}

impl Probe for WorkerProbe {
    const WATCHES: bool = false;

    #[inline(always)]
    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        // The kind of an event is known at compile time, so for most events no code is left.
        let counts = matches!(
            event,
            Event::GetRq(_)
                | Event::Absorbed(_)
                | Event::Complete(..)
                | Event::End(_)
                | Event::Insert(_)
                | Event::Dispatch { .. }
        );
        if counts && let Some(statistics) = &self.statistics {
            statistics.event(&statistics.workers[self.worker], now, &event);
        }
    }
}
