//! Virtual time: sectors per unit of weight, in fixed point of 64 bits, of which 22 are fractional. Rules: BFQ-2,
//! BFQ-20.

/// Fractional bits.
const SHIFT: u32 = 22;

/// How far virtual time moves while `service` sectors are served at `weight`.
#[inline]
pub(super) fn delta(service: u64, weight: u64) -> u64 {
    (service << SHIFT) / weight
}

/// Whether `a` is later than `b`, by their signed difference, so that it is right also when the numbers wrap around.
#[inline]
pub(super) fn is_after(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}
