//! The I/O of one group in one direction, measured in slices.
//!
//! From the start of its slice a group may have sent `rate * elapsed`, with the elapsed time rounded up to whole
//! slices. So it may send a slice's worth at once and then waits for the next slice, and an unused allowance is worth
//! at most one slice: whole slices that have passed are *trimmed*, and after a slice without I/O a new one begins.
//! Rules: CG-9 to CG-15.

use super::limits::Rate;
use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos};

/// Length of a measuring slice (`HZ / 10`).
pub const THROTTLE_SLICE: Nanos = Nanos::from_millis(100);

/// Length of a slice on non-rotational devices up to 6.9, if the kernel has the `low` limit compiled in.
pub const THROTTLE_SLICE_WITH_LOW_LIMIT: Nanos = Nanos::from_millis(20);

/// Bytes that a discard is charged, whatever its length.
const DISCARD_BYTES: u64 = 512;

/// A byte or an operation. Usage is counted in billionths, so that a rate per second times nanoseconds is exact, and
/// trimming never loses a fraction, which would lower a small limit.
const UNIT: i128 = 1_000_000_000;

/// The cost of a bio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes; 0 if they were charged before.
    pub bytes: u64,
    /// Operations: one, or one per part.
    pub operations: u32,
}

/// The account of one group in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// When the slice began.
    start: Instant,
    /// End of the slice if nothing waits.
    end: Instant,
    /// Bytes sent since `start`, in billionths. A negative value is credit from before.
    bytes: i128,
    /// Operations sent since `start`, in billionths, likewise.
    operations: i128,
}

impl Cost {
    /// The cost of a bio with these bytes and operations.
    pub fn of(op: Op, bytes: u64, operations: u32) -> Cost {
        let bytes = if op == Op::Discard { DISCARD_BYTES } else { bytes };
        Cost { bytes, operations }
    }

    /// A single operation without bytes.
    pub const OPERATION: Cost = Cost { bytes: 0, operations: 1 };
}

impl Meter {
    /// When the slice began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Prepares for a bio with nothing waiting in front of it: unused allowance expires.
    pub fn resume(&mut self, now: Instant, slice: Nanos, rate: Rate) {
        if now > self.end {
            *self = Meter { start: now, end: now + slice, ..Meter::default() };
        } else {
            self.trim(now, slice, rate);
        }
    }

    /// Prepares for a bio that a group below has held back since `since`. The time that this meter was idle meanwhile
    /// counts; otherwise a long bio would wait for its full time again at every level.
    pub fn resume_with_credit(&mut self, now: Instant, slice: Nanos, rate: Rate, since: Instant) {
        if now > self.end {
            *self = Meter { start: since.max(self.end).min(now), end: now + slice, ..Meter::default() };
        } else {
            self.trim(now, slice, rate);
        }
    }

    /// When a bio may be sent: `now` or later.
    pub fn earliest(&self, now: Instant, slice: Nanos, rate: Rate, cost: Cost) -> Instant {
        // Rounded up to whole slices.
        let elapsed = Nanos((now.since(self.start).0 / slice.0 + 1).saturating_mul(slice.0));
        let bytes = rate.bps.filter(|_| cost.bytes > 0).and_then(|bps| {
            let deficit = (self.bytes + i128::from(cost.bytes) * UNIT).saturating_sub(allowance(bps, elapsed));
            (deficit > 0).then(|| self.start + elapsed + time_for(deficit, bps))
        });
        // One more operation is allowed from the start of the slice whose end is late enough for it.
        let operation = rate.iops.and_then(|iops| {
            let needed = self.operations + i128::from(cost.operations) * UNIT;
            (needed > allowance(iops, elapsed)).then(|| {
                let slices = time_for(needed, iops).0.div_ceil(slice.0);
                self.start + Nanos((slices - 1).saturating_mul(slice.0))
            })
        });
        now.max(bytes.unwrap_or(now)).max(operation.unwrap_or(now))
    }

    /// Charges a bio that is sent now, whether it is allowed or not.
    pub fn charge(&mut self, now: Instant, slice: Nanos, rate: Rate, cost: Cost) {
        self.spend(cost);
        self.trim(now, slice, rate);
        self.end = self.end.max(now + slice);
        self.extend_slice_for_debt(rate);
    }

    /// Charges a bio that overtakes a waiting one. Nothing is trimmed: saved allowance belongs to the waiting one.
    pub fn charge_without_trim(&mut self, cost: Cost) {
        self.spend(cost);
    }

    fn spend(&mut self, cost: Cost) {
        self.bytes += i128::from(cost.bytes) * UNIT;
        self.operations += i128::from(cost.operations) * UNIT;
    }

    /// The limits change: a new slice begins, and the group's debt, or the allowance saved while something waited, is
    /// carried over.
    pub fn rescale_for_new_limits(&mut self, now: Instant, slice: Nanos, old: Rate, new: Rate, is_waiting: bool) {
        let elapsed = now.since(self.start);
        let carry = |spent: i128, rate: Option<u64>| match rate {
            Some(rate) if is_waiting => spent.saturating_sub(allowance(rate, elapsed)),
            Some(rate) if now <= self.end => spent.saturating_sub(allowance(rate, elapsed)).max(0),
            _ => 0,
        };
        let (bytes, operations) = (carry(self.bytes, old.bps), carry(self.operations, old.iops));
        *self = Meter { start: now, end: now + slice, bytes, operations };
        self.extend_slice_for_debt(new);
    }

    /// Removes whole slices that have passed, with the I/O sent in them.
    fn trim(&mut self, now: Instant, slice: Nanos, rate: Rate) {
        let elapsed_slices = Nanos(now.since(self.start).0 / slice.0 * slice.0);
        if elapsed_slices == Nanos::ZERO {
            return;
        }
        self.start += elapsed_slices;
        let trimmed = |spent: i128, rate: Option<u64>| {
            rate.map_or(0, |rate| spent.saturating_sub(allowance(rate, elapsed_slices)).max(0))
        };
        self.bytes = trimmed(self.bytes, rate.bps);
        self.operations = trimmed(self.operations, rate.iops);
    }

    /// A slice does not end before the I/O sent in it would have been allowed.
    fn extend_slice_for_debt(&mut self, rate: Rate) {
        for (spent, rate) in [(self.bytes, rate.bps), (self.operations, rate.iops)] {
            if let Some(rate) = rate
                && spent > allowance(rate, self.end.since(self.start))
            {
                self.end = self.start + time_for(spent, rate);
            }
        }
    }
}

/// The I/O that `rate` allows in a span of time, in billionths.
fn allowance(rate: u64, span: Nanos) -> i128 {
    i128::from(rate).saturating_mul(i128::from(span.0))
}

/// The time in which `rate` allows `billionths`, rounded up.
fn time_for(billionths: i128, rate: u64) -> Nanos {
    let ns = (billionths.max(0) as u128).div_ceil(u128::from(rate));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
