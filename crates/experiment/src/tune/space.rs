//! The space of settings to try.

use hoistway_answer::document::value_text;
use hoistway_answer::tuning::{Candidates, Setting};

use super::Search;
use super::evaluate::Evaluator;
use super::ladder;
use super::prepared::Prepared;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::{Comparison, Vary};
use crate::plan::Plan;
use crate::plan::schedulers::queue_under;
use crate::plan::trial;

/// Larger numbers are not exact in every JSON reader.
const COUNT_MAX: u64 = 1 << 53;

/// Schedulers with their knobs.
pub(super) struct Space {
    pub(super) branches: Vec<Branch>,
}

/// A scheduler with its knobs.
pub(super) struct Branch {
    pub(super) scheduler: String,
    pub(super) knobs: Vec<Candidates>,
}

impl Space {
    /// Makes the space and tries all values out.
    pub(super) fn of(
        search: &Search,
        prepared: &Prepared,
        evaluator: &Evaluator<'_>,
        environment: &dyn CallerEnvironment,
    ) -> Result<Space, Error> {
        let setup = &evaluator.plan.setups[0];
        let mut named: Vec<Candidates> = Vec::new();
        for (index, knob) in search.knobs.iter().enumerate() {
            let is_same = |other: &&Vary| other.of == knob.of && other.name == knob.name;
            if let Some(before) = search.knobs[..index].iter().find(is_same) {
                let before = evaluator.plan.options.given(Field::Vary, before);
                let problem = format!("{before} was already given (expected each knob once)");
                return Err(evaluator.plan.options.refuse(Field::Vary, knob, problem));
            }
            named.extend(values(search, knob, evaluator, environment)?);
        }
        let mut branches = Vec::new();
        for scheduler in prepared.searched_schedulers.iter().map(String::as_str) {
            let is_named = search.knobs.iter().any(|knob| knob.of == scheduler);
            let mut knobs = if is_named { Vec::new() } else { ladder::ladders(setup, scheduler)? };
            knobs.extend(named.iter().filter(|knob| knob.scheduler == scheduler).cloned());
            branches.push(Branch { scheduler: scheduler.to_owned(), knobs });
        }
        Ok(Space { branches })
    }

    /// The number of settings.
    pub(super) fn size(&self) -> u64 {
        self.branches.iter().map(Branch::size).fold(0, u64::saturating_add).min(COUNT_MAX)
    }
}

impl Branch {
    pub(super) fn size(&self) -> u64 {
        self.knobs.iter().fold(1, |size: u64, knob| size.saturating_mul(knob.texts.len() as u64 + 1))
    }

    /// The setting with a choice for each knob: 0 for unset, otherwise one of its values, counted from 1.
    pub(super) fn setting(&self, choices: &[usize]) -> Setting {
        let mut setting = Setting::untouched(&self.scheduler);
        for (knob, choice) in self.knobs.iter().zip(choices) {
            let Some(text) = choice.checked_sub(1).and_then(|value| knob.texts.get(value)) else { continue };
            setting.writes.push((knob.file(), text.clone()));
        }
        // By name, as in a document that is read again.
        setting.writes.sort_by_key(|(file, _)| (Setting::is_tunable(file), file.clone()));
        setting
    }
}

/// The given values of a knob under each of its schedulers, except the value that is the default there.
fn values(
    search: &Search,
    knob: &Vary,
    evaluator: &Evaluator<'_>,
    environment: &dyn CallerEnvironment,
) -> Result<Vec<Candidates>, Error> {
    let setup = &evaluator.plan.setups[0];
    let is_queue_file = knob.of == Vary::QUEUE;
    let mut texts = knob.texts.clone();
    if texts.is_empty() && is_queue_file && knob.name == "nr_requests" {
        texts = ladder::requests(setup.config.scheduler_depth());
    } else if texts.is_empty() && !is_queue_file && evaluator.schedulers().any(|name| name == knob.of) {
        let known = ladder::ladders(setup, &knob.of)?.into_iter().find(|known| known.name == knob.name);
        match known {
            Some(known) => return Ok(vec![known]),
            None => {
                let queue = queue_under(&knob.of, &setup.config).about(Field::Schedulers)?;
                if !queue.tunables().iter().any(|tunable| tunable.name == knob.name) {
                    let (tunable, problem) =
                        (format!("{}.{}", knob.of, knob.name), trial::unknown_tunable_error(&queue, &knob.name));
                    return Err(evaluator.plan.options.refuse(Field::Vary, tunable, problem));
                }
                // Whether the knob can be varied at all is checked below.
                texts = vec!["0".to_owned()];
            }
        }
    }
    // A comparison with only these values knows which are valid, and which is a scheduler's default.
    let vary = vec![Vary { texts, ..knob.clone() }];
    let comparison = Comparison { vary, repeats: 1, ..search.comparison.clone() };
    let plan = Plan::of(&comparison, environment)?;
    let mut knobs: Vec<Candidates> = Vec::new();
    // A knob of the guests is varied with every scheduler of the host.
    let is_of_host = |scheduler: &str| is_queue_file || scheduler == knob.of;
    for run in
        plan.runs.iter().filter(|run| !run.variant.has_default_settings() && is_of_host(&run.spec.setting.scheduler))
    {
        let scheduler = run.spec.setting.scheduler.clone();
        let scheduler_knob = match knobs.iter_mut().find(|known| known.scheduler == scheduler) {
            Some(known) => known,
            None => {
                knobs.push(Candidates { scheduler, name: knob.name.clone(), is_queue_file, texts: Vec::new() });
                let last = knobs.len() - 1;
                &mut knobs[last]
            }
        };
        scheduler_knob.texts.extend(run.variant.settings.get(&knob.name).map(value_text));
    }
    Ok(knobs)
}
