//! Virtual time: sectors per unit of weight, in 64 bits with 22 of them behind the point. Rules: BFQ-2, BFQ-20.

/// Bits behind the point.
const SHIFT: u32 = 22;

/// How far virtual time moves while `service` sectors are served at `weight`.
#[inline]
pub(super) fn delta(service: u64, weight: u64) -> u64 {
    (service << SHIFT) / weight
}

/// Whether `a` is later than `b`. A signed difference, so that wrapping around does no harm.
#[inline]
pub(super) fn is_after(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}
