//! Builds fio's JSON output from measurements.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::calendar::time_text;
use super::distribution::{LatencyPercents, level_percents, six_decimals};
use super::schema::{DirectionStats, DiskUtil, Job, LatencyStats, Output, PriorityStats, SyncStats};
use crate::direction::Direction;
use crate::histogram::LatencyHistogram;
use crate::measurement::{BatchLevels, DepthLevels, PriorityLatency, ProcessResult, Reporting};
use crate::rate::per_second;
use crate::samples::SampleStats;

/// fio's default `percentile_list`.
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Parameters of [`Output::from_processes`] in addition to the measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputParameters {
    /// The time to write into the output, ms since 1970. A fixed one makes the output reproducible.
    pub timestamp_ms: u64,
    /// Whether to include the bins of histograms (json+).
    pub bins: bool,
    /// Which percentiles to include.
    pub percentiles: PercentileChoice,
    /// Statistics of the block devices; the key is omitted if empty.
    pub disk_util: Vec<DiskUtil>,
}

/// Which latencies have percentiles (and bins, in json+), and which percentiles.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileChoice {
    /// `slat_percentiles`: submission latency.
    pub slat: bool,
    /// `clat_percentiles`: completion latency. fsyncs follow it.
    pub clat: bool,
    /// `lat_percentiles`: total latency.
    pub lat: bool,
    /// `percentile_list`, ascending.
    pub list: Vec<f64>,
}

impl Default for PercentileChoice {
    /// Completion and total latency at fio's own percentiles: what fio writes with `lat_percentiles=1`.
    fn default() -> Self {
        Self { slat: false, clat: true, lat: true, list: PERCENTILES.to_vec() }
    }
}

impl Output {
    /// fio's output for these processes, in the job file's order.
    ///
    /// One entry for each process; with `group_reporting` one for each run of processes in the same group, under the
    /// first one's name and options, histograms merged, `runtime` the longest and `job_runtime` the sum.
    ///
    /// `global_options` are those of `[global]`; without any the key is left out. fio leaves out options given without
    /// a value; so should the caller, here and in [`ProcessResult::options`].
    pub fn from_processes(
        global_options: &[(String, String)],
        processes: &[ProcessResult],
        parameters: &OutputParameters,
    ) -> Self {
        let same_entry = |a: &ProcessResult, b: &ProcessResult| b.group_reporting && a.group == b.group;
        let elapsed_s = processes.iter().map(|process| process.runtime_ns).max().unwrap_or(0) / 1_000_000_000 + 1;
        let groups = totals_by_group(processes);
        let jobs = processes
            .chunk_by(same_entry)
            .map(|members| job(members, &groups[&members[0].group], elapsed_s, parameters))
            .collect();
        let mut output = Self {
            fio_version: "fio-3.33".to_owned(),
            timestamp: 0,
            timestamp_ms: 0,
            time: String::new(),
            global_options: (!global_options.is_empty()).then(|| global_options.iter().cloned().collect()),
            jobs,
            disk_util: (!parameters.disk_util.is_empty()).then(|| parameters.disk_util.clone()),
        };
        output.set_timestamp_ms(parameters.timestamp_ms);
        output
    }

    /// Sets the time of the output in its three forms; `timestamp_ms` is in ms since 1970.
    pub fn set_timestamp_ms(&mut self, timestamp_ms: u64) {
        self.timestamp = timestamp_ms / 1000;
        self.timestamp_ms = timestamp_ms;
        self.time = time_text(self.timestamp);
    }
}

/// One entry of `jobs`, for at least one process.
fn job(members: &[ProcessResult], group: &[Totals; 3], elapsed_s: u64, parameters: &OutputParameters) -> Job {
    let first = &members[0];
    let choice = &parameters.percentiles;
    let direction = |direction| match first.reporting {
        Reporting::Unified => DirectionStats::absent(),
        _ => direction_stats(&[direction], members, &group[direction as usize], parameters),
    };
    let mixed = (first.reporting != Reporting::Separate)
        .then(|| direction_stats(&Direction::ALL, members, &Totals::sum(group), parameters));
    let total_ios = members.iter().map(ProcessResult::total_ios).sum();

    let mut clat = LatencyHistogram::new();
    let mut sync = LatencyHistogram::new();
    let mut depths = DepthLevels::default();
    let mut submitted = BatchLevels::default();
    let mut completed = BatchLevels::default();
    for process in members {
        process.directions.iter().for_each(|direction| clat.merge(&direction.clat));
        sync.merge(&process.sync.lat);
        depths.merge(&process.depth_levels);
        submitted.merge(&process.submit_levels);
        completed.merge(&process.complete_levels);
    }
    let latencies = LatencyPercents::new(&clat, total_ios);
    let batch_percents =
        |levels: &BatchLevels| level_percents(BatchLevels::NAMES, levels.counts(), levels.counts().iter().sum());
    let runtime_ns: u64 = members.iter().map(|process| process.runtime_ns).sum();
    let cpu = |part: fn(&ProcessResult) -> u64| members.iter().map(part).sum::<u64>();
    // A process runs on one CPU at a time: time beyond its runtime was spent on other CPUs, for completions of its
    // I/Os.
    let cpu_ns = runtime_ns.max(cpu(|process| process.cpu.user_ns + process.cpu.system_ns));

    Job {
        jobname: first.name.clone(),
        groupid: first.group,
        error: members.iter().map(|process| process.error).find(|&error| error != 0).unwrap_or(0),
        eta: 0,
        elapsed: elapsed_s,
        job_options: first.options.iter().cloned().collect(),
        read: direction(Direction::Read),
        write: direction(Direction::Write),
        trim: direction(Direction::Trim),
        mixed,
        sync: SyncStats {
            total_ios: members.iter().map(|process| process.sync.total_ios - process.sync.of_data).sum(),
            lat_ns: latency_stats(&sync, choice.clat, parameters),
        },
        job_runtime: members.iter().map(|process| process.runtime_ns / 1_000_000).sum(),
        usr_cpu: share_percent(cpu(|process| process.cpu.user_ns), cpu_ns),
        sys_cpu: share_percent(cpu(|process| process.cpu.system_ns), cpu_ns),
        ctx: cpu(|process| process.cpu.context_switches),
        majf: cpu(|process| process.cpu.major_faults),
        minf: cpu(|process| process.cpu.minor_faults),
        iodepth_level: level_percents(DepthLevels::NAMES, depths.counts(), total_ios),
        iodepth_submit: batch_percents(&submitted),
        iodepth_complete: batch_percents(&completed),
        latency_ns: latencies.ns,
        latency_us: latencies.us,
        latency_ms: latencies.ms,
        total_err: None,
        first_error: None,
        latency_depth: first.latency_search.map_or(first.iodepth, |search| search.depth),
        latency_target: first.latency_search.map_or(0, |search| search.target_ns),
        latency_percentile: first.latency_search.map_or(100.0, |search| search.percentile),
        latency_window: first.latency_search.map_or(0, |search| search.window_ns / 1000),
        desc: first.options.iter().find(|(name, _)| name == "description").map(|(_, text)| text.clone()),
        steadystate: first.steady_state.as_deref().cloned(),
    }
}

fn direction_stats(
    directions: &[Direction],
    members: &[ProcessResult],
    group: &Totals,
    parameters: &OutputParameters,
) -> DirectionStats {
    let mut slat = LatencyHistogram::new();
    let mut clat = LatencyHistogram::new();
    let mut lat = LatencyHistogram::new();
    let mut bandwidth = SampleStats::default();
    let mut iops = SampleStats::default();
    let mut prios = BTreeMap::<u16, PriorityLatency>::new();
    for measured in members.iter().flat_map(|process| directions.iter().map(|&direction| process.direction(direction)))
    {
        slat.merge(&measured.slat);
        clat.merge(&measured.clat);
        lat.merge(&measured.lat);
        bandwidth.add_parallel(&measured.bandwidth);
        iops.add_parallel(&measured.iops);
        for latency in &measured.prios {
            let sum = prios.entry(latency.ioprio).or_default();
            sum.clat.merge(&latency.clat);
            sum.lat.merge(&latency.lat);
        }
    }
    let mut totals = Totals::default();
    for &direction in directions {
        members.iter().for_each(|process| totals.add(direction, process));
    }
    let bytes_per_second = per_second(totals.bytes, totals.runtime_ns) as u64;
    let group_kib_per_second = per_second(group.bytes, group.runtime_ns) / 1024.0;
    let percent_of_group =
        if group_kib_per_second > 0.0 { bandwidth.mean() / group_kib_per_second * 100.0 } else { 0.0 };
    let choice = &parameters.percentiles;

    DirectionStats {
        is_absent: false,
        io_bytes: totals.bytes,
        io_kbytes: totals.bytes / 1024,
        bw_bytes: bytes_per_second,
        bw: bytes_per_second / 1024,
        iops: six_decimals(per_second(totals.ios, totals.runtime_ns)),
        runtime: totals.runtime_ns.div_ceil(1_000_000),
        total_ios: totals.ios,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: latency_stats(&slat, choice.slat, parameters),
        clat_ns: latency_stats(&clat, choice.clat, parameters),
        lat_ns: latency_stats(&lat, choice.lat, parameters),
        prios: (prios.len() > 1)
            .then(|| prios.iter().map(|(&ioprio, latency)| priority(ioprio, latency, parameters)).collect()),
        bw_min: bandwidth.min(),
        bw_max: bandwidth.max(),
        // The samples may cover less than the runtime, so their mean may exceed the group's: fio limits it, too.
        bw_agg: six_decimals(percent_of_group.min(100.0)),
        bw_mean: six_decimals(bandwidth.mean()),
        bw_dev: six_decimals(bandwidth.stddev()),
        bw_samples: bandwidth.count(),
        iops_min: iops.min(),
        iops_max: iops.max(),
        iops_mean: six_decimals(iops.mean()),
        iops_stddev: six_decimals(iops.stddev()),
        iops_samples: iops.count(),
        cachehit: None,
    }
}

fn priority(ioprio: u16, latency: &PriorityLatency, parameters: &OutputParameters) -> PriorityStats {
    // Tried with fio 3.33: completion latencies, unless total ones have the percentiles.
    let is_total = parameters.percentiles.lat;
    PriorityStats {
        prioclass: (ioprio >> 13) as u8,
        prio: (ioprio & 7) as u8,
        clat_ns: (!is_total).then(|| latency_stats(&latency.clat, parameters.percentiles.clat, parameters)),
        lat_ns: is_total.then(|| latency_stats(&latency.lat, true, parameters)),
    }
}

/// Sums over processes; the runtime is the longest one of processes with I/O in the direction.
#[derive(Default)]
struct Totals {
    ios: u64,
    bytes: u64,
    runtime_ns: u64,
}

impl Totals {
    /// The sum over all directions.
    fn sum(by_direction: &[Totals; 3]) -> Totals {
        by_direction.iter().fold(Totals::default(), |sum, totals| Totals {
            ios: sum.ios + totals.ios,
            bytes: sum.bytes + totals.bytes,
            runtime_ns: sum.runtime_ns.max(totals.runtime_ns),
        })
    }

    fn add(&mut self, direction: Direction, process: &ProcessResult) {
        let measured = process.direction(direction);
        if measured.ios > 0 {
            self.ios += measured.ios;
            self.bytes += measured.bytes;
            self.runtime_ns = self.runtime_ns.max(process.runtime_ns);
        }
    }
}

/// Totals of every group, by direction.
fn totals_by_group(processes: &[ProcessResult]) -> BTreeMap<u32, [Totals; 3]> {
    let mut groups = BTreeMap::<u32, [Totals; 3]>::new();
    for process in processes {
        let group = groups.entry(process.group).or_default();
        Direction::ALL.into_iter().for_each(|direction| group[direction as usize].add(direction, process));
    }
    groups
}

/// `detailed`: whether this kind of latency has percentiles and, in json+, bins.
fn latency_stats(histogram: &LatencyHistogram, detailed: bool, parameters: &OutputParameters) -> LatencyStats {
    let detailed = detailed && !histogram.is_empty();
    let list = &parameters.percentiles.list;
    let percentile = |&percent: &f64| Some((format!("{percent:.6}"), histogram.percentile(percent)?));
    let bins = || histogram.fio_bins().map(|(midpoint_ns, count)| (midpoint_ns.to_string(), count));
    LatencyStats {
        min: histogram.min().unwrap_or(0),
        max: histogram.max().unwrap_or(0),
        mean: six_decimals(histogram.mean()),
        stddev: six_decimals(histogram.stddev()),
        count: histogram.count(),
        percentile: (detailed && !list.is_empty()).then(|| list.iter().filter_map(percentile).collect()),
        bins: (detailed && parameters.bins).then(|| IndexMap::from_iter(bins())),
    }
}

fn share_percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { six_decimals(part as f64 / whole as f64 * 100.0) }
}
