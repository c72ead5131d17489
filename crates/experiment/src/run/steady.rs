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
use crate::comparison::observer::{Controls, Unobserved};
use crate::plan::window::Window;
use crate::plan::{Plan, PlanRun};

/// Virtual time of the longer runs: longer than a scheduler favours or learns.
const PILOT_NS: u64 = 60_000_000_000;
/// Loads whose own time is at least half of that are not run for longer.
const SHORT_NS: u64 = PILOT_NS / 2;
/// Maximum I/Os of all longer runs together: about a second of CPU time.
const PILOT_IOS: f64 = 600_000.0;
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

impl Plan<'_> {
    /// Chooses the window of all later runs, if only what lasts is to be measured.
    pub(crate) fn choose_window(&self, controls: &Controls) -> Result<Option<MeasuredWindow>, Error> {
        let comparison = self.options.comparison;
        let is_wanted = comparison.lasting && comparison.writes.is_empty() && self.load.recorded.is_none();
        let windows = self.setups.iter().map(|setup| Window::of_all(&setup.workload, self.runtime()));
        let Some(Some(window)) = windows.reduce(|a, b| a.filter(|_| a == b)).filter(|_| is_wanted) else {
            return Ok(None);
        };
        let unsteady = if window.until.0 < SHORT_NS { self.unsteady(window, controls)? } else { Vec::new() };
        // A later window may as well be long enough for the slowest I/Os of a disk.
        let length_ns = if unsteady.is_empty() { window.length_ns() } else { window.length_ns().max(LENGTH_NS_MIN) };
        let longest = unsteady.iter().filter_map(|unsteady| unsteady.seconds).fold(0.0, f64::max);
        let from = match unsteady.iter().any(|unsteady| unsteady.seconds.is_none()) {
            // What has not settled is measured as late as possible.
            true => PILOT_NS - length_ns,
            false => window.from.0 + ((longest * 1e9) as u64).next_multiple_of(STEP_NS),
        };
        let measured = Window { from: Nanos(from), until: Nanos(from + length_ns) };
        let is_as_fio = |load: &Load| measured.is_about_that_of_fio(load, self.runtime());
        if self.setups.iter().all(|setup| is_as_fio(&setup.workload)) {
            return Ok(None);
        }
        let workloads = self.setups.iter().map(|setup| measured.applied_to(&setup.workload)).collect();
        // It is chosen once, before the runs.
        let _ = self.windowed.set(Some((measured, workloads)));
        let seconds = |ns: Nanos| ns.0 as f64 / 1e9;
        Ok(Some(MeasuredWindow {
            from_seconds: seconds(measured.from),
            until_seconds: seconds(measured.until),
            own_until_seconds: seconds(window.until),
            unsteady,
        }))
    }

    /// What changes after the start in longer runs; nothing if these would take too long.
    fn unsteady(&self, window: Window, controls: &Controls) -> Result<Vec<Unsteady>, Error> {
        let first_repeat = &self.runs[..self.runs_per_repeat()];
        let probed = self.run_in(window, &first_repeat[0], &Control::default())?;
        let per_second = probed.simulated_ios as f64 / probed.simulated_seconds.max(1e-9);
        if per_second * PILOT_NS as f64 / 1e9 * first_repeat.len() as f64 > PILOT_IOS {
            return Ok(Vec::new());
        }
        let longer = Window { until: Nanos(PILOT_NS), ..window };
        let mut unsteady = Vec::new();
        for (planned, control) in first_repeat.iter().zip(controls.iter()) {
            if control.cancelled.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            let long = self.run_in(longer, planned, &Control::default())?;
            let seen = unsteady_jobs(&long);
            if seen.is_empty() {
                let own = self.run_in(window, planned, &Control::default())?;
                unsteady.extend(unlike_jobs(&own, &long, window.length_ns() as f64 / 1e9));
            }
            unsteady.extend(seen);
        }
        Ok(unsteady)
    }

    fn run_in(&self, window: Window, planned: &PlanRun, control: &Control) -> Result<Run, Error> {
        let workload = window.applied_to(&self.setups[planned.setup].workload);
        let scenario = self.scenario_of(planned, Some(&workload));
        Ok(self.run_scenario(&scenario, planned, control, &Unobserved, &mut [])?.run)
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
