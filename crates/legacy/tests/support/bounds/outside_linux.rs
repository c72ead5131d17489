//! Schedulers that Linux does not have: k2, mqfq, vfair and cffq let so many requests to the device (K2-4, MQFQ-6, VFAIR-3, CFFQ-5), k2 serves levels strictly
//! (K2-2), d2fq and blk-switch place every request as soon as it exists (D2FQ-4, BS-2, BS-3).

use std::collections::BTreeSet;

use hoistway_blk::bio::{BioFlags, IoPriority, PriorityClass};
use hoistway_blk::ground::RqId;
use hoistway_blk::request::Request;
use hoistway_blk::watch::Reason;

use super::{Tunable, Waiting};

/// What such a scheduler promises.
#[derive(Default)]
pub struct OutsideLinux {
    /// Most requests at the device.
    most: Option<i128>,
    /// Requests that were given out, and neither came back nor ended.
    counted: BTreeSet<RqId>,
    /// Whether levels are served strictly, each first in, first out.
    has_levels: bool,
    /// Whether blk-switch may steer requests.
    may_steer: bool,
}

/// The list of k2 in which a request waits.
pub fn level_of(priority: IoPriority) -> u8 {
    if priority.class() == PriorityClass::RealTime { priority.level() } else { 8 }
}

impl OutsideLinux {
    /// The scheduler or its tunables may have changed. `come_late` says that it may know less than what waits.
    pub fn follow(&mut self, scheduler: &str, come_late: bool, tunable: Tunable<'_>) {
        self.most = match scheduler {
            "k2" => tunable("max_inflight"),
            "mqfq" | "vfair" | "cffq" => tunable("slots"),
            _ => None,
        };
        self.has_levels = scheduler == "k2" && !come_late;
        self.may_steer = scheduler == "blk-switch" && tunable("mode") != Some(0);
    }

    /// `waiting` has what waits, oldest first, and this request, too, unless it belongs to a flush sequence or was requeued.
    pub fn given_out(&mut self, rq: &Request, reason: Reason, waiting: &[Waiting]) {
        if let Some(most) = self.most {
            self.counted.insert(rq.id());
            assert!(self.counted.len() as i128 <= most, "{} at the device, {most} at most", self.counted.len());
        }
        if self.has_levels && matches!(reason, Reason::RealTimeLevel | Reason::Fifo) {
            // A merge changes the priority, not the place in line.
            let known = waiting.iter().find(|other| other.id == rq.id());
            let level = known.map_or(level_of(rq.ioprio), |known| known.level);
            assert!(waiting.iter().all(|other| other.level >= level), "{rq:?} overtakes one of a higher level");
            let first = waiting.iter().find(|other| other.level == level);
            assert!(known.is_none() || first.is_some_and(|first| first.id == rq.id()), "{rq:?} overtakes older ones");
        }
        self.check_place(rq, reason);
    }

    /// blk-switch's reasons say where a request has to be.
    fn check_place(&self, rq: &Request, reason: Reason) {
        let is_latency = rq.ioprio.class() == PriorityClass::RealTime && !rq.flags.contains(BioFlags::FUA);
        match reason {
            Reason::ForLatency => {
                assert!(is_latency && u32::from(rq.hctx.0) == rq.ctx.0, "{rq:?} is not for this worker");
            }
            Reason::ForThroughput | Reason::SteeredToBatch | Reason::SteeredOfTwo => {
                assert!(!is_latency, "{rq:?} is a request that a process waits for");
                assert!(reason == Reason::ForThroughput || self.may_steer, "{rq:?} is steered");
            }
            _ => {}
        }
    }

    /// A request came back, or ended.
    pub fn left(&mut self, id: RqId) {
        self.counted.remove(&id);
    }
}
