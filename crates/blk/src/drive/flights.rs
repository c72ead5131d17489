//! In-flight table: for each request at the device its issue time, its deadline and the CPU that issued it.
//!
//! It belongs to the request slots, not to the drivers: there may be one driver for each worker, which other workers cannot
//! call. Only the issuing worker writes an entry. Scans for timeouts and for the oldest read only read entries, and only the
//! issuing worker handles a timeout.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bio::Op;
use crate::ground::ids::{CpuId, RqId};
use crate::ground::sharing::{Sharing, Word};
use crate::ground::sparse::Sparse;
use crate::ground::time::Instant;
use crate::request::Request;

/// Not at the device, or without a deadline.
const NEVER: u64 = Instant::NEVER.0;
/// Flag in `issuer`: the request is a read.
const READ_FLAG: u64 = 1 << 32;

/// The in-flight table of a queue.
pub struct Flights<Sh: Sharing> {
    /// Number of flush commands of sequencers. Their ids are the highest, but their entries come first.
    commands: u32,
    flights: Sparse<IssuedRequest<Sh>, ENTRIES_AT_ONCE>,
}

/// Entries that are made with a table.
const ENTRIES_AT_ONCE: usize = 8192;

struct IssuedRequest<Sh: Sharing> {
    /// Issue time, ns. Written last (`Release`) and read first (`Acquire`), so a reader that sees it also sees the other
    /// fields, or later values. Writers of successive entries are ordered by the hand-over of the request.
    issued_ns: Sh::Word,
    /// Timeout deadline, ns.
    deadline_ns: Sh::Word,
    /// The CPU that issued it, and whether it is a [`READ_FLAG`].
    issuer: Sh::Word,
}

impl<Sh: Sharing> IssuedRequest<Sh> {
    fn none(_: usize) -> Self {
        IssuedRequest { issued_ns: Sh::Word::new(NEVER), deadline_ns: Sh::Word::new(NEVER), issuer: Sh::Word::new(0) }
    }

    fn issuer(&self) -> CpuId {
        CpuId((self.issuer.load(Relaxed) & (READ_FLAG - 1)) as u32)
    }

    fn is_in_flight(&self) -> bool {
        self.issued_ns.load(Acquire) != NEVER
    }
}

/// The result of a scan.
pub struct ScanResult {
    /// Whether anything is at the device.
    pub any: bool,
    /// The next deadline, assuming that expired ones start again.
    pub next: Instant,
}

impl<Sh: Sharing> Flights<Sh> {
    /// An empty table for `slots` slots and the flush commands of `commands` sequencers.
    pub fn new(slots: u32, commands: u32) -> Self {
        Flights { commands, flights: Sparse::new((commands + slots) as usize, IssuedRequest::none) }
    }

    /// Grows the table to `slots` slots.
    pub fn grow(&mut self, slots: u32) {
        self.flights.grow((self.commands + slots) as usize, IssuedRequest::none);
    }

    #[inline]
    fn entry(&self, id: RqId) -> &IssuedRequest<Sh> {
        self.flights.entry(id.0.wrapping_add(self.commands) as usize, IssuedRequest::none)
    }

    /// A request is about to be issued to the driver of this CPU.
    #[inline]
    pub fn begin(&self, cpu: CpuId, rq: &Request, deadline: Instant) {
        let flight = self.entry(rq.id());
        flight.issuer.store(u64::from(cpu.0) | if rq.op == Op::Read { READ_FLAG } else { 0 }, Relaxed);
        flight.deadline_ns.store(deadline.0, Relaxed);
        flight.issued_ns.store(rq.issued.0, Release);
    }

    /// The driver has returned a request.
    #[inline]
    pub fn end(&self, id: RqId) {
        self.entry(id).issued_ns.store(NEVER, Relaxed);
    }

    /// Scans the table and reports expired requests, whose next deadline would be `restarted_deadline`.
    pub fn scan(
        &self,
        now: Instant,
        restarted_deadline: Instant,
        mut on_expired: impl FnMut(CpuId, RqId),
    ) -> ScanResult {
        let mut result = ScanResult { any: false, next: Instant::NEVER };
        for (index, flight) in self.flights.made().filter(|(_, flight)| flight.is_in_flight()) {
            let deadline = Instant(flight.deadline_ns.load(Relaxed));
            if deadline <= now {
                on_expired(flight.issuer(), RqId((index as u32).wrapping_sub(self.commands)));
            }
            result.any = true;
            result.next = result.next.min(if deadline <= now { restarted_deadline } else { deadline });
        }
        result
    }

    /// The deadline of a request that this CPU issued, if it has expired.
    pub fn overdue(&self, now: Instant, cpu: CpuId, id: RqId) -> Option<Instant> {
        let flight = self.entry(id);
        let is_in_flight = flight.is_in_flight();
        let deadline = Instant(flight.deadline_ns.load(Relaxed));
        (is_in_flight && flight.issuer() == cpu && deadline <= now).then_some(deadline)
    }

    /// Sets a new deadline, unless the request has completed meanwhile, even if its slot was reissued.
    pub fn extend_deadline(&self, id: RqId, deadline: Instant, next: Instant) {
        self.entry(id).deadline_ns.compare_exchange(deadline.0, next.0, Relaxed);
    }

    /// Issue time of the oldest read at the device.
    pub fn oldest_read(&self) -> Option<Instant> {
        let reads =
            self.flights.made().map(|(_, flight)| flight).filter(|flight| flight.issuer.load(Relaxed) & READ_FLAG != 0);
        let oldest = reads.map(|flight| flight.issued_ns.load(Relaxed)).min()?;
        (oldest != NEVER).then_some(Instant(oldest))
    }
}
