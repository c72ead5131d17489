//! The driver interface: the calls from the block layer into a driver (BL-4, BL-86 to BL-89, BL-91).

use crate::bio::Status;
use crate::ground::ids::{HctxId, RqId};
use crate::ground::time::{Instant, Now};
use crate::request::Rq;

/// The result of issuing a request to a driver.
#[derive(Debug)]
pub enum Answer {
    /// The request is at the device; the driver holds it until it completes.
    Queued,
    /// The request has completed at once, successfully or not: for example by copying memory, or because it is not supported.
    Done(Rq, Status),
    /// The request was not started.
    Refused(Rq, Refusal),
}

/// Why a driver does not start a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A resource is exhausted, with no guarantee when it is available again (RESOURCE).
    Busy,
    /// A resource is exhausted that a completion of this device will free (DEV_RESOURCE).
    UntilCompletion,
}

/// A driver's reaction to a request that has timed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// Keep waiting: the full timeout starts again.
    RestartTimeout,
    /// The driver completes or requeues it itself.
    Handled,
}

/// A driver, on one CPU.
pub trait Driver {
    /// Takes a unit of the device's budget before a request is dispatched. Only drivers with a limit below their tag depth
    /// have a budget.
    fn get_budget(&mut self, _hctx: HctxId) -> bool {
        true
    }

    /// Returns a unit of budget whose request did not reach the driver. For requests that did, the driver returns it itself on
    /// completion, even an immediate one.
    fn put_budget(&mut self, _hctx: HctxId) {}

    /// Starts a request. `last` means that no other follows immediately, so the doorbell can be rung.
    fn queue_rq(&mut self, now: Now, rq: Rq, last: bool) -> Answer;

    /// A request that was started on this CPU has exceeded the queue's timeout. Called once for each expiry. The request may
    /// have completed in the meantime, which needs no special handling.
    fn timed_out(&mut self, _now: Instant, _id: RqId) -> Expired {
        Expired::RestartTimeout
    }

    /// Sets the weights of the drive's classes high, medium and low; `None`: it arbitrates as it does by itself. Called only for drives with
    /// [`QueueConfig::arbitration`](crate::queue::QueueConfig::arbitration).
    fn arbitrate(&mut self, _weights: Option<[u16; 3]>) {}

    /// A list ended early without a request marked as last: ring the doorbell.
    fn commit(&mut self, _hctx: HctxId) {}
}
