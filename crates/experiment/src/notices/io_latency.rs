//! Sentences about `io.latency`: what it does not protect, what it did, and what is not known of it.

use hoistway_answer::document::Run;
use hoistway_cgroup::IoLatency;
use hoistway_load::Load;
use hoistway_measure::IoLatencyGroup;
use hoistway_sim::QueueSettings;

use crate::comparison::Vary;
use crate::comparison::environment::Options;
use crate::comparison::fields::Field;
use crate::notices::io_cost::{labels, outside};

/// Groups that a sentence names.
const NAMED_MAX: usize = 6;

/// Notices about targets without effect, and about jobs that are not controlled.
pub(crate) fn notices(options: &Options<'_>, workload: &Load, queue: &QueueSettings) -> Vec<String> {
    let name = options.name(Field::IoLatency);
    let mut notices = Vec::new();
    let is_varied = |path: &str| {
        let is_of = |vary: &&Vary| vary.of == Vary::IO_LATENCY && vary.name.strip_suffix(".target") == Some(path);
        options.comparison.vary.iter().filter(is_of).any(|vary| vary.texts.iter().any(|text| text != "0"))
    };
    let varied = options.comparison.vary.iter().filter(|vary| vary.of == Vary::IO_LATENCY);
    let varied: Vec<&str> = varied.filter_map(|vary| vary.name.strip_suffix(".target")).collect();
    for targets in &queue.io_latency {
        let has_target = |path: &str| {
            targets.iter().any(|(cgroup, target)| cgroup == path && target.duration().is_some()) || is_varied(path)
        };
        let groups = targets.iter().map(|(cgroup, _)| cgroup.as_str()).chain(varied.iter().copied());
        for cgroup in groups.filter(|cgroup| has_target(cgroup)) {
            let above = cgroup.match_indices('/').map(|(end, _)| &cgroup[..end]);
            let without: Vec<&str> = above.filter(|above| !has_target(above)).collect();
            let Some(first) = without.first() else { continue };
            let text = format!(
                "{name}: {cgroup} is protected from groups below {first} only, because {} has no target (give each group above it one).",
                without.join(", ")
            );
            if !notices.contains(&text) {
                notices.push(text);
            }
        }
    }
    if !queue.io_latency.is_empty() {
        notices.extend(outside(workload, "io.latency"));
    }
    notices
}

/// What `io.latency` did in the runs of each variant.
pub(crate) fn summaries(runs: &[Run]) -> Vec<String> {
    let labels = labels(runs, |run| !run.io_latency.is_empty());
    labels.into_iter().flat_map(|label| summary(label, runs)).collect()
}

fn summary(label: &str, runs: &[Run]) -> Vec<String> {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.variant.label == label).collect();
    let disks = runs.first().map_or(0, |run| run.io_latency.len());
    let of_disk = |disk: usize| {
        let first = &runs[0].io_latency[disk];
        let figures = Figures { runs: &runs, disk };
        let on = if disks > 1 { format!(" on {}", first.disk) } else { String::new() };
        let targets = (0..first.groups.len()).filter(|&group| first.groups[group].target_us > 0);
        let targets: Vec<String> = targets.map(|group| figures.target(group)).collect();
        let mut held: Vec<(f64, usize)> =
            (0..first.groups.len()).map(|group| (figures.throttled_percent(group), group)).collect();
        held.retain(|&(percent, _)| percent > 0.0);
        held.sort_by(|one, other| other.0.total_cmp(&one.0));
        let held: Vec<String> = held.into_iter().map(|(percent, group)| figures.held(percent, group)).collect();
        format!("io.latency under {label}{on}: {}; time with I/O held back: {}.", list(&targets), list(&held))
    };
    (0..disks).map(of_disk).collect()
}

/// The figures of a device in all runs of a variant.
struct Figures<'a> {
    runs: &'a [&'a Run],
    disk: usize,
}

impl Figures<'_> {
    fn group(&self, group: usize) -> impl Iterator<Item = &IoLatencyGroup> {
        self.runs.iter().map(move |run| &run.io_latency[self.disk].groups[group])
    }

    fn mean(&self, group: usize, figure: impl Fn(&IoLatencyGroup) -> f64) -> f64 {
        self.group(group).map(figure).sum::<f64>() / self.runs.len() as f64
    }

    /// A target and how it was met.
    fn target(&self, group: usize) -> String {
        let of = &self.runs[0].io_latency[self.disk].groups[group];
        let windows: u64 = self.group(group).map(|of| of.windows).sum();
        let missed: u64 = self.group(group).map(|of| of.missed).sum();
        let average = self.mean(group, |of| of.avg_lat_us);
        format!(
            "{} with target={} missed it in {missed} of {windows} windows of {:.0} ms (avg_lat {average:.0} us)",
            of.cgroup, of.target_us, of.win_ms
        )
    }

    fn throttled_percent(&self, group: usize) -> f64 {
        let shares = self.runs.iter().map(|run| {
            run.io_latency[self.disk].groups[group].throttled_ms / 10.0 / run.simulated_seconds.max(f64::MIN_POSITIVE)
        });
        shares.sum::<f64>() / self.runs.len() as f64
    }

    /// How long a group was held back, and how far down it went.
    fn held(&self, percent: f64, group: usize) -> String {
        let cgroup = &self.runs[0].io_latency[self.disk].groups[group].cgroup;
        let lowest = self.group(group).filter_map(|of| of.lowest_depth).min();
        let depth = lowest.map_or_else(String::new, |depth| format!(" (depth down to {depth})"));
        format!("{cgroup} {percent:.1} %{depth}")
    }
}

/// Joins the first ones, and counts the others.
fn list(texts: &[String]) -> String {
    let named = texts[..texts.len().min(NAMED_MAX)].join(", ");
    match texts.len() {
        0 => "none".to_owned(),
        count if count > NAMED_MAX => format!("{named}, and {} other groups", count - NAMED_MAX),
        _ => named,
    }
}

/// Clauses about runs that are shorter than a limit takes to fall, from this many requests, and about the rules that are not known.
pub(crate) fn doubts(runs: &[Run], requests: u32) -> Vec<String> {
    let steps = requests.max(1).next_power_of_two().ilog2();
    let step_seconds = IoLatency::STEP_INTERVAL.0 as f64 / 1e9;
    let seconds = f64::from(steps) * step_seconds;
    let falls = |run: &Run| {
        let groups = || run.io_latency.iter().flat_map(|disk| &disk.groups);
        let is_limited = groups().any(|group| group.depth == Some(1));
        run.simulated_seconds < seconds && groups().any(|group| group.missed > 0) && !is_limited
    };
    let is_short = runs.iter().any(falls).then(|| {
        format!(
            "io.latency halves the I/Os of others every {step_seconds} s at most, which takes {seconds:.1} s from {requests} requests to one, \
             and a run is shorter: try a longer --runtime"
        )
    });
    is_short.into_iter().chain(unknown(runs)).collect()
}

fn unknown(runs: &[Run]) -> Option<String> {
    runs.iter().any(|run| !run.io_latency.is_empty()).then(|| {
        "io.latency is simulated from its description and recordings of one kernel, beside which the rates of groups were 5 % off in the median \
         and up to 125 % (docs/io-latency.md)"
            .to_owned()
    })
}
