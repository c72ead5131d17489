//! Checks whether the host's reaction times decide how I/O classes share the device.
//!
//! A scheduler that prefers an I/O class checks at each dispatch whether a request of that class is waiting. For a process with few
//! I/Os in flight this is a race of a few microseconds, and the times in a host profile are only typical values. The first repeat is
//! therefore simulated again with these times halved and doubled.

use std::sync::atomic::Ordering;

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::Run;
use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_blk::schedulers::Priorities;
use hoistway_load::Load;
use hoistway_measure::units;
use hoistway_sim::{Control, Host};

use crate::comparison::error::Error;
use crate::comparison::observer::{Controls, Unobserved};
use crate::plan::{Plan, PlanRun};

/// Factors applied to the profile's reaction times, as `[numerator, denominator]`.
const REACTION_FACTORS: [[u64; 2]; 2] = [[1, 2], [2, 1]];
/// Ratio of the highest to the lowest IOPS from which on the reaction times are considered decisive.
const DECISIVE_RATIO: f64 = 1.25;
/// Jobs with fewer I/Os in a run are ignored: a single I/O would change their IOPS too much.
const IOS_MIN: u64 = 100;

impl Plan<'_> {
    /// Adds a doubt for each variant under which reaction times decide. Cancelled runs are not checked.
    pub(crate) fn check_reactions(&self, document: &mut ResultsDocument, controls: &Controls) -> Result<(), Error> {
        if document.partial {
            return Ok(());
        }
        let first_repeat = self.runs.iter().zip(controls.iter()).take(self.runs_per_repeat());
        for (planned, control) in first_repeat {
            let is_cancelled = control.cancelled.load(Ordering::Relaxed);
            if is_cancelled || !self.prefers_a_class(planned) {
                continue;
            }
            let mut runs = Vec::new();
            for factors in REACTION_FACTORS {
                let mut scenario = self.scenario(planned);
                scenario.host = with_scaled_reaction_times(scenario.host, factors);
                runs.push(self.run_scenario(&scenario, planned, &Control::default(), &Unobserved, &mut [])?.run);
            }
            let is_own = |run: &&Run| run.repeat == planned.repeat && run.variant.label == planned.variant.label;
            runs.extend(document.runs.iter().find(is_own).cloned());
            if let Some(description) = most_affected_job(&runs) {
                let host = &self.setups[planned.setup].host.name;
                document.doubts.push(format!("{description} if the reaction times of the host ({host}) are halved or doubled, and a simulation cannot know them exactly"));
            }
        }
        Ok(())
    }

    /// Whether the load uses several I/O classes and the scheduler honours them.
    fn prefers_a_class(&self, planned: &PlanRun) -> bool {
        let row = planned.queue.schedulers.find(&planned.spec.setting.scheduler);
        let is_known =
            row.is_some_and(|row| (row.priorities)(&row.kernel(planned.queue.kernel).generation()) != Priorities::No);
        is_known && has_classes(&self.setups[planned.setup].workload)
    }
}

fn has_classes(load: &Load) -> bool {
    let class = |priority: Option<IoPriority>| match priority.map(IoPriority::class) {
        None | Some(PriorityClass::None) => PriorityClass::BestEffort,
        Some(class) => class,
    };
    let mut classes = load.processes.iter().map(|process| class(process.standing.io_priority));
    let first = classes.next();
    classes.any(|class| Some(class) != first)
}

/// The host with scaled reaction times: from the end of an I/O until a task or worker acts on it.
fn with_scaled_reaction_times(mut host: Host, [numerator, denominator]: [u64; 2]) -> Host {
    let scaled = |ns: u64| ns * numerator / denominator;
    host.switch_ns = Some(scaled(host.switch_ns()));
    host.wake_ns = host.wake_ns.map(scaled);
    host.worker_ns = host.worker_ns.map(scaled);
    for [_, exit_ns] in &mut host.idle_ns {
        *exit_ns = scaled(*exit_ns);
    }
    host
}

/// The job whose IOPS differ most between these runs of a variant, in words, if they differ by [`DECISIVE_RATIO`].
fn most_affected_job(runs: &[Run]) -> Option<String> {
    let first = runs.first()?;
    let mut most: Option<(f64, String)> = None;
    for job in &first.jobs {
        let job_totals = |run: &Run| {
            let mut jobs = run.jobs.iter().filter(|summary| summary.job == job.job);
            jobs.next().map(|summary| {
                summary
                    .transfers()
                    .fold((0, 0.0), |(ios, iops), direction| (ios + direction.ios, iops + direction.iops))
            })
        };
        let all: Vec<(u64, f64)> = runs.iter().filter_map(job_totals).collect();
        let ios = all.iter().map(|(ios, _)| *ios).max().unwrap_or(0);
        let [least, greatest] =
            all.iter().fold([f64::INFINITY, 0.0_f64], |[low, high], (_, iops)| [low.min(*iops), high.max(*iops)]);
        let factor = greatest / least;
        if ios >= IOS_MIN && factor >= DECISIVE_RATIO && most.as_ref().is_none_or(|(known, _)| factor > *known) {
            let [least, greatest] = [least, greatest].map(units::rate);
            most = Some((
                factor,
                format!("{} under {} gets between {least} and {greatest} IOPS", job.name, first.variant.label),
            ));
        }
    }
    most.map(|(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Comparison, Load as Asked};

    /// The doubts about two jobs of different classes, of which the first has one I/O in flight.
    fn doubts_of(class: u32, scheduler: &str, kernel: &str) -> Vec<String> {
        let text = format!(
            "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nbs=4k\nrw=randread\ntime_based\nruntime=300ms\n\
             [first]\nprioclass={class}\n[crowd]\nprioclass=2\niodepth=32\nnumjobs=2\n"
        );
        let asked = Comparison {
            load: Asked::text(&text),
            devices: vec!["sata-ssd".into()],
            kernels: vec![kernel.to_owned()],
            schedulers: vec![scheduler.to_owned()],
            ..Comparison::default()
        };
        let doubts = asked.run(&crate::Alone).unwrap().doubts;
        doubts.into_iter().filter(|doubt| doubt.contains("reaction times of the host")).collect()
    }

    #[test]
    fn reaction_time_doubts_appear_only_where_one_class_precedes_another() {
        let doubts = doubts_of(1, "mq-deadline", "7.2");
        assert_eq!(doubts.len(), 1);
        assert!(doubts[0].starts_with("crowd under mq-deadline gets between "), "{doubts:?}");
        for (class, scheduler, kernel) in [(1, "none", "7.2"), (1, "mq-deadline", "5.10"), (2, "mq-deadline", "7.2")] {
            assert!(doubts_of(class, scheduler, kernel).is_empty(), "class {class}, {scheduler} of Linux {kernel}");
        }
    }

    #[test]
    fn reaction_times_scale_wake_ups_and_workers_but_no_cpu_time_per_io() {
        let host = Host::builtin(Host::DEFAULT).unwrap();
        let twice = with_scaled_reaction_times(host.clone(), REACTION_FACTORS[1]);
        assert_eq!((twice.wake_ns, twice.worker_ns), (host.wake_ns.map(|ns| 2 * ns), host.worker_ns.map(|ns| 2 * ns)));
        assert_eq!((twice.submit_ns, twice.complete_ns), (host.submit_ns, host.complete_ns));
        assert!(with_scaled_reaction_times(twice, REACTION_FACTORS[0]).idle_ns == host.idle_ns);
    }
}
