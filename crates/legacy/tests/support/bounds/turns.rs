//! bfq and cfq: queues of processes take turns, which end, so every queue that waits has its own (BFQ-1,
//! BFQ-44 to BFQ-51, CFQ-24 to CFQ-43). Neither states a number that would hold in all loads, so these are generous:
//! none starves. Watched while processes of one class share neither queue nor group.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::bio::is_sync;
use hoistway_blk::ground::{Instant, IoContextId, Kernel, Nanos};
use hoistway_blk::request::Request;

use super::{Tunable, Waiting};

/// A queue: whose, and whether of sync requests.
type Queue = (IoContextId, bool);

/// The longest request of a random load, sectors.
const REQUEST_MAX: u64 = 64;

/// cfq: the longest that one queue is served while others wait: slices of 100 ms, one after the other while its group is
/// behind theirs.
const TURNS: Nanos = Nanos::from_millis(1_000);

/// cfq: the longest that a queue waits while others have their turns: 16 queues with slices of 100 ms, three times.
const WAIT: Nanos = Nanos::from_millis(5_000);

enum Limit {
    /// bfq: what another queue may get, sectors.
    Service(u64),
    /// cfq.
    Time,
}

pub struct Turns {
    limit: Limit,
    /// What is served, and since when.
    turn: Option<(Queue, Instant)>,
    /// For each queue that waits: since when, and how many sectors each of the others got meanwhile.
    waits: BTreeMap<Queue, (Instant, BTreeMap<Queue, u64>)>,
}

impl Turns {
    /// Nothing is promised where weights are raised, or where budgets are not known.
    pub fn new(kernel: Kernel, scheduler: &str, tunable: Tunable<'_>) -> Option<Self> {
        let limit = if scheduler == "cfq" {
            Limit::Time
        } else {
            let budget = u64::try_from(tunable("max_budget")?).ok().filter(|&budget| budget > 0)?;
            if tunable("low_latency") != Some(0) {
                return None;
            }
            // Async requests are charged for more than they have (BFQ-34).
            let factor = if kernel < Kernel::V5_10 { 20 } else { 3 };
            // Each level of the hierarchy puts off by some budgets, "about" (BFQ-1): a generous number of them. Loads
            // of 10^7 requests need a quarter of it.
            Limit::Service(40 * budget.max(factor * REQUEST_MAX))
        };
        Some(Turns { limit, turn: None, waits: BTreeMap::new() })
    }

    pub fn given_out(&mut self, now: Instant, rq: &Request, one_class: bool, waiting: &[Waiting]) {
        let given = (rq.io_context, is_sync(rq.op, rq.flags));
        let wait: BTreeSet<Queue> = waiting.iter().map(|waiting| waiting.queue).collect();
        self.waits.retain(|queue, _| one_class && *queue != given && wait.contains(queue));
        let turn = self.turn.filter(|&(served, _)| one_class && served == given && wait.len() > 1);
        let (_, began) = *self.turn.insert(turn.unwrap_or((given, now)));
        for queue in wait.into_iter().filter(|&queue| one_class && queue != given) {
            let (since, others) = self.waits.entry(queue).or_insert_with(|| (now, BTreeMap::new()));
            let got = others.entry(given).or_default();
            *got += u64::from(rq.sectors);
            match self.limit {
                Limit::Service(most) => {
                    assert!(*got <= most, "{queue:?} waits while {given:?} gets {got} sectors, at most {most}");
                }
                Limit::Time => {
                    assert!(now.since(began) <= TURNS, "{queue:?} waits while {given:?} is served since {began:?}");
                    assert!(now.since(*since) <= WAIT, "{queue:?} waits since {since:?}");
                }
            }
        }
    }
}
