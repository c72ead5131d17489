//! The focus of a verdict: the figure that it names first, chosen by the user, by the load's author or from the results.

use std::cmp::Reverse;

use super::SMALLEST_EFFECT;
use super::party::Party;
use super::roles::Role;
use super::score::JudgedParty;
use super::setup_variants::SetupVariants;
use super::turn::IOS_PER_RUN_MIN;
use crate::analysis::Analysis;
use crate::document::{Aspect, FocusFrom, IOS_FOR_P99, JobSummary, OperationSummary, Run};
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
    judged_parties: &[JudgedParty<'a>],
    setups: &[SetupVariants<'a>],
) -> Option<Focus<'a>> {
    let document = analysis.document;
    let requested = document.focuses.iter().filter_map(|weighted| {
        let (job, operation) = analysis.find(&weighted.figure).ok()?;
        let party = Party::of(analysis, job);
        Some(Part { party, operation: operation.operation, figure: weighted.figure.figure, weight: weighted.weight })
    });
    let requested: Vec<Part<'a>> = requested.collect();
    if !requested.is_empty() {
        return Some(Focus { parts: requested, from: FocusFrom::Asked });
    }
    let load_part = document.focus.as_ref().and_then(|name| {
        let (job, operation) = analysis.find(name).ok()?;
        let mut parties = Party::all(analysis).into_iter();
        let party = parties.find(|party| party.jobs.iter().any(|known| known.job == job.job))?;
        Some(Part { party, operation: operation.operation, figure: name.figure, weight: 1.0 })
    });
    if let Some(part) = load_part {
        return Some(Focus { parts: vec![part], from: FocusFrom::Load });
    }
    Some(Focus { parts: vec![default_part(analysis, judged_parties, setups)?], from: FocusFrom::Figures })
}

/// Logarithms of ratios below this are equal, as far as the tables show.
const SAME: f64 = 0.001;

/// Work that took less than this share of a run's time had ended before.
const ENDED_SHARE: f64 = 0.95;

impl Party<'_> {
    /// Whether it does a fixed amount of I/O, and in most runs was done with it while others went on.
    fn has_ended(&self) -> bool {
        if !self.demand().is_some_and(|demand| demand.ends && !demand.thinks && !demand.syncs) {
            return false;
        }
        let took_s =
            |summary: &OperationSummary| if summary.ios == 0 { 0.0 } else { summary.ios as f64 / summary.iops };
        let longest_s = |run: &Run, includes: &dyn Fn(&JobSummary) -> bool| {
            let jobs = run.jobs.iter().filter(|job| includes(job));
            jobs.flat_map(|job| &job.operations).map(took_s).fold(0.0, f64::max)
        };
        let is_own = |job: &JobSummary| self.jobs.iter().any(|own| own.job == job.job);
        let runs = self.runs().map(|run| longest_s(run, &is_own) < ENDED_SHARE * longest_s(run, &|_| true));
        let (ended, all) = runs.fold((0, 0), |(ended, all), has_ended| (ended + usize::from(has_ended), all + 1));
        2 * ended > all
    }
}

/// An operation can represent a party only if at least one in this many of its I/Os is of this operation.
const IOS_PER_LEADING: u64 = 10;

/// Kinds of operations by how likely a user waits for them, the most likely first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WaitKind {
    /// Work that ends, beside others that do not.
    BoundedWork,
    SmallRandomReads,
    Syncs,
    SmallReads,
    StreamsOfReads,
    SmallWrites,
    /// Syncs at the end of bulk writes.
    BulkSyncs,
    Writes,
}

impl WaitKind {
    fn of(party: &Party<'_>, operation: Operation) -> WaitKind {
        match operation {
            Operation::Sync if party.writes_bulk_between_syncs() => WaitKind::BulkSyncs,
            Operation::Sync => WaitKind::Syncs,
            Operation::Read if party.is_stream_of(operation) => WaitKind::StreamsOfReads,
            Operation::Read if party.jobs[0].random == Some(false) => WaitKind::SmallReads,
            Operation::Read => WaitKind::SmallRandomReads,
            Operation::Write if !party.is_stream_of(operation) => WaitKind::SmallWrites,
            Operation::Write | Operation::Trim => WaitKind::Writes,
        }
    }

    /// The kind that a party most likely waits for: bounded work is waited for as a whole, and a party that reads waits for its reads, whatever else it does.
    fn most_likely_wait(party: &Party<'_>) -> WaitKind {
        if party.has_ended() {
            return WaitKind::BoundedWork;
        }
        party.operations().map(|operation| WaitKind::of(party, operation)).min().unwrap_or(WaitKind::Writes)
    }
}

/// The figure that a verdict names first if neither the user nor the load chose one. The rest of a recording comes last. Parties that wait
/// come before bulk work, then those with more weight, then the order of [`WaitKind`] decides, then the number of processes, then the number of I/Os. The operation
/// is the one that changes the party's loop most; if only progress counts, which all its operations share, the one that a user most
/// likely waits for.
fn default_part<'a>(
    analysis: &Analysis<'a>,
    judged_parties: &[JudgedParty<'a>],
    setups: &[SetupVariants<'a>],
) -> Option<Part<'a>> {
    let do_some_differ = judged_parties.iter().any(|judged| differs(judged, setups, SMALLEST_EFFECT.ln_1p()));
    let rank = |judged: &&JudgedParty<'a>| {
        let party = &judged.party;
        let is_realtime = party.demand().is_some_and(|demand| demand.is_realtime);
        let processes: u32 = party.jobs.iter().map(|job| job.processes).sum();
        let ios: u64 = party.operations().map(|operation| party.volume(operation).ios).sum();
        // Among equals the name decides, as the order of jobs must not.
        let most = (Reverse(processes), Reverse(ios), party.name());
        // What nobody does as a whole nobody waits for as a whole.
        let is_rest = analysis.document.recording.as_ref().is_some_and(|recording| recording.is_rest(party.name()));
        let is_bulk = (
            is_rest,
            judged.role == Role::LeftOver,
            judged.role == Role::Bulk,
            do_some_differ && !differs(judged, setups, SAME),
        );
        (is_bulk, !is_realtime, Reverse(party.weight()), WaitKind::most_likely_wait(party), most)
    };
    let judged = judged_parties.iter().min_by_key(rank)?;
    let party = judged.party.clone();
    let contenders: Vec<[usize; 2]> =
        setups.iter().filter_map(|variants| variants.contenders(judged_parties)).collect();
    let operation = match judged.role {
        Role::Waits => most_shifted_operation(judged, &contenders).unwrap_or_else(|| main_operation(&party)),
        Role::WaitsForProgress | Role::Bulk | Role::LeftOver => leading_operation(&party),
    };
    let figure = match judged.role {
        Role::Waits if has_percentiles(&party, operation) => Figure::P99,
        Role::Waits => Figure::Mean,
        Role::WaitsForProgress | Role::Bulk | Role::LeftOver => throughput(&party, operation),
    };
    Some(Part { party, operation, figure, weight: 1.0 })
}

/// Whether any variant serves a party otherwise than the reference does, by at least this logarithm. What is the same everywhere is not
/// what is judged, if anything differs.
fn differs(judged: &JudgedParty<'_>, setups: &[SetupVariants<'_>], least: f64) -> bool {
    let is_alone = setups.iter().all(|setup| setup.others().next().is_none());
    let differs_in = |setup: &SetupVariants<'_>| {
        let gain = |variant, repeat| Some(judged.score(variant, repeat)? - judged.score(setup.reference, repeat)?);
        setup.others().any(|variant| {
            setup.repeats().any(|repeat| gain(variant, repeat).is_some_and(|gain: f64| gain.abs() >= least))
        })
    };
    is_alone || setups.iter().any(differs_in)
}

/// The operation whose time in a party's loop differs most between the variants of each pair, if the loop differs at all.
fn most_shifted_operation(judged: &JudgedParty<'_>, pairs: &[[usize; 2]]) -> Option<Operation> {
    let parts = |operation| pairs.iter().map(move |pair| pair.map(|variant| judged.loop_part_ns(operation, variant)));
    let moved = |operation| parts(operation).map(|[from, to]| (to - from).abs()).sum::<f64>();
    let longer = |operation| parts(operation).map(|[from, to]| from.max(to)).sum::<f64>();
    let operations = || judged.party.operations();
    let loops_ns: f64 = operations().map(longer).sum();
    // Of equals the first: reads before writes.
    let most = |best: Operation, other| if moved(other) > moved(best) { other } else { best };
    operations().reduce(most).filter(|operation| moved(*operation) > SMALLEST_EFFECT * loops_ns)
}

/// The operation whose rate represents a party's progress. The job fixes the proportion of its operations, so all rates change by the same
/// factor; the operation that a user most likely waits for is named. Rare operations are excluded, because their rate is noisy.
fn leading_operation(party: &Party<'_>) -> Operation {
    let all: u64 = party.operations().map(|operation| party.volume(operation).ios).sum();
    let is_common = |operation: &Operation| party.volume(*operation).ios * IOS_PER_LEADING >= all;
    let kind = |operation: &Operation| WaitKind::of(party, *operation);
    party.operations().filter(is_common).min_by_key(kind).unwrap_or(Operation::Read)
}

/// The operation that a party spends most time on: its syncs if it has any, otherwise the one with the longest total latency.
fn main_operation(party: &Party<'_>) -> Operation {
    let time = |operation: &Operation| -> f64 {
        let rows = party.operation_results(*operation).flat_map(|operation| &operation.rows);
        rows.flat_map(|row| row.samples()).map(|sample| sample.ios as f64 * sample.lat_ns.mean).sum()
    };
    let is_sync = |operation: &Operation| *operation == Operation::Sync && time(operation) > 0.0;
    party.operations().find(is_sync).unwrap_or_else(|| {
        // Of equals the first: reads before writes.
        let longest = |best: Operation, other| if time(&other) > time(&best) { other } else { best };
        party.operations().reduce(longest).unwrap_or(Operation::Read)
    })
}

/// Whether every run has enough I/Os for a 99th percentile, and the percentile is within the histogram's range.
pub(super) fn has_percentiles(party: &Party<'_>, operation: Operation) -> bool {
    let rows = || party.operation_results(operation).flat_map(|operation| &operation.rows);
    rows().all(|row| row.ios_min() >= IOS_FOR_P99 && !row.samples().any(|sample| sample.is_at_least(Figure::P99)))
}

/// Whether the runs of every variant together have enough I/Os for a 99th percentile, each run's is not its slowest I/O, and it is within
/// the histogram's range.
pub(super) fn has_pooled_percentiles(party: &Party<'_>, operation: Operation) -> bool {
    let rows = || party.operation_results(operation).flat_map(|operation| &operation.rows);
    rows().all(|row| {
        let ios: u64 = row.samples().map(|sample| sample.ios).sum();
        ios >= IOS_FOR_P99
            && row.ios_min() >= IOS_PER_RUN_MIN
            && !row.samples().any(|sample| sample.is_at_least(Figure::P99))
    })
}

/// The figure for the throughput of an operation: bandwidth for streams, otherwise IOPS.
pub(super) fn throughput(party: &Party<'_>, operation: Operation) -> Figure {
    if party.is_stream_of(operation) { Figure::Bandwidth } else { Figure::Iops }
}
