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
    at_once: u32,
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
        let mut ways = KnownRequestStates::new(trace);
        trace.events.iter().try_for_each(|event| ways.event(event))?;
        Ok(Consistent { trace, at_once: ways.most })
    }

    /// The recording.
    #[must_use]
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The maximum number of requests at a time: the number of slots that a replay needs.
    pub(crate) fn at_once(&self) -> u32 {
        self.at_once
    }
}

/// The state of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whereabouts {
    /// Allocated; only legacy recordings show this.
    Allocated,
    /// In the scheduler.
    Inside,
    /// Dispatched, or bypassed the scheduler.
    Out,
    /// Returned by the driver.
    Requeued,
    /// Merged into another request.
    Absorbed,
    /// Released.
    Over,
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Whereabouts::Allocated => "allocated",
            Whereabouts::Inside => "inserted",
            Whereabouts::Out => "dispatched or issued",
            Whereabouts::Requeued => "requeued",
            Whereabouts::Absorbed => "absorbed by another",
            Whereabouts::Over => "released",
        })
    }
}

/// The known state of a request.
#[derive(Clone, Copy)]
struct KnownRequestState {
    at: Whereabouts,
    /// The line of the last state change.
    since: u64,
    op: Op,
    /// Its length.
    sectors: u32,
    /// Whether it occupies a slot: from its first mention until it is released.
    counted: bool,
}

/// The states of all requests up to some event.
struct KnownRequestStates {
    ways: HashMap<RqNumber, KnownRequestState>,
    scheduler: SchedulerFamily,
    /// Whether events were lost while recording, so that an insertion may be missing.
    lossy: bool,
    /// kyber: the maximum tokens of each domain.
    tokens: [u32; 4],
    /// Number of requests with a slot.
    count: u32,
    /// Maximum of that number.
    most: u32,
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

type Fits = Result<(), Inconsistency>;

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
        KnownRequestStates { ways: HashMap::new(), scheduler, lossy: header.dropped > 0, tokens, count: 0, most: 0 }
    }

    fn event(&mut self, event: &Event) -> Fits {
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
                if self.at(*rq) == Some(Whereabouts::Out) {
                    self.go(line, *rq, Whereabouts::Requeued);
                }
                Ok(())
            }
            EventKind::Complete(complete) if self.scheduler.is_legacy() => self.complete(line, complete.rq),
            EventKind::Free(free) => {
                self.release(line, free.rq);
                Ok(())
            }
            EventKind::KyberAdjust { domain, depth } if self.scheduler == SchedulerFamily::Kyber => {
                let most = self.tokens[kyber_domains::domain_of(*domain).index()];
                if (1..=most).contains(depth) {
                    return Ok(());
                }
                Err(Inconsistency {
                    line,
                    problem: format!("kyber_adjust: expected a depth of 1 to {most}, found {depth}"),
                })
            }
            _ => Ok(()),
        }
    }

    fn at(&self, rq: RqNumber) -> Option<Whereabouts> {
        self.ways.get(&rq).map(|way| way.at)
    }

    /// Adds a request at its first mention.
    fn begin(&mut self, line: u64, rq: RqNumber, at: Whereabouts, io: &Io) {
        let Io { op, sectors, .. } = *io;
        self.ways.insert(rq, KnownRequestState { at, since: line, op, sectors, counted: true });
        self.count += 1;
        self.most = self.most.max(self.count);
    }

    /// Changes the state of a known request.
    fn go(&mut self, line: u64, rq: RqNumber, at: Whereabouts) {
        if let Some(way) = self.ways.get_mut(&rq) {
            (way.at, way.since) = (at, line);
        }
    }

    /// The error for an event that is impossible in the state of request `rq`.
    fn misplaced(&self, line: u64, event: &str, rq: RqNumber, expected: &str) -> Inconsistency {
        let found = match self.ways.get(&rq) {
            Some(way) => format!("one that was {} on line {}", way.at, way.since),
            None => "one that was never inserted".to_owned(),
        };
        Inconsistency { line, problem: format!("{event} of request {}: expected {expected}, found {found}", rq.0) }
    }

    fn allocate(&mut self, line: u64, rq: RqNumber, io: &Io) -> Fits {
        if self.ways.contains_key(&rq) {
            return Err(self.misplaced(line, "getrq", rq, "a new request"));
        }
        self.begin(line, rq, Whereabouts::Allocated, io);
        Ok(())
    }

    fn insert(&mut self, line: u64, insert: &Insert) -> Fits {
        let rq = insert.rq;
        if insert.by != InsertedBy::Scheduler {
            return Ok(());
        }
        match self.at(rq) {
            None => self.begin(line, rq, Whereabouts::Inside, &insert.io),
            Some(Whereabouts::Allocated) => self.go(line, rq, Whereabouts::Inside),
            Some(Whereabouts::Requeued) if !self.scheduler.is_legacy() => self.go(line, rq, Whereabouts::Inside),
            Some(_) => return Err(self.misplaced(line, "insert", rq, "a request that is new or was requeued")),
        }
        if let Some(way) = self.ways.get_mut(&rq) {
            (way.op, way.sectors) = (insert.io.op, insert.io.sectors);
        }
        Ok(())
    }

    fn grow(&mut self, line: u64, merge: &Merge) -> Fits {
        self.lengthen(line, merge.rq, merge.io.sectors)
    }

    fn lengthen(&mut self, line: u64, rq: RqNumber, by: u32) -> Fits {
        let Some(way) = self.ways.get_mut(&rq) else { return Ok(()) };
        way.sectors += by;
        if way.sectors <= SECTORS_MAX {
            return Ok(());
        }
        let (rq, found) = (rq.0, way.sectors);
        let problem = format!("merge into request {rq}: expected at most {SECTORS_MAX} sectors, found {found}");
        Err(Inconsistency { line, problem })
    }

    fn absorb(&mut self, line: u64, merge: &RqMerge) -> Fits {
        use Whereabouts::{Absorbed, Allocated, Inside};
        let absorbed = merge.absorbed;
        let before = self.at(absorbed);
        if !matches!(before, None | Some(Allocated | Inside)) {
            return Err(self.misplaced(line, "rqmerge", absorbed, "a request that is inside or on its way in"));
        }
        if let Some(survivor) = &merge.survivor {
            if survivor.rq == absorbed {
                let problem = format!("rqmerge: expected two requests, found request {} twice", absorbed.0);
                return Err(Inconsistency { line, problem });
            }
            if before == Some(Inside) && self.at(survivor.rq) != Some(Inside) {
                return Err(self.misplaced(line, "rqmerge", survivor.rq, "a request that is inside"));
            }
            let op = |rq: &RqNumber| self.ways.get(rq).map(|way| way.op);
            if let (Some(one), Some(other)) = (op(&survivor.rq), op(&absorbed))
                && one != other
            {
                let problem = format!("rqmerge: expected two requests of one operation, found {one:?} and {other:?}");
                return Err(Inconsistency { line, problem });
            }
            self.lengthen(line, survivor.rq, merge.sectors)?;
        }
        match before {
            // It also needs a slot during insertion, because of bfq.
            None => {
                if let Some(io) = &merge.io {
                    self.begin(line, absorbed, Absorbed, io);
                }
            }
            Some(_) => self.go(line, absorbed, Absorbed),
        }
        if self.scheduler.is_legacy() {
            self.release(line, absorbed);
        }
        Ok(())
    }

    fn dispatch(&mut self, line: u64, dispatch: &Dispatch) -> Fits {
        let Some(chosen) = &dispatch.chosen else { return Ok(()) };
        match self.at(chosen.rq) {
            Some(Whereabouts::Inside) => {
                self.go(line, chosen.rq, Whereabouts::Out);
                Ok(())
            }
            None if self.lossy => Ok(()),
            _ => Err(self.misplaced(line, "dispatch", chosen.rq, "a request that is inside")),
        }
    }

    /// A request that was never inserted bypassed the scheduler. One that was drained at a change of scheduler left
    /// without a dispatch: the replay of cfq notices this here, others at its release.
    fn issue(&mut self, line: u64, rq: RqNumber, io: &Io) {
        match self.at(rq) {
            None if !io.flushseq && !self.scheduler.is_legacy() => {
                self.begin(line, rq, Whereabouts::Out, io);
            }
            Some(Whereabouts::Inside) if self.scheduler == SchedulerFamily::Cfq => {
                self.go(line, rq, Whereabouts::Out);
            }
            Some(Whereabouts::Requeued) => self.go(line, rq, Whereabouts::Out),
            _ => {}
        }
    }

    /// Legacy kernels release a request at its completion.
    fn complete(&mut self, line: u64, rq: RqNumber) -> Fits {
        if self.scheduler == SchedulerFamily::Cfq && self.at(rq) == Some(Whereabouts::Inside) {
            return Err(self.misplaced(line, "complete", rq, "a request that was issued"));
        }
        self.release(line, rq);
        Ok(())
    }

    fn release(&mut self, line: u64, rq: RqNumber) {
        let Some(way) = self.ways.get_mut(&rq) else { return };
        // A request that kyber has not dispatched stays in kyber, with its slot.
        let stays = self.scheduler == SchedulerFamily::Kyber && way.at == Whereabouts::Inside;
        if way.counted && !stays {
            way.counted = false;
            self.count -= 1;
        }
        (way.at, way.since) = (Whereabouts::Over, line);
    }
}
