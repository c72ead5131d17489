//! Summaries of jobs: the figures of a comparison table, which cannot be computed from fio's output.

use serde::{Deserialize, Serialize};

use super::demand::JobDemand;
use super::distribution::LatencyDistribution;
use crate::figure::Figure;
use hoistway_measure::histogram::{BINNED_NS_END, LatencyHistogram};
use hoistway_measure::measurement::ProcessResult;
use hoistway_measure::rate::per_second;
use hoistway_measure::series::Series;
use hoistway_measure::settling::Settling;
use hoistway_measure::stats;
use hoistway_measure::{Direction, Operation};

/// One job of the job file, all its processes (clones) taken together.
///
/// Rates are *sums* over the processes, each over its own runtime; latencies are those of *all* the job's I/Os, from
/// the merged histograms. fio's output cannot give this: without `group_reporting` it has an entry for each process,
/// whose percentiles do not add up, and with it one for several jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// The job's name.
    pub name: String,
    /// Index of its section in the job file, from 0.
    pub job: u32,
    /// Number of processes.
    pub processes: u32,
    /// Processes that ended with an error, by errno; their figures cover the time until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedProcesses>,
    /// Modelled CPU time per I/O, us, as [`Run::cpu_us_per_io`](super::Run::cpu_us_per_io).
    #[serde(default)]
    pub cpu_us_per_io: Option<f64>,
    /// Index of the first equivalent job, which differs only in its name, files or offsets (its own index if it is the first);
    /// `None` if no other job is equivalent.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "alike")]
    pub equivalent_to: Option<u32>,
    /// Whether its I/O is random rather than sequential; `None` in documents of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random: Option<bool>,
    /// Jain's index of the IOPS of its processes: 1 if all are equal, 1/n if one of n has everything. `None` for a single
    /// process, and without I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Duration of a recorded job's work, s: from a process's first I/O to its last completion, the longest of its processes.
    /// `None` if the end of the run cut one off, and for other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_seconds: Option<f64>,
    /// The job's demand; `None` in documents of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<JobDemand>,
    /// The job's operations in the order of tables: reads, writes, trims and syncs, each only if there was any.
    pub operations: Vec<OperationSummary>,
}

/// Processes of a job that ended with the same error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedProcesses {
    /// The Linux errno, positive.
    pub errno: i32,
    /// Number of processes.
    pub processes: u32,
}

/// One operation of a job: its reads, writes or trims, or its `fsync`s, `fdatasync`s and the like (commits, to a database).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationSummary {
    /// Read, write, trim or sync.
    pub operation: Operation,
    /// Number of completed operations.
    pub ios: u64,
    /// Bytes transferred; 0 for syncs.
    pub bytes: u64,
    /// Operations a second, summed over the processes.
    pub iops: f64,
    /// Bandwidth, summed over the processes; 0 for syncs.
    pub bytes_per_second: f64,
    /// Total latency (fio's `lat`).
    pub lat_ns: LatencySummary,
    /// The latency distribution in more points; empty in documents of versions that did not record it.
    #[serde(default)]
    pub distribution: LatencyDistribution,
    /// I/Os still in flight at the end of their process's runtime, if most of the slowest I/Os are among them. Their full latencies are
    /// unknown then, so percentiles from the 99th on are lower bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u64>,
    /// I/Os and latencies over time; empty for syncs.
    #[serde(default, skip_serializing_if = "SeriesSummary::is_empty")]
    pub series: SeriesSummary,
    /// Whether the run had settled; unknown for syncs.
    #[serde(default)]
    pub settling: Settling,
}

/// I/Os and latencies over time, in intervals of equal length that lie completely within the measurement, which starts after
/// the ramp.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesSummary {
    /// Length of an interval, s.
    pub interval_seconds: f64,
    /// I/Os that completed in each interval.
    pub ios: Vec<u64>,
    /// Their mean total latency, ns; 0 without any.
    pub mean_lat_ns: Vec<u64>,
    /// I/Os that completed in the last interval, which the end of the run cuts short; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<SeriesRest>,
}

/// The incomplete last interval of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRest {
    /// I/Os that completed in it.
    pub ios: u64,
    /// Their mean total latency, ns.
    pub mean_lat_ns: u64,
}

impl SeriesSummary {
    fn is_empty(&self) -> bool {
        self.ios.is_empty() && self.interval_seconds == 0.0
    }
}

/// A distribution of latencies, ns. Percentiles are midpoints of bins, so they may be off by 1/128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Smallest.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the individual latencies.
    pub stddev: f64,
    /// Median.
    pub p50: u64,
    /// 95th percentile; `None` in documents of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Largest.
    pub max: u64,
    /// The latencies weighted by themselves; `None` without I/O, and in documents of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_time: Option<TimeWeighted>,
}

/// A distribution in which each latency counts in proportion to its length: at a random moment, the wait that one is in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeWeighted {
    /// What a party is judged by, ns: the latencies' mean of powers of 1.5, to the power of 4/3, divided by their mean. Between the mean
    /// of the latencies and `mean_ns`: a few stalls of the device, which may or may not happen in a run, do not decide alone.
    pub judged_ns: f64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// The share of I/Os that take at least this mean.
    pub longer_ios: f64,
    /// The share of all time waited that these I/Os take.
    pub longer_time: f64,
}

impl TimeWeighted {
    /// `None` without I/O, or if no time passed.
    fn of(histogram: &LatencyHistogram) -> Option<Self> {
        let (all_ns, stddev_ns) = (histogram.mean() * histogram.count() as f64, histogram.stddev());
        if all_ns == 0.0 {
            return None;
        }
        let mean_ns = histogram.mean() + stddev_ns * stddev_ns / histogram.mean();
        let longer = histogram.bins().filter(|(ns, _)| *ns as f64 >= mean_ns);
        let (ios, ns) = longer.fold((0, 0.0), |(ios, sum), (ns, count)| (ios + count, sum + ns as f64 * count as f64));
        let count = histogram.count() as f64;
        // Only the shape comes from the bins, so that their width does not round the mean.
        let (mut binned_ns, mut powers) = (0.0, 0.0);
        for (ns, ios) in histogram.bins() {
            binned_ns += ios as f64 * ns as f64;
            powers += ios as f64 * (ns as f64).powf(WAIT_POWER);
        }
        let shape = wait_of_powers(powers / count, binned_ns / count) / (binned_ns / count);
        Some(Self {
            judged_ns: histogram.mean() * shape.max(1.0),
            mean_ns,
            longer_ios: ios as f64 / count,
            longer_time: (ns / all_ns).min(1.0),
        })
    }
}

/// The power by which long waits count. With 1 only the mean would, with 2 only the longest few.
const WAIT_POWER: f64 = 1.5;

/// The wait of turns of which this is the mean of [`WAIT_POWER`], and this the mean. For turns of equal length it is their length, and
/// together with the rate it is the mean of the powers, so that whatever shortens some turns and no others is a gain.
pub(crate) fn wait_of_powers(mean_of_powers: f64, mean_ns: f64) -> f64 {
    mean_of_powers.powf(2.0 / WAIT_POWER) / mean_ns
}

/// The inverse of [`wait_of_powers`].
pub(crate) fn powers_of_wait(wait_ns: f64, mean_ns: f64) -> f64 {
    (wait_ns * mean_ns).powf(WAIT_POWER / 2.0)
}

/// Minimum I/Os for a meaningful 99th percentile: ten lie beyond it.
pub(crate) const IOS_FOR_P99: u64 = 1000;

/// CPU time spent on these processes during the measurement, us per I/O, syncs included. `None` without I/O.
pub fn cpu_us_per_io<'a>(processes: impl IntoIterator<Item = &'a ProcessResult>) -> Option<f64> {
    let (mut ns, mut ios) = (0, 0);
    for process in processes {
        ns += process.cpu.user_ns + process.cpu.system_ns;
        ios += process.sync.total_ios + process.directions.iter().map(|direction| direction.ios).sum::<u64>();
    }
    (ios > 0).then(|| ns as f64 / 1e3 / ios as f64)
}

impl JobSummary {
    /// Summaries of all jobs, in the order of the job file.
    pub fn from_processes(processes: &[ProcessResult]) -> Vec<Self> {
        let mut by_job: Vec<&ProcessResult> = processes.iter().collect();
        by_job.sort_by_key(|process| process.job);
        by_job.chunk_by(|a, b| a.job == b.job).map(Self::from_clones).collect()
    }

    /// Number of processes that ended with an error.
    pub fn failed_processes(&self) -> u32 {
        self.failed.iter().map(|failed| failed.processes).sum()
    }

    /// The summary of this operation; `None` if there was none.
    pub fn operation(&self, operation: Operation) -> Option<&OperationSummary> {
        self.operations.iter().find(|summary| summary.operation == operation && summary.ios > 0)
    }

    /// The summaries of its reads, writes and trims.
    pub fn transfers(&self) -> impl Iterator<Item = &OperationSummary> {
        self.operations.iter().filter(|summary| summary.operation != Operation::Sync)
    }

    /// The summary of its syncs; `None` without any.
    pub fn syncs(&self) -> Option<&OperationSummary> {
        self.operation(Operation::Sync)
    }

    fn from_clones(clones: &[&ProcessResult]) -> Self {
        let directions =
            Direction::ALL.into_iter().map(|direction| OperationSummary::from_direction(direction, clones));
        let operations = directions.chain([OperationSummary::from_syncs(clones)]).filter(|summary| summary.ios > 0);
        Self {
            name: clones[0].name.clone(),
            job: clones[0].job,
            processes: clones.len() as u32,
            failed: FailedProcesses::among(clones),
            cpu_us_per_io: cpu_us_per_io(clones.iter().copied()),
            equivalent_to: None,
            random: None,
            demand: None,
            done_seconds: clones
                .iter()
                .map(|clone| clone.done_ns)
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().max())
                .map(|ns| ns as f64 / 1e9),
            fairness: stats::jain_index(&clones.iter().map(|clone| iops_of(clone)).collect::<Vec<_>>()),
            operations: operations.collect(),
        }
    }
}

/// I/Os a second of a process.
fn iops_of(process: &ProcessResult) -> f64 {
    per_second(process.total_ios(), process.runtime_ns)
}

impl FailedProcesses {
    fn among(clones: &[&ProcessResult]) -> Vec<Self> {
        let mut errors: Vec<i32> = clones.iter().map(|process| process.error).filter(|&error| error != 0).collect();
        errors.sort_unstable();
        let by_errno = errors.chunk_by(|a, b| a == b);
        by_errno.map(|errors| Self { errno: errors[0], processes: errors.len() as u32 }).collect()
    }
}

impl OperationSummary {
    /// The value of a figure.
    pub fn figure(&self, figure: Figure) -> f64 {
        let latency = &self.lat_ns;
        match figure {
            Figure::Iops => self.iops,
            Figure::Bandwidth => self.bytes_per_second,
            Figure::Mean => latency.mean,
            Figure::P50 => latency.p50 as f64,
            // Older documents lack it; the next known percentile is an upper bound.
            Figure::P95 => latency.p95.unwrap_or(latency.p99) as f64,
            Figure::P99 => latency.p99 as f64,
            Figure::P99_9 => latency.p99_9 as f64,
            Figure::Max => latency.max as f64,
        }
    }

    /// The wait that a party is judged by, ns ([`TimeWeighted::judged_ns`]). Documents that did not record it have the 99th percentile
    /// instead, or the mean of few I/Os.
    pub fn waited_ns(&self) -> f64 {
        match self.lat_ns.by_time {
            Some(by_time) => by_time.judged_ns,
            None if self.ios >= IOS_FOR_P99 => self.lat_ns.p99 as f64,
            None => self.lat_ns.mean,
        }
    }

    /// Whether a figure is only a lower bound: a percentile in the last bin of the histogram, or one whose slowest I/Os were still in
    /// flight when the run ended.
    pub fn is_at_least(&self, figure: Figure) -> bool {
        let is_tail = matches!(figure, Figure::P99 | Figure::P99_9);
        figure.is_percentile() && is_cut_off(self.figure(figure) as u64) || is_tail && self.outstanding.is_some()
    }

    fn from_syncs(clones: &[&ProcessResult]) -> Self {
        let mut lat = LatencyHistogram::new();
        clones.iter().for_each(|process| lat.merge(&process.sync.lat));
        Self {
            operation: Operation::Sync,
            ios: clones.iter().map(|process| process.sync.total_ios).sum(),
            bytes: 0,
            iops: clones.iter().map(|process| per_second(process.sync.total_ios, process.runtime_ns)).sum(),
            bytes_per_second: 0.0,
            lat_ns: LatencySummary::from(&lat),
            distribution: LatencyDistribution::from(&lat),
            outstanding: None,
            series: SeriesSummary::default(),
            settling: Settling::Unknown,
        }
    }

    fn from_direction(direction: Direction, clones: &[&ProcessResult]) -> Self {
        let (mut lat, mut outstanding) = (LatencyHistogram::new(), LatencyHistogram::new());
        let mut series = Series::new();
        let (mut shortest_ns, mut longest_ns) = (u64::MAX, 0);
        let mut summary = Self {
            operation: direction.into(),
            ios: 0,
            bytes: 0,
            iops: 0.0,
            bytes_per_second: 0.0,
            lat_ns: LatencySummary::default(),
            distribution: LatencyDistribution::default(),
            outstanding: None,
            series: SeriesSummary::default(),
            settling: Settling::Unknown,
        };
        for process in clones {
            let measured = process.direction(direction);
            summary.ios += measured.ios;
            summary.bytes += measured.bytes;
            summary.iops += per_second(measured.ios, process.runtime_ns);
            summary.bytes_per_second += per_second(measured.bytes, process.runtime_ns);
            lat.merge(&measured.lat);
            measured.outstanding.iter().for_each(|late| outstanding.merge(late));
            series.merge(&measured.series);
            if measured.ios > 0 {
                shortest_ns = shortest_ns.min(process.runtime_ns);
                longest_ns = longest_ns.max(process.runtime_ns);
            }
        }
        summary.lat_ns = LatencySummary::from(&lat);
        summary.distribution = LatencyDistribution::from(&lat);
        summary.outstanding = outstanding_if_slowest(&lat, &outstanding);
        summary.series = SeriesSummary::of(&series, longest_ns);
        // Only the time in which all clones ran counts: a rate that falls because a clone has ended is not a warm-up.
        summary.settling = Settling::of(series.complete(shortest_ns), series.length_ns());
        summary
    }
}

/// Whether a percentile lies in the last bin, which holds all latencies beyond the histogram's range.
pub fn is_cut_off(percentile_ns: u64) -> bool {
    // The last bin is 1/64 wide, and a percentile is a bin's midpoint.
    percentile_ns >= BINNED_NS_END - BINNED_NS_END / 128
}

/// The number of I/Os outstanding at the end, if they make up at least half of the slowest 1 %.
fn outstanding_if_slowest(lat: &LatencyHistogram, outstanding: &LatencyHistogram) -> Option<u64> {
    let p99 = lat.percentile(99.0)?;
    let is_tail = 2 * outstanding.count_from(p99) >= lat.count_from(p99);
    (outstanding.count() >= OUTSTANDING_MIN && is_tail).then(|| outstanding.count())
}

/// Fewer outstanding I/Os are ignored: every run ends with a few.
const OUTSTANDING_MIN: u64 = 10;

impl SeriesSummary {
    fn of(series: &Series, runtime_ns: u64) -> Self {
        let (intervals, length_ns) = (series.complete(runtime_ns), series.length_ns());
        let rest = series.rest(runtime_ns);
        Self {
            rest: (rest.ios > 0).then(|| SeriesRest { ios: rest.ios, mean_lat_ns: rest.lat_ns / rest.ios }),
            interval_seconds: length_ns as f64 / 1e9,
            ios: intervals.iter().map(|interval| interval.ios).collect(),
            mean_lat_ns: intervals.iter().map(|interval| interval.lat_ns / interval.ios.max(1)).collect(),
        }
    }
}

impl From<&LatencyHistogram> for LatencySummary {
    /// All zero for an empty histogram.
    fn from(histogram: &LatencyHistogram) -> Self {
        let (min, max) = (histogram.min().unwrap_or(0), histogram.max().unwrap_or(0));
        // Percentiles are midpoints of bins and could exceed the exact maximum.
        let percentile = |percent| histogram.percentile(percent).unwrap_or(0).clamp(min, max);
        Self {
            min,
            mean: histogram.mean(),
            stddev: histogram.stddev(),
            p50: percentile(50.0),
            p95: Some(percentile(95.0)),
            p99: percentile(99.0),
            p99_9: percentile(99.9),
            max,
            by_time: TimeWeighted::of(histogram),
        }
    }
}
