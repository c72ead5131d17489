//! Evaluates a setting: runs the load with it and returns the figures.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use hoistway_answer::FigureName;
use hoistway_answer::document::{MeasuredWindow, Run};
use hoistway_answer::tuning::Setting;
use hoistway_blk::ground::Nanos;
use hoistway_sim::Control;

use super::observe::Cancel;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::observer::Unobserved;
use crate::comparison::{Comparison, MeasuredTime};
use crate::load;
use crate::load::times;
use crate::plan::guests;
use crate::plan::window::Window;
use crate::plan::{Plan, PlanRun};

/// Figures of one run by name: latencies in ns, I/Os and bytes a second.
pub type Figures = BTreeMap<FigureName, f64>;

/// Measures the figures of a setting. Results must be deterministic for a setting, seed and runtime.
pub trait Evaluate: Sync {
    /// The figures. `runtime_ns` replaces the runtime of every process; without it the load's own runtime counts.
    ///
    /// # Errors
    /// If the setting is invalid.
    fn figures(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Figures, Error>;
}

/// A load in one setup that runs with any setting.
#[derive(Debug)]
pub struct Evaluator<'a> {
    pub(super) plan: Plan<'a>,
    control: Arc<Control>,
    /// The measured window, once it is chosen; `None` in it to measure as fio does.
    window: OnceLock<Option<MeasuredWindow>>,
}

impl<'a> Evaluator<'a> {
    /// Checks the comparison, which must have one setup and vary nothing; its repeats and seed are ignored.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn new(comparison: &'a Comparison, environment: &'a dyn CallerEnvironment) -> Result<Self, Error> {
        let plan = Plan::of(comparison, environment)?;
        let refuse = |field: Field, value: &str, problem: &str| Err(plan.options.refuse(field, value, problem));
        if plan.setups.len() > 1 {
            let setup = &plan.setups[1];
            let field = [Field::Devices, Field::Hosts, Field::Kernels].into_iter().find(|field| {
                let known = match field {
                    Field::Devices => comparison.devices.len(),
                    Field::Hosts => comparison.hosts.len(),
                    _ => comparison.kernels.len(),
                };
                known > 1
            });
            return refuse(
                field.unwrap_or(Field::Devices),
                &setup.device_name(),
                "expected one device, host and kernel",
            );
        }
        if let Some(several @ [_, _, ..]) = plan.setups[0].guests.as_ref().map(|guests| &guests.schedulers[..]) {
            let problem = "a search varies only settings of the host (expected one scheduler for all guests)";
            return refuse(Field::GuestSchedulers, &several.join(","), problem);
        }
        if !comparison.vary.is_empty() {
            return refuse(Field::Vary, "", "a search chooses its own values (expected nothing here)");
        }
        Ok(Self { plan, control: Arc::default(), window: OnceLock::new() })
    }

    /// The schedulers, each once.
    pub fn schedulers(&self) -> impl Iterator<Item = &str> {
        self.plan.runs[..self.plan.runs_per_repeat()].iter().map(|run| run.spec.setting.scheduler.as_str())
    }

    /// Returns a run as stored in a result document.
    ///
    /// # Errors
    /// If the setting is invalid.
    pub fn run(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Run, Error> {
        let options = &self.plan.options;
        let runtime = times::time(options, Field::RuntimeNs, runtime_ns.or(options.comparison.runtime_ns))?;
        let planned = PlanRun { runtime, ..self.plan.setups[0].run_with(options, setting, seed)? };
        self.choose_window()?;
        let windowed = self.window_of(runtime_ns).map(|window| window.applied_to(&self.plan.setups[0].workload));
        let scenario = self.plan.scenario_of(&planned, windowed.as_ref());
        Ok(self.plan.run_scenario(&scenario, &planned, &self.control, &Unobserved, &mut [])?.run)
    }

    /// Chooses the window that all runs measure, in longer runs of the default settings; `None` if it is that of fio.
    ///
    /// # Errors
    /// If such a run cannot begin.
    pub(super) fn choose_window(&self) -> Result<Option<&MeasuredWindow>, Error> {
        if self.window.get().is_none() {
            let chosen = self.plan.choose_window(&self.plan.controls())?;
            // Another thread may have chosen the same.
            let _ = self.window.set(chosen);
        }
        Ok(self.window.get().and_then(Option::as_ref))
    }

    /// What the runs measure, as found in longer runs where these were asked for: another evaluator needs none of them to measure the same.
    ///
    /// # Errors
    /// If such a run cannot begin.
    pub fn measured(&self) -> Result<MeasuredTime, Error> {
        self.choose_window()?;
        let window = self.window_of(None);
        Ok(window.map_or(MeasuredTime::AsFio, |Window { from, until }| MeasuredTime::Window {
            from_ns: from.0,
            until_ns: until.0,
        }))
    }

    /// The chosen window, of at most this length; `None` to measure as fio does.
    fn window_of(&self, length_ns: Option<u64>) -> Option<Window> {
        let (window, _) = self.plan.windowed.get()?.as_ref()?;
        let length_ns = length_ns.map_or(window.length_ns(), |length_ns| length_ns.min(window.length_ns()));
        Some(Window { until: Nanos(window.from.0 + length_ns), ..*window })
    }

    /// Notices about the figures.
    pub(super) fn notices(&self) -> Vec<String> {
        let reword = |notice: &String| match &self.plan.setups[0].guests {
            Some(guests) => guests::search_notice(notice, guests),
            None => notice.clone(),
        };
        self.plan.notices.iter().map(reword).collect()
    }

    /// Ends all runs early, including those that begin later; their figures are then invalid.
    pub fn cancel(&self) {
        self.cancel_handle().cancel();
    }

    /// A handle that does what [`cancel`](Evaluator::cancel) does, for another thread.
    pub(super) fn cancel_handle(&self) -> Cancel {
        Cancel(Arc::clone(&self.control))
    }

    /// Virtual time of a run, ns; `None` unless every process is bounded by time.
    pub fn expected_ns(&self, runtime_ns: Option<u64>) -> Option<u64> {
        if let Some(window) = self.window_of(runtime_ns) {
            return Some(window.until.0);
        }
        let runtime = runtime_ns.or(self.plan.options.comparison.runtime_ns).map(Nanos);
        load::expected_ns(&self.plan.setups[0].workload, runtime)
    }

    /// The runtime of the longest process, ns, if shortening it does not change the load. `None` if processes start late or one
    /// after the other, or are not limited by time, or if files are written during the run.
    pub(super) fn shortenable_ns(&self) -> Option<u64> {
        if let Some(window) = self.window_of(None) {
            return Some(window.length_ns());
        }
        let processes = &self.plan.setups[0].workload.processes;
        let starts_together =
            processes.iter().all(|process| process.schedule.start_delay.0 == 0 && process.schedule.phase == 0);
        let runtime_of = |process: &hoistway_load::Process| process.schedule.runtime.map(|runtime| runtime.0);
        let all: Option<Vec<u64>> = processes.iter().map(runtime_of).collect();
        let requested = self.plan.options.comparison.runtime_ns;
        // A write during the run happens at a fixed time.
        let has_no_writes = self.plan.options.comparison.writes.is_empty();
        requested.or_else(|| all?.into_iter().max()).filter(|_| starts_together && has_no_writes)
    }
}

impl Evaluate for Evaluator<'_> {
    fn figures(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Figures, Error> {
        self.run(setting, seed, runtime_ns).map(|run| run.figures())
    }
}
