//! Probes: an observer gets an event for each step of a request. The events have the kernel's names and meaning (BL-131,
//! BL-132), so that a run can be compared with a recording event by event.
//!
//! A probe is a type parameter. With [`NoProbe`] no code is generated for the calls.

use crate::bio::{Bio, Status};
use crate::ground::ids::{CpuId, HctxId, Waiter};
use crate::ground::time::Now;
use crate::request::Request;
use crate::request::merge::Edge;
use crate::watch::reason::Reason;

/// Something that happened, with blktrace's letter.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Q: a bio entered.
    Queue(&'a Bio),
    /// X: a bio was split; this is the front part.
    Split(&'a Bio),
    /// G: a request was allocated.
    GetRq(&'a Request),
    /// P: the first request went into a plug.
    Plug,
    /// U: a plug was flushed.
    Unplug {
        /// Requests in it.
        count: usize,
        /// Whether the task asked for it; otherwise it was about to sleep.
        explicit: bool,
    },
    /// M or F: a bio merged into a request.
    Merge(Edge, &'a Bio),
    /// m: a request was absorbed by another.
    Absorbed(&'a Request),
    /// I: a request went into the scheduler or a software queue.
    Insert(&'a Request),
    /// The scheduler was asked for a request.
    Dispatch {
        /// For which hardware queue.
        hctx: HctxId,
        /// The request; `None` if there is none to dispatch.
        rq: Option<&'a Request>,
        /// Why this one, or why none.
        reason: Reason,
    },
    /// D: a request was handed to the driver.
    Issue(&'a Request),
    /// R: the driver gave a request back.
    Requeue(&'a Request),
    /// C: a request ended at the driver.
    Complete(&'a Request, Status),
    /// C: a bio ended at a driver that takes bios. The bios of requests are not reported individually.
    BioComplete(&'a Bio, Status),
    /// A request ends, including one that is the last step of a flush sequence. The kernel has no trace event here, but
    /// updates its statistics.
    End(&'a Request),
}

/// An observer.
pub trait Probe {
    /// Whether it needs what is prepared only for probes, such as a copy of each bio before its submission. Without it the
    /// events are the same.
    const WATCHES: bool = true;

    /// The events from now until the next call happen in the queue of this device (as its owner numbers it), and, if a
    /// submitter is given, in a system call of it.
    fn enter(&mut self, _device: u32, _submitter: Option<Waiter>) {}

    /// Something happened at `now` on `cpu`.
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>);
}

/// Two observers that get the same events.
impl<A: Probe, B: Probe> Probe for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;

    fn enter(&mut self, device: u32, submitter: Option<Waiter>) {
        self.0.enter(device, submitter);
        self.1.enter(device, submitter);
    }

    #[inline(always)]
    fn event(&mut self, now: Now, cpu: CpuId, event: Event<'_>) {
        self.0.event(now, cpu, event);
        self.1.event(now, cpu, event);
    }
}

/// A probe that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    const WATCHES: bool = false;

    #[inline(always)]
    fn event(&mut self, _: Now, _: CpuId, _: Event<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(u32, Option<Waiter>)>, usize);

    impl Probe for Seen {
        fn enter(&mut self, device: u32, submitter: Option<Waiter>) {
            self.0.push((device, submitter));
        }

        fn event(&mut self, _: Now, _: CpuId, _: Event<'_>) {
            self.1 += 1;
        }
    }

    #[test]
    fn two_observers_see_the_same_events() {
        let mut both = (Seen::default(), Seen::default());
        both.enter(3, Some(Waiter(5)));
        both.event(Now::default(), CpuId(0), Event::Plug);
        for Seen(entered, events) in [both.0, both.1] {
            assert_eq!((entered, events), (vec![(3, Some(Waiter(5)))], 1));
        }
    }
}
