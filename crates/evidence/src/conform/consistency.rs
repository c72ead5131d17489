//! Whether the events of a recording fit together, asked before anything is replayed.
//!
//! A replay does what the events say: it inserts, merges, gives out and releases. Events that contradict each other
//! would have it insert a request twice or join one with itself. So the way of each request is followed first, exactly
//! as the replays follow it, and the first event that does not fit is an error with its line. What is only odd passes:
//! an event about a request that was never inserted (the flush machinery's), a completion that is missing, a request
//! that is released without having been given out.
//!
//! What a single value may be at most is the reader's business ([`hoistway_trace::iosched::bounds`]).

use std::collections::HashMap;
use std::fmt;

use hoistway_blk::bio::Op;
use hoistway_trace::iosched::bounds::SECTORS_MAX;
use hoistway_trace::iosched::{Dispatch, Event, EventKind, Insert, InsertedBy, Io, Merge, RqMerge, RqNumber, Trace};

use crate::conform::kyber_domains;

/// A recording whose events fit together, with one scheduler from its beginning to its end.
///
/// * A request that enters the scheduler is not inside, nor does one come back that was not requeued.
/// * A request that is given out was inside.
/// * Two requests that become one are two, and both are inside if the one that disappears was. It was not given out.
/// * No request grows beyond what a kernel can count.
/// * Depths that kyber took are depths that kyber can have.
#[derive(Clone, Copy, Debug)]
pub struct Consistent<'a> {
    trace: &'a Trace,
    at_once: u32,
}

/// Where the events of a recording stop fitting together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inconsistency {
    /// The line of the recording, counted from 1.
    pub line: u64,
    /// What is wrong there, and what was expected.
    pub problem: String,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for Inconsistency {}

impl<'a> Consistent<'a> {
    /// Follows every request of `trace`, a recording of one scheduler.
    ///
    /// # Errors
    /// If an event contradicts those before it.
    pub fn check(trace: &'a Trace) -> Result<Self, Inconsistency> {
        let mut ways = Ways::new(trace);
        trace.events.iter().try_for_each(|event| ways.event(event))?;
        Ok(Consistent { trace, at_once: ways.most })
    }

    /// The recording.
    #[must_use]
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// How many requests there are at once, at most: a replay needs so many slots.
    pub(crate) fn at_once(&self) -> u32 {
        self.at_once
    }
}

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whereabouts {
    /// It was allocated, which only legacy recordings tell.
    Allocated,
    /// In the hands of the scheduler.
    Inside,
    /// The scheduler has given it out, or it went past.
    Out,
    /// The driver has given it back.
    Requeued,
    /// Another request has absorbed it.
    Absorbed,
    /// It was released.
    Over,
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Whereabouts::Allocated => "allocated",
            Whereabouts::Inside => "inserted",
            Whereabouts::Out => "given out or issued",
            Whereabouts::Requeued => "requeued",
            Whereabouts::Absorbed => "absorbed by another",
            Whereabouts::Over => "released",
        })
    }
}

/// What is known of a request.
#[derive(Clone, Copy)]
struct Way {
    at: Whereabouts,
    /// The line that brought it there.
    since: u64,
    op: Op,
    /// Its length.
    sectors: u32,
    /// Whether a slot is its own: from when it is first named until it is released.
    counted: bool,
}

/// The ways of all requests up to some event.
struct Ways {
    ways: HashMap<RqNumber, Way>,
    scheduler: Kind,
    /// Some events were lost while recording, so an insertion may be missing.
    lossy: bool,
    /// kyber: the most tokens of each domain.
    tokens: [u32; 4],
    /// Requests that have a slot now.
    count: u32,
    /// The most that there were.
    most: u32,
}

/// What the events of a scheduler's recordings mean for the way of a request. Without a scheduler there is no inside,
/// and nothing depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kyber,
    MultiQueue,
    Cfq,
    Legacy,
}

impl Kind {
    fn is_legacy(self) -> bool {
        matches!(self, Kind::Cfq | Kind::Legacy)
    }
}

type Fits = Result<(), Inconsistency>;

impl Ways {
    fn new(trace: &Trace) -> Ways {
        let header = &trace.header;
        let scheduler = match header.scheduler.as_str() {
            "kyber" => Kind::Kyber,
            "cfq" => Kind::Cfq,
            "noop" | "deadline" => Kind::Legacy,
            _ => Kind::MultiQueue,
        };
        let tokens = kyber_domains::tokens(header);
        Ways { ways: HashMap::new(), scheduler, lossy: header.dropped > 0, tokens, count: 0, most: 0 }
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
            EventKind::KyberAdjust { domain, depth } if self.scheduler == Kind::Kyber => {
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

    /// A request is named for the first time.
    fn begin(&mut self, line: u64, rq: RqNumber, at: Whereabouts, io: &Io) {
        let Io { op, sectors, .. } = *io;
        self.ways.insert(rq, Way { at, since: line, op, sectors, counted: true });
        self.count += 1;
        self.most = self.most.max(self.count);
    }

    /// A request that is known goes somewhere.
    fn go(&mut self, line: u64, rq: RqNumber, at: Whereabouts) {
        if let Some(way) = self.ways.get_mut(&rq) {
            (way.at, way.since) = (at, line);
        }
    }

    /// The error of an event that found the request `rq` where it cannot be.
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
            // On its way in it needs a slot too, as bfq has it.
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

    /// What was never inserted went past the scheduler. What was drained at a change of scheduler left without a
    /// question: the replay of cfq learns it here, others with the release.
    fn issue(&mut self, line: u64, rq: RqNumber, io: &Io) {
        match self.at(rq) {
            None if !io.flushseq && !self.scheduler.is_legacy() => {
                self.begin(line, rq, Whereabouts::Out, io);
            }
            Some(Whereabouts::Inside) if self.scheduler == Kind::Cfq => {
                self.go(line, rq, Whereabouts::Out);
            }
            Some(Whereabouts::Requeued) => self.go(line, rq, Whereabouts::Out),
            _ => {}
        }
    }

    /// Legacy kernels release a request as it completes.
    fn complete(&mut self, line: u64, rq: RqNumber) -> Fits {
        if self.scheduler == Kind::Cfq && self.at(rq) == Some(Whereabouts::Inside) {
            return Err(self.misplaced(line, "complete", rq, "a request that was issued"));
        }
        self.release(line, rq);
        Ok(())
    }

    fn release(&mut self, line: u64, rq: RqNumber) {
        let Some(way) = self.ways.get_mut(&rq) else { return };
        // What kyber has not given out stays with it, and so does its slot.
        let stays = self.scheduler == Kind::Kyber && way.at == Whereabouts::Inside;
        if way.counted && !stays {
            way.counted = false;
            self.count -= 1;
        }
        (way.at, way.since) = (Whereabouts::Over, line);
    }
}
