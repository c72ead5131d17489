//! Differences between the inputs of two result documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::leaves::{Leaf, differences};
use crate::analysis::Analysis;
use crate::document::ResultsDocument;

/// An input that differs between the documents.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InputChange {
    /// The path of the key in the document, such as `device.name`; for a setting, the variant's label and the tunable or file.
    pub input: String,
    /// The value in the first document; null if it has none.
    pub before: Value,
    /// The value in the second document; null if it has none.
    pub after: Value,
}

impl From<Leaf> for InputChange {
    fn from((input, before, after): Leaf) -> Self {
        Self { input, before, after }
    }
}

/// All inputs that differ, in the order of the document.
pub(super) fn changes(old: &Analysis<'_>, new: &Analysis<'_>) -> Vec<InputChange> {
    let (before, after) = (old.document, new.document);
    let mut changes: Vec<InputChange> = Vec::new();
    if let Some((line, before, after)) = first_different_line(&before.job_text, &after.job_text) {
        changes.push(InputChange {
            input: format!("job_text, line {line}"),
            before: before.into(),
            after: after.into(),
        });
    }
    changes.extend(differences("", &common_inputs(before), &common_inputs(after)).into_iter().map(InputChange::from));
    let (old, new) = (settings(old), settings(new));
    for (label, old) in &old {
        if let Some(new) = new.get(label) {
            changes.extend(differences(label, old, new).into_iter().map(InputChange::from));
        }
    }
    changes
}

/// The inputs other than settings of schedulers.
fn common_inputs(document: &ResultsDocument) -> Value {
    json!({
        "version": document.version,
        "device": document.device,
        "guests": document.guests,
        "kernel": document.kernel,
        "cpus": document.cpus,
        "hw_queues": document.hw_queues,
        "nr_requests": document.nr_requests,
        "host": document.host,
        "seed": document.seed,
        "repeats": document.seeds.len(),
        "setups": document.setups,
        "writes": document.writes,
        "is_real": document.is_real,
        "real_place": document.real_place,
    })
}

/// The settings of each variant, by its label.
fn settings(analysis: &Analysis<'_>) -> BTreeMap<String, Value> {
    let variant_settings = |run: &crate::document::Run| {
        let mut set = run.tunables.clone();
        set.extend(run.queue_files.clone());
        let ran_as = run.ran_as.iter().map(|kernel| ("ran_as".to_owned(), Value::from(kernel.as_str())));
        Value::Object(set.into_iter().chain(ran_as).collect::<Map<_, _>>())
    };
    analysis.variants.iter().map(|variant| (variant.label.clone(), variant_settings(variant.first()))).collect()
}

/// The first line that differs, counted from 1, in both texts.
fn first_different_line(before: &str, after: &str) -> Option<(usize, String, String)> {
    let lines = before.lines().count().max(after.lines().count());
    let line_at = |text: &str, line: usize| text.lines().nth(line).unwrap_or_default().to_owned();
    (0..lines)
        .map(|line| (line + 1, line_at(before, line), line_at(after, line)))
        .find(|(_, before, after)| before != after)
}
