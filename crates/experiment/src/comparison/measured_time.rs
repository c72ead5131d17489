//! Which part of each run is measured.

use serde::{Deserialize, Serialize};

/// Which part of each run is measured. Work that ends, phases, conditions and recordings are measured as fio does in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredTime {
    /// Each job from its start, or the end of its ramp, to its end.
    #[default]
    AsFio,
    /// The time in which all jobs run.
    Together,
    /// What lasts: the time in which all jobs run, without what happens only after their start. Longer runs find it, within a total
    /// number of I/Os.
    Lasting,
    /// A window that was found before, in time since the start of the load.
    Window {
        /// Its start, ns.
        from_ns: u64,
        /// Its end, ns.
        until_ns: u64,
    },
}

impl MeasuredTime {
    /// Whether it is what fio measures.
    pub(crate) fn is_as_fio(&self) -> bool {
        *self == Self::AsFio
    }
}
