//! The driver's side of the border: what the block layer asks of a driver (BL-4, BL-86 to BL-89, BL-91).

use crate::bio::Status;
use crate::ground::ids::{HctxId, RqId};
use crate::ground::time::{Instant, Now};
use crate::request::Rq;

/// What a driver makes of a request that it is given.
#[derive(Debug)]
pub enum Answer {
    /// It is at the device; the driver has it until it ends.
    Queued,
    /// It has ended at once, well or badly: by copying memory, say, or because the device cannot do such a thing.
    Done(Rq, Status),
    /// It was not started.
    Refused(Rq, Refusal),
}

/// Why a driver does not start a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Something is short; nothing is promised about when it will not be (RESOURCE).
    Busy,
    /// Something is short, and a completion of this device will free it (DEV_RESOURCE).
    UntilCompletion,
}

/// What a driver makes of a request that has been at the device for too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// It waits on: the whole timeout begins anew.
    RestartTimeout,
    /// The driver ends or requeues it itself.
    Handled,
}

/// A driver as the block layer sees it, on one CPU.
pub trait Driver {
    /// Takes a piece of the device's budget before a request is dispatched for it. Only drivers with a limit below their
    /// tag depth have one.
    fn get_budget(&mut self, _hctx: HctxId) -> bool {
        true
    }

    /// Gives back a piece of budget whose request did not reach the driver. What did reach it, the driver returns
    /// itself when the request ends, also if that is at once.
    fn put_budget(&mut self, _hctx: HctxId) {}

    /// Starts a request. `last` says that no other follows at once, so that a doorbell can be rung.
    fn queue_rq(&mut self, now: Now, rq: Rq, last: bool) -> Answer;

    /// A request that was started on this CPU has been at the device for longer than the queue's timeout. Called once for each
    /// expiry. It may have ended in the meantime: then it goes on, too.
    fn timed_out(&mut self, _now: Instant, _id: RqId) -> Expired {
        Expired::RestartTimeout
    }

    /// A list ended early although its last request was not announced as such: ring the doorbell.
    fn commit(&mut self, _hctx: HctxId) {}
}
