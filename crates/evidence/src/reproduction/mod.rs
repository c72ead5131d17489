//! Published measurements of I/O schedulers compared with simulations, cell by cell.
//!
//! Used by: the program `hoistway-evidence`.
//! Tests: `crates/evidence/src/reproduction/` (in its files), `crates/evidence/tests/evidence/techniques.rs`.
//!
//! A cell that a device or host was calibrated with is marked and never judged, because its fit is no evidence. All others
//! are predictions. If one is outside its tolerance, the table's story explains what is probably missing.
//!
//! Modules: `cell` (a figure), `document` (the result), `sensitivity` (changed unknown numbers), `runs` (running a published load),
//! `repeats` (number of runs), `decisions` (quality of decisions), `watched` (the job that a source is about), `known` (loads
//! whose right decision is known), and one for each source.

mod cachyos;
mod cell;
mod contention;
mod dbench;
mod dd;
pub mod decisions;
mod document;
mod habr;
mod heatmaps;
mod known;
mod kyber_space;
mod locks;
mod low_latency;
mod maxima;
mod one_drive;
mod prose;
mod published_readers;
mod reads;
mod repeats;
mod research;
mod runs;
mod sensitivity;
mod throughput;
mod watched;
pub mod whole_loads;
mod writers;

pub use cell::{Cell, Judgement};
pub use document::{FORMAT, Reproduced, Reproduction};
pub use known::{KnownDecision, known};
pub use runs::Length;
pub use sensitivity::{Sensitivity, To, Unknown, Variation};
pub use watched::Party;

use hoistway_experiment::Error;
use runs::Setting;

/// A published table, or the figures in the text of one source.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name on the command line.
    pub name: &'static str,
    /// What was measured, in one line.
    pub title: &'static str,
    /// The authors, and the measured system.
    pub source: &'static str,
    /// Notes on the cells: how they are computed, and the explanation of each miss.
    pub story: &'static str,
    /// The preset of its device.
    pub device: &'static str,
    /// The profile of its host in TOML; None for the built-in `server`.
    pub host: Option<&'static str>,
    /// Unmeasured numbers of the device and the host that may affect its cells.
    pub unknowns: &'static [Unknown],
    /// Further values of these numbers to try, besides half and double.
    pub others: &'static [(Unknown, f64)],
    /// Maximum runs with different seeds, over which figures are averaged.
    repeats_max: usize,
    run: fn(Setting) -> Result<Vec<Cell>, Error>,
}

/// Every table of Linux's schedulers, in the order of the documentation.
pub const TABLES: &[Table] = &[
    habr::SSD,
    habr::NVME,
    habr::HDD,
    maxima::MAXIMA,
    heatmaps::DEPTH,
    heatmaps::ONE_CORE,
    heatmaps::TEN_CORES,
    one_drive::ONE_DRIVE,
    prose::OVERHEAD,
    prose::INTERFERENCE,
    prose::DEEP_READER,
    writers::WRITERS,
    reads::READS,
    kyber_space::KYBER_SPACE,
    throughput::THROUGHPUT,
    locks::LOCKS,
    low_latency::LOW_LATENCY,
    cachyos::CACHYOS,
    dd::DD,
    contention::AXBOE,
    dbench::KARA,
];

/// The tables of schedulers that Linux does not have.
pub const RESEARCH: &[Table] = &[
    research::K2,
    research::MQFQ,
    research::D2FQ,
    research::BLK_SWITCH,
    research::ADIOS,
    research::TABS,
    research::VFAIR,
    research::CFFQ,
    research::TOURNAMENT,
];

impl Table {
    /// The table with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Table> {
        TABLES.iter().chain(RESEARCH).find(|table| table.name == name)
    }

    /// Runs its simulations.
    ///
    /// # Errors
    /// If a run cannot be created, which is a bug, since the loads and devices are bundled.
    pub fn reproduce(&self, length: Length) -> Result<Reproduced, Error> {
        let cells = repeats::run(self, length, None, self.repeats_max)?;
        Ok(Reproduced { name: self.name.to_owned(), source: self.source.to_owned(), cells, sensitivity: Vec::new() })
    }

    /// Half and double of each unknown, and the further values to try.
    fn changes(&self) -> impl Iterator<Item = Variation> {
        let times = |&unknown| [0.5, 2.0].map(|factor| Variation { unknown, to: To::Times(factor) });
        let others = self.others.iter().map(|&(unknown, value)| Variation { unknown, to: To::Value(value) });
        self.unknowns.iter().flat_map(times).chain(others)
    }

    /// The same with half and double of each unknown, and with the further values to try.
    ///
    /// # Errors
    /// The same as [`Table::reproduce`].
    pub fn sensitivity(&self, length: Length) -> Result<Vec<Sensitivity>, Error> {
        let mut all = Vec::new();
        for change in self.changes() {
            let (_, [default_value, value]) =
                change.changed_profile(self).expect("a test looks for the unknowns of each table");
            let cells = repeats::run(self, length, Some(change), repeats::REPEATS_MIN.min(self.repeats_max))?;
            all.push(Sensitivity { key: change.unknown.0.to_owned(), default_value, value, cells });
        }
        Ok(all)
    }
}
