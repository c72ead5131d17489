//! Merges all runs of a sweep into one table, in the order of the points.

use std::collections::BTreeMap;
use std::io::Write;

use crate::sweep::{RunRecord, Shard, Sweep};

use crate::store::error::DatasetError;
use crate::store::folder::Folder;
use crate::store::index::{Index, Reader};
use crate::store::table::{Cell, Column, Kind, Table, csv::Csv};

/// The size of a merged table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Runs.
    pub runs: u64,
    /// Rows, one per figure.
    pub rows: u64,
    /// Runs in which a process ended with an error.
    pub failed: u64,
}

/// Writes comma-separated values after a header line. An absent value is an empty cell.
///
/// # Errors
/// If runs are missing, or a file cannot be read or written.
pub fn merge_csv(folder: &Folder, sweep: &Sweep, to: impl Write) -> Result<Merged, DatasetError> {
    merge(folder, sweep, |columns| Ok(Box::new(Csv::new(to, columns)?)))
}

/// Columns before those of the settings.
const COLUMNS_BEFORE_SETTINGS: [(&str, Kind); 11] = [
    ("point", Kind::Whole),
    ("load", Kind::Text),
    ("device", Kind::Text),
    ("kernel", Kind::Text),
    ("host", Kind::Text),
    ("scheduler", Kind::Text),
    ("label", Kind::Text),
    ("block_layer", Kind::Text),
    ("settings", Kind::Text),
    ("seed", Kind::Whole),
    ("repeat", Kind::Whole),
];

/// Columns after those of the settings.
const COLUMNS_AFTER_SETTINGS: [(&str, Kind); 7] = [
    ("job", Kind::Text),
    ("operation", Kind::Text),
    ("figure", Kind::Text),
    ("unit", Kind::Text),
    ("value", Kind::Number),
    ("ios", Kind::Whole),
    ("failed_processes", Kind::Whole),
];

fn columns(sweep: &Sweep) -> Vec<Column> {
    let column = |&(name, kind): &(&str, Kind)| Column { name: name.to_owned(), kind, is_optional: false };
    let setting =
        sweep.settings().iter().map(|setting| Column { name: setting.label(), kind: Kind::Text, is_optional: true });
    COLUMNS_BEFORE_SETTINGS.iter().map(column).chain(setting).chain(COLUMNS_AFTER_SETTINGS.iter().map(column)).collect()
}

/// Writes into the table that `table` makes once the columns are known.
///
/// # Errors
/// If runs are missing, or a file cannot be read or written.
pub fn merge<'a>(
    folder: &Folder,
    sweep: &Sweep,
    table: impl FnOnce(Vec<Column>) -> Result<Box<dyn Table + 'a>, DatasetError>,
) -> Result<Merged, DatasetError> {
    let index = Index::of(folder)?;
    check_complete(folder, sweep, &index)?;
    let mut table = table(columns(sweep))?;
    let mut reader = Reader::new(&index);
    let mut merged = Merged { runs: 0, rows: 0, failed: 0 };
    for point in sweep.keys(0..sweep.points()) {
        let (point, key) = point?;
        // The run existed during the check above.
        let Some(record) = reader.read(key)? else { continue };
        merged.runs += 1;
        merged.failed += u64::from(record.failed_processes > 0);
        merged.rows += add_run(table.as_mut(), sweep, point, &record)?;
    }
    table.finish()?;
    Ok(merged)
}

/// Returns an error that names the missing runs, if there are any.
fn check_complete(folder: &Folder, sweep: &Sweep, index: &Index) -> Result<(), DatasetError> {
    let (mut missing, mut shards) = (0, BTreeMap::new());
    for point in sweep.keys(0..sweep.points()) {
        let (point, key) = point?;
        if !index.holds(key) {
            missing += 1;
            if let Some(shard_count) = index.shards().filter(|&shard_count| shard_count > 1) {
                *shards.entry(Shard::holding(point, shard_count)).or_default() += 1;
            }
        }
    }
    if missing == 0 {
        return Ok(());
    }
    let (path, points) = (folder.path().to_owned(), sweep.points());
    Err(DatasetError::Missing { path, missing, points, shards: shards.into_iter().collect() })
}

/// Adds the rows of a run. Returns their number.
fn add_run(table: &mut dyn Table, sweep: &Sweep, point: u64, record: &RunRecord<'_>) -> Result<u64, DatasetError> {
    let run = &record.run;
    let block_layer = match run.block_layer {
        hoistway_answer::document::Front::Mq => "mq",
        hoistway_answer::document::Front::Legacy => "legacy",
    };
    let mut rows = 0;
    let settings: Vec<Cell<'_>> =
        sweep.settings_of(point).map(|value| value.map_or(Cell::Absent, Cell::Text)).collect();
    for operation in &record.operations {
        for &(figure, value) in &operation.figures {
            let before = [
                Cell::Whole(point),
                Cell::Text(&record.load),
                Cell::Text(&run.device),
                Cell::Text(&run.kernel),
                Cell::Text(&run.host),
                Cell::Text(&run.scheduler),
                Cell::Text(&run.label),
                Cell::Text(block_layer),
                Cell::Text(&run.settings),
                Cell::Whole(run.seed),
                Cell::Whole(u64::from(run.repeat)),
            ];
            let after = [
                Cell::Text(&operation.job),
                Cell::Text(operation.operation.name()),
                Cell::Text(figure.name()),
                Cell::Text(figure.unit()),
                Cell::Number(value),
                Cell::Whole(operation.ios),
                Cell::Whole(u64::from(operation.failed_processes)),
            ];
            table.row(&mut before.into_iter().chain(settings.iter().copied()).chain(after))?;
            rows += 1;
        }
    }
    Ok(rows)
}
