//! deadline and mq-deadline (DL-10 to DL-14, DD-11 to DD-20).
//!
//! A batch of a direction begins with the oldest request of it if that is over its time, and no direction waits for more
//! batches of the other than `writes_starved` says. So a request that is over its time waits for at most as many cycles of
//! batches as there are requests before it, and the running batch. Priority classes cut each other's batches, so
//! this is watched while there is one class.
//!
//! Between classes: once everything that a lower class has is older than `prio_aging_expire`, nothing above goes first.

use std::collections::BTreeMap;

use hoistway_blk::bio::{Direction, PriorityClass};
use hoistway_blk::ground::{DeadlineGeneration, Generation, RqId, Tick};
use hoistway_blk::request::Request;
use hoistway_blk::watch::Reason;

use super::{Tunable, Waiting, class_of};

pub struct Deadlines {
    /// By direction.
    expire_ticks: [u64; 2],
    /// Requests after which a direction has had its turn, unless it may wait for ever.
    cycle: [Option<u64>; 2],
    has_classes: bool,
    /// For how long lower classes may be held back, if they are.
    aging_ticks: Option<u64>,
}

impl Deadlines {
    pub fn new(generation: &Generation, scheduler: &str, tunable: Tunable<'_>) -> Self {
        let number = |name| tunable(name).unwrap_or_else(|| panic!("{scheduler} has {name}"));
        // Stored in ticks, rounded up; and what is over its time at a tick may be so since the one before.
        let ticks = |ms: i128| u64::try_from(ms).map_or(u64::MAX / 4, |ms| ms * u64::from(generation.hz.0) / 1000 + 2);
        let batch = number("fifo_batch").max(1) as u64;
        // A negative number is compared as a large one.
        let starved = u64::try_from(number("writes_starved")).ok();
        Deadlines {
            expire_ticks: [ticks(number("read_expire")), ticks(number("write_expire"))],
            // Where writes go first whenever there are any, reads wait for ever.
            cycle: [
                starved.filter(|&starved| starved > 0).map(|_| 2 * batch),
                starved.map(|starved| (starved + 1) * batch),
            ],
            has_classes: scheduler == "mq-deadline" && generation.deadline > DeadlineGeneration::A,
            aging_ticks: tunable("prio_aging_expire").filter(|&ms| ms > 0).map(ticks),
        }
    }

    pub fn due(&self, now: Tick, direction: Direction) -> Tick {
        Tick(now.0 + self.expire_ticks[direction.index()])
    }

    /// `in_sequence` requests wait beside those: of flushes and of what has come back. Where they stand in line depends on the
    /// kernel.
    pub fn given_out(&self, now: Tick, reason: Reason, one_class: bool, waiting: &mut [Waiting], in_sequence: usize) {
        if reason == Reason::HeadList {
            return;
        }
        let mut of_direction = [0; 2];
        waiting.iter().for_each(|waiting| of_direction[waiting.direction.index()] += 1);
        for waiting in waiting {
            let direction = waiting.direction.index();
            waiting.left = match self.cycle[direction] {
                // The order of a plug's clock and the real one may make the same request early again.
                Some(cycle) if waiting.due <= now && (one_class || !self.has_classes) => {
                    let left = waiting.left.unwrap_or((of_direction[direction] + in_sequence as u64 + 1) * cycle);
                    assert!(left > 0, "request {} has been over its time for too long", waiting.id.0);
                    Some(left - 1)
                }
                _ => None,
            };
        }
    }

    /// `at_head` are requests that go before all of their class, and are never aged.
    pub fn check_aged(
        &self,
        now: Tick,
        rq: &Request,
        reason: Reason,
        waiting: &[Waiting],
        at_head: &BTreeMap<RqId, PriorityClass>,
    ) {
        let Some(aging) = self.aging_ticks.filter(|_| reason != Reason::HeadList) else { return };
        let is_aged = |waiting: &Waiting| waiting.since.is_some_and(|since| since.0 + aging <= now.0);
        for class in [PriorityClass::BestEffort, PriorityClass::Idle] {
            if class == class_of(rq) {
                return;
            }
            let mut of_class = waiting.iter().filter(|waiting| waiting.class == class).peekable();
            if of_class.peek().is_some() && at_head.values().all(|&head| head != class) {
                assert!(!of_class.all(is_aged), "{rq:?} goes before {class:?}, all of which has waited for too long");
            }
        }
    }
}
