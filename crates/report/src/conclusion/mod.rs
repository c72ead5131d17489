//! What a comparison means, in a few sentences: what to do, what that costs, and what makes it uncertain.
//!
//! The [verdict](hoistway_results::verdict) is decided elsewhere, from the same document; here it is put into words.

mod doubts;
mod phrases;
mod sentences;

use hoistway_results::comparison::Comparison;
use hoistway_results::{ResultsDocument, verdict};

use self::sentences::Sentences;

pub use phrases::{figure_in_words, shift as shift_in_words};

/// The sentences; none if there was no I/O. Those about doubts begin with "Uncertain: ".
pub fn conclusion(document: &ResultsDocument) -> Vec<String> {
    let comparison = Comparison::of(document);
    let verdicts = verdict::verdicts(document);
    let mut sentences: Vec<String> = Vec::new();
    for verdict in &verdicts {
        let words = Sentences { document, comparison: &comparison, verdict };
        // How to change the focus is the same in every place.
        sentences.extend(words.all().into_iter().filter(|sentence| !sentences.contains(sentence)).collect::<Vec<_>>());
    }
    if let Some(verdict) = verdicts.first() {
        sentences.extend(doubts::doubts(document, &comparison, verdict).iter().map(|doubt| format!("{DOUBT}{doubt}.")));
    }
    sentences
}

/// How a sentence of the [`conclusion`] about a doubt begins.
pub const DOUBT: &str = "Uncertain: ";
