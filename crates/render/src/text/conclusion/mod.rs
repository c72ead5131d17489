//! The meaning of a comparison in a few sentences: what to do, what it costs, and what is uncertain.
//!
//! Used by: `html`, `text::tuning`, `text`; crate `hoistway`.
//! Tests: `crates/render/src/text/conclusion/phrases.rs`, `crates/render/tests/conclusion.rs`, `crates/render/tests/places.rs`.
//!
//! The [`verdict`](mod@hoistway_answer::verdict) is decided elsewhere, from the same document; here it becomes text.

mod ceilings;
mod doubts;
mod mismatches;
mod phrases;
mod rates;
mod sentences;
mod setups;
pub(crate) mod window;

use hoistway_answer::analysis::Analysis;
use hoistway_answer::document::Decision;
use hoistway_answer::verdict;

use self::sentences::{Sentences, SetupResult};
use super::recording;

pub(crate) use phrases::{change, change_between, may_lose_more};
pub use phrases::{figure_in_words, shift as shift_in_words};

/// The sentences; none without I/O, and only one if timed writes exclude a verdict. Setups whose device is not the observed one come first. Sentences about doubts begin with "Uncertain: ".
pub fn conclusion(analysis: &Analysis<'_>) -> Vec<String> {
    let document = analysis.document;
    if !document.writes.is_empty() {
        return vec![format!(
            "No verdict, and no advice: settings were changed while the load ran ({}), and a row is named after the scheduler that it began with.",
            document.writes.join(", ")
        )];
    }
    let mut first = mismatches::mismatches(document);
    let verdicts = verdict::verdicts(analysis);
    let sentences_of = |verdict| Sentences { analysis, verdict };
    let results: Vec<SetupResult> =
        verdicts.iter().filter_map(|verdict| sentences_of(verdict).setup_result()).collect();
    // With one scheduler per setup, the common line says everything.
    let is_short = results.len() > 1 && verdicts.iter().all(|verdict| verdict.decision == Decision::Alone);
    let mut sentences: Vec<String> = if is_short {
        Vec::new()
    } else {
        verdicts.iter().flat_map(|verdict| sentences_of(verdict).setup_sentences()).collect()
    };
    sentences.extend(rates::missed_rates(analysis));
    sentences.extend(document.window.as_ref().map(window::sentence));
    if let Some(verdict) = verdicts.first() {
        // The same in every setup.
        if results.len() > 1 {
            let focus = &verdict.focus[..];
            let higher = match focus {
                [weighted] => Some(weighted.figure.figure.higher_is_better()),
                _ => None,
            };
            let smallest = document.smallest_effect();
            sentences.extend(setups::side_by_side(&sentences_of(verdict).nouns(), &results, higher, smallest));
            sentences.extend(setups::largest_rate_difference(analysis, &results));
        }
        let criteria = verdicts.iter().take_while(|it| it.files.is_empty() == verdict.files.is_empty());
        let criteria = criteria.filter(|it| !it.files.is_empty() || it == &verdict);
        sentences.extend(criteria.filter_map(|it| sentences_of(it).ranking_criterion_text()));
        sentences.extend(ceilings::ceilings(analysis));
        sentences.extend(doubts::doubts(analysis, verdict).iter().map(|doubt| format!("{DOUBT}{doubt}.")));
    }
    let (before, after, doubts) = recording::sentences(document, &verdicts);
    first.extend(before);
    first.append(&mut sentences);
    first.extend(after);
    first.extend(doubts.iter().map(|doubt| format!("{DOUBT}{doubt}.")));
    first
}

/// Prefix of a sentence of the [`conclusion`] about a doubt.
pub const DOUBT: &str = "Uncertain: ";
