//! What is compared: each scheduler with each setting, over its repeats.

use hoistway_results::ResultsDocument;
use hoistway_results::document::{Front, Run};
use serde_json::Value;

/// One scheduler with one set of tunables, and its repeats.
pub(crate) struct Variant<'a> {
    /// How it is called in tables.
    pub(crate) label: String,
    /// Its runs, one for each repeat; never empty.
    pub(crate) runs: Vec<&'a Run>,
}

impl<'a> Variant<'a> {
    /// The variants of a document, in the order of their first runs.
    pub(crate) fn of(document: &'a ResultsDocument) -> Vec<Self> {
        let mut variants: Vec<Self> = Vec::new();
        for run in &document.runs {
            match variants.iter_mut().find(|variant| same_setting(variant.first(), run)) {
                Some(variant) => variant.runs.push(run),
                None => variants.push(Self { label: String::new(), runs: vec![run] }),
            }
        }
        let schedulers: Vec<_> = variants.iter().map(|variant| scheduler(variant.first())).collect();
        for (index, variant) in variants.iter_mut().enumerate() {
            let of_this = |name: &&String| **name == schedulers[index];
            variant.label = schedulers[index].clone();
            if schedulers.iter().filter(of_this).count() > 1 {
                let number = schedulers[..=index].iter().filter(of_this).count();
                variant.label += &format!(" #{number}");
            }
        }
        variants
    }

    /// Whether this is the block layer without a scheduler, with which others are compared.
    pub(crate) fn is_none(&self) -> bool {
        self.first().scheduler == "none"
    }

    /// The tunables that were set, if that must be said: always when there are some, and for every one of several
    /// variants of a scheduler.
    pub(crate) fn tunables(&self) -> Option<String> {
        let tunables = &self.first().tunables;
        if tunables.is_empty() {
            let is_one_of_several = self.label.contains('#');
            return is_one_of_several.then(|| format!("{}: defaults", self.label));
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let set: Vec<_> = tunables.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
        Some(format!("{}: {}", self.label, set.join(", ")))
    }

    fn first(&self) -> &'a Run {
        self.runs[0]
    }
}

fn same_setting(a: &Run, b: &Run) -> bool {
    a.scheduler == b.scheduler && a.front == b.front && a.tunables == b.tunables
}

/// A scheduler on the single-queue block layer says so: with a newer kernel's multi-queue ones beside it, its figures
/// include the difference between the two block layers.
fn scheduler(run: &Run) -> String {
    match run.front {
        Front::Mq => run.scheduler.clone(),
        Front::Legacy => format!("{} (legacy)", run.scheduler),
    }
}
