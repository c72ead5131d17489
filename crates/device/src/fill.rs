//! How full a flash drive is, and what that does to garbage collection.
//!
//! Used by: `preset`; crate `experiment`.
//! Tests: below, `crates/device/tests/fill.rs`.
//!
//! Garbage collection moves what is still valid in the blocks that it erases, so each byte that the host writes at random costs
//! `amplification` bytes of programs. For uniformly random writes the share `v` of a collected block that is valid and the utilisation of
//! the flash (valid data over all flash) are bound by `utilisation = (v - 1) / ln v`, and the amplification is `1 / (1 - v)` (Desnoyers,
//! "Analytic modeling of SSD write performance", SYSTOR 2012, for cleaning in order of age). What was measured of a drive gives its
//! utilisation when all of it is in use; a drive that is less full has so much less.

use crate::flash::{FlashParameters, TranslationParameters};
use crate::ssd::{GarbageCollection, SsdParameters};

/// How full a drive is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fill {
    /// The share of its addresses that hold data; the others were discarded, or never written.
    pub share: f64,
    /// Whether it had the time to erase all others before the load starts. If not, it has long been written over at random, and collection
    /// is at work from the beginning.
    pub is_trimmed: bool,
}

/// Spare flash of a drive of whose collection only pauses are known, as a share of its capacity: the difference between 2^30 and 10^9
/// bytes (assumed).
const SPARE_SHARE: f64 = 0.074;

/// An amplification that adds less than this share is none.
const NEGLIGIBLE: f64 = 1e-3;

/// Valid share of collected blocks at this utilisation.
fn valid_share(utilisation: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if (middle - 1.0) / middle.ln() < utilisation { low = middle } else { high = middle }
    }
    low
}

/// Bytes programmed for each byte of random writes at this utilisation of the flash.
fn amplification(utilisation: f64) -> f64 {
    1.0 / (1.0 - valid_share(utilisation))
}

/// The utilisation of a drive with this amplification.
fn utilisation(amplification: f64) -> f64 {
    let valid = 1.0 - 1.0 / amplification;
    if valid <= 0.0 { 0.0 } else { (valid - 1.0) / valid.ln() }
}

impl Fill {
    /// The amplification of random writes at this fill, of a drive that has `full` when all its addresses hold data.
    #[must_use]
    pub fn amplification(&self, full: f64) -> f64 {
        amplification(self.share * utilisation(full)).min(full)
    }

    /// How much collection is left of that of a drive with the amplification `full`, 0 to 1.
    fn collection_left(&self, full: f64) -> f64 {
        let left = (self.amplification(full) - 1.0) / (full - 1.0);
        if left < NEGLIGIBLE { 0.0 } else { left }
    }

    /// What is erased in advance, gigabytes (10^9 bytes).
    fn erased_gb(&self, capacity_gb: f64) -> Option<f64> {
        let erased_gb = capacity_gb * (1.0 - self.share);
        (self.is_trimmed && erased_gb > 0.0).then_some(erased_gb)
    }

    /// The parameters of a drive that is so full; `None` if nothing of the model depends on it.
    pub(crate) fn of_flash(&self, flash: &FlashParameters, capacity_gb: f64) -> Option<FlashParameters> {
        if let Some(translation) = &flash.translation {
            let fill_percent = (self.share < 1.0).then_some(self.share * 100.0);
            let translation =
                TranslationParameters { fill_percent, preconditioned: !self.is_trimmed, ..translation.clone() };
            return Some(FlashParameters { translation: Some(translation), ..flash.clone() });
        }
        let filled = FlashParameters { erased_gb: self.erased_gb(capacity_gb), ..flash.clone() };
        if let Some(collection) = &flash.collection {
            let program_us = f64::from(collection.step_programs) * flash.program_us;
            let left = self.collection_left(1.0 + collection.step_us / program_us);
            let mut collection = collection.clone();
            collection.step_us *= left;
            let stall = flash.stall.clone().filter(|_| left > 0.0).map(|mut stall| {
                stall.every_mb /= left;
                stall
            });
            return Some(FlashParameters { collection: Some(collection).filter(|_| left > 0.0), stall, ..filled });
        }
        let factor = flash.random_write_amplification.filter(|factor| *factor > 1.0)?;
        Some(FlashParameters { random_write_amplification: Some(self.amplification(factor)), ..filled })
    }

    /// The same of a drive of which pauses are known.
    pub(crate) fn of_ssd(&self, ssd: &SsdParameters, capacity_gb: f64) -> Option<SsdParameters> {
        let gc = ssd.gc.as_ref()?;
        let left = self.collection_left(amplification(1.0 / (1.0 + SPARE_SHARE)));
        let collected = GarbageCollection {
            background_pages_per_s: gc.background_pages_per_s / left.max(NEGLIGIBLE),
            erased_gb: self.erased_gb(capacity_gb),
            ..gc.clone()
        };
        Some(SsdParameters { gc: (left > 0.0).then_some(collected), ..ssd.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amplification_follows_from_utilisation_and_back() {
        for (spare, expected) in [(0.07, 7.6), (0.28, 2.5), (1.0, 1.3)] {
            let found = amplification(1.0 / (1.0 + spare));
            assert!((found / expected - 1.0).abs() < 0.1, "{spare}: {found}");
            assert!((utilisation(found) * (1.0 + spare) - 1.0).abs() < 1e-6);
        }
        assert_eq!(utilisation(1.0), 0.0);
        assert!((amplification(0.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_full_drive_is_the_one_measured_and_an_emptier_one_collects_less() {
        for full in [1.2, 2.0, 5.0, 25.0] {
            let at = |share| Fill { share, is_trimmed: false }.amplification(full);
            assert!((at(1.0) / full - 1.0).abs() < 1e-6, "{full}: {}", at(1.0));
            let steps: Vec<f64> = (0..=10).map(|tenth| at(f64::from(tenth) / 10.0)).collect();
            assert!(steps.is_sorted() && steps[0] < 1.001, "{full}: {steps:?}");
        }
    }
}
