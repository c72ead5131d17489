//! What schedulers promise about waiting, watched from outside: a probe that knows what waits, and fails as soon as
//! something is passed over for longer than its scheduler's rules allow.
//!
//! | scheduler | promise |
//! | --- | --- |
//! | noop | arrival order (NOOP-6, NOOP-7) |
//! | none | arrival order in each software queue (NONE-3 to NONE-6) |
//! | deadline, mq-deadline | `deadlines.rs` |
//! | kyber | `domains.rs` |
//! | bfq, cfq | `turns.rs` |
//! | those that Linux does not have | `outside_linux.rs` |

mod deadlines;
mod domains;
mod outside_linux;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::bio::{Direction, PriorityClass, is_sync};
use hoistway_blk::ground::{AfterDispatchList, CpuId, HctxId, IoContextId, Kernel, Now, RqId, Tick};
use hoistway_blk::request::{Marks, Request};
use hoistway_blk::watch::{Event, Probe, Reason};

use deadlines::Deadlines;
use domains::Domains;
use outside_linux::OutsideLinux;
use turns::Turns;

/// A request that waits in a scheduler, or without one in a software queue.
struct Waiting {
    id: RqId,
    /// Its software queue.
    lane: (HctxId, CpuId),
    direction: Direction,
    class: PriorityClass,
    /// k2's list.
    level: u8,
    /// kyber's domain, by its place in the circle.
    domain: usize,
    /// The queue of its process that bfq or cfq puts it into.
    queue: (IoContextId, bool),
    /// When it came, unless tunables have changed what that is taken for.
    since: Option<Tick>,
    /// When it, and all before it in its direction, are over their time.
    due: Tick,
    /// How many others may still be given out before it, once it is over its time.
    left: Option<u64>,
}

enum Promise {
    Nothing,
    Fifo,
    FifoOfSoftwareQueue,
    Deadlines(Deadlines),
    Domains(Domains),
    Turns(Turns),
}

/// What waits, and what it is promised.
pub struct Bounds {
    kernel: Kernel,
    /// Processes have cgroups and regions of their own, so that no scheduler ever joins the queues of two.
    apart: bool,
    /// Requests reach policies behind a lock later than they are inserted (pending lists), and their time counts from then: what is
    /// promised about waiting cannot be seen from here.
    come_late: bool,
    promise: Promise,
    outside_linux: OutsideLinux,
    /// Oldest first.
    waiting: Vec<Waiting>,
    /// Requests that the driver gave back: they return at the head.
    returned: BTreeSet<RqId>,
    /// Requests that went in at the head and have not come out.
    at_head: BTreeMap<RqId, PriorityClass>,
    /// Requests that were given out and have not ended, by kyber's domain.
    out: BTreeMap<RqId, usize>,
    /// Requests that exist, and the class that they began with: a merge may change it.
    exist: BTreeMap<RqId, PriorityClass>,
}

/// A tunable's value, if there is such a tunable.
type Tunable<'a> = &'a dyn Fn(&str) -> Option<i128>;

impl Bounds {
    pub fn new(kernel: Kernel, apart: bool, come_late: bool) -> Self {
        Bounds {
            kernel,
            apart,
            come_late,
            promise: Promise::Nothing,
            outside_linux: OutsideLinux::default(),
            waiting: Vec::new(),
            returned: BTreeSet::new(),
            at_head: BTreeMap::new(),
            out: BTreeMap::new(),
            exist: BTreeMap::new(),
        }
    }

    /// The scheduler or its tunables may have changed: what waits begins to wait anew.
    pub fn follow(&mut self, scheduler: &str, tunable: Tunable<'_>) {
        self.outside_linux.follow(scheduler, self.come_late, tunable);
        let generation = &self.kernel.generation();
        self.promise = match scheduler {
            scheduler if self.come_late && !matches!(scheduler, "none" | "kyber") => Promise::Nothing,
            "noop" => Promise::Fifo,
            // The first releases looked into the software queues although the dispatch list was stuck.
            "none" if generation.after_dispatch_list == AfterDispatchList::AskIfSent => Promise::FifoOfSoftwareQueue,
            "deadline" | "mq-deadline" => Promise::Deadlines(Deadlines::new(generation, scheduler, tunable)),
            "kyber" => Promise::Domains(Domains::new(generation)),
            "bfq" | "cfq" if self.apart => {
                Turns::new(self.kernel, scheduler, tunable).map_or(Promise::Nothing, Promise::Turns)
            }
            _ => Promise::Nothing,
        };
        for waiting in &mut self.waiting {
            (waiting.since, waiting.left) = (None, None);
        }
    }

    /// How many requests of each domain kyber lets to the device now.
    pub fn set_depths(&mut self, depths: [u32; 4]) {
        if let Promise::Domains(domains) = &mut self.promise {
            domains.depths = depths;
        }
    }

    fn inserted(&mut self, now: Now, rq: &Request) {
        self.outside_linux.left(rq.id());
        let in_software_queue = matches!(self.promise, Promise::FifoOfSoftwareQueue);
        let is_managed = in_software_queue || rq.marks.contains(Marks::USES_ELEVATOR);
        let goes_to_the_head = rq.marks.contains(Marks::IN_SEQUENCE) || self.returned.contains(&rq.id());
        if goes_to_the_head {
            self.at_head.insert(rq.id(), class_of(rq));
        }
        if !is_managed || goes_to_the_head {
            return;
        }
        let direction = rq.direction();
        let due = match &self.promise {
            Promise::Deadlines(deadlines) => {
                let before = self.waiting.iter().rfind(|other| other.direction == direction);
                deadlines.due(now.tick, direction).max(before.map_or(Tick(0), |other| other.due))
            }
            _ => now.tick,
        };
        self.waiting.push(Waiting {
            id: rq.id(),
            lane: (rq.hctx, rq.ctx),
            direction,
            class: class_of(rq),
            level: outside_linux::level_of(rq.ioprio),
            domain: domains::domain_of(&self.kernel.generation(), rq),
            queue: (rq.io_context, is_sync(rq.op, rq.flags)),
            since: Some(now.tick),
            due,
            left: None,
        });
    }

    /// Takes a request out of those that wait, with how many came before it that satisfy a condition.
    fn take(&mut self, id: RqId, counts: impl Fn(&Waiting, &Waiting) -> bool) -> Option<usize> {
        self.at_head.remove(&id);
        let at = self.waiting.iter().position(|waiting| waiting.id == id)?;
        let taken = self.waiting.remove(at);
        Some(self.waiting[..at].iter().filter(|before| counts(before, &taken)).count())
    }

    fn given_out(&mut self, now: Now, hctx: HctxId, rq: &Request, reason: Reason) {
        self.outside_linux.given_out(rq, reason, &self.waiting);
        let is_kyber = matches!(self.promise, Promise::Domains(_));
        let overtaken = self
            .take(rq.id(), |before, taken| !is_kyber || (before.lane == taken.lane && before.domain == taken.domain));
        let domain = domains::domain_of(&self.kernel.generation(), rq);
        let mut classes = self.exist.values();
        let first = classes.next();
        let one_class = classes.all(|class| Some(class) == first);
        match &mut self.promise {
            Promise::Nothing | Promise::FifoOfSoftwareQueue => {}
            Promise::Fifo => assert!(overtaken.is_none_or(|count| count == 0), "{rq:?} overtakes older ones"),
            Promise::Deadlines(deadlines) => {
                deadlines.given_out(now.tick, reason, one_class, &mut self.waiting, self.at_head.len());
                deadlines.check_aged(now.tick, rq, reason, &self.waiting, &self.at_head);
            }
            Promise::Domains(domains) => {
                assert!(overtaken.is_none_or(|count| count == 0), "{rq:?} overtakes older ones of its domain");
                domains.given_out(hctx, domain, &self.waiting, &self.out);
            }
            Promise::Turns(turns) => turns.given_out(now.at, rq, one_class, &self.waiting),
        }
        self.out.insert(rq.id(), domain);
    }

    fn issued(&mut self, rq: &Request) {
        // A scheduler that is drained was not asked.
        let overtaken = self.take(rq.id(), |before, taken| before.lane == taken.lane);
        if let (Promise::FifoOfSoftwareQueue, Some(count)) = (&self.promise, overtaken) {
            assert_eq!(count, 0, "{rq:?} overtakes older ones of its software queue");
        }
    }

    fn freed(&mut self, rq: &Request) {
        self.exist.remove(&rq.id());
        self.outside_linux.left(rq.id());
        self.take(rq.id(), |_, _| false);
        self.out.remove(&rq.id());
    }
}

impl Probe for Bounds {
    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        match event {
            Event::GetRq(rq) => {
                self.exist.insert(rq.id(), class_of(rq));
                self.returned.remove(&rq.id());
            }
            Event::Insert(rq) => self.inserted(now, rq),
            Event::Dispatch { hctx, rq: Some(rq), reason } => self.given_out(now, hctx, rq, reason),
            Event::Issue(rq) => self.issued(rq),
            Event::Requeue(rq) => {
                self.returned.insert(rq.id());
            }
            // A request that is flushed ends later than its data, which is what the scheduler had.
            Event::Complete(rq, _) => self.outside_linux.left(rq.id()),
            Event::Absorbed(rq) | Event::End(rq) => self.freed(rq),
            _ => {}
        }
    }
}

/// The class that a request has for schedulers: best effort if it has none.
fn class_of(rq: &Request) -> PriorityClass {
    match rq.ioprio.class() {
        PriorityClass::None => PriorityClass::BestEffort,
        class => class,
    }
}
