//! The tunables.

use crate::ground::sharing::{Sharing, Word};
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};

/// The values, in the order of the rows.
type Values = [u64; 4];

static TUNABLES: Tunables<Values> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "mode",
            (Unit::Number, 0, 0, 2),
            "0: only priority; 1: requests are steered, too; 2: processes are moved, too.",
            |values| i128::from(values[0]),
            |values, mode| values[0] = mode as u64,
        ),
        TunableRow::new(
            "thresh_b",
            (Unit::Requests, 8, 1, 1024),
            "Half of the throughput requests of a CPU that stay there. Smaller: steers earlier.",
            |values| i128::from(values[1]),
            |values, requests| values[1] = requests as u64,
        ),
        TunableRow::new(
            "app_ms",
            (Unit::Millis, 10, 1, 1000),
            "How long it is the turn of one class of processes to move.",
            |values| i128::from(values[2]),
            |values, ms| values[2] = ms as u64,
        ),
        TunableRow::new(
            "l_max_bytes",
            (Unit::Number, 98_304, 4096, 1 << 30),
            "Latency load of a CPU, bytes, above which no process moves there.",
            |values| i128::from(values[3]),
            |values, bytes| values[3] = bytes as u64,
        ),
    ],
};

/// The values as CPUs share them.
pub(super) struct Settings<Sh: Sharing> {
    pub(super) mode: Sh::Word,
    pub(super) thresh_b: Sh::Word,
    pub(super) app_ms: Sh::Word,
    pub(super) l_max_bytes: Sh::Word,
}

impl<Sh: Sharing> Settings<Sh> {
    /// The defaults.
    pub(super) fn new() -> Self {
        let [mode, thresh_b, app_ms, l_max_bytes] = [0, 8, 10, 98_304].map(Sh::Word::new);
        Settings { mode, thresh_b, app_ms, l_max_bytes }
    }

    fn words(&self) -> [&Sh::Word; 4] {
        let Settings { mode, thresh_b, app_ms, l_max_bytes } = self;
        [mode, thresh_b, app_ms, l_max_bytes]
    }

    /// All of them.
    pub(super) fn shown(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown_shared(self.words())
    }

    /// Writes one of them.
    pub(super) fn set(&self, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store_shared(self.words(), name, text, |_| {})
    }
}
