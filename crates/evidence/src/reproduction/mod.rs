//! Published measurements of I/O schedulers, and what comes out here: table by table, cell by cell.
//!
//! A cell that a device or host was calibrated on says so, and is never judged: that it fits is no evidence. All others are
//! predictions. Where one is outside its tolerance, the table's story says what seems to be missing.
//!
//! `cell` (what is compared), `document` (what comes out), `sensitivity` (other values of unknown numbers), `runs` (how a run
//! is made), `repeats` (how many there are), `decisions` (what they are good for), `watched` (whose figures a source is about), and a module for each source.

mod cell;
mod contention;
mod dbench;
mod dd;
pub mod decisions;
mod document;
mod habr;
mod heatmaps;
mod one_drive;
mod prose;
mod repeats;
mod research;
mod runs;
mod sensitivity;
mod watched;

pub use cell::{Cell, Judgement};
pub use document::{FORMAT, Reproduced, Reproduction};
pub use runs::Length;
pub use sensitivity::{Change, Sensitivity, To, Unknown};
pub use watched::Party;

use hoistway_experiment::Error;
use runs::Setting;

/// A published table, or figures of one source that are stated in prose.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// What it is called on a command line.
    pub name: &'static str,
    /// What was measured, in a line.
    pub title: &'static str,
    /// Who published it, and what it was measured on.
    pub source: &'static str,
    /// What to know of the cells: how they are made, and the story of each miss.
    pub story: &'static str,
    /// The preset of its device.
    pub device: &'static str,
    /// The profile of its host in TOML, if that is not the built-in `server`.
    pub host: Option<&'static str>,
    /// Unmeasured numbers of the device and the host that its cells may depend on.
    pub unknowns: &'static [Unknown],
    /// Values of them that are asked about, beside half and double.
    pub others: &'static [(Unknown, f64)],
    /// Runs with seeds of their own, at most: figures are means over them.
    repeats_max: usize,
    run: fn(Setting) -> Result<Vec<Cell>, Error>,
}

/// Every table of Linux's schedulers, in the order of the documentation.
pub const TABLES: &[Table] = &[
    habr::SSD,
    habr::NVME,
    habr::HDD,
    heatmaps::DEPTH,
    heatmaps::ONE_CORE,
    heatmaps::TEN_CORES,
    one_drive::ONE_DRIVE,
    prose::OVERHEAD,
    prose::INTERFERENCE,
    dd::DD,
    contention::AXBOE,
    dbench::KARA,
];

/// The tables of schedulers that Linux does not have.
pub const RESEARCH: &[Table] = &[research::K2, research::MQFQ, research::ADIOS, research::TOURNAMENT];

impl Table {
    /// The table of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Table> {
        TABLES.iter().chain(RESEARCH).find(|table| table.name == name)
    }

    /// Simulates what it takes.
    ///
    /// # Errors
    /// If a run cannot be created: the loads and devices are bundled, so that this is a defect.
    pub fn reproduce(&self, length: Length) -> Result<Reproduced, Error> {
        let cells = repeats::of(self, length, None, self.repeats_max)?;
        Ok(Reproduced { name: self.name.to_owned(), source: self.source.to_owned(), cells, sensitivity: Vec::new() })
    }

    /// Half and double of each unknown, and the other values that are asked about.
    fn changes(&self) -> impl Iterator<Item = Change> {
        let times = |&unknown| [0.5, 2.0].map(|factor| Change { unknown, to: To::Times(factor) });
        let others = self.others.iter().map(|&(unknown, value)| Change { unknown, to: To::Value(value) });
        self.unknowns.iter().flat_map(times).chain(others)
    }

    /// The same with half and with double of each unknown, and with the other values that are asked about.
    ///
    /// # Errors
    /// As [`Table::reproduce`].
    pub fn sensitivity(&self, length: Length) -> Result<Vec<Sensitivity>, Error> {
        let mut all = Vec::new();
        for change in self.changes() {
            let (_, [usual, value]) = change.of_table(self).expect("a test looks for the unknowns of each table");
            let cells = repeats::of(self, length, Some(change), repeats::LEAST.min(self.repeats_max))?;
            all.push(Sensitivity { key: change.unknown.0.to_owned(), usual, value, cells });
        }
        Ok(all)
    }
}
