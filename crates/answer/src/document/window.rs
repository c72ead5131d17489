//! The measured window of a load, if it is not that of fio.

use serde::{Deserialize, Serialize};

use hoistway_measure::Operation;
use hoistway_measure::settling::SettlingFigure;

/// The time in which all jobs run, without what happens only after their start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredWindow {
    /// Its start, s since the start of the load.
    pub from_seconds: f64,
    /// Its end, likewise.
    pub until_seconds: f64,
    /// The end of the first job to end by its own runtime, likewise.
    pub own_until_seconds: f64,
    /// What differs after the start, in longer runs of the first repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<Unsteady>,
}

/// A job whose start is unlike what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unsteady {
    /// The job.
    pub job: String,
    /// Its operation.
    pub operation: Operation,
    /// The label of the variant.
    pub scheduler: String,
    /// Time until it settles, s since all jobs run; `None` if it had not settled by the end.
    pub seconds: Option<f64>,
    /// The figure that shows it.
    pub figure: SettlingFigure,
    /// The relative difference of the start from what follows.
    pub difference: f64,
}
