//! Variants of a comparison: each scheduler with each setting, on each setup, over its repeats.

use serde_json::Value;

use crate::document::{Front, Run, uses_scheduler, value_text};

/// One scheduler with one set of tunables, and its repeats.
#[derive(Clone, Debug)]
pub struct Variant<'a> {
    /// Its label in tables.
    pub label: String,
    /// Its runs, one for each repeat; never empty.
    pub runs: Vec<&'a Run>,
}

impl<'a> Variant<'a> {
    /// The variants, in the order of their first runs.
    pub(super) fn of(runs: &'a [Run]) -> Vec<Self> {
        let mut variants: Vec<Self> = Vec::new();
        for run in runs {
            match variants.iter_mut().find(|variant| same_setting(variant.first(), run)) {
                Some(variant) => variant.runs.push(run),
                None => variants.push(Self { label: String::new(), runs: vec![run] }),
            }
        }
        let schedulers: Vec<_> = variants.iter().map(|variant| run_label(variant.first())).collect();
        for (index, variant) in variants.iter_mut().enumerate() {
            let has_same_name = |name: &&String| **name == schedulers[index];
            variant.label = schedulers[index].clone();
            if schedulers.iter().filter(has_same_name).count() > 1 {
                let number = schedulers[..=index].iter().filter(has_same_name).count();
                variant.label += &format!(" #{number}");
            }
        }
        variants
    }

    /// The scheduler's name, as in sysfs.
    pub fn scheduler(&self) -> &'a str {
        &self.first().scheduler
    }

    /// The scheduler's name, with the settings that distinguish it from others of this name.
    pub fn name(&self) -> &'a str {
        run_name(self.first())
    }

    /// A line about the tunables that were set, without those that the label shows. `None` if there are none, unless the label needs an
    /// explanation because it is numbered.
    pub fn tunables(&self) -> Option<String> {
        let is_in_label = |name: &String| self.first().variant.settings.contains_key(name);
        let set = join_settings(self.first().tunables.iter().filter(|(name, _)| !is_in_label(name)));
        match (set.is_empty(), self.label.contains('#')) {
            (true, false) => None,
            (true, true) => Some(format!("{}: defaults", self.label)),
            (false, _) => Some(format!("{}: {set}", self.label)),
        }
    }

    /// The tunables that were set: `slice_idle=0, low_latency=0`.
    pub fn tunables_text(&self) -> String {
        self.first().tunables_text()
    }

    /// The variant in a sentence, without its setup: `mq-deadline with fifo_batch=4 and nr_requests=64`.
    pub fn in_words(&self) -> String {
        let tunables: Vec<String> = self.first().variant.own_settings().iter().map(setting_text).collect();
        let front = mark(self.first());
        match &tunables[..] {
            // The label may end with a number, which is kept.
            [] if self.first().variant.settings.is_empty() => self.label.clone(),
            [] => format!("{}{front}", self.scheduler()),
            [one] => format!("{}{front} with {one}", self.scheduler()),
            [several @ .., last] => {
                format!("{}{front} with {} and {last}", self.scheduler(), several.join(", "))
            }
        }
    }

    /// Whether all its settings are the kernel's defaults for this scheduler.
    pub fn is_kernel_default(&self) -> bool {
        let run = self.first();
        let is_varied = |name: &String| run.variant.settings.contains_key(name);
        run.variant.has_default_settings() && run.tunables.keys().chain(run.queue_files.keys()).all(is_varied)
    }

    /// Whether it uses this scheduler; with guests, whether the host does.
    pub(crate) fn uses_scheduler(&self, scheduler: &str) -> bool {
        uses_scheduler(self.scheduler(), scheduler)
    }

    /// The first of its runs.
    pub fn first(&self) -> &'a Run {
        self.runs[0]
    }
}

fn setting_text((name, value): (&String, &Value)) -> String {
    format!("{name}={}", value_text(value))
}

fn join_settings<'a>(set: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    set.map(setting_text).collect::<Vec<_>>().join(", ")
}

fn same_setting(a: &Run, b: &Run) -> bool {
    a.scheduler == b.scheduler && a.front == b.front && a.tunables == b.tunables && a.variant == b.variant
}

/// The label of a run, with its mark.
fn run_label(run: &Run) -> String {
    format!("{}{}", run_name(run), mark(run))
}

/// What distinguishes a scheduler from one that a kernel of today has. One on the single-queue block layer is marked `(legacy)`: compared
/// with multi-queue ones, its figures include the difference between the two block layers. One that no kernel has is marked
/// `(unverified)`: no kernel was recorded that decides as it does here.
fn mark(run: &Run) -> &'static str {
    match run.front {
        Front::Legacy => " (legacy)",
        Front::Mq if run.research.is_some() => " (unverified)",
        Front::Mq => "",
    }
}

fn run_name(run: &Run) -> &str {
    if run.variant.settings.is_empty() { &run.scheduler } else { &run.variant.label }
}
