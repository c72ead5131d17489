//! The tunables.

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::sharing::{Sharing, Word};
use crate::ground::time::Nanos;
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};

use super::RATIO_MIN;

/// The values, in the order of the rows.
type Values = [u64; 7];

static TUNABLES: Tunables<Values> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "threshold",
            (Unit::Number, 8192, 1, 1 << 31),
            "Virtual time by which a flow may lead before it is sent to low. Smaller: fairer at once; larger: shares converge later.",
            |values| i128::from(values[0]),
            |values, units| values[0] = units as u64,
        ),
        TunableRow::new(
            "md_ratio",
            (Unit::Number, 70, 0, 100),
            "Part of the threshold in which medium applies, percent.",
            |values| i128::from(values[1]),
            |values, percent| values[1] = percent as u64,
        ),
        TunableRow::new(
            "ratio",
            (Unit::Number, 6, RATIO_MIN as i128, 256),
            "Speed of high over low; what the drive cannot do is lowered to what it can. With adapt it is the current one.",
            |values| i128::from(values[2]),
            |values, ratio| values[2] = ratio as u64,
        ),
        TunableRow::new(
            "idle_ms",
            (Unit::Millis, 200, 1, 60_000),
            "How long without a request until a flow counts as inactive.",
            |values| i128::from(values[3]),
            |values, ms| values[3] = ms as u64,
        ),
        TunableRow::new(
            "adapt",
            (Unit::Switch, 0, 0, 1),
            "Whether the ratio follows the flows.",
            |values| i128::from(values[4]),
            |values, on| values[4] = on as u64,
        ),
        TunableRow::new(
            "adapt_ms",
            (Unit::Millis, 200, 10, 60_000),
            "How often it may change.",
            |values| i128::from(values[5]),
            |values, ms| values[5] = ms as u64,
        ),
        TunableRow::new(
            "unset_weight",
            (Unit::Number, 4, 1, 8),
            "Weight of a process without an I/O priority.",
            |values| i128::from(values[6]),
            |values, weight| values[6] = weight as u64,
        ),
    ],
};

/// The values as CPUs share them.
pub(super) struct Settings<Sh: Sharing> {
    threshold: Sh::Word,
    md_ratio: Sh::Word,
    pub(super) ratio: Sh::Word,
    idle_ms: Sh::Word,
    pub(super) adapt: Sh::Word,
    adapt_ms: Sh::Word,
    pub(super) unset_weight: Sh::Word,
}

impl<Sh: Sharing> Settings<Sh> {
    /// The defaults, on a drive with this largest weight.
    pub(super) fn new(weight_max: u16) -> Self {
        let [threshold, md_ratio, ratio, idle_ms, adapt, adapt_ms, unset_weight] =
            [8192, 70, 6.min(u64::from(weight_max)), 200, 0, 200, 4].map(Sh::Word::new);
        Settings { threshold, md_ratio, ratio, idle_ms, adapt, adapt_ms, unset_weight }
    }

    fn words(&self) -> [&Sh::Word; 7] {
        let Settings { threshold, md_ratio, ratio, idle_ms, adapt, adapt_ms, unset_weight } = self;
        [threshold, md_ratio, ratio, idle_ms, adapt, adapt_ms, unset_weight]
    }

    /// All of them.
    pub(super) fn shown(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown_shared(self.words())
    }

    /// Writes one of them.
    pub(super) fn set(&self, name: &str, text: &str, weight_max: u16) -> Result<(), StoreError> {
        let lower = |values: &mut Values| values[2] = values[2].min(u64::from(weight_max));
        TUNABLES.store_shared(self.words(), name, text, lower)
    }

    /// The leads beyond which a flow is sent to low and to medium.
    #[inline]
    pub(super) fn thresholds(&self) -> [u64; 2] {
        let threshold = self.threshold.load(Relaxed);
        [threshold, threshold * (100 - self.md_ratio.load(Relaxed)) / 100]
    }

    pub(super) fn idle_ns(&self) -> u64 {
        Nanos::from_millis(self.idle_ms.load(Relaxed)).0
    }

    pub(super) fn period_ns(&self) -> u64 {
        Nanos::from_millis(self.adapt_ms.load(Relaxed)).0
    }
}
