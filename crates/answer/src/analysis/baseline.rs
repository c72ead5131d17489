//! The baseline of each variant in a comparison.

use super::{Variant, default_reference, of_scheduler};
use crate::document::ResultsDocument;

/// The index of each variant's baseline, which is a variant of the same setup (device, kernel and host): the named scheduler, or else
/// the kernel's default there, or else the first. If the user named a row of the table, it is the baseline of all variants; if each
/// setup has a single variant, the first one is.
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
        named.or_else(|| default_reference(variants, &here, default)).unwrap_or(0)
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
