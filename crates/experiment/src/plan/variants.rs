//! Variants of each scheduler: the combinations of the settings that a comparison varies.

use std::sync::Arc;

use hoistway_blk::schedulers::Registry;
use hoistway_measure::Setting;
use serde_json::Value;

use crate::comparison::Vary;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::nearest;
use crate::plan::PlanRun;
use crate::plan::trial::{Trial, TrialResult};
use crate::plan::{io_cost, io_latency};

/// Maximum variants of a comparison: the results of all their repeats are held in memory until the end.
pub const VARIANTS_MAX: usize = 1000;

/// The alternatives of each varied setting, in the order of the options.
#[derive(Debug, Default)]
pub(crate) struct Alternatives(Vec<Values>);

/// The values of a varied setting.
#[derive(Debug)]
struct Values {
    vary: Vary,
    /// Each value with the result of trying it out.
    tried: Vec<TrialResult>,
}

impl Alternatives {
    /// Tries all values out. Adds a notice for each value that the kernel changes.
    pub(crate) fn of(trial: &Trial<'_>, notices: &mut Vec<String>) -> Result<Alternatives, Error> {
        let requested = &trial.options.comparison.vary;
        let mut alternatives = Vec::with_capacity(requested.len());
        for (index, vary) in requested.iter().enumerate() {
            check((trial.options, &trial.queue.schedulers, trial.schedulers), vary, &requested[..index])?;
            let tried = vary.texts.iter().map(|text| trial.varied(vary, text, notices));
            alternatives.push(Values { vary: vary.clone(), tried: tried.collect::<Result<_, _>>()? });
        }
        check_rates(trial)?;
        Ok(Alternatives(alternatives))
    }

    /// The maximum number of variants of a scheduler, with or without guests, not counting an added default.
    pub(crate) fn count(&self, schedulers: &[&str]) -> usize {
        let applying = self.0.iter().filter(|values| values.applies_to(schedulers));
        applying.fold(1, |product: usize, values| product.saturating_mul(values.vary.texts.len()))
    }

    /// The variants of a run: each combination of values, the last setting varying fastest; the default is inserted in front if it is not
    /// one of them.
    pub(crate) fn variants(&self, base: PlanRun) -> Vec<PlanRun> {
        let guest = base.spec.guest.as_ref().map(|guest| guest.scheduler.as_str());
        let schedulers: Vec<&str> = [base.spec.setting.scheduler.as_str()].into_iter().chain(guest).collect();
        let applying: Vec<&Values> = self.0.iter().filter(|values| values.applies_to(&schedulers)).collect();
        if applying.is_empty() {
            return vec![base];
        }
        let mut default = base.clone();
        default.variant.is_default = true;
        let mut variants = vec![default.clone()];
        for values in applying {
            variants = variants.iter().flat_map(|variant| values.each(variant)).collect();
        }
        if !variants.iter().any(|variant| variant.variant.is_default) {
            variants.insert(0, default);
        }
        variants
    }
}

impl Values {
    fn applies_to(&self, schedulers: &[&str]) -> bool {
        self.vary.is_of_all() || schedulers.contains(&&*self.vary.of)
    }

    /// A run with each of these values that its host's scheduler accepts.
    fn each(&self, run: &PlanRun) -> Vec<PlanRun> {
        let each = self.vary.texts.iter().zip(&self.tried);
        let possible = each.filter(|(_, tried)| !tried.refused_under.contains(&run.spec.setting.scheduler));
        possible.map(|(text, tried)| self.applied(text, tried, run.clone())).collect()
    }

    /// A run with one of these values.
    fn applied(&self, text: &str, tried: &TrialResult, mut run: PlanRun) -> PlanRun {
        let Vary { of, name, .. } = &self.vary;
        let PlanRun { spec, queue, variant, .. } = &mut run;
        match of.as_str() {
            Vary::QUEUE => spec.setting.write(name, text),
            // It was tried out before.
            Vary::IO_COST => drop(io_cost::vary(&mut Arc::make_mut(queue).io_cost, name, text)),
            Vary::IO_LATENCY => drop(io_latency::vary(&mut Arc::make_mut(queue).io_latency, name, text)),
            _ => {
                let settings = [Some(&mut spec.setting), spec.guest.as_mut()].into_iter().flatten();
                let own = settings.filter(|setting| setting.scheduler == *of);
                own.for_each(|setting| setting.write(&Setting::file_of(name), text));
            }
        }
        // Of two schedulers, both may have a tunable of this name.
        let is_known_by_name = of == Vary::QUEUE || (spec.guest.is_none() && !self.vary.is_of_cgroups());
        let known_as = if is_known_by_name { name.clone() } else { self.vary.label() };
        variant.settings.insert(known_as, number_or_text(text));
        let default_scheduler = if self.vary.is_of_all() { &spec.setting.scheduler } else { of };
        variant.is_default &= tried.default_under.contains(default_scheduler);
        run
    }
}

/// The written value as shown in documents.
pub(crate) fn number_or_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

/// Checks that a setting can be varied at all, given those before it.
pub(crate) fn check(
    (options, registry, schedulers): (&Options<'_>, &Registry, &[String]),
    vary: &Vary,
    before: &[Vary],
) -> Result<(), Error> {
    let comparison = options.comparison;
    let refuse = |problem: String| Err(options.refuse(Field::Vary, vary, problem));
    if vary.texts.is_empty() {
        return refuse("expected some values, such as mq-deadline.fifo_batch=1,4,16".to_owned());
    }
    if !vary.is_of_all() && !schedulers.contains(&vary.of) {
        let known = registry.find(&vary.of).is_some();
        let (hint, compared) = (nearest::hint(&vary.of, registry.names()), schedulers.join(", "));
        let problem = if known { "is not among the compared schedulers" } else { "is not a scheduler" };
        return refuse(format!("{} {problem} ({hint}expected queue, or one of {compared})", vary.of));
    }
    let name = vary.label();
    if let Some(before) = before.iter().find(|before| before.label() == name) {
        let other = options.given(Field::Vary, before);
        return refuse(format!("{other} was already given (expected all values of {name} in one)"));
    }
    let set = comparison.tunables.iter().find(|set| set.scheduler == vary.of && set.name == vary.name);
    let written = comparison.queue_files.iter().find(|set| vary.of == Vary::QUEUE && set.file == vary.name);
    let fixed = set.map(|set| options.given(Field::Tunables, set));
    let fixed =
        fixed.or_else(|| written.map(|set| options.given(Field::QueueFiles, format!("{}={}", set.file, set.text))));
    if let Some(fixed) = fixed {
        return refuse(format!("{fixed} sets {name} for all runs (expected one of the two)"));
    }
    let values: Vec<Value> = vary.texts.iter().map(|text| number_or_text(text)).collect();
    match values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)) {
        Some((index, _)) => refuse(format!("{} is given twice (expected each value once)", vary.texts[index])),
        None => Ok(()),
    }
}

/// Checks each combination of the bounds of io.cost's rate: each value alone may be valid, but not together with another one.
fn check_rates(trial: &Trial<'_>) -> Result<(), Error> {
    let requested = &trial.options.comparison.vary;
    let bound = |name: &str| requested.iter().position(|vary| vary.of == Vary::IO_COST && vary.name == name);
    let (Some(low), Some(high)) = (bound("qos.min"), bound("qos.max")) else { return Ok(()) };
    for (min, max) in
        requested[low].texts.iter().flat_map(|min| requested[high].texts.iter().map(move |max| (min, max)))
    {
        // In the order in which they were given, as they are set.
        let mut settings = [(low, min), (high, max)];
        settings.sort_by_key(|(index, _)| *index);
        let mut disks = trial.queue.io_cost.clone();
        for (index, text) in settings {
            io_cost::vary(&mut disks, &requested[index].name, text).map_err(|problem| {
                let given = format!("io.cost.qos.min={min} with io.cost.qos.max={max}");
                trial.options.refuse(Field::Vary, given, problem)
            })?;
        }
    }
    Ok(())
}
