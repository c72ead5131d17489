//! The variants of each scheduler. Settings are tried on a queue that is not in use, so that most mistakes are refused before the target
//! is opened; what depends on the target is tried on it before the first run.
//!
//! Used by: `rows`.
//! Tests: `crates/hoistway/tests/cli/run.rs`.

use hoistway_answer::document::RunLabel;
use hoistway_blk::ground::Local;
use hoistway_blk::queue::QueueConfig;
use hoistway_engine::Config;
use hoistway_legacy::AnyQueue;
use hoistway_measure::Setting;
use serde_json::Map;

use super::{RealExperiment, RealLayer};
use crate::comparison::Vary;
use crate::comparison::environment::Options;
use crate::plan::schedulers::queue_under;
use crate::plan::trial::{check_writable, set_tunable};
use crate::plan::variants::{VARIANTS_MAX, check, number_or_text};
use crate::{Error, Field};

/// A scheduler with one of the combinations of its varied settings.
#[derive(Clone)]
pub(super) struct Variant {
    pub(super) setting: Setting,
    pub(super) label: RunLabel,
}

/// The values of a varied setting that apply to a scheduler.
struct Values<'a> {
    vary: &'a Vary,
    /// Whether each value is the default.
    are_defaults: Vec<bool>,
}

/// The variants of a scheduler, the last setting varying fastest; the scheduler without them is first if it is not one of them. `notices`
/// gets the tunables of which the kernel reads another value.
pub(super) fn of(
    experiment: &RealExperiment,
    scheduler: &str,
    options: &Options<'_>,
    notices: &mut Vec<String>,
) -> Result<Vec<Variant>, Error> {
    let kernel = match &experiment.layer {
        RealLayer::Engine(_) => Config::default().kernel,
        RealLayer::Kernel(running) => running.kernel,
    };
    let config = QueueConfig { schedulers: options.environment.schedulers(), ..QueueConfig::new(kernel) };
    let queue =
        || queue_under(scheduler, &config).map_err(|why| options.refuse(Field::Schedulers, scheduler, why.to_string()));
    let mut base = Setting::untouched(scheduler);
    for file in &experiment.queue_files {
        let given = format!("{}={}", file.file, file.text);
        check_writable(options, Field::QueueFiles, given, &file.file)?;
        base.write(&file.file, &file.text);
    }
    for tunable in experiment.tunables.iter().filter(|tunable| tunable.scheduler == *scheduler) {
        notices.extend(set_tunable(options, Field::Tunables, &queue()?, &tunable.name, &tunable.text)?);
        base.write(&Setting::file_of(&tunable.name), &tunable.text);
    }
    let applying = experiment.vary.iter().filter(|vary| vary.is_of_all() || vary.of == scheduler);
    let tried = applying.map(|vary| Values::tried(vary, &queue()?, options, notices));
    let applying: Vec<Values<'_>> = tried.collect::<Result<_, _>>()?;
    let mut label = RunLabel::new(scheduler, Map::new());
    label.is_default = !applying.is_empty();
    let default = Variant { setting: base, label };
    let mut variants = vec![default.clone()];
    for values in &applying {
        variants = variants.iter().flat_map(|variant| values.each(variant)).collect();
        if variants.len() > VARIANTS_MAX {
            let problem = format!("more than {VARIANTS_MAX} variants of {scheduler} (expected fewer values)");
            return Err(options.refuse(Field::Vary, values.vary, problem));
        }
    }
    if !applying.is_empty() && !variants.iter().any(|variant| variant.label.is_default) {
        variants.insert(0, default);
    }
    Ok(variants)
}

/// Checks which settings are varied, before any value is tried.
pub(super) fn check_names(experiment: &RealExperiment, options: &Options<'_>) -> Result<(), Error> {
    let registry = options.environment.schedulers();
    for (index, vary) in experiment.vary.iter().enumerate() {
        if vary.is_of_cgroups() || (vary.of == Vary::QUEUE && (vary.name == "scheduler" || vary.name.contains('/'))) {
            let problem = "expected a tunable of a scheduler, or a file of queue/ such as queue.nr_requests; a run in real time has no \
                           io.cost and no io.latency";
            return Err(options.refuse(Field::Vary, vary, problem));
        }
        check((options, &registry, &experiment.schedulers), vary, &experiment.vary[..index])?;
    }
    Ok(())
}

impl<'a> Values<'a> {
    /// Tries each value. The defaults of files of `queue/` depend on the target, so none counts as one.
    fn tried(
        vary: &'a Vary,
        queue: &AnyQueue<Local>,
        options: &Options<'_>,
        notices: &mut Vec<String>,
    ) -> Result<Values<'a>, Error> {
        if vary.of == Vary::QUEUE {
            check_writable(options, Field::Vary, vary, &vary.name)?;
            return Ok(Values { vary, are_defaults: vec![false; vary.texts.len()] });
        }
        let before = queue.tunable(&vary.name).ok();
        let mut are_defaults = Vec::with_capacity(vary.texts.len());
        for text in &vary.texts {
            notices.extend(set_tunable(options, Field::Vary, queue, &vary.name, text)?);
            are_defaults.push(before.is_some() && queue.tunable(&vary.name).ok() == before);
        }
        Ok(Values { vary, are_defaults })
    }

    fn each(&self, variant: &Variant) -> Vec<Variant> {
        let each = self.vary.texts.iter().zip(&self.are_defaults);
        let applied = each.map(|(text, is_default)| {
            let file =
                if self.vary.of == Vary::QUEUE { self.vary.name.clone() } else { Setting::file_of(&self.vary.name) };
            let mut settings = variant.label.settings.clone();
            settings.insert(self.vary.name.clone(), number_or_text(text));
            let mut label = RunLabel::new(&variant.setting.scheduler, settings);
            label.is_default = variant.label.is_default && *is_default;
            Variant { setting: variant.setting.clone().with(&file, text), label }
        });
        applied.collect()
    }
}
