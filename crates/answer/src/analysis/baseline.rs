//! The baseline of each variant in a comparison: the variant of the same setup that its figures are compared with.
//!
//! Used by: `analysis`.
//! Tests: `crates/answer/tests/document.rs`, `crates/experiment/tests/comparison.rs`, `crates/experiment/tests/variants.rs`.

use super::{Variant, default_reference, find_by_scheduler};
use crate::document::{DiskGroup, ResultsDocument};

/// The index of each variant's baseline, which is a variant of the same setup (device, kernel and host): the named scheduler, or else
/// the kernel's default there, for the group of disks if one is given, or else the first. If the user named a row of the table, it is the
/// baseline of all variants; if each setup has a single variant, the first one is.
pub(super) fn baselines(document: &ResultsDocument, variants: &[Variant<'_>], group: Option<&DiskGroup>) -> Vec<usize> {
    let named_baseline = document.baseline.as_deref();
    let is_row =
        |variant: &Variant<'_>| Some(variant.name()) == named_baseline && variant.name() != variant.scheduler();
    if let Some(row) = variants.iter().position(is_row) {
        return vec![row; variants.len()];
    }
    let is_alone = |variant: &Variant<'_>| {
        variants.iter().filter(|other| other.first().setup == variant.first().setup).count() == 1
    };
    if named_baseline.is_none() && variants.iter().all(is_alone) {
        return vec![0; variants.len()];
    }
    let setup_baseline = |setup: u32| {
        let candidates: Vec<usize> =
            (0..variants.len()).filter(|index| variants[*index].first().setup == setup).collect();
        let of_group = group.map(|group| group.default_scheduler.as_str());
        let default = of_group.or(document.default_scheduler_of(setup)).filter(|_| named_baseline.is_none());
        let named = named_baseline.and_then(|name| find_by_scheduler(variants, &candidates, name));
        named.or_else(|| default_reference(variants, &candidates, default)).unwrap_or(0)
    };
    let mut known_baselines: Vec<(u32, usize)> = Vec::new();
    let mut baseline_of = |setup: u32| match known_baselines.iter().find(|(known, _)| *known == setup) {
        Some((_, baseline)) => *baseline,
        None => {
            known_baselines.push((setup, setup_baseline(setup)));
            known_baselines[known_baselines.len() - 1].1
        }
    };
    variants.iter().map(|variant| baseline_of(variant.first().setup)).collect()
}
