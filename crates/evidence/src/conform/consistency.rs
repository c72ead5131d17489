//! Checks that the events of a recording are consistent, before anything is replayed.
//!
//! A replay follows the events: it inserts, merges, dispatches and releases. Contradictory events would make it insert
//! a request twice or merge one with itself. So the states of all requests are tracked first, exactly as the replays
//! track them, and the first inconsistent event is an error with its line. Unusual events are accepted: those of a
//! request that was never inserted (flush machinery), a missing completion, a request that is released without a
//! dispatch.
//!
//! The limits of single values are checked by the reader ([`hoistway_trace::iosched::bounds`]).

use std::collections::HashMap;
use std::fmt;

use hoistway_blk::bio::Op;
use hoistway_trace::iosched::bounds::SECTORS_MAX;
use hoistway_trace::iosched::{Dispatch, Event, EventKind, Insert, InsertedBy, Io, Merge, RqMerge, RqNumber, Trace};

use crate::conform::kyber_domains;

/// A recording with consistent events and the same scheduler from start to end.
///
/// * A request is inserted only if it is not in the scheduler, and requeued only after it was dispatched.
/// * A request is dispatched only from the scheduler.
/// * Two requests that merge are different, and both are in the scheduler if the absorbed one is. Neither was
///   dispatched.
/// * No request grows beyond the kernel's limit.
/// * Depths set by kyber are in range.
#[derive(Clone, Copy, Debug)]
pub struct Consistent<'a> {
    trace: &'a Trace,
    slots_needed: u32,
}

/// The first inconsistent event of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inconsistency {
    /// The line of the recording, counted from 1.
    pub line: u64,
    /// The problem, and what was expected.
    pub problem: String,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for Inconsistency {}

impl<'a> Consistent<'a> {
    /// Checks every request of `trace`, a recording of one scheduler.
    ///
    /// # Errors
    /// If an event contradicts earlier ones.
    pub fn check(trace: &'a Trace) -> Result<Self, Inconsistency> {
        let mut states = KnownRequestStates::new(trace);
        trace.events.iter().try_for_each(|event| states.event(event))?;
        Ok(Consistent { trace, slots_needed: states.slots_max })
    }

    /// The recording.
    #[must_use]
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The maximum number of requests at a time: the number of slots that a replay needs.
    pub(crate) fn slots_needed(&self) -> u32 {
        self.slots_needed
    }
}

/// The state of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequestState {
    /// Allocated; only legacy recordings show this.
    Allocated,
    /// In the scheduler.
    Inside,
    /// Dispatched, or bypassed the scheduler.
    Dispatched,
    /// Returned by the driver.
    Requeued,
    /// Merged into another request.
    Absorbed,
    /// Released.
    Released,
}

impl fmt::Display for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestState::Allocated => "allocated",
            RequestState::Inside => "inserted",
            RequestState::Dispatched => "dispatched or issued",
            RequestState::Requeued => "requeued",
            RequestState::Absorbed => "absorbed by another",
            RequestState::Released => "released",
        })
    }
}

/// The known state of a request.
#[derive(Clone, Copy)]
struct KnownRequestState {
    state: RequestState,
    /// The line of the last state change.
    since: u64,
    op: Op,
    /// Its length.
    sectors: u32,
    /// Whether it occupies a slot: from its first mention until it is released.
    holds_slot: bool,
}

/// The states of all requests up to some event.
struct KnownRequestStates {
    requests: HashMap<RqNumber, KnownRequestState>,
    scheduler: SchedulerFamily,
    /// Whether events were lost while recording, so that an insertion may be missing.
    lossy: bool,
    /// kyber: the maximum tokens of each domain.
    tokens: [u32; 4],
    /// Number of requests with a slot.
    count: u32,
    /// Maximum of that number.
    slots_max: u32,
}

/// Families of schedulers whose events change the state of a request in the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchedulerFamily {
    Kyber,
    MultiQueue,
    Cfq,
    Legacy,
}

impl SchedulerFamily {
    fn is_legacy(self) -> bool {
        matches!(self, SchedulerFamily::Cfq | SchedulerFamily::Legacy)
    }
}

type CheckResult = Result<(), Inconsistency>;

impl KnownRequestStates {
    fn new(trace: &Trace) -> KnownRequestStates {
        let header = &trace.header;
        let scheduler = match header.scheduler.as_str() {
            "kyber" => SchedulerFamily::Kyber,
            "cfq" => SchedulerFamily::Cfq,
            "noop" | "deadline" => SchedulerFamily::Legacy,
            _ => SchedulerFamily::MultiQueue,
        };
        let tokens = kyber_domains::tokens(header);
        KnownRequestStates {
            requests: HashMap::new(),
            scheduler,
            lossy: header.dropped > 0,
            tokens,
            count: 0,
            slots_max: 0,
        }
    }

    fn event(&mut self, event: &Event) -> CheckResult {
        let line = event.line;
        match &event.kind {
            EventKind::Getrq { bio, rq: Some(rq) } => self.allocate(line, *rq, &bio.io),
            EventKind::Insert(insert) => self.insert(line, insert),
            EventKind::Backmerge(merge) | EventKind::Frontmerge(merge) => self.grow(line, merge),
            EventKind::Rqmerge(merge) => self.absorb(line, merge),
            EventKind::Dispatch(dispatch) => self.dispatch(line, dispatch),
            EventKind::Issue(issue) => {
                self.issue(line, issue.rq, &issue.io);
                Ok(())
            }
            EventKind::Requeue { rq, .. } => {
                if self.state_of(*rq) == Some(RequestState::Dispatched) {
                    self.set_state(line, *rq, RequestState::Requeued);
                }
                Ok(())
            }
            EventKind::Complete(complete) if self.scheduler.is_legacy() => self.complete(line, complete.rq),
            EventKind::Free(free) => {
                self.release(line, free.rq);
                Ok(())
            }
            EventKind::KyberAdjust { domain, depth } if self.scheduler == SchedulerFamily::Kyber => {
                let depth_max = self.tokens[kyber_domains::domain_of(*domain).index()];
                if (1..=depth_max).contains(depth) {
                    return Ok(());
                }
                Err(Inconsistency {
                    line,
                    problem: format!("kyber_adjust: expected a depth of 1 to {depth_max}, found {depth}"),
                })
            }
            _ => Ok(()),
        }
    }

    fn state_of(&self, rq: RqNumber) -> Option<RequestState> {
        self.requests.get(&rq).map(|known| known.state)
    }

    /// Adds a request at its first mention.
    fn add(&mut self, line: u64, rq: RqNumber, state: RequestState, io: &Io) {
        let Io { op, sectors, .. } = *io;
        self.requests.insert(rq, KnownRequestState { state, since: line, op, sectors, holds_slot: true });
        self.count += 1;
        self.slots_max = self.slots_max.max(self.count);
    }

    /// Changes the state of a known request.
    fn set_state(&mut self, line: u64, rq: RqNumber, state: RequestState) {
        if let Some(known) = self.requests.get_mut(&rq) {
            (known.state, known.since) = (state, line);
        }
    }

    /// The error for an event that is impossible in the state of request `rq`.
    fn unexpected_state(&self, line: u64, event: &str, rq: RqNumber, expected: &str) -> Inconsistency {
        let found = match self.requests.get(&rq) {
            Some(known) => format!("one that was {} on line {}", known.state, known.since),
            None => "one that was never inserted".to_owned(),
        };
        Inconsistency { line, problem: format!("{event} of request {}: expected {expected}, found {found}", rq.0) }
    }

    fn allocate(&mut self, line: u64, rq: RqNumber, io: &Io) -> CheckResult {
        if self.requests.contains_key(&rq) {
            return Err(self.unexpected_state(line, "getrq", rq, "a new request"));
        }
        self.add(line, rq, RequestState::Allocated, io);
        Ok(())
    }

    fn insert(&mut self, line: u64, insert: &Insert) -> CheckResult {
        let rq = insert.rq;
        if insert.by != InsertedBy::Scheduler {
            return Ok(());
        }
        match self.state_of(rq) {
            None => self.add(line, rq, RequestState::Inside, &insert.io),
            Some(RequestState::Allocated) => self.set_state(line, rq, RequestState::Inside),
            Some(RequestState::Requeued) if !self.scheduler.is_legacy() => {
                self.set_state(line, rq, RequestState::Inside)
            }
            Some(_) => return Err(self.unexpected_state(line, "insert", rq, "a request that is new or was requeued")),
        }
        if let Some(known) = self.requests.get_mut(&rq) {
            (known.op, known.sectors) = (insert.io.op, insert.io.sectors);
        }
        Ok(())
    }

    fn grow(&mut self, line: u64, merge: &Merge) -> CheckResult {
        self.lengthen(line, merge.rq, merge.io.sectors)
    }

    fn lengthen(&mut self, line: u64, rq: RqNumber, by: u32) -> CheckResult {
        let Some(known) = self.requests.get_mut(&rq) else { return Ok(()) };
        known.sectors += by;
        if known.sectors <= SECTORS_MAX {
            return Ok(());
        }
        let (rq, found) = (rq.0, known.sectors);
        let problem = format!("merge into request {rq}: expected at most {SECTORS_MAX} sectors, found {found}");
        Err(Inconsistency { line, problem })
    }

    fn absorb(&mut self, line: u64, merge: &RqMerge) -> CheckResult {
        use RequestState::{Absorbed, Allocated, Inside};
        let absorbed = merge.absorbed;
        let before = self.state_of(absorbed);
        if !matches!(before, None | Some(Allocated | Inside)) {
            return Err(self.unexpected_state(line, "rqmerge", absorbed, "a request that is inside or on its way in"));
        }
        if let Some(survivor) = &merge.survivor {
            if survivor.rq == absorbed {
                let problem = format!("rqmerge: expected two requests, found request {} twice", absorbed.0);
                return Err(Inconsistency { line, problem });
            }
            if before == Some(Inside) && self.state_of(survivor.rq) != Some(Inside) {
                return Err(self.unexpected_state(line, "rqmerge", survivor.rq, "a request that is inside"));
            }
            let op = |rq: &RqNumber| self.requests.get(rq).map(|known| known.op);
            if let (Some(survivor_op), Some(absorbed_op)) = (op(&survivor.rq), op(&absorbed))
                && survivor_op != absorbed_op
            {
                let problem = format!(
                    "rqmerge: expected two requests of one operation, found {survivor_op:?} and {absorbed_op:?}"
                );
                return Err(Inconsistency { line, problem });
            }
            self.lengthen(line, survivor.rq, merge.sectors)?;
        }
        match before {
            // It also needs a slot during insertion, because of bfq.
            None => {
                if let Some(io) = &merge.io {
                    self.add(line, absorbed, Absorbed, io);
                }
            }
            Some(_) => self.set_state(line, absorbed, Absorbed),
        }
        if self.scheduler.is_legacy() {
            self.release(line, absorbed);
        }
        Ok(())
    }

    fn dispatch(&mut self, line: u64, dispatch: &Dispatch) -> CheckResult {
        let Some(chosen) = &dispatch.chosen else { return Ok(()) };
        match self.state_of(chosen.rq) {
            Some(RequestState::Inside) => {
                self.set_state(line, chosen.rq, RequestState::Dispatched);
                Ok(())
            }
            None if self.lossy => Ok(()),
            _ => Err(self.unexpected_state(line, "dispatch", chosen.rq, "a request that is inside")),
        }
    }

    /// A request that was never inserted bypassed the scheduler. One that was drained at a change of scheduler left
    /// without a dispatch: the replay of cfq notices this here, others at its release.
    fn issue(&mut self, line: u64, rq: RqNumber, io: &Io) {
        match self.state_of(rq) {
            None if !io.flushseq && !self.scheduler.is_legacy() => {
                self.add(line, rq, RequestState::Dispatched, io);
            }
            Some(RequestState::Inside) if self.scheduler == SchedulerFamily::Cfq => {
                self.set_state(line, rq, RequestState::Dispatched);
            }
            Some(RequestState::Requeued) => self.set_state(line, rq, RequestState::Dispatched),
            _ => {}
        }
    }

    /// Legacy kernels release a request at its completion.
    fn complete(&mut self, line: u64, rq: RqNumber) -> CheckResult {
        if self.scheduler == SchedulerFamily::Cfq && self.state_of(rq) == Some(RequestState::Inside) {
            return Err(self.unexpected_state(line, "complete", rq, "a request that was issued"));
        }
        self.release(line, rq);
        Ok(())
    }

    fn release(&mut self, line: u64, rq: RqNumber) {
        let Some(known) = self.requests.get_mut(&rq) else { return };
        // A request that kyber has not dispatched stays in kyber, with its slot.
        let stays = self.scheduler == SchedulerFamily::Kyber && known.state == RequestState::Inside;
        if known.holds_slot && !stays {
            known.holds_slot = false;
            self.count -= 1;
        }
        (known.state, known.since) = (RequestState::Released, line);
    }
}
