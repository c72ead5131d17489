//! Two recordings of one scenario, of different kernels: which decisions differ.
//!
//! Both kernels got the same load, but a kernel that takes a few instructions more completes its I/O a little later,
//! which may move a request past another. A difference is therefore a place to look at, and not by itself a change of a
//! rule; a changed rule shows in most scenarios of its scheduler.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use hoistway_blk::bio::Op;
use hoistway_trace::iosched::{Event, EventKind, Trace};
use serde::Serialize;

/// Name of the document's format.
pub const FORMAT: &str = "hoistway-conformance-diff/1";
/// Decisions that are shown after the first difference.
const SHOWN: usize = 3;

/// A request that a kernel chose, or issued from its software queues: what both recordings have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Decision {
    line: u64,
    t_ns: u64,
    hctx: u16,
    op: Op,
    sector: u64,
    sectors: u32,
}

impl Decision {
    /// Whether both kernels served the same I/O at the same hardware queue.
    fn is_same(&self, other: &Decision) -> bool {
        (self.hctx, self.op, self.sector, self.sectors) == (other.hctx, other.op, other.sector, other.sectors)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}+{} of hardware queue {}", self.op, self.sector, self.sectors, self.hctx)
    }
}

/// A setting of the headers that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChangedSetting {
    /// Its name, such as `tunables.async_depth`.
    pub name: String,
    /// The value of the first recording; `-` if it has none.
    pub first: String,
    /// The value of the second recording.
    pub second: String,
}

/// The first decision that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KernelDifference {
    /// Its number, counted from 1.
    pub number: usize,
    /// Line of the first recording; 0 if that is at its end.
    pub first_line: u64,
    /// Line of the second recording; 0 if that is at its end.
    pub second_line: u64,
    /// Time in the first recording, ns; in the second if that is at its end.
    pub t_ns: u64,
    /// This decision, and the next ones, of the first recording.
    pub first: Vec<String>,
    /// This decision, and the next ones, of the second recording.
    pub second: Vec<String>,
}

/// The comparison of two recordings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KernelComparison {
    /// The name of the scenario.
    pub scenario: String,
    /// The scheduler at the start.
    pub scheduler: String,
    /// Both kernels.
    pub kernels: [String; 2],
    /// Decisions for a request, of both kernels.
    pub decisions: [usize; 2],
    /// Decisions that both have, in the same order.
    pub common: usize,
    /// Decisions for no request although some waited, of both kernels.
    pub refusals: [usize; 2],
    /// Settings that differ.
    pub settings: Vec<ChangedSetting>,
    /// The first difference.
    pub first: Option<KernelDifference>,
}

impl KernelComparison {
    /// Compares two recordings of one scenario.
    #[must_use]
    pub fn of(first: &Trace, second: &Trace) -> KernelComparison {
        let (ours, theirs) = (decisions(first), decisions(second));
        let equal = ours.iter().zip(&theirs).take_while(|(one, other)| one.is_same(other)).count();
        let difference = (equal < ours.len() || equal < theirs.len()).then(|| {
            let at = |of: &[Decision]| of.get(equal).map_or((0, None), |it| (it.line, Some(it.t_ns)));
            let ((first_line, first_t), (second_line, second_t)) = (at(&ours), at(&theirs));
            let show = |of: &[Decision]| of[equal..].iter().take(SHOWN).map(Decision::to_string).collect();
            let t_ns = first_t.or(second_t).unwrap_or_default();
            KernelDifference {
                number: equal + 1,
                first_line,
                second_line,
                t_ns,
                first: show(&ours),
                second: show(&theirs),
            }
        });
        KernelComparison {
            scenario: first.header.name.clone(),
            scheduler: first.header.scheduler.clone(),
            kernels: [first, second].map(|trace| trace.header.kernel.split(" #").next().unwrap_or_default().to_owned()),
            decisions: [ours.len(), theirs.len()],
            common: equal + in_common(&ours[equal..], &theirs[equal..]),
            refusals: [first, second].map(refusals),
            settings: settings(first, second),
            first: difference,
        }
    }

    /// Decisions of the longer recording that the other does not have in this order.
    #[must_use]
    pub fn differing(&self) -> usize {
        self.decisions[0].max(self.decisions[1]) - self.common
    }

    /// Whether both kernels decided the same throughout.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.first.is_none()
    }
}

/// Under a scheduler a decision is a dispatch. Without one it is the issue of a request, which no dispatch precedes.
fn decisions(trace: &Trace) -> Vec<Decision> {
    let has_dispatches = trace.events.iter().any(|event| matches!(event.kind, EventKind::Dispatch(_)));
    trace.events.iter().filter_map(|event| decision(event, has_dispatches)).collect()
}

fn decision(event: &Event, has_dispatches: bool) -> Option<Decision> {
    let (hctx, op, sector, sectors) = match &event.kind {
        EventKind::Dispatch(dispatch) => {
            let chosen = dispatch.chosen.as_ref()?;
            (dispatch.hctx.0, chosen.op, chosen.sector.0, chosen.sectors)
        }
        EventKind::Issue(issue) if !has_dispatches => {
            let hctx = issue.io.context.map_or(0, |context| context.hctx.0);
            (hctx, issue.io.op, issue.io.sector.0, issue.io.sectors)
        }
        _ => return None,
    };
    Some(Decision { line: event.line, t_ns: event.t.0, hctx, op, sector, sectors })
}

fn refusals(trace: &Trace) -> usize {
    let is_refusal = |event: &&Event| matches!(&event.kind, EventKind::Dispatch(dispatch) if dispatch.chosen.is_none());
    trace.events.iter().filter(is_refusal).count()
}

/// The length of the longest common subsequence, by the shortest edit script (Myers): fast if few decisions differ.
fn in_common(ours: &[Decision], theirs: &[Decision]) -> usize {
    let (n, m) = (ours.len() as isize, theirs.len() as isize);
    let mut furthest = vec![0_isize; (2 * (n + m) + 3) as usize];
    let middle = n + m + 1;
    for edits in 0..=n + m {
        for diagonal in (-edits..=edits).step_by(2) {
            let (below, above) =
                (furthest[(middle + diagonal - 1) as usize], furthest[(middle + diagonal + 1) as usize]);
            let down = diagonal == -edits || (diagonal != edits && below < above);
            let mut x = if down { above } else { below + 1 };
            while x < n && x - diagonal < m && ours[x as usize].is_same(&theirs[(x - diagonal) as usize]) {
                x += 1;
            }
            furthest[(middle + diagonal) as usize] = x;
            if x >= n && x - diagonal >= m {
                return ((n + m - edits) / 2) as usize;
            }
        }
    }
    0
}

/// What the kernels say about scheduler and queue, where that differs.
fn settings(first: &Trace, second: &Trace) -> Vec<ChangedSetting> {
    let described = [first, second].map(|trace| {
        let header = &trace.header;
        let queue = &header.queue;
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &header.tunables {
            values.insert(format!("tunables.{name}"), value.to_string());
        }
        for (name, value) in [
            ("nr_hw_queues", u64::from(queue.nr_hw_queues)),
            ("queue_depth", queue.queue_depth.into()),
            ("nr_requests", queue.nr_requests.into()),
            ("nomerges", queue.nomerges.into()),
            ("rotational", queue.rotational.into()),
            ("max_sectors_kb", queue.max_sectors_kb.into()),
            ("max_segments", queue.max_segments.into()),
            ("rq_affinity", queue.rq_affinity.into()),
        ] {
            values.insert(format!("queue.{name}"), value.to_string());
        }
        if let Some(depth) = queue.async_depth {
            values.insert("queue.async_depth".to_owned(), depth.to_string());
        }
        values
    });
    let names: std::collections::BTreeSet<&String> = described.iter().flat_map(BTreeMap::keys).collect();
    let values = names.into_iter().map(|name| {
        let [first, second] =
            [0, 1].map(|which: usize| described[which].get(name).map_or("-", String::as_str).to_owned());
        ChangedSetting { name: name.clone(), first, second }
    });
    values.filter(|setting| setting.first != setting.second).collect()
}

/// The comparisons of all scenarios that both sides have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KernelDiff {
    format: &'static str,
    /// One for each scenario, sorted by name.
    pub comparisons: Vec<KernelComparison>,
    /// Scenarios that only one side has.
    pub unpaired: Vec<String>,
}

impl KernelDiff {
    /// A report of these comparisons.
    #[must_use]
    pub fn new(comparisons: Vec<KernelComparison>, unpaired: Vec<String>) -> KernelDiff {
        KernelDiff { format: FORMAT, comparisons, unpaired }
    }

    /// The document as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// A text for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for comparison in &self.comparisons {
            let KernelComparison { scenario, scheduler, kernels, decisions, common, refusals, .. } = comparison;
            let _ = writeln!(
                out,
                "{scenario} ({scheduler}): {common} of {} and {} decisions are the same; {} and {} refusals",
                decisions[0], decisions[1], refusals[0], refusals[1]
            );
            for ChangedSetting { name, first, second } in &comparison.settings {
                let _ = writeln!(out, "  {name}: {first} and {second}");
            }
            if let Some(difference) = &comparison.first {
                let KernelDifference { number, first_line, second_line, t_ns, first, second } = difference;
                let _ = writeln!(
                    out,
                    "  first difference: decision {number} at {:.6} s, {} differ in all\n    {} (line {first_line}): {}\n    {} (line \
                     {second_line}): {}",
                    *t_ns as f64 / 1e9,
                    comparison.differing(),
                    kernels[0],
                    or_end(first),
                    kernels[1],
                    or_end(second),
                );
            }
        }
        let equal = self.comparisons.iter().filter(|comparison| comparison.is_equal()).count();
        let _ = writeln!(out, "{equal} of {} scenarios have the same decisions.", self.comparisons.len());
        for name in &self.unpaired {
            let _ = writeln!(out, "only on one side: {name}");
        }
        out
    }
}

fn or_end(decisions: &[String]) -> String {
    if decisions.is_empty() { "the end".to_owned() } else { decisions.join("; ") }
}
