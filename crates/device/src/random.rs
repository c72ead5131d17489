//! The random stream of a device, and random times.
//!
//! Used by: `flash`, `ssd`, `hdd`, `null`, `optane` and others.
//! Tests: below.
//!
//! The same seed gives the same times on every machine: drawing uses only integers, and bounds only products, quotients and
//! `round`, which IEEE 754 defines exactly.

use hoistway_blk::ground::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The stream of all random numbers of one device.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// One of `0..n`, with probabilities that differ by at most 2^-64; 0 if `n` is 0.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }
}

/// A uniform random time between two bounds, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UniformTime {
    /// The lower bound, ns.
    min_ns: u64,
    /// The difference of the bounds, ns.
    width_ns: u64,
}

impl UniformTime {
    /// `middle` plus or minus `percent`.
    pub(crate) fn around(middle: Nanos, percent: f64) -> UniformTime {
        let deviation_ns = rounded_ns(middle.0 as f64 * percent / 100.0).min(middle.0);
        UniformTime { min_ns: middle.0 - deviation_ns, width_ns: deviation_ns.saturating_mul(2) }
    }

    /// `longest`, shortened by up to `percent`.
    pub(crate) fn shortened(longest: Nanos, percent: f64) -> UniformTime {
        let width_ns = rounded_ns(longest.0 as f64 * percent / 100.0).min(longest.0);
        UniformTime { min_ns: longest.0 - width_ns, width_ns }
    }

    /// Draws a time. Uses no random number if the bounds are equal.
    #[inline]
    pub(crate) fn draw(self, random: &mut Random) -> Nanos {
        if self.width_ns == 0 {
            return Nanos(self.min_ns);
        }
        // The sum fits: a width is at most 2^63.
        Nanos(self.min_ns + random.below(self.width_ns + 1))
    }
}

/// Converts microseconds to whole nanoseconds.
pub(crate) fn from_us(us: f64) -> Nanos {
    Nanos(rounded_ns(us * 1e3))
}

/// Converts milliseconds to whole nanoseconds.
pub(crate) fn from_ms(ms: f64) -> Nanos {
    Nanos(rounded_ns(ms * 1e6))
}

/// Rounds to the nearest nanosecond. Negative values and NaN give 0; values above 2^62 ns (146 years) are limited, so
/// that sums do not overflow.
fn rounded_ns(ns: f64) -> u64 {
    (ns.round() as u64).min(1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_times_fill_their_range_evenly() {
        let mut random = Random::from_seed(1);
        let time = UniformTime::around(from_us(0.01), 50.0);
        let mut seen = [0_u32; 16];
        for _ in 0..11_000 {
            seen[time.draw(&mut random).0 as usize] += 1;
        }
        assert!(seen[5..=15].iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(seen[..5], [0; 5]);
    }

    #[test]
    fn shortened_times_never_exceed_the_longest() {
        let mut random = Random::from_seed(1);
        let time = UniformTime::shortened(from_ms(38.0), 20.0);
        let drawn: Vec<_> = (0..1000).map(|_| time.draw(&mut random).0).collect();
        assert!(drawn.iter().all(|ns| (30_400_000..=38_000_000).contains(ns)));
    }

    #[test]
    fn absurd_numbers_are_cut_instead_of_overflowing() {
        assert_eq!([f64::NAN, -1.0, f64::NEG_INFINITY].map(from_us), [Nanos::ZERO; 3]);
        let mut random = Random::from_seed(1);
        UniformTime::around(from_ms(f64::INFINITY), f64::INFINITY).draw(&mut random);
        UniformTime::shortened(from_ms(f64::MAX), f64::NAN).draw(&mut random);
    }
}
