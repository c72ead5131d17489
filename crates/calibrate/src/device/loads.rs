//! The loads that a device is measured under.

use std::path::Path;

use crate::fit::{MeasuredFigure, MeasurementRow};

/// A load, convertible to fio's arguments and to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CalibrationLoad {
    is_random: bool,
    reads_percent: u8,
    block_kib: u32,
    depth: u32,
    jobs: u32,
}

const fn load(is_random: bool, reads_percent: u8, block_kib: u32, depth: u32, jobs: u32) -> CalibrationLoad {
    CalibrationLoad { is_random, reads_percent, block_kib, depth, jobs }
}

/// The load for latency at depth 1, also used to try I/O engines.
pub(super) const FIRST: CalibrationLoad = load(true, 100, 4, 1, 1);

/// Latency at depth 1, a curve over depths, sizes, and a sequential load.
const READS: [CalibrationLoad; 9] = [
    FIRST,
    load(true, 100, 4, 4, 1),
    load(true, 100, 4, 16, 1),
    load(true, 100, 4, 64, 1),
    load(true, 100, 4, 32, 4),
    load(true, 100, 64, 1, 1),
    load(true, 100, 64, 16, 1),
    load(false, 100, 128, 1, 1),
    load(false, 100, 128, 8, 1),
];

const WRITES: [CalibrationLoad; 5] = [
    load(true, 0, 4, 1, 1),
    load(true, 0, 4, 32, 1),
    load(true, 0, 64, 8, 1),
    load(false, 0, 128, 8, 1),
    load(true, 70, 4, 32, 1),
];

/// All loads; those that write come last, because a drive behaves differently for a while after writes.
pub(super) fn all(writes: bool) -> impl Iterator<Item = CalibrationLoad> {
    READS.into_iter().chain(WRITES.into_iter().filter(move |_| writes))
}

impl CalibrationLoad {
    /// The row with these figures; `index` determines its line in the table.
    pub(super) fn row(self, index: u64, figures: Vec<MeasuredFigure>) -> MeasurementRow {
        let CalibrationLoad { is_random, reads_percent, block_kib, depth, jobs } = self;
        // The first line of the table is the header.
        MeasurementRow { line: index + 1, is_random, reads_percent, block_bytes: block_kib << 10, depth, jobs, figures }
    }

    /// The arguments of fio, except for the runtime.
    pub(super) fn arguments(self, target: &Path, engine: &str) -> Vec<String> {
        let (rw, mix) = direction_and_mix(&self.row(0, Vec::new()));
        let mut arguments = vec![
            "--name=load".to_owned(),
            // fio takes a colon as a separator of file names.
            format!("--filename={}", target.display().to_string().replace(':', "\\:")),
            format!("--ioengine={engine}"),
            format!("--rw={rw}"),
            format!("--bs={}k", self.block_kib),
            format!("--iodepth={}", self.depth),
            format!("--numjobs={}", self.jobs),
        ];
        let common =
            ["--direct=1", "--time_based", "--group_reporting", "--norandommap", "--thread", "--allow_file_create=0"];
        arguments.extend(common.map(str::to_owned));
        if self.reads_percent == 100 {
            arguments.push("--readonly".to_owned());
        }
        if !mix.is_empty() {
            arguments.push(format!("--rwmixread={mix}"));
        }
        arguments
    }
}

/// fio's name for the direction of a row, and the share of reads if it is a mix.
pub(super) fn direction_and_mix(row: &MeasurementRow) -> (String, String) {
    let direction = match row.reads_percent {
        100 => "read",
        0 => "write",
        _ => "rw",
    };
    let mix = if direction == "rw" { row.reads_percent.to_string() } else { String::new() };
    (format!("{}{direction}", if row.is_random { "rand" } else { "" }), mix)
}
