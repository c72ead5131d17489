//! Reports of `conform`: results per recording and per scheduler, as JSON and as tables.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde::Serialize;

use crate::conform::score::{AppliedRule, Matches, Mismatch, ReplayOutcome, Score};

/// Name of the document's format.
pub const FORMAT: &str = "hoistway-conformance/1";

/// The scores of one recording.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceReport {
    /// The file name as given.
    pub file: String,
    /// Its scheduler; "switch" if the scheduler changes during the recording.
    pub scheduler: String,
    /// The result.
    pub outcome: ReplayOutcome,
}

/// The results of all recordings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// The result of each recording.
    pub traces: Vec<TraceReport>,
    /// Recordings whose scheduler is not implemented here, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Recordings that are damaged.
    pub refused: Vec<Refused>,
    /// The progress, if the run was interrupted.
    pub interrupted: Option<Interrupted>,
}

/// A recording that is unreadable or inconsistent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refused {
    /// The file name as given.
    pub file: String,
    /// The line at fault, counted from 1, if known.
    pub line: Option<u64>,
    /// The problem, and what was expected.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { file, line, reason } = self;
        match line {
            Some(line) => write!(f, "{file}:{line}: {reason}"),
            None => write!(f, "{file}: {reason}"),
        }
    }
}

/// The progress of an interrupted run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Interrupted {
    /// Processed recordings.
    pub recordings: usize,
    /// All recordings.
    pub of: usize,
}

#[derive(Serialize)]
struct ConformanceDocument<'a> {
    format: &'static str,
    traces: Vec<TraceRow<'a>>,
    by_scheduler: BTreeMap<&'a str, SchedulerRow>,
    skipped: Vec<SkippedRow<'a>>,
    refused: &'a [Refused],
    /// Only if not all recordings were processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<Interrupted>,
}

#[derive(Serialize)]
struct TraceRow<'a> {
    file: &'a str,
    scheduler: &'a str,
    #[serde(flatten)]
    shares: Shares,
    unknown_events: u64,
    mismatches: &'a [Mismatch],
    rules: Vec<RuleRow>,
    /// cfq: slice lengths (identical, total).
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kyber: Option<KyberRow>,
}

/// The decisions that we made by one rule.
#[derive(Serialize)]
struct RuleRow {
    #[serde(flatten)]
    applied: AppliedRule,
    decisions: u64,
    identical: u64,
}

/// Additional results of a replay of kyber. Pairs are (identical, total).
#[derive(Serialize)]
struct KyberRow {
    merges: (u64, u64),
    tokens: (u64, u64),
    own_controller: Shares,
    latencies: (u64, u64),
    depth_changes: (u64, u64),
}

/// The document's form of a count: (identical, total).
fn pair(matches: Matches) -> (u64, u64) {
    (matches.identical, matches.total)
}

impl RuleRow {
    fn of((&applied, matches): (&AppliedRule, &Matches)) -> RuleRow {
        RuleRow { applied, decisions: matches.total, identical: matches.identical }
    }
}

impl KyberRow {
    fn of(outcome: &ReplayOutcome) -> Option<KyberRow> {
        outcome.own_controller.as_ref().map(|own| KyberRow {
            merges: pair(outcome.merges),
            tokens: pair(outcome.tokens),
            own_controller: (&own.score).into(),
            latencies: pair(own.latencies),
            depth_changes: pair(own.depth_changes),
        })
    }
}

#[derive(Serialize)]
struct SchedulerRow {
    traces: usize,
    #[serde(flatten)]
    shares: Shares,
}

#[derive(Serialize)]
struct SkippedRow<'a> {
    file: &'a str,
    reason: &'a str,
}

/// Counts and shares; a share is null if its count is zero.
#[derive(Serialize)]
struct Shares {
    questions: u64,
    dispatches: u64,
    all: Option<f64>,
    hard: Option<f64>,
    switch: Option<f64>,
    null: Option<f64>,
}

impl From<&Score> for Shares {
    fn from(score: &Score) -> Self {
        Shares {
            questions: score.questions,
            dispatches: score.dispatches,
            all: score.all_share(),
            hard: score.hard_share(),
            switch: score.switch_share(),
            null: score.null_share(),
        }
    }
}

impl Report {
    /// Total counts for each scheduler.
    #[must_use]
    pub fn by_scheduler(&self) -> BTreeMap<&str, (usize, Score)> {
        let mut pooled: BTreeMap<&str, (usize, Score)> = BTreeMap::new();
        for trace in &self.traces {
            let (count, score) = pooled.entry(&trace.scheduler).or_default();
            *count += 1;
            score.add(&trace.outcome.score);
        }
        pooled
    }

    /// The document as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let traces = self.traces.iter().map(|trace| TraceRow {
            file: &trace.file,
            scheduler: &trace.scheduler,
            shares: (&trace.outcome.score).into(),
            unknown_events: trace.outcome.unknown_events,
            mismatches: &trace.outcome.mismatches,
            rules: trace.outcome.rules.iter().map(RuleRow::of).collect(),
            slices: trace.outcome.slices.map(pair),
            kyber: KyberRow::of(&trace.outcome),
        });
        let by_scheduler = self
            .by_scheduler()
            .into_iter()
            .map(|(name, (traces, score))| (name, SchedulerRow { traces, shares: (&score).into() }));
        let document = ConformanceDocument {
            format: FORMAT,
            traces: traces.collect(),
            by_scheduler: by_scheduler.collect(),
            skipped: self.skipped.iter().map(|(file, reason)| SkippedRow { file, reason }).collect(),
            refused: &self.refused,
            interrupted: self.interrupted,
        };
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// The results as tables, with the first mismatches of each recording explained.
    #[must_use]
    pub fn table(&self, ascii: bool) -> String {
        let mut out = String::new();
        if !self.traces.is_empty() {
            let mut table = new_table(ascii, "recording");
            for trace in &self.traces {
                let name = trace.file.rsplit('/').next().unwrap_or(&trace.file);
                add_row(&mut table, vec![name.to_owned(), trace.scheduler.clone()], &trace.outcome.score);
            }
            let _ = writeln!(out, "{table}\n");
            let mut table = new_table(ascii, "pooled");
            for (name, (count, score)) in self.by_scheduler() {
                add_row(&mut table, vec![format!("{count} recordings"), name.to_owned()], &score);
            }
            let _ = writeln!(out, "{table}");
        }
        let slices = self.traces.iter().filter_map(|trace| trace.outcome.slices);
        let slices = slices.reduce(|mut sum, slices| {
            sum.add(slices);
            sum
        });
        if let Some(slices) = slices {
            let _ = writeln!(out, "\ncfq: {slices} slice lengths are identical.");
        }
        self.own_controllers(&mut out, ascii);
        for trace in self.traces.iter().filter(|trace| !trace.outcome.mismatches.is_empty()) {
            let _ = writeln!(out, "\n{}: first decisions that differ", trace.file);
            for mismatch in &trace.outcome.mismatches {
                let more = if mismatch.more > 0 { format!(" and {} more", mismatch.more) } else { String::new() };
                let _ = writeln!(
                    out,
                    "  line {}, t={} ns\n    inside: {}{more}\n    kernel: {}\n    ours:   {} ({}: {})",
                    mismatch.line,
                    mismatch.t_ns,
                    mismatch.inside.join("; "),
                    mismatch.kernel,
                    mismatch.ours,
                    mismatch.rule,
                    mismatch.reason
                );
            }
        }
        let unknown: u64 = self.traces.iter().map(|trace| trace.outcome.unknown_events).sum();
        if unknown > 0 {
            let _ = writeln!(out, "\n{unknown} events of unknown kinds were skipped.");
        }
        for (file, reason) in &self.skipped {
            let _ = writeln!(out, "\nskipped: {file}: {reason}");
        }
        for refused in &self.refused {
            let _ = writeln!(out, "\nrefused: {refused}");
        }
        if let Some(Interrupted { recordings, of }) = self.interrupted {
            let _ = writeln!(out, "\ninterrupted: {recordings} of {of} recordings");
        }
        out
    }

    /// A table of the replays with kyber's own controller.
    fn own_controllers(&self, out: &mut String, ascii: bool) {
        let header = ["own controller", "all", "null", "percentiles", "depth changes", "merges", "tokens"];
        let mut table = table_of(ascii, &header, 1);
        for trace in &self.traces {
            let Some(own) = &trace.outcome.own_controller else { continue };
            let name = trace.file.rsplit('/').next().unwrap_or(&trace.file);
            table.add_row([
                name.to_owned(),
                percent(own.score.all_share()),
                percent(own.score.null_share()),
                own.latencies.to_string(),
                own.depth_changes.to_string(),
                trace.outcome.merges.to_string(),
                trace.outcome.tokens.to_string(),
            ]);
        }
        if table.row_count() > 0 {
            let _ = writeln!(out, "\n{table}");
        }
    }
}

fn new_table(ascii: bool, first: &str) -> Table {
    table_of(ascii, &[first, "scheduler", "questions", "dispatches", "all", "hard", "switch", "null"], 2)
}

/// An empty table whose columns from number `right` on are right-aligned.
fn table_of(ascii: bool, header: &[&str], right: usize) -> Table {
    let mut table = Table::new();
    let dash = if ascii { '-' } else { '─' };
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill(dash)));
    table.set_header(header.to_vec());
    for column in right..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", share * 100.0))
}

fn add_row(table: &mut Table, mut cells: Vec<String>, score: &Score) {
    cells.extend([score.questions.to_string(), score.dispatches.to_string()]);
    cells.extend([score.all_share(), score.hard_share(), score.switch_share(), score.null_share()].map(percent));
    table.add_row(cells);
}
