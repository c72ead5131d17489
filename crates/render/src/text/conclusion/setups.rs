//! Sentences that compare several setups (devices, kernels or hosts).

use hoistway_answer::Figure;
use hoistway_answer::analysis::Analysis;

use super::phrases::noun;
use super::sentences::SetupResult;
use crate::text::columns::value;

/// Setups whose figures differ by less than this factor are similar; rates that differ by less are not mentioned.
const LARGE_DIFFERENCE: f64 = 2.0;

/// The properties that all setups have in common.
fn common_properties(setups: &[SetupResult]) -> Vec<&str> {
    let first = setups.first().into_iter().flat_map(|setup| &setup.properties);
    first
        .filter(|property| setups.iter().all(|setup| setup.properties.contains(property)))
        .map(String::as_str)
        .collect()
}

/// The properties of a setup that not all setups have; if it has only common ones, all of its properties.
fn own_properties(setup: &SetupResult, common: &[&str]) -> String {
    let own: Vec<&str> =
        setup.properties.iter().map(String::as_str).filter(|property| !common.contains(property)).collect();
    if own.is_empty() { setup.properties.join(", ") } else { own.join(", ") }
}

/// Sentences with the common properties, the focus figure on each setup, and the slowest setup. `higher_is_better` is `None` if
/// the focus has several figures: then no setup is the slowest.
pub(super) fn side_by_side(
    nouns: &str,
    setups: &[SetupResult],
    higher_is_better: Option<bool>,
    smallest_effect: f64,
) -> Vec<String> {
    let common = common_properties(setups);
    let name_of = |setup: &SetupResult| own_properties(setup, &common);
    let same_variant = setups.iter().all(|setup| setup.variant_text == setups[0].variant_text);
    let variant_phrase =
        |setup: &SetupResult| if same_variant { String::new() } else { format!(" under {}", setup.variant_text) };
    let results: Vec<String> = setups
        .iter()
        .map(|setup| format!("{}{} on {}", setup.figures, variant_phrase(setup), name_of(setup)))
        .collect();
    let common_phrase = if common.is_empty() { String::new() } else { format!(" on {}", common.join(", ")) };
    let common_variant_phrase = if same_variant { format!(" under {}", setups[0].variant_text) } else { String::new() };
    let mut sentences =
        vec![format!("Side by side{common_phrase}, {nouns}{common_variant_phrase}: {}.", results.join("; "))];
    let known: Option<Vec<(f64, &SetupResult)>> = setups.iter().map(|setup| Some((setup.mean?, setup))).collect();
    if let (Some(higher), Some(known)) = (higher_is_better, known)
        && let (Some(low), Some(high)) = (
            known.iter().min_by(|left, right| left.0.total_cmp(&right.0)),
            known.iter().max_by(|left, right| left.0.total_cmp(&right.0)),
        )
        && low.0 > 0.0
    {
        let (slow, fast) = if higher { (low, high) } else { (high, low) };
        let factor = high.0 / low.0;
        sentences.push(if factor - 1.0 > smallest_effect {
            format!("{} is the slowest; {} is {factor:.2} times as good.", name_of(slow.1), name_of(fast.1))
        } else {
            "They are equivalent.".to_owned()
        });
    }
    sentences
}

/// A sentence about the rate that differs most between setups that are similar in the focus figure.
pub(super) fn largest_rate_difference(analysis: &Analysis<'_>, setups: &[SetupResult]) -> Option<String> {
    let means: Vec<f64> = setups.iter().map(|setup| setup.mean).collect::<Option<_>>()?;
    let factor = |values: &[f64]| {
        let [low, high] = min_max(values);
        if high > 0.0 { high / low } else { 1.0 }
    };
    if factor(&means) >= LARGE_DIFFERENCE {
        return None;
    }
    let variants: Vec<usize> = setups
        .iter()
        .map(|setup| analysis.variants.iter().position(|variant| variant.label == setup.label))
        .collect::<Option<_>>()?;
    let mut largest: Option<(f64, String, Vec<f64>)> = None;
    for job in &analysis.jobs {
        for operation in &job.operations {
            let rate = |variant: &usize| Some(operation.row(*variant)?.estimate(Figure::Iops).mean);
            let Some(rates) = variants.iter().map(rate).collect::<Option<Vec<f64>>>() else { continue };
            let factor = factor(&rates);
            if factor >= LARGE_DIFFERENCE && largest.as_ref().is_none_or(|(known, ..)| factor > *known) {
                largest = Some((factor, format!("{} of {}", noun(Figure::Iops, operation.operation), job.name), rates));
            }
        }
    }
    let (factor, what, rates) = largest?;
    let common = common_properties(setups);
    let rate_text = |rate: f64| {
        let setup = setups
            .iter()
            .zip(&rates)
            .find(|(_, other)| **other == rate)
            .map(|(setup, _)| own_properties(setup, &common));
        format!("{} on {}", value(Figure::Iops, rate, false), setup.unwrap_or_default())
    };
    let [low, high] = min_max(&rates);
    let times = if low > 0.0 { format!(" ({factor:.2} times)") } else { String::new() };
    Some(format!("They differ most in {what}: {}; {}{times}.", rate_text(low), rate_text(high)))
}

fn min_max(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, 0.0], |[low, high], value| [low.min(*value), high.max(*value)])
}
