//! The search itself: each round has fewer settings, longer runs and more seeds.

use hoistway_answer::advice::{CgroupWrites, cgroup_writes};
use hoistway_answer::document::{Change, Shift};
use hoistway_answer::quoted;
use hoistway_answer::tuning::{FORMAT, Round, SearchOutcome, Setting, SettingResult, TuneRun, Tuning, losses};

use super::evaluate::{Evaluate, Evaluator};
use super::front::{front, is_equivalent_setting};
use super::ledger::{Key, Ledger};
use super::observe::{SearchObserver, TuneError};
use super::prepared::Prepared;
use super::ranking::{RankedSetting, Ranking};
use super::rounds::{self, KEPT, SEEDS_MAX, Step};
use super::space::Space;
use super::{Search, effects, sample};
use crate::comparison::environment::CallerEnvironment;
use crate::comparison::fields::Field;
use crate::plan::repeats;

/// Carries out a search. Runs in `known`, from an earlier call, are not repeated. The same search gives the same result, whatever
/// the number of threads and wherever it was resumed.
///
/// # Errors
/// If the search is invalid, or was ended.
pub fn tune(
    search: &Search,
    environment: &dyn CallerEnvironment,
    known: Vec<TuneRun>,
    observe: &dyn SearchObserver,
) -> Result<Tuning, TuneError> {
    let prepared = Prepared::of(search, environment)?;
    let evaluator = Evaluator::new(&prepared.comparison, environment)?;
    observe.begins(evaluator.cancel_handle());
    search_by(search, &prepared, &evaluator, environment, &evaluator, known, observe)
}

/// Like [`tune`], but gets the figures of settings from `evaluate`.
///
/// # Errors
/// The same as [`tune`].
pub fn tune_by(
    search: &Search,
    environment: &dyn CallerEnvironment,
    evaluate: &dyn Evaluate,
    known: Vec<TuneRun>,
    observe: &dyn SearchObserver,
) -> Result<Tuning, TuneError> {
    let prepared = Prepared::of(search, environment)?;
    let evaluator = Evaluator::new(&prepared.comparison, environment)?;
    search_by(search, &prepared, &evaluator, environment, evaluate, known, observe)
}

fn search_by(
    search: &Search,
    prepared: &Prepared,
    evaluator: &Evaluator<'_>,
    environment: &dyn CallerEnvironment,
    evaluate: &dyn Evaluate,
    known: Vec<TuneRun>,
    observe: &dyn SearchObserver,
) -> Result<Tuning, TuneError> {
    let window = evaluator.choose_window()?.cloned();
    let space = Space::of(search, prepared, evaluator, environment)?;
    let steps = rounds::planned(search, evaluator, &space, prepared.references.len())?;
    let figures = search.objective.figures().into_iter().cloned().collect();
    let mut race = Race {
        search,
        prepared,
        evaluator,
        ledger: Ledger::new(evaluate, observe, figures, known),
        seeds: repeats::seeds(search.comparison.seed, rounds::seeds(&steps) as u32),
    };
    race.ledger.planned = steps.iter().map(|step| (step.settings * step.seeds) as u64).sum();
    let mut contestants = sample::settings(&space, steps[0].settings, search.comparison.seed);
    let mut rounds = Vec::with_capacity(steps.len());
    let mut used_seeds = 0;
    let mut last = Vec::new();
    for (round_index, step) in steps.iter().enumerate() {
        let seeds = used_seeds..used_seeds + step.seeds;
        race.ledger.keeps_all_figures = round_index + 1 == steps.len();
        race.run(&contestants, step, seeds.clone())?;
        if round_index == 0 {
            race.check_figures(step)?;
        }
        let seeds = if round_index + 1 == steps.len() {
            race.add_seeds_until_decided(&contestants, step, seeds)?
        } else {
            seeds
        };
        last = race.ranking(step, seeds.clone()).rank(&race.contending_settings(&contestants));
        contestants = survivors(&last, contestants.len().div_ceil(KEPT));
        used_seeds = seeds.end;
        let settings = last.iter().map(|ranked| ranked.result.clone()).collect();
        rounds.push(Round { runtime_ns: step.runtime_ns, settings });
        if round_index == 0 {
            race.ledger.planned = race.ledger.planned.max(race.ledger.runs.len() as u64);
        }
    }
    let step = &steps[steps.len() - 1];
    let last_seeds_begin = used_seeds - last.first().map_or(0, |best| best.result.seeds as usize);
    let outcome = race.outcome(&last, step, last_seeds_begin..used_seeds)?;
    let first = &rounds[0].settings;
    let cgroup_writes = match &outcome {
        Some(found) if found.holds => race.cgroup_writes(found, step, last_seeds_begin)?,
        _ => Vec::new(),
    };
    let front = front(&search.objective, first);
    let effects = effects::effects(search, &space, first);
    let summary = evaluator.plan.setups[0].summary()?;
    Ok(Tuning {
        format: FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: String::new(),
        job_file: evaluator.plan.load.name.clone(),
        job_text: evaluator.plan.load.text.clone(),
        device: summary.device,
        kernel: summary.kernel,
        outside_linux: evaluator.plan.setups[0].outside_linux(),
        cpus: summary.cpus,
        host: summary.host,
        search: serde_json::to_value(search).unwrap_or_default(),
        objective: search.objective.clone(),
        budget: search.budget,
        seed: search.comparison.seed,
        settings_possible: space.size(),
        tunables: space.branches.into_iter().flat_map(|branch| branch.tunables).collect(),
        rounds,
        window,
        found: outcome,
        cgroup_writes,
        front,
        effects,
        notices: evaluator.notices(),
        conclusion: Vec::new(),
        runs: race.ledger.runs,
    })
}

struct Race<'a> {
    search: &'a Search,
    prepared: &'a Prepared,
    evaluator: &'a Evaluator<'a>,
    ledger: Ledger<'a>,
    seeds: Vec<u64>,
}

impl Race<'_> {
    fn ranking<'a>(&'a self, step: &Step, seeds: std::ops::Range<usize>) -> Ranking<'a> {
        Ranking {
            objective: &self.search.objective,
            ledger: &self.ledger,
            seeds: &self.seeds[seeds],
            runtime_ns: step.runtime_ns,
            default: &self.prepared.default,
        }
    }

    /// The contestants and the reference settings.
    fn with_references(&self, contestants: &[Setting]) -> Vec<Setting> {
        let mut settings = contestants.to_vec();
        settings.extend(self.prepared.references.iter().filter(|reference| !contestants.contains(reference)).cloned());
        settings
    }

    /// The settings among these that may win.
    fn contending_settings(&self, contestants: &[Setting]) -> Vec<Setting> {
        let mut settings = self.with_references(contestants);
        settings.retain(|setting| self.prepared.searched_schedulers.contains(&setting.scheduler));
        settings
    }

    fn run(&mut self, contestants: &[Setting], step: &Step, seeds: std::ops::Range<usize>) -> Result<(), TuneError> {
        let settings = self.with_references(contestants);
        let key = |setting: &Setting, seed| Key { setting: setting.clone(), seed, runtime_ns: step.runtime_ns };
        let keys =
            self.seeds[seeds].iter().flat_map(|seed| settings.iter().map(move |setting| key(setting, *seed))).collect();
        self.ledger.ensure(keys)
    }

    /// Adds one seed at a time while another setting is within the noise of the best and the budget lasts. Returns the seeds.
    fn add_seeds_until_decided(
        &mut self,
        contestants: &[Setting],
        step: &Step,
        mut seeds: std::ops::Range<usize>,
    ) -> Result<std::ops::Range<usize>, TuneError> {
        let cost = |runtime_ns| rounds::cost(self.search, self.evaluator, runtime_ns);
        let spent: u64 = self.ledger.runs.iter().filter_map(|run| cost(run.runtime_ns)).sum();
        let seed_cost = self.with_references(contestants).len() as u64 * cost(step.runtime_ns).unwrap_or(u64::MAX);
        let more = rounds::limit(self.search.budget).saturating_sub(spent) / seed_cost.max(1);
        for _ in 0..more.min((SEEDS_MAX - step.seeds) as u64) {
            let ranked = self.ranking(step, seeds.clone()).rank(&self.contending_settings(contestants));
            if undecided(&ranked).is_empty() {
                break;
            }
            self.run(contestants, step, seeds.end..seeds.end + 1)?;
            seeds.end += 1;
        }
        Ok(seeds)
    }

    /// Checks that the I/O named by the objective exists.
    fn check_figures(&self, step: &Step) -> Result<(), TuneError> {
        for figure in self.search.objective.figures() {
            if self.ledger.runs.iter().any(|run| run.figures.contains_key(figure)) {
                continue;
            }
            let setting = self.prepared.references[0].clone();
            let key = Key { setting, seed: self.seeds[0], runtime_ns: step.runtime_ns };
            let figures = self.ledger.all_figures(&[key])?.swap_remove(0);
            let mut known: Vec<String> =
                figures.keys().map(|name| format!("{}:{}", quoted(&name.job), name.operation.name())).collect();
            known.dedup();
            let problem = format!("{figure}: no such I/O happened (expected one of {})", known.join(", "));
            return Err(self.evaluator.plan.options.refuse(Field::Objective, &self.search.objective, problem).into());
        }
        Ok(())
    }

    fn outcome(
        &self,
        ranked: &[RankedSetting],
        step: &Step,
        seeds: std::ops::Range<usize>,
    ) -> Result<Option<SearchOutcome>, TuneError> {
        let Some(best) = ranked.first().map(|best| best.result.clone()) else { return Ok(None) };
        let ranking = self.ranking(step, seeds.clone());
        let reference = &self.prepared.references[0];
        let result = ranked.iter().map(|setting| &setting.result).find(|result| result.setting == *reference).cloned();
        let alone = || ranking.rank(std::slice::from_ref(reference)).pop().map(|setting| setting.result);
        let Some(result) = result.or_else(alone) else { return Ok(None) };
        let gain = ranking.change(reference, &best.setting);
        Ok(Some(SearchOutcome {
            holds: best.holds,
            gain,
            undecided: undecided(ranked),
            losses: self.losses([reference, &best.setting], step, seeds, gain)?,
            reference: result,
            best,
        }))
    }

    /// The commands for what the best setting changes in files of cgroups.
    fn cgroup_writes(&self, found: &SearchOutcome, step: &Step, seed: usize) -> Result<Vec<CgroupWrites>, TuneError> {
        let (from, to) = (&found.reference.setting, &found.best.setting);
        if from.cgroup_files().eq(to.cgroup_files()) {
            return Ok(Vec::new());
        }
        // Only a run knows the weights and targets of all groups.
        let run = |setting: &Setting| self.evaluator.run(setting, self.seeds[seed], step.runtime_ns);
        Ok(cgroup_writes(&run(from)?, &run(to)?))
    }

    /// The figures that get worse from one setting to another that is better by the objective.
    fn losses(
        &self,
        [from, to]: [&Setting; 2],
        step: &Step,
        seeds: std::ops::Range<usize>,
        gain: Option<Change>,
    ) -> Result<Option<Vec<Shift>>, TuneError> {
        let keys = |setting: &Setting| -> Vec<Key> {
            let key = |seed: &u64| Key { setting: setting.clone(), seed: *seed, runtime_ns: step.runtime_ns };
            self.seeds[seeds.clone()].iter().map(key).collect()
        };
        let (from, to) = (self.ledger.all_figures(&keys(from))?, self.ledger.all_figures(&keys(to))?);
        Ok(losses(&self.search.objective, &from.into_iter().zip(to).collect::<Vec<_>>(), gain))
    }
}

/// The settings that advance. A setting with exactly the same figures as an earlier one does not.
fn survivors(ranked: &[RankedSetting], count_max: usize) -> Vec<Setting> {
    let mut kept: Vec<&SettingResult> = Vec::new();
    for result in ranked.iter().filter(|setting| !setting.is_worse_than_best()).map(|setting| &setting.result) {
        if kept.len() < count_max.max(1) && !kept.iter().any(|kept_result| is_equivalent_setting(kept_result, result)) {
            kept.push(result);
        }
    }
    kept.into_iter().map(|result| result.setting.clone()).collect()
}

/// Settings that meet the conditions, as the best does, and are within the noise of it.
fn undecided(ranked: &[RankedSetting]) -> Vec<Setting> {
    let Some((best, others)) = ranked.split_first() else { return Vec::new() };
    let is_undecided = |ranked: &&RankedSetting| {
        let is_other = !is_equivalent_setting(&best.result, &ranked.result);
        is_other && ranked.result.holds == best.result.holds && !ranked.is_worse_than_best()
    };
    others.iter().filter(is_undecided).map(|ranked| ranked.result.setting.clone()).collect()
}
