//! Sentences about `io.cost`: what it does not reach, what it did, and what is not known of it.

use std::fmt::Write as _;

use hoistway_answer::document::Run;
use hoistway_load::Load;
use hoistway_sim::QueueSettings;

use crate::comparison::Vary;
use crate::comparison::environment::Options;
use crate::comparison::fields::Field;

/// Groups that a sentence names.
const NAMED_MAX: usize = 6;

/// Whether io.cost holds I/O back in any variant.
pub(crate) fn is_on(options: &Options<'_>, queue: &QueueSettings) -> bool {
    let turns_on = |vary: &Vary| {
        vary.of == Vary::IO_COST && vary.name == "qos.enable" && vary.texts.iter().any(|text| text == "1")
    };
    let is_varied = options.comparison.vary.iter().any(turns_on);
    queue.io_cost.iter().flatten().any(|disk| disk.qos.is_enabled || is_varied)
}

/// Notices about settings without effect, and about jobs that are not controlled.
pub(crate) fn notices(options: &Options<'_>, workload: &Load, queue: &QueueSettings) -> Vec<String> {
    let mut notices = Vec::new();
    let is_on = is_on(options, queue);
    if !queue.io_cost.is_empty() && !is_on {
        notices.push(format!("{}: io.cost holds nothing back without enable=1.", options.name(Field::IoCost)));
    }
    if !queue.io_weight.is_empty() && !is_on {
        let name = options.name(Field::IoWeight);
        notices.push(format!("{name}: no effect without {} \"enable=1 ...\".", options.name(Field::IoCost)));
    }
    if is_on {
        notices.extend(outside(workload, "io.cost"));
    }
    notices
}

/// A notice that names the jobs in the root cgroup, which a controller does not control.
pub(crate) fn outside(workload: &Load, controller: &str) -> Option<String> {
    let mut outside: Vec<&str> = Vec::new();
    for process in workload.processes.iter().filter(|process| process.standing.cgroup.is_none()) {
        if !outside.contains(&process.name.as_str()) {
            outside.push(&process.name);
        }
    }
    let jobs = if outside.len() > 3 { format!("{} jobs", outside.len()) } else { outside.join(", ") };
    let text = format!("{controller} does not control the root cgroup: {jobs} (without cgroup=) are not held back.");
    (!outside.is_empty()).then_some(text)
}

/// The labels of the variants for whose runs `is_named` holds, each once.
pub(crate) fn labels(runs: &[Run], is_named: impl Fn(&&Run) -> bool) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    for run in runs.iter().filter(is_named) {
        if !labels.contains(&run.variant.label.as_str()) {
            labels.push(&run.variant.label);
        }
    }
    labels
}

/// What `io.cost` did in the runs of each variant.
pub(crate) fn summaries(runs: &[Run]) -> Vec<String> {
    labels(runs, |run| !run.io_cost.is_empty()).into_iter().flat_map(|label| summary(label, runs)).collect()
}

fn summary(label: &str, runs: &[Run]) -> Vec<String> {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.variant.label == label).collect();
    let disks = runs.first().map_or(0, |run| run.io_cost.len());
    let mean = |figure: &dyn Fn(&Run) -> f64| runs.iter().map(|run| figure(run)).sum::<f64>() / runs.len() as f64;
    let of_disk = |disk: usize| {
        let first = &runs[0].io_cost[disk];
        let rate = mean(&|run| run.io_cost[disk].mean_rate_percent);
        let on = if disks > 1 { format!(" on {}", first.disk) } else { String::new() };
        let mut text = format!("io.cost under {label}{on}: mean vrate {rate:.1} %; time with I/O held back:");
        let used = |group: usize| mean(&|run| run.io_cost[disk].groups[group].device_time_ms);
        let mut groups: Vec<usize> = (0..first.groups.len()).filter(|&group| used(group) > 0.0).collect();
        groups.sort_by(|&one, &other| used(other).total_cmp(&used(one)));
        for (place, &group) in groups.iter().take(NAMED_MAX).enumerate() {
            let share = mean(&|run| {
                run.io_cost[disk].groups[group].throttled_ms / 10.0 / run.simulated_seconds.max(f64::MIN_POSITIVE)
            });
            let comma = if place == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma} {} {share:.1} %", first.groups[group].cgroup);
        }
        match groups.len() {
            0 => text.push_str(" none."),
            count if count > NAMED_MAX => {
                let _ = write!(text, ", and {} groups that used less.", count - NAMED_MAX);
            }
            _ => text.push('.'),
        }
        text
    };
    (0..disks).map(of_disk).collect()
}

/// A clause about the rules that are not known.
pub(crate) fn doubt(runs: &[Run]) -> Option<String> {
    runs.iter().any(|run| !run.io_cost.is_empty()).then(|| {
        "io.cost was compared with one kernel, on the null block device only: its period, the steps of its vrate, what groups lend, \
         which I/O is sequential and what ctrl=auto means are this project's choice (docs/rules/io-cost.md)"
            .to_owned()
    })
}
