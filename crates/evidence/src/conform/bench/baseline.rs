//! Simple policies (FIFO, one-way elevator) that tell hard decisions from easy ones, and the candidates of a decision,
//! as every replay tracks them.

use std::fmt;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::Sector;
use hoistway_trace::iosched::{Event, Insert, Io, RqMerge, RqNumber};

use crate::conform::score::{AppliedRule, Mismatch, Score};

/// Maximum requests listed in a mismatch.
const INSIDE_SHOWN: usize = 8;

/// A request in the scheduler: a candidate for the next decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecisionCandidate {
    pub(crate) rq: RqNumber,
    pub(crate) sector: Sector,
    pub(crate) sectors: u32,
    pub(crate) op: Op,
    pub(crate) prio: IoPriority,
    /// Whether it was inserted at the head, where nothing merges with it.
    pub(crate) head: bool,
    pub(crate) pid: u32,
}

impl DecisionCandidate {
    /// A request inserted on behalf of `pid`.
    pub(crate) fn new(insert: &Insert, pid: u32) -> DecisionCandidate {
        let Io { sector, sectors, op, prio, .. } = insert.io;
        DecisionCandidate { rq: insert.rq, sector, sectors, op, prio, head: insert.head, pid }
    }
}

impl fmt::Display for DecisionCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rq {} {}+{} of {}", self.rq.0, self.sector.0, self.sectors, self.pid)
    }
}

/// The requests in the scheduler in the order of arrival, and the last one dispatched by the kernel.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) inside: Vec<DecisionCandidate>,
    last_end: Sector,
    last_pid: Option<u32>,
}

impl Baseline {
    pub(crate) fn candidate(&mut self, rq: RqNumber) -> Option<&mut DecisionCandidate> {
        self.inside.iter_mut().find(|candidate| candidate.rq == rq)
    }

    pub(crate) fn remove(&mut self, rq: RqNumber) -> Option<DecisionCandidate> {
        let index = self.inside.iter().position(|candidate| candidate.rq == rq)?;
        Some(self.inside.remove(index))
    }

    /// The request that absorbs another: the recorded one if given, otherwise the first of the same kind that ends
    /// where the absorbed one begins.
    pub(crate) fn survivor(&self, merge: &RqMerge) -> Option<RqNumber> {
        let absorbed = self.inside.iter().find(|candidate| candidate.rq == merge.absorbed);
        if absorbed.is_some_and(|absorbed| absorbed.head) {
            return None;
        }
        let kind = absorbed.map(|absorbed| (absorbed.op, absorbed.prio));
        let kind = kind.or_else(|| merge.io.map(|io| (io.op, io.prio)));
        let mut others = self.inside.iter().filter(|other| other.rq != merge.absorbed && !other.head);
        let survivor = others.find(|other| match merge.survivor {
            Some(named) => other.rq == named.rq,
            None => other.sector + other.sectors == merge.sector && kind == Some((other.op, other.prio)),
        });
        survivor.map(|survivor| survivor.rq)
    }

    /// Whether the decision for `kernel` is hard: there are several candidates, and neither a FIFO nor a one-way sweep
    /// from the end of the last request would choose it.
    fn is_hard(&self, kernel: RqNumber) -> bool {
        let ahead = self.inside.iter().filter(|candidate| candidate.sector >= self.last_end);
        let sweep = ahead.min_by_key(|candidate| candidate.sector);
        let sweep = sweep.or_else(|| self.inside.iter().min_by_key(|candidate| candidate.sector));
        self.inside.len() > 1
            && self.inside.first().is_some_and(|oldest| oldest.rq != kernel)
            && sweep.is_some_and(|sweep| sweep.rq != kernel)
    }

    /// Describes a decision that differs from the kernel's; `show` describes a request.
    pub(crate) fn explain(
        &self,
        event: &Event,
        kernel: Option<RqNumber>,
        ours: Option<RqNumber>,
        AppliedRule { rule, reason }: AppliedRule,
        describe_candidate: impl Fn(&DecisionCandidate) -> String,
    ) -> Mismatch {
        let describe = |rq: Option<RqNumber>| {
            let candidate_found = self.inside.iter().find(|candidate| Some(candidate.rq) == rq);
            candidate_found.map_or_else(|| "nothing".to_owned(), &describe_candidate)
        };
        Mismatch {
            line: event.line,
            t_ns: event.t.0,
            inside: self.inside.iter().take(INSIDE_SHOWN).map(&describe_candidate).collect(),
            more: self.inside.len().saturating_sub(INSIDE_SHOWN),
            kernel: describe(kernel),
            ours: describe(ours),
            rule,
            reason,
        }
    }

    /// Scores one decision, and makes the kernel's choice the last one dispatched.
    pub(crate) fn judge(&mut self, score: &mut Score, kernel: Option<RqNumber>, ours: Option<RqNumber>) {
        score.questions += 1;
        if kernel.is_none() || ours.is_none() {
            score.null.count(kernel.is_none() && ours.is_none());
        }
        let Some(rq) = kernel else { return };
        let is_same = ours == kernel;
        score.dispatches += 1;
        score.all += u64::from(is_same);
        if self.is_hard(rq) {
            score.hard.count(is_same);
        }
        let pid = |rq| self.inside.iter().find(|candidate| candidate.rq == rq).map(|candidate| candidate.pid);
        let (kernel_pid, our_pid) = (pid(rq), ours.and_then(pid));
        if self.last_pid.is_some() && (kernel_pid != self.last_pid || our_pid != self.last_pid) {
            score.switch.count(kernel_pid == our_pid);
        }
        if let Some(dispatched) = self.remove(rq) {
            self.last_end = dispatched.sector + dispatched.sectors;
            self.last_pid = Some(dispatched.pid);
        }
    }
}
