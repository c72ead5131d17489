//! The driver's side of the border: what the block layer asks of a driver (`block-layer.md` 15.3 to 15.5, 31).

use crate::bio::Status;
use crate::ids::HctxId;
use crate::request::Rq;
use crate::time::Now;

/// Why a driver gives a request back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Something is short; nothing is promised about when it will not be (RESOURCE).
    Busy,
    /// Something is short, and a completion of this device will free it (DEV_RESOURCE).
    UntilCompletion,
    /// The request has failed.
    Failed(Status),
}

/// A request that a driver gives back.
#[derive(Debug)]
pub struct Rejected {
    /// The request.
    pub rq: Rq,
    /// Why.
    pub why: Refusal,
}

/// A driver as the block layer sees it, on one CPU.
pub trait Driver {
    /// Takes a piece of the device's budget before a request is drawn for it. Only drivers with a limit below their
    /// tag depth have one.
    fn get_budget(&mut self, _hctx: HctxId) -> bool {
        true
    }

    /// Gives back a piece of budget whose request did not reach the driver. What did reach it, the driver returns
    /// itself when the request ends.
    fn put_budget(&mut self, _hctx: HctxId) {}

    /// Starts a request. `last` tells that no other follows at once, so that a doorbell can be rung.
    ///
    /// # Errors
    /// The request comes back, with the reason.
    fn queue_rq(&mut self, now: Now, rq: Rq, last: bool) -> Result<(), Rejected>;

    /// A request of this hardware queue that has ended since the last look, and how: for submitters that look instead of
    /// being interrupted.
    fn poll(&mut self, _now: Now, _hctx: HctxId) -> Option<(Rq, Status)> {
        None
    }

    /// A list ended early although its last request was not announced as such: ring the doorbell.
    fn commit(&mut self, _hctx: HctxId) {}
}
