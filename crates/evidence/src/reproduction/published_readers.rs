//! The published rows of readers beside writers on eight drives, for the tables `icpe24-writers`, `icpe24-interference` and
//! `icpe24-deep-reader`.

use serde::Deserialize;

/// A published row.
#[derive(Deserialize)]
pub(super) struct ReaderRow {
    pub(super) figure: String,
    pub(super) scheduler: String,
    pub(super) background_apps: u32,
    pub(super) fg_iops: f64,
    pub(super) fg_clat_p50_us: f64,
    pub(super) fg_clat_p99_us: f64,
    pub(super) bg_iops_total: f64,
}

impl ReaderRow {
    /// Its name, which decides whether it judges.
    pub(super) fn name(&self) -> String {
        format!("{} {} {}", self.figure, self.scheduler, self.background_apps)
    }
}

/// The published row of a scheduler beside some writers; `None` if it is not public.
pub(super) fn row_of<'a>(rows: &'a [ReaderRow], figure: &str, scheduler: &str, writers: u32) -> Option<&'a ReaderRow> {
    rows.iter().find(|row| row.figure == figure && row.scheduler == scheduler && row.background_apps == writers)
}

/// The published rows with writers.
pub(super) fn rows() -> Vec<ReaderRow> {
    let csv = include_str!("../../published/icpe24_reads_beside_writers.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables"))
        .filter(|row: &ReaderRow| row.background_apps > 0)
        .collect()
}
