//! What is at the device: since when, which worker issued it, and when that will be too long ago.
//!
//! This lies with the slots of the requests, not with the drivers: there may be one driver for each worker, and none of them
//! can be asked from elsewhere. The worker that issues a request writes; a scan for what has been there for too long,
//! or for the oldest read, only reads, and only the worker that issued a request deals with its timeout.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bio::Op;
use crate::ground::ids::{CpuId, RqId};
use crate::ground::sharing::{Sharing, Word};
use crate::ground::time::Instant;
use crate::request::Request;

/// Not at the device, or without a deadline.
const NEVER: u64 = Instant::NEVER.0;
/// Beside the issuer's number: it is a read.
const READ: u64 = 1 << 32;

/// The flights of all requests of a queue.
pub struct Flights<Sh: Sharing> {
    /// Those of the sequencers' flush commands, whose ids are the last ones that there are, come first.
    commands: u32,
    flights: Vec<IssuedRequest<Sh>>,
}

struct IssuedRequest<Sh: Sharing> {
    /// When the driver was given it, ns. Written last (`Release`) and read first (`Acquire`): who sees it sees the rest, too,
    /// or what was written even later. Who begins and ends one flight after the other hand the request over.
    issued_ns: Sh::Word,
    /// When the driver has had it for too long, ns.
    deadline_ns: Sh::Word,
    /// The CPU that issued it, and whether it is a [`READ`].
    issuer: Sh::Word,
}

impl<Sh: Sharing> IssuedRequest<Sh> {
    fn none() -> Self {
        IssuedRequest { issued_ns: Sh::Word::new(NEVER), deadline_ns: Sh::Word::new(NEVER), issuer: Sh::Word::new(0) }
    }

    fn issuer(&self) -> CpuId {
        CpuId((self.issuer.load(Relaxed) & (READ - 1)) as u32)
    }

    fn is_up(&self) -> bool {
        self.issued_ns.load(Acquire) != NEVER
    }
}

/// What a look at all flights has found.
pub struct Seen {
    /// Whether anything is at the device.
    pub any: bool,
    /// The next deadline, if each that is over begins anew.
    pub next: Instant,
}

impl<Sh: Sharing> Flights<Sh> {
    /// None yet of `slots` slots and of the flush commands of `commands` sequencers.
    pub fn new(slots: u32, commands: u32) -> Self {
        let mut flights = Flights { commands, flights: Vec::new() };
        flights.grow(slots);
        flights
    }

    /// There are `slots` slots from now on.
    pub fn grow(&mut self, slots: u32) {
        self.flights.resize_with((self.commands + slots) as usize, IssuedRequest::none);
    }

    #[inline]
    fn of(&self, id: RqId) -> &IssuedRequest<Sh> {
        &self.flights[id.0.wrapping_add(self.commands) as usize]
    }

    /// The driver of this CPU is about to be given a request.
    #[inline]
    pub fn begin(&self, cpu: CpuId, rq: &Request, deadline: Instant) {
        let flight = self.of(rq.id());
        flight.issuer.store(u64::from(cpu.0) | if rq.op == Op::Read { READ } else { 0 }, Relaxed);
        flight.deadline_ns.store(deadline.0, Relaxed);
        flight.issued_ns.store(rq.issued.0, Release);
    }

    /// The driver has given a request back.
    #[inline]
    pub fn end(&self, id: RqId) {
        self.of(id).issued_ns.store(NEVER, Relaxed);
    }

    /// Looks at all of them and reports what has been away for too long; `again` would be the next deadline of those.
    pub fn look(&self, now: Instant, again: Instant, mut tell: impl FnMut(CpuId, RqId)) -> Seen {
        let mut seen = Seen { any: false, next: Instant::NEVER };
        for (index, flight) in self.flights.iter().enumerate().filter(|(_, flight)| flight.is_up()) {
            let deadline = Instant(flight.deadline_ns.load(Relaxed));
            if deadline <= now {
                tell(flight.issuer(), RqId((index as u32).wrapping_sub(self.commands)));
            }
            seen.any = true;
            seen.next = seen.next.min(if deadline <= now { again } else { deadline });
        }
        seen
    }

    /// The deadline of a request that this CPU has issued, if that is over.
    pub fn overdue(&self, now: Instant, cpu: CpuId, id: RqId) -> Option<Instant> {
        let flight = self.of(id);
        let is_up = flight.is_up();
        let deadline = Instant(flight.deadline_ns.load(Relaxed));
        (is_up && flight.issuer() == cpu && deadline <= now).then_some(deadline)
    }

    /// Gives it another deadline, unless it has ended meanwhile, and perhaps begun again.
    pub fn extend_deadline(&self, id: RqId, deadline: Instant, next: Instant) {
        self.of(id).deadline_ns.compare_exchange(deadline.0, next.0, Relaxed);
    }

    /// When the driver was given the oldest of the reads that are at the device.
    pub fn oldest_read(&self) -> Option<Instant> {
        let reads = self.flights.iter().filter(|flight| flight.issuer.load(Relaxed) & READ != 0);
        let oldest = reads.map(|flight| flight.issued_ns.load(Relaxed)).min()?;
        (oldest != NEVER).then_some(Instant(oldest))
    }
}
