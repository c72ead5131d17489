//! Settings of which several values are compared: which there are, and the runs that they make of a scheduler.

use std::sync::Arc;

use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{Instant, Local};
use hoistway_blk::queue::QueueConfig;
use hoistway_legacy::AnyQueue;
use hoistway_sim::QueueSettings;
use serde_json::{Map, Value};

use crate::comparison::{Tunable, Vary};
use crate::environment::Options;
use crate::error::{About as _, Error};
use crate::fields::Field;
use crate::nearest;
use crate::queue_files::{self, Writing};
use crate::schedulers::queue_under;
use crate::tunables::{self, Settings};

/// Most variants of a comparison: their documents are in memory at the end, each with every repeat.
pub const VARIANTS_MAX: usize = 1000;

/// What is varied.
#[derive(Debug, Default)]
pub(crate) struct Varied(Vec<Knob>);

/// A tunable or a file with its values.
#[derive(Debug)]
struct Knob {
    vary: Vary,
    /// Each with what became of it when it was tried out.
    values: Vec<Tried>,
}

/// A value that was tried out.
#[derive(Debug, Default)]
struct Tried {
    /// The schedulers that have it anyway.
    usual_under: Vec<String>,
    /// The schedulers that it cannot be set under, although others can have it.
    refused_under: Vec<String>,
}

/// What is set in one run beside what is set in all.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Of schedulers.
    tunables: Vec<Tunable>,
    pub(crate) queue: Arc<QueueSettings>,
    /// Its values in documents.
    pub(crate) values: Map<String, Value>,
    /// Whether it is what the scheduler would have without, and others have something else.
    pub(crate) is_default: bool,
}

impl Setting {
    /// What it sets of a scheduler.
    pub(crate) fn tunables_of(&self, scheduler: &str) -> impl Iterator<Item = (String, String)> {
        let of = self.tunables.iter().filter(move |tunable| tunable.scheduler == scheduler);
        of.map(|tunable| (tunable.name.clone(), tunable.text.clone()))
    }
}

/// Where settings are tried out.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options<'a>,
    /// All, of hosts and guests.
    pub(crate) schedulers: &'a [String],
    /// Those whose queues are written to.
    pub(crate) on_host: &'a [String],
    /// Before anything is varied.
    pub(crate) queue: &'a QueueSettings,
    /// The queue of the first device.
    pub(crate) config: &'a QueueConfig,
    /// How it is made.
    pub(crate) configured: &'a dyn Fn(&QueueSettings) -> QueueConfig,
    /// What is set in all runs.
    pub(crate) settings: &'a Settings,
}

impl Varied {
    /// Tries all values out. Adds a notice for each that the kernel takes for another.
    pub(crate) fn of(bench: &Bench<'_>, notices: &mut Vec<String>) -> Result<Varied, Error> {
        let wanted = &bench.options.comparison.vary;
        let mut knobs = Vec::with_capacity(wanted.len());
        for (place, vary) in wanted.iter().enumerate() {
            bench.check(vary, &wanted[..place])?;
            let try_out = if vary.of == Vary::QUEUE { Bench::file } else { Bench::tunable };
            let tried = vary.texts.iter().map(|text| try_out(bench, vary, text, notices));
            knobs.push(Knob { vary: vary.clone(), values: tried.collect::<Result<_, _>>()? });
        }
        Ok(Varied(knobs))
    }

    /// How many variants of a scheduler, in guests or not, there are at most; the default one is among them or comes to them.
    pub(crate) fn count(&self, schedulers: &[&str]) -> usize {
        let knobs = self.0.iter().filter(|knob| knob.is_of(schedulers));
        knobs.fold(1, |product: usize, knob| product.saturating_mul(knob.vary.texts.len()))
    }

    /// The settings of a scheduler of the host and, if there are guests, that of theirs: each combination, the last knob first,
    /// and before them the default one if it is none of them.
    pub(crate) fn settings(&self, host: &str, guest: Option<&str>, queue: &Arc<QueueSettings>) -> Vec<Setting> {
        let schedulers: Vec<&str> = [host].into_iter().chain(guest).collect();
        let knobs: Vec<&Knob> = self.0.iter().filter(|knob| knob.is_of(&schedulers)).collect();
        let nothing = Setting { tunables: Vec::new(), queue: Arc::clone(queue), values: Map::new(), is_default: false };
        if knobs.is_empty() {
            return vec![nothing];
        }
        let mut settings = vec![Setting { is_default: true, ..nothing.clone() }];
        for knob in knobs {
            let of_knob = |setting: &Setting| {
                let each = knob.vary.texts.iter().zip(&knob.values);
                let possible = each.filter(|(_, tried)| !tried.refused_under.iter().any(|name| name == host));
                possible.map(|(text, tried)| knob.set(text, tried, setting, &schedulers)).collect::<Vec<_>>()
            };
            settings = settings.iter().flat_map(of_knob).collect();
        }
        if !settings.iter().any(|setting| setting.is_default) {
            settings.insert(0, Setting { is_default: true, ..nothing });
        }
        settings
    }
}

impl Knob {
    fn is_of(&self, schedulers: &[&str]) -> bool {
        self.vary.of == Vary::QUEUE || schedulers.contains(&&*self.vary.of)
    }

    /// A setting with a value of this knob. The host's scheduler stands first of `schedulers`.
    fn set(&self, text: &str, tried: &Tried, setting: &Setting, schedulers: &[&str]) -> Setting {
        let Vary { of, name, .. } = &self.vary;
        let mut setting = setting.clone();
        let is_file = of == Vary::QUEUE;
        if is_file {
            let queue = Arc::make_mut(&mut setting.queue);
            match text.parse() {
                Ok(requests) if name == "nr_requests" => queue.nr_requests = Some(requests),
                _ => queue.attributes.push((name.clone(), text.to_owned())),
            }
        } else {
            setting.tunables.push(Tunable { scheduler: of.clone(), name: name.clone(), text: text.to_owned() });
        }
        // Of two schedulers both may have a tunable of this name.
        let knob = if is_file || schedulers.len() == 1 { name.clone() } else { self.vary.knob() };
        setting.values.insert(knob, number_or_text(text));
        let under = if is_file { schedulers[0] } else { of };
        setting.is_default &= tried.usual_under.iter().any(|known| known == under);
        setting
    }
}

impl Vary {
    /// The scheduler or `queue`, and the name.
    fn knob(&self) -> String {
        format!("{}.{}", self.of, self.name)
    }
}

/// As a document shows what was written.
pub(crate) fn number_or_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

impl Bench<'_> {
    /// Whether a knob can be varied at all, beside those before it.
    fn check(&self, vary: &Vary, before: &[Vary]) -> Result<(), Error> {
        let (options, wanted) = (self.options, self.options.comparison);
        let refuse = |problem: String| Err(options.refuse(Field::Vary, vary, problem));
        if vary.texts.is_empty() {
            return refuse("expected some values, such as mq-deadline.fifo_batch=1,4,16".to_owned());
        }
        let known = self.queue.schedulers.find(&vary.of).is_some();
        if vary.of != Vary::QUEUE && !self.schedulers.contains(&vary.of) {
            let (hint, compared) = (nearest::hint(&vary.of, self.queue.schedulers.names()), self.schedulers.join(", "));
            let problem = if known { "is not among the schedulers that are compared" } else { "is no scheduler" };
            return refuse(format!("{} {problem} ({hint}expected queue, or one of {compared})", vary.of));
        }
        if let Some(before) = before.iter().find(|before| before.knob() == vary.knob()) {
            let other = options.given(Field::Vary, before);
            return refuse(format!("{other} was already given (expected all values of {} in one)", vary.knob()));
        }
        let set = wanted.tunables.iter().find(|set| set.scheduler == vary.of && set.name == vary.name);
        let written = wanted.queue_files.iter().find(|set| vary.of == Vary::QUEUE && set.file == vary.name);
        let fixed = set.map(|set| options.given(Field::Tunables, set));
        let fixed =
            fixed.or_else(|| written.map(|set| options.given(Field::QueueFiles, format!("{}={}", set.file, set.text))));
        if let Some(fixed) = fixed {
            return refuse(format!("{fixed} sets {} for all runs (expected one of the two)", vary.knob()));
        }
        let values: Vec<Value> = vary.texts.iter().map(|text| number_or_text(text)).collect();
        match values.iter().enumerate().find(|(place, value)| values[..*place].contains(value)) {
            Some((place, _)) => refuse(format!("{} is given twice (expected each value once)", vary.texts[place])),
            None => Ok(()),
        }
    }

    /// Tries out a value of a tunable.
    fn tunable(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<Tried, Error> {
        let tunable = Tunable { scheduler: vary.of.clone(), name: vary.name.clone(), text: text.to_owned() };
        let queue = queue_under(&vary.of, self.config).about(Field::Vary)?;
        let now = queue.generation().hz.now(Instant::ZERO);
        for (name, text) in self.settings.get(&vary.of).into_iter().flatten() {
            queue.set_tunable(now, name, text, &mut Effects::new()).about(Field::Tunables)?;
        }
        let before = queue.tunable(&vary.name).ok();
        notices.extend(tunables::set(self.options, Field::Vary, &queue, &tunable)?);
        let is_usual = before.is_some() && before == queue.tunable(&vary.name).ok();
        Ok(Tried { usual_under: is_usual.then(|| vary.of.clone()).into_iter().collect(), ..Tried::default() })
    }

    /// Tries out a value of a file under every scheduler of the host. It is left out where it cannot be, unless that is everywhere.
    fn file(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<Tried, Error> {
        let given = |file: &str, text: &str| format!("{}.{file}={text}", Vary::QUEUE);
        let mut queue = QueueSettings { attributes: Vec::new(), ..self.queue.clone() };
        let writing = Writing { field: Field::Vary, given: given(&vary.name, text), file: &vary.name, text };
        queue_files::write(self.options, &writing, &mut queue)?;
        let config = (self.configured)(&queue);
        let (mut tried, mut refusals) = (Tried::default(), Vec::new());
        for scheduler in self.on_host {
            let alone = std::slice::from_ref(scheduler);
            match queue_files::try_out_as(self.options, Field::Vary, &given, &queue, &config, alone) {
                Ok(new) => {
                    notices.extend(new.into_iter().filter(|notice| !notices.contains(notice)).collect::<Vec<_>>())
                }
                Err(refusal) => {
                    tried.refused_under.push(scheduler.clone());
                    refusals.push(refusal);
                    continue;
                }
            }
            let bare = QueueSettings { attributes: Vec::new(), ..self.queue.clone() };
            let before = self.shown(&vary.name, scheduler, self.config, &bare);
            if before.is_some() && before == self.shown(&vary.name, scheduler, &config, &queue) {
                tried.usual_under.push(scheduler.clone());
            }
        }
        match refusals.into_iter().next() {
            Some(refusal) if tried.refused_under.len() == self.on_host.len() => Err(refusal),
            Some(refusal) => {
                notices.push(format!("Left out: {refusal}."));
                Ok(tried)
            }
            None => Ok(tried),
        }
    }

    /// What a file of `queue/` shows under a scheduler.
    fn shown(&self, file: &str, scheduler: &str, config: &QueueConfig, queue: &QueueSettings) -> Option<String> {
        let front: AnyQueue<Local> = queue_under(scheduler, config).ok()?;
        let now = front.generation().hz.now(Instant::ZERO);
        for (file, text) in self.queue.attributes.iter().chain(&queue.attributes) {
            front.set_attribute(now, file, text, &mut Effects::new()).ok()?;
        }
        front.attribute(file).ok()
    }
}
