//! The focus of a verdict: the figure that it names first, chosen by the user, by the load's author or from the results.

use std::cmp::Reverse;

use super::SMALLEST_EFFECT;
use super::party::Party;
use super::roles::Role;
use super::score::JudgedParty;
use super::setup_variants::SetupVariants;
use super::turn::IOS_MIN;
use crate::analysis::Analysis;
use crate::document::{Aspect, FocusFrom};
use crate::figure::Figure;
use crate::focus::WeightedFigure;
use hoistway_measure::Operation;

/// The figures that a comparison is judged by.
pub(super) struct Focus<'a> {
    pub(super) parts: Vec<Part<'a>>,
    pub(super) from: FocusFrom,
}

/// One figure of a focus.
pub(super) struct Part<'a> {
    pub(super) party: Party<'a>,
    pub(super) operation: Operation,
    pub(super) figure: Figure,
    pub(super) weight: f64,
}

impl Part<'_> {
    /// The figure's name, with its weight.
    pub(super) fn name(&self) -> WeightedFigure {
        let figure =
            crate::FigureName { job: self.party.name().to_owned(), operation: self.operation, figure: self.figure };
        WeightedFigure { figure, weight: self.weight }
    }

    /// Whether an aspect of a party measures the same as this figure; IOPS and bandwidth count as the same.
    pub(super) fn is_covered_by(&self, party: &Party<'_>, operation: Option<Operation>, aspect: Aspect) -> bool {
        let is_throughput = |figure: Figure| !figure.is_latency();
        let is_same = |figure: Figure| figure == self.figure || is_throughput(figure) && is_throughput(self.figure);
        party.jobs[0].job == self.party.jobs[0].job
            && operation == Some(self.operation)
            && matches!(aspect, Aspect::Figure(figure) if is_same(figure))
    }
}

/// The figures that the user chose, as far as the results contain them; or else the load author's; or else a figure of the party that
/// waits. `None` without I/O.
pub(super) fn chosen<'a>(
    analysis: &'a Analysis<'a>,
    stakes: &[JudgedParty<'a>],
    setups: &[SetupVariants<'a>],
) -> Option<Focus<'a>> {
    let document = analysis.document;
    let asked = document.focuses.iter().filter_map(|wanted| {
        let (job, operation) = analysis.find(&wanted.figure).ok()?;
        let party = Party::of(analysis, job);
        Some(Part { party, operation: operation.operation, figure: wanted.figure.figure, weight: wanted.weight })
    });
    let asked: Vec<Part<'a>> = asked.collect();
    if !asked.is_empty() {
        return Some(Focus { parts: asked, from: FocusFrom::Asked });
    }
    let of_load = document.focus.as_ref().and_then(|wanted| {
        let (job, operation) = analysis.find(wanted).ok()?;
        let mut parties = Party::all(analysis).into_iter();
        let party = parties.find(|party| party.jobs.iter().any(|known| known.job == job.job))?;
        Some(Part { party, operation: operation.operation, figure: wanted.figure, weight: 1.0 })
    });
    if let Some(part) = of_load {
        return Some(Focus { parts: vec![part], from: FocusFrom::Load });
    }
    Some(Focus { parts: vec![waited_for(stakes, setups)?], from: FocusFrom::Figures })
}

/// I/Os in one of which an operation stands for all that a party does.
const IOS_PER_LEADING: u64 = 10;

/// How likely it is waited for: the most likely first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    SmallRandomReads,
    Syncs,
    SmallReads,
    StreamsOfReads,
    Writes,
}

impl Kind {
    fn of(party: &Party<'_>, operation: Operation) -> Kind {
        match operation {
            Operation::Sync => Kind::Syncs,
            Operation::Read if party.is_stream_of(operation) => Kind::StreamsOfReads,
            Operation::Read if party.jobs[0].random == Some(false) => Kind::SmallReads,
            Operation::Read => Kind::SmallRandomReads,
            Operation::Write | Operation::Trim => Kind::Writes,
        }
    }

    /// Of what a party waits for most likely: one that reads waits for its reads, whatever else it does.
    fn of_party(party: &Party<'_>) -> Kind {
        party.operations().map(|operation| Kind::of(party, operation)).min().unwrap_or(Kind::Writes)
    }
}

/// The figure that is named first: of a party that waits before bulk work, of small random reads before commits, those before other reads, and
/// of writes last. Of several parties that with the most processes, then that with the most I/Os. Of its operations the one that changes its
/// loop most; where progress is what counts, which is the same by each of them, the one that is most likely waited for.
fn waited_for<'a>(stakes: &[JudgedParty<'a>], setups: &[SetupVariants<'a>]) -> Option<Part<'a>> {
    let rank = |stake: &&JudgedParty<'a>| {
        let party = &stake.party;
        let is_realtime = party.demand().is_some_and(|demand| demand.is_realtime);
        let processes: u32 = party.jobs.iter().map(|job| job.processes).sum();
        let ios: u64 = party.operations().map(|operation| party.volume(operation).0).sum();
        // Among equals the name decides, as the order of jobs must not.
        let most = (Reverse(processes), Reverse(ios), party.name());
        (stake.role == Role::Bulk, !is_realtime, Kind::of_party(party), most)
    };
    let stake = stakes.iter().min_by_key(rank)?;
    let party = stake.party.clone();
    let contenders: Vec<[usize; 2]> = setups.iter().filter_map(|variants| variants.contenders(stakes)).collect();
    let operation = match stake.role {
        Role::Waits => most_shifted_operation(stake, &contenders).unwrap_or_else(|| main_operation(&party)),
        Role::WaitsForProgress | Role::Bulk => leading_operation(&party),
    };
    let figure = match stake.role {
        Role::Waits if has_percentiles(&party, operation) => Figure::P99,
        Role::Waits => Figure::Mean,
        Role::WaitsForProgress | Role::Bulk => throughput(&party, operation),
    };
    Some(Part { party, operation, figure, weight: 1.0 })
}

/// The operation whose time in a party's loop differs most between the variants of each pair, if the loop differs at all.
fn most_shifted_operation(stake: &JudgedParty<'_>, pairs: &[[usize; 2]]) -> Option<Operation> {
    let parts = |operation| pairs.iter().map(move |pair| pair.map(|variant| stake.loop_part_ns(operation, variant)));
    let moved = |operation| parts(operation).map(|[from, to]| (to - from).abs()).sum::<f64>();
    let longer = |operation| parts(operation).map(|[from, to]| from.max(to)).sum::<f64>();
    let operations = || stake.party.operations();
    let loops_ns: f64 = operations().map(longer).sum();
    // Of equals the first: reads before writes.
    let most = |best: Operation, one| if moved(one) > moved(best) { one } else { best };
    operations().reduce(most).filter(|operation| moved(*operation) > SMALLEST_EFFECT * loops_ns)
}

/// The operation whose rate stands for a party's progress: the job fixes the proportion of its operations, so their rates change alike, and
/// the one that is most likely waited for names them. An operation that is rare has a rate of its own chance.
fn leading_operation(party: &Party<'_>) -> Operation {
    let all: u64 = party.operations().map(|operation| party.volume(operation).0).sum();
    let is_common = |operation: &Operation| party.volume(*operation).0 * IOS_PER_LEADING >= all;
    let kind = |operation: &Operation| Kind::of(party, *operation);
    party.operations().filter(is_common).min_by_key(kind).unwrap_or(Operation::Read)
}

/// The operation that a party's time goes to: its syncs, or the one with most of the time that it waits.
fn main_operation(party: &Party<'_>) -> Operation {
    let time = |operation: &Operation| -> f64 {
        let rows = party.of_operation(*operation).flat_map(|operation| &operation.rows);
        rows.flat_map(|row| row.samples()).map(|sample| sample.ios as f64 * sample.lat_ns.mean).sum()
    };
    let is_sync = |operation: &Operation| *operation == Operation::Sync;
    party.operations().find(is_sync).unwrap_or_else(|| {
        // Of equals the first: reads before writes.
        let longest = |best: Operation, one| if time(&one) > time(&best) { one } else { best };
        party.operations().reduce(longest).unwrap_or(Operation::Read)
    })
}

/// Whether enough I/Os lie behind a 99th percentile in every run, and the histogram reaches as far.
pub(super) fn has_percentiles(party: &Party<'_>, operation: Operation) -> bool {
    let rows = || party.of_operation(operation).flat_map(|operation| &operation.rows);
    rows().all(|row| row.ios_min() >= IOS_MIN && !row.samples().any(|sample| sample.is_at_least(Figure::P99)))
}

/// How the throughput of an operation is given: streams by their bandwidth.
pub(super) fn throughput(party: &Party<'_>, operation: Operation) -> Figure {
    if party.is_stream_of(operation) { Figure::Bandwidth } else { Figure::Iops }
}
