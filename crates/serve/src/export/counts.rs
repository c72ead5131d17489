//! Statistics of an export.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hoistway_blk::ground::Nanos;

use crate::export::latency::Latency;

/// Statistics of an export: successful requests, and bytes.
#[derive(Default, Debug)]
pub struct Counts {
    /// Reads.
    pub reads: AtomicU64,
    /// Bytes read.
    pub read_bytes: AtomicU64,
    /// Writes.
    pub writes: AtomicU64,
    /// Bytes written.
    pub written_bytes: AtomicU64,
    /// Anything else.
    pub others: AtomicU64,
    /// Requests of all kinds that failed.
    pub errors: AtomicU64,
    /// Latency of reads, from receiving the request to its reply being ready.
    pub read_latency: Latency,
    /// Latency of writes, from receiving all of their data.
    pub write_latency: Latency,
    /// Latency of the others.
    pub other_latency: Latency,
    /// Clients at present.
    pub connections: AtomicU64,
    /// In-flight requests.
    pub in_flight: AtomicU64,
    /// In-flight requests that the limits hold back.
    pub held_back: AtomicU64,
}

/// A request that has ended: its kind and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A read.
    Read(u64),
    /// A write.
    Write(u64),
    /// Anything else.
    Other,
}

impl Counts {
    /// Counts a new request.
    #[inline]
    pub fn began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Counts a request that was completed at once, successfully or not.
    pub fn completed_at_once(&self, is_ok: bool) {
        if is_ok { &self.others } else { &self.errors }.fetch_add(1, Relaxed);
    }

    /// A connection with this many in-flight requests has ended.
    pub fn abandoned(&self, requests: u64) {
        self.in_flight.fetch_sub(requests, Relaxed);
    }

    /// Counts a request that has ended, with its latency, or `None` if it failed.
    pub fn ended(&self, kind: Ended, elapsed: Option<Nanos>) {
        self.in_flight.fetch_sub(1, Relaxed);
        let Some(elapsed) = elapsed else {
            self.errors.fetch_add(1, Relaxed);
            return;
        };
        let (requests, latency) = match kind {
            Ended::Read(bytes) => {
                self.read_bytes.fetch_add(bytes, Relaxed);
                (&self.reads, &self.read_latency)
            }
            Ended::Write(bytes) => {
                self.written_bytes.fetch_add(bytes, Relaxed);
                (&self.writes, &self.write_latency)
            }
            Ended::Other => (&self.others, &self.other_latency),
        };
        requests.fetch_add(1, Relaxed);
        latency.count(elapsed);
    }
}
