//! Sentences that compare several setups (devices, kernels or hosts).

use hoistway_answer::Figure;
use hoistway_answer::analysis::Analysis;
use hoistway_answer::verdict::WIDE_SPREAD;

use super::phrases::noun;
use super::sentences::InShort;
use crate::text::columns::value;

/// The properties that all setups have in common.
fn shared(places: &[InShort]) -> Vec<&str> {
    let first = places.first().into_iter().flat_map(|one| &one.place);
    first.filter(|part| places.iter().all(|one| one.place.contains(part))).map(String::as_str).collect()
}

/// The properties of a setup that others do not share; all of its properties if there are none.
fn own(one: &InShort, shared: &[&str]) -> String {
    let own: Vec<&str> = one.place.iter().map(String::as_str).filter(|part| !shared.contains(part)).collect();
    if own.is_empty() { one.place.join(", ") } else { own.join(", ") }
}

/// Sentences with the common properties, the focus figure on each setup, and the slowest setup.
pub(super) fn side_by_side(
    nouns: &str,
    places: &[InShort],
    higher_is_better: Option<bool>,
    smallest_effect: f64,
) -> Vec<String> {
    let shared = shared(places);
    let own = |one: &InShort| own(one, &shared);
    let same_words = places.iter().all(|one| one.words == places[0].words);
    let under = |one: &InShort| if same_words { String::new() } else { format!(" under {}", one.words) };
    let each: Vec<String> = places.iter().map(|one| format!("{}{} on {}", one.shown, under(one), own(one))).collect();
    let on = if shared.is_empty() { String::new() } else { format!(" on {}", shared.join(", ")) };
    let all = if same_words { format!(" under {}", places[0].words) } else { String::new() };
    let mut sentences = vec![format!("Side by side{on}, {nouns}{all}: {}.", each.join("; "))];
    let known: Option<Vec<(f64, &InShort)>> = places.iter().map(|one| Some((one.mean?, one))).collect();
    if let (Some(higher), Some(known)) = (higher_is_better, known)
        && let (Some(low), Some(high)) = (
            known.iter().min_by(|one, other| one.0.total_cmp(&other.0)),
            known.iter().max_by(|one, other| one.0.total_cmp(&other.0)),
        )
        && low.0 > 0.0
    {
        let (slow, fast) = if higher { (low, high) } else { (high, low) };
        let factor = high.0 / low.0;
        sentences.push(if factor - 1.0 > smallest_effect {
            format!("{} is the slowest; {} is {factor:.2} times as good.", own(slow.1), own(fast.1))
        } else {
            "They are alike.".to_owned()
        });
    }
    sentences
}

/// A sentence about the rate that differs most between setups that are similar in the focus figure.
pub(super) fn elsewhere(analysis: &Analysis<'_>, places: &[InShort]) -> Option<String> {
    let means: Vec<f64> = places.iter().map(|one| one.mean).collect::<Option<_>>()?;
    let factor = |values: &[f64]| {
        let [low, high] = ends(values);
        if high > 0.0 { high / low } else { 1.0 }
    };
    if factor(&means) >= WIDE_SPREAD {
        return None;
    }
    let variants: Vec<usize> = places
        .iter()
        .map(|one| analysis.variants.iter().position(|variant| variant.label == one.label))
        .collect::<Option<_>>()?;
    let mut most: Option<(f64, String, Vec<f64>)> = None;
    for job in &analysis.jobs {
        for operation in &job.operations {
            let rate = |variant: &usize| Some(operation.row(*variant)?.estimate(Figure::Iops).mean);
            let Some(rates) = variants.iter().map(rate).collect::<Option<Vec<f64>>>() else { continue };
            let factor = factor(&rates);
            if factor >= WIDE_SPREAD && most.as_ref().is_none_or(|(known, ..)| factor > *known) {
                most = Some((factor, format!("{} of {}", noun(Figure::Iops, operation.operation), job.name), rates));
            }
        }
    }
    let (factor, what, rates) = most?;
    let shared = shared(places);
    let at = |wanted: f64| {
        let place = places.iter().zip(&rates).find(|(_, rate)| **rate == wanted).map(|(one, _)| own(one, &shared));
        format!("{} on {}", value(Figure::Iops, wanted, false), place.unwrap_or_default())
    };
    let [low, high] = ends(&rates);
    let times = if low > 0.0 { format!(" ({factor:.2} times)") } else { String::new() };
    Some(format!("They differ most in {what}: {}; {}{times}.", at(low), at(high)))
}

fn ends(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, 0.0], |[low, high], value| [low.min(*value), high.max(*value)])
}
