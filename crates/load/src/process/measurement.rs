//! The measurement of a process: latencies, rates and levels, as fio counts them.

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::{Instant, Nanos};
use hoistway_measure::fio::SteadyState;
use hoistway_measure::io_log::{IoLog, LogParameters, LoggedIo};
use hoistway_measure::{Direction, LatencyHistogram, LatencySearchResult, ProcessResult, SAMPLE_INTERVAL_NS};

use super::{LogSettings, Process};

/// The measurement of one process in the form of fio, with its bandwidth and IOPS samples.
pub(super) struct Measurement {
    result: ProcessResult,
    /// Latencies, by direction, of I/Os whose submission took no time: completion latency equals total latency, so one
    /// histogram serves for both, and for the zeros of the submission latency.
    immediate: [LatencyHistogram; 3],
    /// Start of the process.
    start: Instant,
    /// Start of the measurement, after the ramp.
    measure_start: Instant,
    last: Instant,
    asynchronous: bool,
    /// Whether single I/Os have their own priorities; the others have the priority of the process.
    has_priorities: bool,
    process_priority: IoPriority,
    /// For each direction, I/Os and bytes since the last sample.
    samples: [Sample; 3],
    syncs: Syncs,
}

#[derive(Clone, Copy, Default)]
struct Sample {
    since: Instant,
    bytes: u64,
    ios: u64,
}

/// One finished I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    /// The operation.
    pub(super) op: Op,
    /// Its length.
    pub(super) bytes: u32,
    /// Its offset on the device.
    pub(super) offset_bytes: u64,
    /// Its own priority, which may be none.
    pub(super) priority: IoPriority,
    /// When it was created.
    pub(super) created: Instant,
    /// When the system call that submitted it returned.
    pub(super) issued: Instant,
    /// When the process reaped it.
    pub(super) reaped: Instant,
    /// Whether the runtime of the process was over by then.
    pub(super) is_late: bool,
}

fn direction_of(op: Op) -> Direction {
    match op {
        Op::Read | Op::Flush => Direction::Read,
        Op::Write | Op::WriteZeroes => Direction::Write,
        Op::Discard => Direction::Trim,
    }
}

/// The order of fsync and fdatasync in a process: each is due after every N writes; where both are due there is one
/// fsync (tried with fio 3.33).
#[derive(Debug)]
struct Syncs {
    every: [u64; 2],
    due: [u64; 2],
}

impl Syncs {
    fn new(every: [u32; 2]) -> Syncs {
        let every = every.map(u64::from);
        Syncs { every, due: every.map(|writes| if writes == 0 { u64::MAX } else { writes }) }
    }

    /// Whether the next one is an fdatasync. A recording has none.
    fn next_is_fdatasync(&mut self) -> bool {
        let [full, data] = self.due;
        for (due, every) in self.due.iter_mut().zip(self.every).filter(|(due, _)| **due == full.min(data)) {
            *due = due.saturating_add(every);
        }
        data < full
    }
}

/// The parameters of a process's log.
fn log_parameters(process: &Process, settings: LogSettings) -> LogParameters {
    LogParameters {
        window_ns: settings.window.0,
        from_ns: process.schedule.ramp.0,
        has_slat: process.issue.engine.is_asynchronous(),
        is_maximum: settings.is_maximum,
        has_offsets: settings.offsets,
        has_priorities: settings.priorities,
        histogram_window_ns: settings.histogram_window.0,
        histogram_coarseness: settings.histogram_coarseness,
    }
}

impl Measurement {
    /// The measurement of a process that starts at `start`.
    pub(super) fn new(process: &Process, start: Instant) -> Self {
        let measure_start = start + process.schedule.ramp;
        Measurement {
            result: ProcessResult {
                name: process.name.clone(),
                job: process.schedule.job as u32,
                group: process.schedule.group,
                group_reporting: process.schedule.group_reporting,
                reporting: process.schedule.reporting,
                options: process.options.to_vec(),
                iodepth: process.issue.depth,
                log: process.log.map(|settings| Box::new(IoLog::new(log_parameters(process, settings)))),
                ..ProcessResult::default()
            },
            immediate: Default::default(),
            start,
            measure_start,
            last: measure_start,
            asynchronous: process.issue.engine.is_asynchronous(),
            has_priorities: process.plan.has_priorities(),
            process_priority: process.standing.io_priority.unwrap_or(IoPriority::UNSET),
            samples: [Sample { since: measure_start, ..Sample::default() }; 3],
            syncs: Syncs::new(process.plan.pattern.sync_every),
        }
    }

    /// A batch of I/Os was submitted; now `depth` are in flight.
    #[inline]
    pub(super) fn submitted(&mut self, now: Instant, batch: u32, depth: u32) {
        if now >= self.measure_start {
            self.result.submit_levels.record(batch);
            self.result.depth_levels.record(depth);
        }
    }

    /// A batch of completions was reaped.
    #[inline]
    pub(super) fn reaped(&mut self, now: Instant, batch: u32) {
        if now >= self.measure_start {
            self.result.complete_levels.record(batch);
        }
    }

    /// CPU time was spent for the process. All of it counts as system time, since the process's own share is unknown.
    #[inline]
    pub(super) fn charged(&mut self, now: Instant, cpu: Nanos) {
        if now >= self.measure_start {
            self.result.cpu.system_ns += cpu.0;
        }
    }

    /// The process kept its CPU busy (spun).
    pub(super) fn spun(&mut self, now: Instant, cpu: Nanos) {
        if now >= self.measure_start {
            self.result.cpu.user_ns += cpu.0;
        }
    }

    /// Discards the measurement and restarts it now.
    pub(super) fn restart(&mut self, now: Instant) {
        let old = std::mem::take(&mut self.result);
        self.result = ProcessResult {
            name: old.name,
            job: old.job,
            group: old.group,
            group_reporting: old.group_reporting,
            reporting: old.reporting,
            options: old.options,
            iodepth: old.iodepth,
            error: old.error,
            log: old.log,
            ..ProcessResult::default()
        };
        self.immediate = Default::default();
        (self.measure_start, self.last) = (now, now);
        self.samples = [Sample { since: now, ..Sample::default() }; 3];
    }

    /// I/Os and bytes so far.
    pub(super) fn done(&self) -> (u64, u64) {
        self.result.directions.iter().fold((0, 0), |sum, direction| (sum.0 + direction.ios, sum.1 + direction.bytes))
    }

    /// Sets the result of the steady-state check.
    pub(super) fn set_steady_state(&mut self, steady: Option<Box<SteadyState>>) {
        self.result.steady_state = steady;
    }

    /// Sets the result of a search for a depth.
    pub(super) fn set_latency_search_result(&mut self, search: LatencySearchResult) {
        self.result.latency_search = Some(search);
    }

    /// An I/O failed.
    pub(super) fn failed(&mut self, errno: i32) {
        if self.result.error == 0 {
            self.result.error = errno;
        }
    }

    /// An I/O was reaped.
    #[inline]
    pub(super) fn finished(&mut self, io: &Finished) {
        if io.reaped < self.measure_start {
            return;
        }
        self.last = io.reaped;
        let total = io.reaped.since(io.created).0;
        if io.op == Op::Flush {
            self.result.sync.total_ios += 1;
            self.result.sync.of_data += u64::from(self.syncs.next_is_fdatasync());
            self.result.sync.lat.record(total);
            return;
        }
        let direction = direction_of(io.op);
        let result = self.result.direction_mut(direction);
        result.ios += 1;
        result.bytes += u64::from(io.bytes);
        if !self.asynchronous || io.issued == io.created {
            self.immediate[direction as usize].record(total);
        } else {
            result.slat.record(io.issued.since(io.created).0);
            result.clat.record(io.reaped.since(io.issued).0);
            result.lat.record(total);
        }
        if io.is_late {
            Self::outstanding(result, total);
        }
        if self.has_priorities {
            let priority = if io.priority == IoPriority::UNSET { self.process_priority } else { io.priority };
            Self::by_priority(result, priority, io.reaped.since(io.issued), total);
        }
        result.series.record(io.reaped.since(self.measure_start).0, total);
        let sample = &mut self.samples[direction as usize];
        sample.bytes += u64::from(io.bytes);
        sample.ios += 1;
        let span = io.reaped.since(sample.since);
        if span.0 >= SAMPLE_INTERVAL_NS {
            Self::sample(result, sample, io.reaped, span);
        }
        if let Some(log) = &mut self.result.log {
            log.record(&LoggedIo {
                direction,
                bytes: io.bytes,
                offset_bytes: io.offset_bytes,
                ioprio: if io.priority == IoPriority::UNSET { self.process_priority.0 } else { io.priority.0 },
                at_ns: io.reaped.since(self.start).0,
                slat_ns: if self.asynchronous { io.issued.since(io.created).0 } else { 0 },
                lat_ns: total,
            });
        }
    }

    #[cold]
    fn outstanding(result: &mut hoistway_measure::DirectionResult, total: u64) {
        result.outstanding.get_or_insert_default().record(total);
    }

    #[cold]
    fn by_priority(result: &mut hoistway_measure::DirectionResult, priority: IoPriority, clat: Nanos, total: u64) {
        let with_priority = result.priority_mut(priority.0);
        with_priority.clat.record(clat.0);
        with_priority.lat.record(total);
    }

    #[cold]
    fn sample(result: &mut hoistway_measure::DirectionResult, sample: &mut Sample, now: Instant, span: Nanos) {
        let per_second = |count: u64| (u128::from(count) * 1_000_000_000 / u128::from(span.0.max(1))) as u64;
        result.bandwidth.add(per_second(sample.bytes) / 1024);
        result.iops.add(per_second(sample.ios));
        *sample = Sample { since: now, ..Sample::default() };
    }

    /// The result of a process that ended at `end`.
    pub(super) fn into_result(mut self, end: Instant) -> ProcessResult {
        for (direction, immediate) in Direction::ALL.into_iter().zip(&self.immediate) {
            let result = self.result.direction_mut(direction);
            result.clat.merge(immediate);
            result.lat.merge(immediate);
            if self.asynchronous {
                result.slat.record_many(0, immediate.count());
            }
        }
        self.result.runtime_ns = end.max(self.last).since(self.measure_start).0;
        if let Some(log) = &mut self.result.log {
            log.finish(end.max(self.last).since(self.start).0);
        }
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fsync_and_fdatasync_take_turns_as_in_fio() {
        let order = |every| {
            let mut syncs = Syncs::new(every);
            (0..10).map(|_| if syncs.next_is_fdatasync() { 'd' } else { 's' }).collect::<String>()
        };
        assert_eq!(order([3, 2]), "dsdsdsdsds");
        assert_eq!([order([1, 0]), order([0, 1]), order([0, 0])], ["ssssssssss", "dddddddddd", "ssssssssss"]);
        assert_eq!(order([4, 1]), "dddsdddsdd");
    }
}
