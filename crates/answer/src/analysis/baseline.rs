//! What the variants of a comparison are compared with.

use super::{Variant, of_scheduler, usual};
use crate::document::ResultsDocument;

/// For each variant the one that it is compared with, by its index. That is a variant of the same device, kernel and host: the scheduler
/// that was named, or else the kernel's default there, or else the first. A row of the table that was named is it for all, and
/// where each place has one variant only the first of them.
pub(super) fn baselines(document: &ResultsDocument, variants: &[Variant<'_>]) -> Vec<usize> {
    let wanted = document.baseline.as_deref();
    let is_row = |one: &Variant<'_>| Some(one.name()) == wanted && one.name() != one.scheduler();
    if let Some(row) = variants.iter().position(is_row) {
        return vec![row; variants.len()];
    }
    let is_alone =
        |one: &Variant<'_>| variants.iter().filter(|other| other.first().setup == one.first().setup).count() == 1;
    if wanted.is_none() && variants.iter().all(is_alone) {
        return vec![0; variants.len()];
    }
    let of_place = |setup: u32| {
        let here: Vec<usize> = (0..variants.len()).filter(|one| variants[*one].first().setup == setup).collect();
        let default = document.default_scheduler_of(setup).filter(|_| wanted.is_none());
        let named = wanted.and_then(|name| of_scheduler(variants, &here, name));
        named.or_else(|| usual(variants, &here, default)).unwrap_or(0)
    };
    let mut places: Vec<(u32, usize)> = Vec::new();
    let mut of = |setup: u32| match places.iter().find(|(known, _)| *known == setup) {
        Some((_, baseline)) => *baseline,
        None => {
            places.push((setup, of_place(setup)));
            places[places.len() - 1].1
        }
    };
    variants.iter().map(|variant| of(variant.first().setup)).collect()
}
