//! The space of settings to try.

use hoistway_answer::document::value_text;
use hoistway_answer::tuning::{Candidates, Setting};
use hoistway_sim::DiskIoCost;

use super::Search;
use super::evaluate::Evaluator;
use super::ladder;
use super::prepared::Prepared;
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::{Comparison, Vary};
use crate::plan::Plan;
use crate::plan::io_cost;
use crate::plan::schedulers::queue_under;
use crate::plan::trial;

/// Larger numbers are not exact in every JSON reader.
const COUNT_MAX: u64 = 1 << 53;

/// The parameters of `io.cost.qos`, as they are named together.
const QOS: &str = "qos";

/// Schedulers with their tunables.
pub(super) struct Space {
    pub(super) branches: Vec<Branch>,
}

/// A scheduler with its tunables.
pub(super) struct Branch {
    pub(super) scheduler: String,
    pub(super) tunables: Vec<Candidates>,
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
        search.vary.iter().try_for_each(|vary| check_is_on(search, vary, evaluator))?;
        let requested: Vec<Vary> = search.vary.iter().flat_map(|vary| expanded(vary, &setup.queue.io_cost)).collect();
        let mut named: Vec<Candidates> = Vec::new();
        for (index, tunable) in requested.iter().enumerate() {
            let is_same = |other: &&Vary| other.of == tunable.of && other.name == tunable.name;
            if let Some(before) = requested[..index].iter().find(is_same) {
                let before = evaluator.plan.options.given(Field::Vary, before);
                let problem = format!("{before} was already given (expected each tunable once)");
                return Err(evaluator.plan.options.refuse(Field::Vary, tunable, problem));
            }
            named.extend(values(search, tunable, evaluator, environment)?);
        }
        let mut branches = Vec::new();
        for scheduler in prepared.searched_schedulers.iter().map(String::as_str) {
            let is_named = search.vary.iter().any(|tunable| tunable.of == scheduler);
            let mut tunables = if is_named { Vec::new() } else { ladder::ladders(setup, scheduler)? };
            tunables.extend(named.iter().filter(|tunable| tunable.scheduler == scheduler).cloned());
            branches.push(Branch { scheduler: scheduler.to_owned(), tunables });
        }
        check_rates(&branches, evaluator)?;
        Ok(Space { branches })
    }

    /// The number of settings.
    pub(super) fn size(&self) -> u64 {
        self.branches.iter().map(Branch::size).fold(0, u64::saturating_add).min(COUNT_MAX)
    }
}

impl Branch {
    pub(super) fn size(&self) -> u64 {
        self.tunables.iter().fold(1, |size: u64, tunable| size.saturating_mul(tunable.texts.len() as u64 + 1))
    }

    /// The setting with a choice for each tunable: 0 for unset, otherwise one of its values, counted from 1.
    pub(super) fn setting(&self, choices: &[usize]) -> Setting {
        let mut setting = Setting::untouched(&self.scheduler);
        for (tunable, choice) in self.tunables.iter().zip(choices) {
            let Some(text) = choice.checked_sub(1).and_then(|value| tunable.texts.get(value)) else { continue };
            setting.writes.push((tunable.file(), text.clone()));
        }
        // By name, as in a document that is read again.
        setting
            .writes
            .sort_by_key(|(file, _)| (Setting::is_cgroup_file(file), Setting::is_tunable(file), file.clone()));
        setting
    }
}

/// All settings that an option names: `io.cost.qos` is each of its parameters.
fn expanded(vary: &Vary, disks: &[Option<DiskIoCost>]) -> Vec<Vary> {
    if vary.of != Vary::IO_COST || vary.name != QOS || !vary.texts.is_empty() {
        return vec![vary.clone()];
    }
    let keys = ladder::QOS_KEYS.iter().filter(|key| !ladder::qos(disks, key).is_empty());
    keys.map(|key| Vary { name: format!("{QOS}.{key}"), ..vary.clone() }).collect()
}

/// Rejects a search of settings of io.cost that is off in all runs.
fn check_is_on(search: &Search, tunable: &Vary, evaluator: &Evaluator<'_>) -> Result<(), Error> {
    let (disks, options) = (&evaluator.plan.setups[0].queue.io_cost, &evaluator.plan.options);
    let is_switched = search.vary.iter().any(|vary| vary.of == Vary::IO_COST && vary.name == "qos.enable");
    let is_on = is_switched || disks.iter().flatten().any(|disk| disk.qos.is_enabled);
    if tunable.of != Vary::IO_COST || is_on {
        return Ok(());
    }
    let on = options.given(Field::IoCost, "\"enable=1\"");
    Err(options.refuse(Field::Vary, tunable, format_args!("io.cost is off in all runs (expected {on})")))
}

/// Rejects values of the bounds of io.cost's rate of which a combination is impossible.
fn check_rates(branches: &[Branch], evaluator: &Evaluator<'_>) -> Result<(), Error> {
    let disks = &evaluator.plan.setups[0].queue.io_cost;
    for branch in branches {
        let choices = |name: &str| {
            let tunable = branch.tunables.iter().find(|tunable| tunable.name == name);
            let texts = tunable.map(|tunable| tunable.texts.clone()).unwrap_or_default();
            std::iter::once(None).chain(texts.into_iter().map(Some)).collect::<Vec<Option<String>>>()
        };
        let (lows, highs) = (choices("io.cost.qos.min"), choices("io.cost.qos.max"));
        for (low, high) in lows.iter().flat_map(|low| highs.iter().map(move |high| (low, high))) {
            let low = low.iter().map(|text| ("qos.min", text.as_str()));
            let written: Vec<(&str, &str)> = low.chain(high.iter().map(|text| ("qos.max", text.as_str()))).collect();
            if written.is_empty() {
                continue;
            }
            io_cost::vary_together(&mut disks.clone(), &written).map_err(|problem| {
                let given: Vec<String> = written.iter().map(|(key, text)| format!("io.cost.{key}={text}")).collect();
                evaluator.plan.options.refuse(Field::Vary, given.join(" with "), problem)
            })?;
        }
    }
    Ok(())
}

/// The given values of a tunable under each of its schedulers, except the value that is the default there.
fn values(
    search: &Search,
    tunable: &Vary,
    evaluator: &Evaluator<'_>,
    environment: &dyn CallerEnvironment,
) -> Result<Vec<Candidates>, Error> {
    let setup = &evaluator.plan.setups[0];
    let is_queue_file = tunable.of == Vary::QUEUE;
    let mut texts = tunable.texts.clone();
    let is_of_cgroups = tunable.is_of_cgroups();
    if let Some(key) = tunable.name.strip_prefix("qos.").filter(|_| texts.is_empty() && tunable.of == Vary::IO_COST) {
        texts = ladder::qos(&setup.queue.io_cost, key);
    } else if texts.is_empty() && is_queue_file && tunable.name == "nr_requests" {
        texts = ladder::requests(setup.config.scheduler_depth());
    } else if texts.is_empty() && !is_queue_file && evaluator.schedulers().any(|name| name == tunable.of) {
        let known = ladder::ladders(setup, &tunable.of)?.into_iter().find(|known| known.name == tunable.name);
        match known {
            Some(known) => return Ok(vec![known]),
            None => {
                let queue = queue_under(&tunable.of, &setup.config).about(Field::Schedulers)?;
                if !queue.tunables().iter().any(|known| known.name == tunable.name) {
                    let (tunable, problem) = (
                        format!("{}.{}", tunable.of, tunable.name),
                        trial::unknown_tunable_error(&queue, &tunable.name),
                    );
                    return Err(evaluator.plan.options.refuse(Field::Vary, tunable, problem));
                }
                // Whether the tunable can be varied at all is checked below.
                texts = vec!["0".to_owned()];
            }
        }
    }
    if is_of_cgroups && texts.is_empty() {
        let problem = "expected values, such as io.cost.qos.max=50,100 or io.latency.pods/db.target=1000,5000";
        return Err(evaluator.plan.options.refuse(Field::Vary, tunable, problem));
    }
    // A comparison with only these values knows which are valid, and which is a scheduler's default.
    let vary = vec![Vary { texts, ..tunable.clone() }];
    let comparison = Comparison { vary, repeats: 1, ..search.comparison.clone() };
    let plan = Plan::of(&comparison, environment)?;
    let mut tunables: Vec<Candidates> = Vec::new();
    let name = if is_of_cgroups { tunable.label() } else { tunable.name.clone() };
    // A tunable of the guests is varied with every scheduler of the host.
    let is_of_host = |scheduler: &str| tunable.is_of_all() || scheduler == tunable.of;
    for run in
        plan.runs.iter().filter(|run| !run.variant.has_default_settings() && is_of_host(&run.spec.setting.scheduler))
    {
        let scheduler = run.spec.setting.scheduler.clone();
        let of_scheduler = match tunables.iter_mut().find(|known| known.scheduler == scheduler) {
            Some(known) => known,
            None => {
                tunables.push(Candidates { scheduler, name: name.clone(), is_queue_file, texts: Vec::new() });
                let last = tunables.len() - 1;
                &mut tunables[last]
            }
        };
        of_scheduler.texts.extend(run.variant.settings.get(&name).map(value_text));
    }
    Ok(tunables)
}
