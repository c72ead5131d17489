//! A checked comparison, ready to run.
//!
//! Used by: `tune`, `run`, `outcome`, `sweep`; crates `hoistway`, `evidence`.
//! Tests: `crates/experiment/src/plan/repeats.rs`, `crates/experiment/src/plan/window.rs`, `crates/experiment/tests/verdicts.rs`.

pub(crate) mod devices;
pub(crate) mod files;
pub(crate) mod fill;
pub(crate) mod guests;
pub(crate) mod host;
pub(crate) mod io_cost;
pub(crate) mod io_latency;
pub(crate) mod io_max;
pub(crate) mod io_prio_class;
pub(crate) mod queues;
pub(crate) mod repeats;
pub(crate) mod schedulers;
pub(crate) mod settings;
pub(crate) mod setup;
pub(crate) mod stacks;
mod steps;
pub(crate) mod trial;
pub(crate) mod variants;
pub(crate) mod window;
pub(crate) mod writes;

use std::sync::{Arc, OnceLock};

use hoistway_answer::Condition;
use hoistway_answer::document::RunLabel;
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_sim::{QueueSettings, RunSpec, Scenario};
use serde_json::Value;

use crate::comparison::environment::{CallerEnvironment, Options};
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::judging::{impossible, unknown_job};
use crate::comparison::kernel_option::KernelOption;
use crate::comparison::observer::Controls;
use crate::comparison::{Comparison, Devices, Profile, Vary};
use crate::load::times;
use crate::load::{self, Load};
use crate::plan::repeats::REPEATS_MAX;
use crate::plan::setup::Setup;
use crate::plan::variants::VARIANTS_MAX;
use crate::plan::window::Window;

/// A comparison with everything that it refers to, chosen and checked.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(crate) options: Options<'a>,
    pub(crate) load: Load,
    /// The setups: every kernel on every device and host.
    pub(crate) setups: Vec<Setup>,
    pub(crate) seeds: Vec<u64>,
    /// All runs, ordered by repeat.
    pub(crate) runs: Vec<PlanRun>,
    pub(crate) notices: Vec<String>,
    runtime: Option<Nanos>,
    /// The loads of the setups, of which only a window is measured; `None` to measure as fio does.
    pub(crate) windowed: OnceLock<Option<(Window, Vec<hoistway_load::Load>)>>,
}

/// A run of a plan.
#[derive(Clone, Debug)]
pub(crate) struct PlanRun {
    /// Index into the setups.
    pub(crate) setup: usize,
    pub(crate) spec: RunSpec,
    pub(crate) queue: Arc<QueueSettings>,
    pub(crate) variant: RunLabel,
    pub(crate) repeat: u32,
    /// Replaces the runtime of every process.
    pub(crate) runtime: Option<Nanos>,
}

impl<'a> Plan<'a> {
    /// Chooses and checks everything in a comparison. Nothing is simulated yet, but settings are tried out.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn of(comparison: &'a Comparison, environment: &'a dyn CallerEnvironment) -> Result<Plan<'a>, Error> {
        let options = Options { comparison, environment };
        if !(1..=REPEATS_MAX).contains(&comparison.repeats) {
            return Err(options.refuse(Field::Repeats, comparison.repeats, format!("expected 1 to {REPEATS_MAX}")));
        }
        let runtime = times::time(&options, Field::RuntimeNs, comparison.runtime_ns)?;
        Plan::from_load(options, Load::read(&options)?, runtime)
    }

    /// Makes the plan for a load that was read already.
    pub(crate) fn from_load(options: Options<'a>, load: Load, runtime: Option<Nanos>) -> Result<Plan<'a>, Error> {
        let comparison = options.comparison;
        let setups = setups(&options, &load)?;
        let mut notices: Vec<String> = Vec::new();
        for notice in setups.iter().flat_map(|setup| &setup.notices) {
            if !notices.contains(notice) {
                notices.push(notice.clone());
            }
        }
        let seeds = repeats::seeds(comparison.seed, comparison.repeats);
        check_count(&options, &setups)?;
        let variants: Vec<PlanRun> = (0..).zip(&setups).flat_map(|(index, setup)| setup.runs(index, runtime)).collect();
        let repeated = |(repeat, &seed): (u32, &u64)| {
            let with_seed =
                move |run: &PlanRun| PlanRun { repeat, spec: RunSpec { seed, ..run.spec.clone() }, ..run.clone() };
            variants.iter().map(with_seed).collect::<Vec<_>>()
        };
        let runs = (0..).zip(&seeds).flat_map(repeated).collect();
        let plan = Plan { options, load, setups, seeds, runs, notices, runtime, windowed: OnceLock::new() };
        plan.check_labels()?;
        plan.check_focus()?;
        Ok(plan)
    }

    /// Checks that labels are unique and that the baseline, if given, is one of them.
    fn check_labels(&self) -> Result<(), Error> {
        let first_repeat = &self.runs[..self.runs_per_repeat()];
        let labels: Vec<&str> = first_repeat.iter().map(|run| &*run.variant.label).collect();
        if let Some((index, label)) = labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label))
        {
            // Name the key and value that were given twice, without the scheduler.
            let twice = label.strip_prefix(&*first_repeat[index].spec.label()).unwrap_or(label).trim_start();
            let problem = "duplicate variant name (expected kernels, devices and hosts with distinct names)";
            return Err(self.options.refuse(self.field_with_duplicates(), twice, problem));
        }
        match &self.options.comparison.baseline {
            Some(name) if !self.runs.iter().any(|run| run.variant.label == *name || run.spec.label() == *name) => {
                let known = labels.join(", ");
                let problem = format!("not among the compared schedulers (expected one of {known})");
                Err(self.options.refuse(Field::Baseline, name, problem))
            }
            _ => Ok(()),
        }
    }

    /// The field that holds duplicates if variants have the same label: the one with fewer distinct names than entries.
    fn field_with_duplicates(&self) -> Field {
        let comparison = self.options.comparison;
        let given =
            [("kernel", Field::Kernels, comparison.kernels.len()), ("host", Field::Hosts, comparison.hosts.len())];
        let has_duplicates = |(key, _, count): &(&str, Field, usize)| {
            let mut names: Vec<_> = self.setups.iter().filter_map(|setup| setup.varied.get(*key)?.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            *count > 1 && names.len() < *count
        };
        given.into_iter().find(has_duplicates).map_or(Field::Devices, |(_, field, _)| field)
    }

    /// Checks that the focus names existing jobs and that the smallest effect is a fraction.
    fn check_focus(&self) -> Result<(), Error> {
        let comparison = self.options.comparison;
        if let Some(effect) = comparison.smallest_effect.filter(|effect| !(0.0..1.0).contains(effect)) {
            return Err(self.options.refuse(Field::SmallestEffect, effect, "expected a fraction from 0 to below 1"));
        }
        match unknown_job(comparison.focus.iter().map(|focus| &focus.figure), self.job_names()) {
            Some((figure, problem)) => Err(self.options.refuse(Field::Focus, figure, problem)),
            None => Ok(()),
        }
    }

    fn job_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.setups.iter().flat_map(|setup| &setup.workload.processes).map(|process| &*process.name)
    }

    /// The first of these conditions that no result could meet, since its job or its scheduler does not run, and why.
    pub fn impossible<'c>(&self, conditions: &'c [Condition]) -> Option<(&'c Condition, String)> {
        impossible(conditions, self.job_names(), self.runs.iter().map(|run| &*run.variant.label))
    }

    /// Number of runs.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Virtual time of all runs together, if every process is bounded by time.
    #[must_use]
    pub fn expected_ns(&self) -> Option<u64> {
        self.runs.iter().try_fold(0, |sum: u64, run| {
            Some(sum.saturating_add(load::expected_ns(&self.setups[run.setup].workload, self.runtime)?))
        })
    }

    /// Whether the load was read from a recording, which ends by itself.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.load.recorded.is_some()
    }

    /// Controls for the runs.
    #[must_use]
    pub fn controls(&self) -> Controls {
        Controls::new(self.runs.len())
    }

    /// The time that replaces the runtime of every process, if any.
    pub(crate) fn runtime(&self) -> Option<Nanos> {
        self.runtime
    }

    pub(crate) fn runs_per_repeat(&self) -> usize {
        self.runs.len() / self.seeds.len()
    }

    pub(crate) fn scenario(&self, run: &PlanRun) -> Scenario<'_> {
        let windowed = self.windowed.get().and_then(Option::as_ref).map(|(_, workloads)| &workloads[run.setup]);
        self.scenario_of(run, windowed)
    }

    /// A run with this load, which has its runtimes, or with that of its setup.
    pub(crate) fn scenario_of<'s>(&'s self, run: &PlanRun, windowed: Option<&'s hoistway_load::Load>) -> Scenario<'s> {
        let setup = &self.setups[run.setup];
        Scenario {
            workload: windowed.unwrap_or(&setup.workload),
            devices: setup.devices.iter().collect(),
            guests: setup.guests.as_ref().map(|chosen| chosen.guests.clone()),
            queue: (*run.queue).clone(),
            host: setup.host.clone(),
            runtime: run.runtime.filter(|_| windowed.is_none()),
        }
    }
}

/// Checks that the varied settings do not make more variants than fit into memory.
fn check_count(options: &Options<'_>, setups: &[Setup]) -> Result<(), Error> {
    let comparison = options.comparison;
    let variants = setups.iter().map(Setup::variant_count).fold(0, usize::saturating_add);
    if variants <= VARIANTS_MAX || comparison.vary.is_empty() {
        return Ok(());
    }
    let runs = variants.saturating_mul(comparison.repeats as usize);
    let values = |vary: &Vary| format!("{} ({} values)", vary.label(), vary.texts.len());
    let all = comparison.vary.iter().map(values).collect::<Vec<_>>().join(", ");
    let problem = format!(
        "this makes {variants} variants and, with {} repeats, {runs} runs (expected at most {VARIANTS_MAX} variants; \
         `hoistway tune` searches among more)",
        comparison.repeats
    );
    Err(options.refuse(Field::Vary, all, problem))
}

/// Makes the setups: every kernel on every device and host.
fn setups(options: &Options<'_>, load: &Load) -> Result<Vec<Setup>, Error> {
    fn or_default<T: Clone>(requested: &[T], default: T) -> Vec<T> {
        if requested.is_empty() { vec![default] } else { requested.to_vec() }
    }
    let requested = options.comparison;
    let in_guests = !crate::plan::guests::requested_schedulers(options, load.guest_schedulers())?.is_empty();
    let hosts = or_default(&requested.hosts, if in_guests { Profile::from("vm") } else { load.default_host() });
    let devices = or_default(&requested.devices, Devices::default());
    let kernels = match &requested.kernels[..] {
        [] => vec![KernelOption::from(Kernel::DEFAULT)],
        some => some.iter().map(|kernel| kernel.parse().about(Field::Kernels)).collect::<Result<_, Error>>()?,
    };
    let mut setups = Vec::new();
    for devices in &devices {
        for host in &hosts {
            for kernel in &kernels {
                let mut setup = Setup::of(options, load, devices, host, kernel)?;
                for (name, value, count) in [
                    ("device", setup.device_name(), requested.devices.len()),
                    ("host", setup.host.name.clone(), requested.hosts.len()),
                    ("kernel", kernel.to_string(), requested.kernels.len()),
                ] {
                    if count > 1 {
                        setup.varied.insert(name.to_owned(), Value::from(value));
                    }
                }
                setups.push(setup);
            }
        }
    }
    Ok(setups)
}
