//! By what a comparison is judged.

use super::party::Party;
use crate::analysis::Analysis;
use crate::document::{Aspect, FocusFrom, ResultsDocument};
use crate::figure::Figure;
use crate::focus::WeightedFigure;
use hoistway_measure::Operation;

/// Bytes of an I/O from which on streams are judged by their bandwidth.
const STREAM_BYTES: f64 = 65_536.0;
/// I/Os of a run behind a 99th percentile that means something: ten beyond it.
const IOS_MIN: u64 = 1000;

/// What a comparison is judged by.
pub(super) struct Focus<'a> {
    pub(super) parts: Vec<Part<'a>>,
    pub(super) from: FocusFrom,
}

/// One figure of it.
pub(super) struct Part<'a> {
    pub(super) party: Party<'a>,
    pub(super) operation: Operation,
    pub(super) figure: Figure,
    pub(super) weight: f64,
}

impl Part<'_> {
    /// Its name.
    pub(super) fn name(&self) -> WeightedFigure {
        let figure =
            crate::FigureName { job: self.party.name().to_owned(), operation: self.operation, figure: self.figure };
        WeightedFigure { figure, weight: self.weight }
    }

    /// Whether this is what an aspect of a party shows.
    pub(super) fn is_shown_by(&self, party: &Party<'_>, operation: Option<Operation>, aspect: Aspect) -> bool {
        let is_throughput = |figure: Figure| !figure.is_latency();
        let is_same = |figure: Figure| figure == self.figure || is_throughput(figure) && is_throughput(self.figure);
        party.jobs[0].job == self.party.jobs[0].job
            && operation == Some(self.operation)
            && matches!(aspect, Aspect::Figure(figure) if is_same(figure))
    }
}

/// What was asked for, as far as the results have it; or what the load's author says; or whom somebody waits for.
pub(super) fn chosen<'a>(document: &ResultsDocument, comparison: &'a Analysis<'a>) -> Option<Focus<'a>> {
    let asked = document.focuses.iter().filter_map(|wanted| {
        let (job, operation) = comparison.find(&wanted.figure).ok()?;
        let party = Party::of(comparison, job);
        Some(Part { party, operation: operation.operation, figure: wanted.figure.figure, weight: wanted.weight })
    });
    let asked: Vec<Part<'a>> = asked.collect();
    if !asked.is_empty() {
        return Some(Focus { parts: asked, from: FocusFrom::Asked });
    }
    let of_load = document.focus.as_ref().and_then(|wanted| {
        let (job, operation) = comparison.find(wanted).ok()?;
        let mut parties = Party::all(comparison).into_iter();
        let party = parties.find(|party| party.jobs.iter().any(|known| known.job == job.job))?;
        Some(Part { party, operation: operation.operation, figure: wanted.figure, weight: 1.0 })
    });
    if let Some(part) = of_load {
        return Some(Focus { parts: vec![part], from: FocusFrom::Load });
    }
    Some(Focus { parts: vec![waited_for(comparison)?], from: FocusFrom::Figures })
}

/// How likely somebody waits for it: the least first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    SmallRandomReads,
    Syncs,
    SmallReads,
    StreamsOfReads,
    Writes,
}

/// Whom somebody waits for: small random reads before commits, those before other reads, and writes last, which mostly go on
/// behind everybody's back. Of several the party with the most processes, then the one with the most I/Os.
fn waited_for<'a>(comparison: &'a Analysis<'a>) -> Option<Part<'a>> {
    let mut best: Option<(Kind, u32, u64, Part<'a>)> = None;
    for party in Party::all(comparison) {
        for operation in party.operations() {
            let processes = party.jobs.iter().map(|job| job.processes).sum();
            let (ios, bytes) = volume(&party, operation);
            let is_small = (bytes as f64) < STREAM_BYTES * ios as f64;
            let kind = match operation {
                Operation::Sync => Kind::Syncs,
                Operation::Read if !is_small => Kind::StreamsOfReads,
                Operation::Read if party.jobs[0].random == Some(false) => Kind::SmallReads,
                Operation::Read => Kind::SmallRandomReads,
                Operation::Write | Operation::Trim => Kind::Writes,
            };
            let is_better = best.as_ref().is_none_or(|(known, of_known, ios_of_known, _)| {
                kind.cmp(known).then(of_known.cmp(&processes)).then(ios_of_known.cmp(&ios)).is_lt()
            });
            if is_better {
                let figure = figure_of(&party, operation, is_small);
                let party = party.clone();
                best = Some((kind, processes, ios, Part { party, operation, figure, weight: 1.0 }));
            }
        }
    }
    best.map(|(.., part)| part)
}

/// I/Os and bytes of all runs.
fn volume(party: &Party<'_>, operation: Operation) -> (u64, u64) {
    let samples = party.of_operation(operation).flat_map(|operation| &operation.rows).flat_map(|row| row.samples());
    samples.fold((0, 0), |(ios, bytes), sample| (ios + sample.ios, bytes + sample.bytes))
}

fn figure_of(party: &Party<'_>, operation: Operation, is_small: bool) -> Figure {
    match operation {
        Operation::Read | Operation::Write | Operation::Trim if !is_small => Figure::Bandwidth,
        Operation::Write | Operation::Trim => Figure::Iops,
        _ if has_percentiles(party, operation) => Figure::P99,
        _ => Figure::Mean,
    }
}

/// Whether enough I/Os lie behind a 99th percentile, in every run.
pub(super) fn has_percentiles(party: &Party<'_>, operation: Operation) -> bool {
    party.of_operation(operation).all(|operation| operation.rows.iter().all(|row| row.ios_min() >= IOS_MIN))
}

/// How the throughput of an operation is told: streams by their bandwidth.
pub(super) fn throughput(party: &Party<'_>, operation: Operation) -> Figure {
    let (ios, bytes) = volume(party, operation);
    if operation != Operation::Sync && bytes as f64 >= STREAM_BYTES * ios as f64 {
        Figure::Bandwidth
    } else {
        Figure::Iops
    }
}
