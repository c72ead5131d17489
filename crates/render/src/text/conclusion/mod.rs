//! What a comparison means, in a few sentences: what to do, what that costs, and what makes it uncertain.
//!
//! The [`verdict`](mod@hoistway_answer::verdict) is decided elsewhere, from the same document; here it is put into words.

mod ceilings;
mod doubts;
mod phrases;
mod sentences;

use hoistway_answer::analysis::Analysis;
use hoistway_answer::verdict;

use self::sentences::Sentences;
use super::recording;

pub(crate) use phrases::{change, change_between, may_lose_more};
pub use phrases::{figure_in_words, shift as shift_in_words};

/// The sentences; none if there was no I/O, and one if there is no verdict for what was written meanwhile. Those about doubts begin with "Uncertain: ".
pub fn conclusion(analysis: &Analysis<'_>) -> Vec<String> {
    let document = analysis.document;
    if !document.writes.is_empty() {
        return vec![format!(
            "No verdict, and no advice: settings were changed while the load ran ({}), and a row is named after the scheduler that it began with.",
            document.writes.join(", ")
        )];
    }
    if document.recording.is_some() && document.verdicts.is_empty() {
        return Vec::new();
    }
    let verdicts = verdict::verdicts(analysis);
    let words = |verdict| Sentences { analysis, verdict };
    let mut sentences: Vec<String> = verdicts.iter().flat_map(|verdict| words(verdict).of_place()).collect();
    if let Some(verdict) = verdicts.first() {
        // The same in every place.
        let in_short: Vec<String> = verdicts.iter().filter_map(|verdict| words(verdict).in_short()).collect();
        if in_short.len() > 1 {
            sentences.push(format!("Side by side, {}: {}.", words(verdict).nouns(), in_short.join("; ")));
        }
        sentences.extend(words(verdict).judged_by());
        sentences.extend(ceilings::ceilings(analysis));
        sentences.extend(doubts::doubts(analysis, verdict).iter().map(|doubt| format!("{DOUBT}{doubt}.")));
    }
    let (mut before, after) = recording::sentences(document);
    before.append(&mut sentences);
    before.extend(after);
    before
}

/// How a sentence of the [`conclusion`] about a doubt begins.
pub const DOUBT: &str = "Uncertain: ";
