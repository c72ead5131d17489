//! The JSON document of reproduced tables (`reproduce --format json`).

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::sensitivity::Sensitivity;

/// The value of [`Reproduction::format`].
pub const FORMAT: &str = "hoistway-reproduction/2";

/// Tables with their cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reproduction {
    /// [`FORMAT`].
    pub format: String,
    /// The tables, in the requested order.
    pub tables: Vec<Reproduced>,
}

/// One table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reproduced {
    /// The name that selects it, as `habr-ssd`.
    pub name: String,
    /// Its source.
    pub source: String,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// The cells simulated again with each unmeasured parameter halved and doubled, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Sensitivity>,
}

impl Reproduction {
    /// A document of these tables.
    #[must_use]
    pub fn of(tables: Vec<Reproduced>) -> Reproduction {
        Reproduction { format: FORMAT.to_owned(), tables }
    }
}

impl Reproduced {
    /// The number of cells whose claim holds, of judged cells, and of cells used for calibration.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        Reproduced::counts_of(&self.cells)
    }

    /// [`counts`](Self::counts) for other cells.
    #[must_use]
    pub fn counts_of(cells: &[Cell]) -> [usize; 3] {
        let count = |is_counted: fn(&Cell) -> bool| cells.iter().filter(|cell| is_counted(cell)).count();
        [count(|cell| cell.holds == Some(true)), count(|cell| cell.holds.is_some()), count(|cell| cell.calibration)]
    }
}
