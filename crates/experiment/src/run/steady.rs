//! Finds the window to measure: the time in which all jobs run and what happens only after their start is over.
//!
//! A scheduler may favour what has just started, or learn for a while; a cache may fill. All repeats share that, so that no interval shows
//! it. Therefore the first repeat runs for much longer, if that is cheap, and MSER (`hoistway_measure::settling`) says for each job under
//! each scheduler when it has settled. What is too short to be seen there shows in the load's own time, which is then unlike the longer run.

use std::sync::atomic::Ordering;

use hoistway_answer::document::{MeasuredWindow, Run, Unsteady};
use hoistway_blk::ground::Nanos;
use hoistway_load::Load;
use hoistway_measure::settling::{Settling, SettlingFigure};
use hoistway_measure::stats::relative_difference;
use hoistway_sim::Control;

use crate::comparison::error::Error;
use crate::comparison::measured_time::MeasuredTime;
use crate::comparison::observer::{Controls, Unobserved};
use crate::plan::window::Window;
use crate::plan::{Plan, PlanRun};

/// Virtual time of the longer runs: longer than a scheduler favours or learns.
const PILOT_NS: u64 = 60_000_000_000;
/// Loads whose own time is at least half of that are not run for longer.
const SHORT_NS: u64 = PILOT_NS / 2;
/// Maximum I/Os of all longer runs together: about a second of CPU time.
const PILOT_IOS: f64 = 600_000.0;
/// Of those under schedulers that favour what has just started: at least this fraction of the I/Os of three repeats, which come anyway.
const PILOT_SHARE: f64 = 0.25 * 3.0;
/// Longer runs tell nothing if they are not at least this many windows long.
const PILOT_WINDOWS_MIN: u64 = 2;
/// A start that differs by less than this fraction from what follows is no reason to leave it out.
const UNLIKE_MIN: f64 = 0.1;
/// The load's own time is left out if a figure of it differs from that of the longer run by at least this fraction.
const UNLIKE_LONGER_RUN: f64 = 0.05;
/// Of fewer I/Os it differs by chance.
const COMPARED_IOS_MIN: u64 = 50;
/// Minimum length of a window that begins later than the load's own.
const LENGTH_NS_MIN: u64 = 10_000_000_000;
/// Windows begin at a multiple of this.
const STEP_NS: u64 = 100_000_000;

/// What longer runs have shown.
struct Pilots {
    /// What changes after the start.
    unsteady: Vec<Unsteady>,
    /// Their end, ns since the start of the load.
    end_ns: u64,
}

impl Default for Pilots {
    fn default() -> Self {
        Pilots { unsteady: Vec::new(), end_ns: PILOT_NS }
    }
}

impl Plan<'_> {
    /// Chooses the window of all later runs, if only what lasts is to be measured.
    pub(crate) fn choose_window(&self, controls: &Controls) -> Result<Option<MeasuredWindow>, Error> {
        let comparison = self.options.comparison;
        let is_wanted =
            !comparison.measured.is_as_fio() && comparison.writes.is_empty() && self.load.recorded.is_none();
        let windows = self.setups.iter().map(|setup| Window::of_all(&setup.workload, self.runtime()));
        let Some(Some(window)) = windows.reduce(|a, b| a.filter(|_| a == b)).filter(|_| is_wanted) else {
            return Ok(None);
        };
        let (measured, unsteady) = match comparison.measured {
            MeasuredTime::AsFio | MeasuredTime::Together => (window, Vec::new()),
            MeasuredTime::Lasting => self.lasting(window, controls)?,
            MeasuredTime::Window { from_ns, until_ns } => {
                (Window { from: Nanos(from_ns), until: Nanos(until_ns.max(from_ns)) }, Vec::new())
            }
        };
        let is_as_fio = |load: &Load| measured.is_about_that_of_fio(load, self.runtime());
        if self.setups.iter().all(|setup| is_as_fio(&setup.workload)) {
            return Ok(None);
        }
        let workloads = self.setups.iter().map(|setup| measured.applied_to(&setup.workload)).collect();
        // It is chosen once, before the runs.
        let _ = self.windowed.set(Some((measured, workloads)));
        Ok(Some(measured.described(window, unsteady)))
    }

    /// The window in which only what lasts is seen, and what is left out.
    fn lasting(&self, window: Window, controls: &Controls) -> Result<(Window, Vec<Unsteady>), Error> {
        let pilots = if window.until.0 < SHORT_NS { self.pilots(window, controls)? } else { Pilots::default() };
        let Pilots { unsteady, end_ns } = pilots;
        // A later window may as well be long enough for the slowest I/Os of a disk, if I/Os are not many.
        let length_min = if end_ns == PILOT_NS { LENGTH_NS_MIN } else { 0 };
        let length_ns = if unsteady.is_empty() { window.length_ns() } else { window.length_ns().max(length_min) };
        let longest = unsteady.iter().filter_map(|unsteady| unsteady.seconds).fold(0.0, f64::max);
        let from = match unsteady.iter().any(|unsteady| unsteady.seconds.is_none()) {
            // What has not settled is measured as late as possible.
            true => end_ns - length_ns,
            false => window.from.0 + ((longest * 1e9) as u64).next_multiple_of(STEP_NS),
        };
        Ok((Window { from: Nanos(from), until: Nanos(from + length_ns) }, unsteady))
    }

    /// What changes after the start in longer runs. Jobs on unlike disks run apart, so that a fast disk does not make the runs of a slow one
    /// too long.
    fn pilots(&self, window: Window, controls: &Controls) -> Result<Pilots, Error> {
        let groups = self.setups[0].disk_groups();
        if groups.is_empty() {
            return self.pilots_of(window, &|_| true, controls);
        }
        let mut all = Pilots::default();
        for group in &groups {
            let Pilots { unsteady, end_ns } = self.pilots_of(window, &|job| group.jobs.contains(&job), controls)?;
            if !unsteady.is_empty() {
                all.end_ns = all.end_ns.max(end_ns);
            }
            all.unsteady.extend(unsteady);
        }
        Ok(all)
    }

    /// That of some jobs, which run without the others.
    fn pilots_of(&self, window: Window, includes: &dyn Fn(u32) -> bool, controls: &Controls) -> Result<Pilots, Error> {
        let first_repeat = &self.runs[..self.runs_per_repeat()];
        let run = |window: Window, planned: &PlanRun| {
            let mut workload = window.applied_to(&self.setups[planned.setup].workload);
            workload.processes.retain(|process| includes(process.schedule.job as u32));
            let scenario = self.scenario_of(planned, Some(&workload));
            Ok(self.run_scenario(&scenario, planned, &Control::default(), &Unobserved, &mut [])?.run)
        };
        let probed = run(window, &first_repeat[0])?;
        let per_second = probed.simulated_ios as f64 / probed.simulated_seconds.max(1e-9);
        let own_ios = probed.simulated_ios as f64 * first_repeat.len() as f64;
        let favours_starts = |planned: &&PlanRun| {
            let row = planned.queue.schedulers.find(&planned.spec.setting.scheduler);
            row.is_some_and(|row| row.favours_starts)
        };
        let end_with = |ios: f64, runs: usize| ((ios / (per_second * runs as f64) * 1e9) as u64).min(PILOT_NS);
        let favouring = first_repeat.iter().filter(favours_starts).count();
        let (longest, some) =
            (end_with(PILOT_IOS, first_repeat.len()), end_with(PILOT_IOS.max(PILOT_SHARE * own_ios), favouring));
        let (end_ns, is_for_all) = if longest == PILOT_NS { (longest, true) } else { (some, false) };
        let mut pilots = Pilots { unsteady: Vec::new(), end_ns };
        if end_ns < window.from.0 + PILOT_WINDOWS_MIN * window.length_ns() {
            return Ok(pilots);
        }
        let longer = Window { until: Nanos(end_ns), ..window };
        for (planned, control) in first_repeat.iter().zip(controls.iter()) {
            if control.cancelled.load(Ordering::Relaxed) {
                return Ok(Pilots::default());
            }
            if !is_for_all && !favours_starts(&planned) {
                continue;
            }
            let long = run(longer, planned)?;
            let seen = unsteady_jobs(&long);
            if seen.is_empty() {
                let own = run(window, planned)?;
                pilots.unsteady.extend(unlike_jobs(&own, &long, window.length_ns() as f64 / 1e9));
            }
            pilots.unsteady.extend(seen);
        }
        Ok(pilots)
    }
}

/// The jobs of which this run, that lasts for `seconds`, differs from a longer one.
fn unlike_jobs(own: &Run, long: &Run, seconds: f64) -> Vec<Unsteady> {
    let mut unlike = Vec::new();
    for (job, long_job) in own.jobs.iter().zip(&long.jobs) {
        for summary in job.operations.iter().filter(|summary| summary.ios >= COMPARED_IOS_MIN) {
            let Some(later) = long_job.operation(summary.operation) else { continue };
            let differences = [
                (SettlingFigure::Iops, relative_difference(summary.iops, later.iops)),
                (SettlingFigure::MeanLatency, relative_difference(summary.lat_ns.mean, later.lat_ns.mean)),
            ];
            let differences = differences.into_iter().filter_map(|(figure, by)| Some((figure, by?)));
            let Some((figure, difference)) = differences.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())) else {
                continue;
            };
            if difference.abs() >= UNLIKE_LONGER_RUN {
                unlike.push(Unsteady {
                    job: job.name.clone(),
                    operation: summary.operation,
                    scheduler: own.variant.label.clone(),
                    seconds: Some(seconds),
                    figure,
                    difference,
                });
            }
        }
    }
    unlike
}

/// The jobs of a run whose start is unlike what follows.
fn unsteady_jobs(run: &Run) -> Vec<Unsteady> {
    let mut unsteady = Vec::new();
    for job in &run.jobs {
        for summary in &job.operations {
            let (seconds, figure, difference) = match summary.settling {
                Settling::WarmUp { seconds, figure, difference } => (Some(seconds), figure, difference),
                Settling::Unsettled { figure, difference } => (None, figure, difference),
                Settling::Unknown | Settling::Settled => continue,
            };
            if difference.abs() >= UNLIKE_MIN {
                unsteady.push(Unsteady {
                    job: job.name.clone(),
                    operation: summary.operation,
                    scheduler: run.variant.label.clone(),
                    seconds,
                    figure,
                    difference,
                });
            }
        }
    }
    unsteady
}
