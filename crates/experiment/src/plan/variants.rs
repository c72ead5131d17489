//! Variants of each scheduler: the combinations of the settings that a comparison varies.

use std::sync::Arc;

use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{Instant, Local};
use hoistway_blk::queue::QueueConfig;
use hoistway_legacy::AnyQueue;
use hoistway_sim::QueueSettings;
use serde_json::{Map, Value};

use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::{Tunable, Vary};
use crate::nearest;
use crate::plan::io_cost;
use crate::plan::queue_files::{self, FileWrite};
use crate::plan::schedulers::queue_under;
use crate::plan::tunables::{self, Settings};

/// Maximum variants of a comparison: the results of all their repeats are held in memory until the end.
pub const VARIANTS_MAX: usize = 1000;

/// The varied settings.
#[derive(Debug, Default)]
pub(crate) struct Varied(Vec<Knob>);

/// A tunable or a file with its values.
#[derive(Debug)]
struct Knob {
    vary: Vary,
    /// Each value with the result of trying it out.
    values: Vec<TrialResult>,
}

/// The result of trying a value out.
#[derive(Debug, Default)]
struct TrialResult {
    /// The schedulers that have this value by default.
    default_under: Vec<String>,
    /// The schedulers that reject the value, although others accept it.
    refused_under: Vec<String>,
}

/// The settings of one run beyond the fixed ones.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Tunables of schedulers.
    tunables: Vec<Tunable>,
    pub(crate) queue: Arc<QueueSettings>,
    /// Its values in documents.
    pub(crate) values: Map<String, Value>,
    /// Whether settings are varied and all of them have the scheduler's default values.
    pub(crate) is_default: bool,
}

impl Setting {
    /// The tunables that it sets for a scheduler.
    pub(crate) fn tunables_of(&self, scheduler: &str) -> impl Iterator<Item = (String, String)> {
        let matching = self.tunables.iter().filter(move |tunable| tunable.scheduler == scheduler);
        matching.map(|tunable| (tunable.name.clone(), tunable.text.clone()))
    }
}

/// The environment for trying settings out.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options<'a>,
    /// All schedulers, of hosts and guests.
    pub(crate) schedulers: &'a [String],
    /// The schedulers of the host, whose queues are written to.
    pub(crate) host_schedulers: &'a [String],
    /// The settings without variation.
    pub(crate) queue: &'a QueueSettings,
    /// The queue of the first device.
    pub(crate) config: &'a QueueConfig,
    /// Makes the configuration of a queue.
    pub(crate) make_config: &'a dyn Fn(&QueueSettings) -> QueueConfig,
    /// The settings that apply to all runs.
    pub(crate) settings: &'a Settings,
}

impl Varied {
    /// Tries all values out. Adds a notice for each value that the kernel changes.
    pub(crate) fn of(bench: &Bench<'_>, notices: &mut Vec<String>) -> Result<Varied, Error> {
        let requested = &bench.options.comparison.vary;
        let mut knobs = Vec::with_capacity(requested.len());
        for (index, vary) in requested.iter().enumerate() {
            bench.check(vary, &requested[..index])?;
            let validate_settings = match vary.of.as_str() {
                Vary::QUEUE => Bench::file,
                Vary::IO_COST => Bench::io_cost,
                _ => Bench::tunable,
            };
            let tried = vary.texts.iter().map(|text| validate_settings(bench, vary, text, notices));
            knobs.push(Knob { vary: vary.clone(), values: tried.collect::<Result<_, _>>()? });
        }
        bench.check_rates(&knobs)?;
        Ok(Varied(knobs))
    }

    /// The maximum number of variants of a scheduler, with or without guests, not counting an added default.
    pub(crate) fn count(&self, schedulers: &[&str]) -> usize {
        let knobs = self.0.iter().filter(|knob| knob.applies_to(schedulers));
        knobs.fold(1, |product: usize, knob| product.saturating_mul(knob.vary.texts.len()))
    }

    /// The settings of a host scheduler and, with guests, of a guest scheduler: each combination, the last knob varying fastest;
    /// the default is inserted in front if it is not one of them.
    pub(crate) fn settings(&self, host: &str, guest: Option<&str>, queue: &Arc<QueueSettings>) -> Vec<Setting> {
        let schedulers: Vec<&str> = [host].into_iter().chain(guest).collect();
        let knobs: Vec<&Knob> = self.0.iter().filter(|knob| knob.applies_to(&schedulers)).collect();
        let fixed_setting =
            Setting { tunables: Vec::new(), queue: Arc::clone(queue), values: Map::new(), is_default: false };
        if knobs.is_empty() {
            return vec![fixed_setting];
        }
        let mut settings = vec![Setting { is_default: true, ..fixed_setting.clone() }];
        for knob in knobs {
            let with_each_value = |setting: &Setting| {
                let each = knob.vary.texts.iter().zip(&knob.values);
                let possible = each.filter(|(_, tried)| !tried.refused_under.iter().any(|name| name == host));
                possible.map(|(text, tried)| knob.set(text, tried, setting, &schedulers)).collect::<Vec<_>>()
            };
            settings = settings.iter().flat_map(with_each_value).collect();
        }
        if !settings.iter().any(|setting| setting.is_default) {
            settings.insert(0, Setting { is_default: true, ..fixed_setting });
        }
        settings
    }
}

impl Knob {
    /// Whether it is varied for all schedulers.
    fn is_of_all(&self) -> bool {
        matches!(self.vary.of.as_str(), Vary::QUEUE | Vary::IO_COST)
    }

    fn applies_to(&self, schedulers: &[&str]) -> bool {
        self.is_of_all() || schedulers.contains(&&*self.vary.of)
    }

    /// A setting with a value of this knob. The host's scheduler comes first in `schedulers`.
    fn set(&self, text: &str, tried: &TrialResult, setting: &Setting, schedulers: &[&str]) -> Setting {
        let Vary { of, name, .. } = &self.vary;
        let mut setting = setting.clone();
        let is_file = of == Vary::QUEUE;
        if of == Vary::IO_COST {
            // It was tried out before.
            let _ = io_cost::vary(&mut Arc::make_mut(&mut setting.queue).io_cost, name, text);
        } else if is_file {
            let queue = Arc::make_mut(&mut setting.queue);
            match text.parse() {
                Ok(requests) if name == "nr_requests" => queue.nr_requests = Some(requests),
                _ => queue.attributes.push((name.clone(), text.to_owned())),
            }
        } else {
            setting.tunables.push(Tunable { scheduler: of.clone(), name: name.clone(), text: text.to_owned() });
        }
        // Of two schedulers, both may have a tunable of this name.
        let is_known_by_name = is_file || (schedulers.len() == 1 && of != Vary::IO_COST);
        let knob = if is_known_by_name { name.clone() } else { self.vary.knob() };
        setting.values.insert(knob, number_or_text(text));
        let default_scheduler = if self.is_of_all() { schedulers[0] } else { of };
        setting.is_default &= tried.default_under.iter().any(|known| known == default_scheduler);
        setting
    }
}

impl Vary {
    /// The name as scheduler (or `queue`) and tunable.
    fn knob(&self) -> String {
        format!("{}.{}", self.of, self.name)
    }
}

/// The written value as shown in documents.
pub(crate) fn number_or_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

impl Bench<'_> {
    /// Checks that a knob can be varied at all, given the knobs before it.
    fn check(&self, vary: &Vary, before: &[Vary]) -> Result<(), Error> {
        let (options, comparison) = (self.options, self.options.comparison);
        let refuse = |problem: String| Err(options.refuse(Field::Vary, vary, problem));
        if vary.texts.is_empty() {
            return refuse("expected some values, such as mq-deadline.fifo_batch=1,4,16".to_owned());
        }
        let known = self.queue.schedulers.find(&vary.of).is_some();
        if !matches!(vary.of.as_str(), Vary::QUEUE | Vary::IO_COST) && !self.schedulers.contains(&vary.of) {
            let (hint, compared) = (nearest::hint(&vary.of, self.queue.schedulers.names()), self.schedulers.join(", "));
            let problem = if known { "is not among the compared schedulers" } else { "is not a scheduler" };
            return refuse(format!("{} {problem} ({hint}expected queue, or one of {compared})", vary.of));
        }
        if let Some(before) = before.iter().find(|before| before.knob() == vary.knob()) {
            let other = options.given(Field::Vary, before);
            return refuse(format!("{other} was already given (expected all values of {} in one)", vary.knob()));
        }
        let set = comparison.tunables.iter().find(|set| set.scheduler == vary.of && set.name == vary.name);
        let written = comparison.queue_files.iter().find(|set| vary.of == Vary::QUEUE && set.file == vary.name);
        let fixed = set.map(|set| options.given(Field::Tunables, set));
        let fixed =
            fixed.or_else(|| written.map(|set| options.given(Field::QueueFiles, format!("{}={}", set.file, set.text))));
        if let Some(fixed) = fixed {
            return refuse(format!("{fixed} sets {} for all runs (expected one of the two)", vary.knob()));
        }
        let values: Vec<Value> = vary.texts.iter().map(|text| number_or_text(text)).collect();
        match values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)) {
            Some((index, _)) => refuse(format!("{} is given twice (expected each value once)", vary.texts[index])),
            None => Ok(()),
        }
    }

    /// Tries a value of a tunable out.
    fn tunable(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<TrialResult, Error> {
        let tunable = Tunable { scheduler: vary.of.clone(), name: vary.name.clone(), text: text.to_owned() };
        let queue = queue_under(&vary.of, self.config).about(Field::Vary)?;
        let now = queue.generation().hz.now(Instant::ZERO);
        for (name, text) in self.settings.get(&vary.of).into_iter().flatten() {
            queue.set_tunable(now, name, text, &mut Effects::new()).about(Field::Tunables)?;
        }
        let before = queue.tunable(&vary.name).ok();
        notices.extend(tunables::set(self.options, Field::Vary, &queue, &tunable)?);
        let is_default_value = before.is_some() && before == queue.tunable(&vary.name).ok();
        Ok(TrialResult {
            default_under: is_default_value.then(|| vary.of.clone()).into_iter().collect(),
            ..TrialResult::default()
        })
    }

    /// Checks each combination of the bounds of io.cost's rate: each value alone may be valid, but not together with another one.
    fn check_rates(&self, knobs: &[Knob]) -> Result<(), Error> {
        let bound = |name: &str| knobs.iter().find(|knob| knob.vary.of == Vary::IO_COST && knob.vary.name == name);
        let (Some(low), Some(high)) = (bound("qos.min"), bound("qos.max")) else { return Ok(()) };
        for (min, max) in low.vary.texts.iter().flat_map(|min| high.vary.texts.iter().map(move |max| (min, max))) {
            // In the order in which they were given, as they are set.
            let mut settings = [(low, min), (high, max)];
            settings.sort_by_key(|(knob, _)| knobs.iter().position(|other| std::ptr::eq(other, *knob)));
            let mut disks = self.queue.io_cost.clone();
            for (knob, text) in settings {
                io_cost::vary(&mut disks, &knob.vary.name, text).map_err(|problem| {
                    let given = format!("{}={min} with {}={max}", low.vary.knob(), high.vary.knob());
                    self.options.refuse(Field::Vary, given, problem)
                })?;
            }
        }
        Ok(())
    }

    /// Tries a value of a setting of io.cost out.
    fn io_cost(&self, vary: &Vary, text: &str, _: &mut Vec<String>) -> Result<TrialResult, Error> {
        let mut disks = self.queue.io_cost.clone();
        io_cost::vary(&mut disks, &vary.name, text)
            .map_err(|problem| self.options.refuse(Field::Vary, format_args!("{}={text}", vary.knob()), problem))?;
        let default_under = if disks == self.queue.io_cost { self.host_schedulers.to_vec() } else { Vec::new() };
        Ok(TrialResult { default_under, ..TrialResult::default() })
    }

    /// Tries a value of a file out under every scheduler of the host. A value that only some schedulers reject is left out for
    /// those.
    fn file(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<TrialResult, Error> {
        let given = |file: &str, text: &str| format!("{}.{file}={text}", Vary::QUEUE);
        let mut queue = QueueSettings { attributes: Vec::new(), ..self.queue.clone() };
        let file_write = FileWrite { field: Field::Vary, given: given(&vary.name, text), file: &vary.name, text };
        queue_files::write(self.options, &file_write, &mut queue)?;
        let config = (self.make_config)(&queue);
        let (mut tried, mut refusals) = (TrialResult::default(), Vec::new());
        for scheduler in self.host_schedulers {
            let this_scheduler = std::slice::from_ref(scheduler);
            match queue_files::validate_field(self.options, Field::Vary, &given, &queue, &config, this_scheduler) {
                Ok(new) => {
                    notices.extend(new.into_iter().filter(|notice| !notices.contains(notice)).collect::<Vec<_>>())
                }
                Err(refusal) => {
                    tried.refused_under.push(scheduler.clone());
                    refusals.push(refusal);
                    continue;
                }
            }
            let defaults = QueueSettings { attributes: Vec::new(), ..self.queue.clone() };
            let before = self.shown(&vary.name, scheduler, self.config, &defaults);
            if before.is_some() && before == self.shown(&vary.name, scheduler, &config, &queue) {
                tried.default_under.push(scheduler.clone());
            }
        }
        match refusals.into_iter().next() {
            Some(refusal) if tried.refused_under.len() == self.host_schedulers.len() => Err(refusal),
            Some(refusal) => {
                notices.push(format!("Left out: {refusal}."));
                Ok(tried)
            }
            None => Ok(tried),
        }
    }

    /// The value that a file of `queue/` shows under a scheduler.
    fn shown(&self, file: &str, scheduler: &str, config: &QueueConfig, queue: &QueueSettings) -> Option<String> {
        let trial_queue: AnyQueue<Local> = queue_under(scheduler, config).ok()?;
        let now = trial_queue.generation().hz.now(Instant::ZERO);
        for (file, text) in self.queue.attributes.iter().chain(&queue.attributes) {
            trial_queue.set_attribute(now, file, text, &mut Effects::new()).ok()?;
        }
        trial_queue.attribute(file).ok()
    }
}
