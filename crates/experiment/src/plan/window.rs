//! The measured window: the time in which all processes of a load run, without what only happens at its start.

use hoistway_answer::document::{MeasuredWindow, Unsteady};
use hoistway_blk::ground::Nanos;
use hoistway_load::Load;

/// Differences from the time that fio measures up to this fraction of the window are kept: they change nothing.
const NEGLIGIBLE_SHARE: f64 = 0.03;

/// A window of the time since the start of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

impl Window {
    /// The time that is measured of all processes at once. `None` if there is none, or if time is not what ends them: work that ends, phases
    /// and conditions keep fio's measurement.
    pub(crate) fn of_all(workload: &Load, runtime: Option<Nanos>) -> Option<Window> {
        let (mut from, mut until) = (0, u64::MAX);
        for process in &workload.processes {
            let (schedule, volume) = (&process.schedule, &process.plan.pattern.volume);
            let has_condition = schedule.phase > 0 || schedule.wait_for.is_some() || schedule.ends.is_some();
            // A time-based job ignores io_size.
            let is_endless = volume.time_based && volume.number_ios == 0;
            if process.plan.is_replay() || has_condition || !is_endless || process.steady_state.is_some() {
                return None;
            }
            let start = schedule.start_delay.0.checked_add(schedule.ramp.0)?;
            from = from.max(start);
            until = until.min(start.checked_add(runtime.or(schedule.runtime)?.0)?);
        }
        (until > from && until < u64::MAX).then_some(Window { from: Nanos(from), until: Nanos(until) })
    }

    /// Its length, ns.
    pub(crate) fn length_ns(self) -> u64 {
        self.until.0 - self.from.0
    }

    /// Whether fio measures about the same of every process.
    pub(crate) fn is_about_that_of_fio(self, workload: &Load, runtime: Option<Nanos>) -> bool {
        workload.processes.iter().all(|process| {
            let schedule = &process.schedule;
            let start = schedule.start_delay.0 + schedule.ramp.0;
            let end = start + runtime.or(schedule.runtime).map_or(0, |runtime| runtime.0);
            let outside = self.from.0.saturating_sub(start) + end.saturating_sub(self.until.0);
            outside as f64 <= NEGLIGIBLE_SHARE * self.length_ns() as f64
        })
    }

    /// The window as documents have it, beside the load's own.
    pub(crate) fn described(self, own: Window, unsteady: Vec<Unsteady>) -> MeasuredWindow {
        let seconds = |ns: Nanos| ns.0 as f64 / 1e9;
        MeasuredWindow {
            from_seconds: seconds(self.from),
            until_seconds: seconds(self.until),
            own_until_seconds: seconds(own.until),
            unsteady,
        }
    }

    /// The load, of which only this window is measured.
    pub(crate) fn applied_to(self, workload: &Load) -> Load {
        let mut workload = workload.clone();
        for schedule in workload.processes.iter_mut().map(|process| &mut process.schedule) {
            schedule.ramp = Nanos(self.from.0.saturating_sub(schedule.start_delay.0));
            schedule.runtime = Some(Nanos(self.length_ns()));
        }
        workload
    }
}

/// The load of which only the time is measured in which all of its processes run, and that time. `None` if fio measures about the same, or
/// if the load is measured as fio does.
pub fn measured_together(load: &Load, runtime: Option<Nanos>) -> Option<(Load, MeasuredWindow)> {
    let window = Window::of_all(load, runtime).filter(|window| !window.is_about_that_of_fio(load, runtime))?;
    Some((window.applied_to(load), window.described(window, Vec::new())))
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};
    use proptest::prelude::*;

    use super::*;

    fn load(jobs: &[(u64, u64, u64)], more: &str) -> Load {
        let mut text = "[global]\nfilename=/dev/sda\nsize=1g\ntime_based\n".to_owned();
        for (number, (delay, ramp, runtime)) in jobs.iter().enumerate() {
            text += &format!("[job{number}]\nstartdelay={delay}ms\nramp_time={ramp}ms\nruntime={runtime}ms\n{more}\n");
        }
        JobFile::parse(&text, "a.fio", &Environment::empty()).unwrap().load
    }

    proptest! {
        #[test]
        fn in_the_window_of_all_jobs_each_of_them_runs_and_is_measured(
            jobs in prop::collection::vec((0..3000_u64, 0..1000_u64, 1..5000_u64), 1..5), at in 0.0..1.0_f64,
        ) {
            let before = load(&jobs, "");
            let is_measured = |load: &Load, at: u64| load.processes.iter().all(|process| {
                let schedule = &process.schedule;
                let start = schedule.start_delay.0 + schedule.ramp.0;
                (start..=start + schedule.runtime.unwrap().0).contains(&at)
            });
            let Some(window) = Window::of_all(&before, None) else {
                // There is no moment at which all are measured.
                prop_assert!((0..9000).all(|ms| !is_measured(&before, ms * 1_000_000 + 500_000)));
                return Ok(());
            };
            let at = window.from.0 + (at * window.length_ns() as f64) as u64;
            prop_assert!(is_measured(&before, at));
            let after = window.applied_to(&before);
            prop_assert_eq!(Window::of_all(&after, None), Some(window));
            prop_assert!(window.is_about_that_of_fio(&after, None));
            prop_assert!(after.processes.iter().all(|process| process.schedule.runtime == Some(Nanos(window.length_ns()))));
        }
    }

    #[test]
    fn work_that_ends_and_jobs_that_follow_each_other_keep_the_measurement_of_fio() {
        let both = [(0, 0, 1000), (500, 0, 1000)];
        assert!(Window::of_all(&load(&both, ""), None).is_some());
        for more in ["number_ios=10", "stonewall", "time_based=0"] {
            assert_eq!(Window::of_all(&load(&both, more), None), None, "{more}");
        }
        assert!(Window::of_all(&load(&both, "io_size=1m"), None).is_some(), "it has no effect here");
    }
}
