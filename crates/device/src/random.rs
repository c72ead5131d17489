//! The random stream of one device, and times drawn from it.
//!
//! Integers only: the same seed gives the same times on every machine.

use hoistway_blk::ground::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Everything random in one device comes from its one stream.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// One of `0..n`, all equally likely; 0 if there is none.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }
}

/// A time that is drawn uniformly between two bounds, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UniformTime {
    /// The least time, ns.
    min_ns: u64,
    /// The greatest time less the least, ns.
    width_ns: u64,
}

impl UniformTime {
    /// `middle` plus or minus `percent` of it.
    pub(crate) fn around(middle: Nanos, percent: f64) -> UniformTime {
        let side_ns = ns(middle.0 as f64 * percent / 100.0).min(middle.0);
        UniformTime { min_ns: middle.0 - side_ns, width_ns: side_ns.saturating_mul(2) }
    }

    /// `longest`, shortened by up to `percent` of it.
    pub(crate) fn shortened(longest: Nanos, percent: f64) -> UniformTime {
        let width_ns = ns(longest.0 as f64 * percent / 100.0).min(longest.0);
        UniformTime { min_ns: longest.0 - width_ns, width_ns }
    }

    /// One time. Costs no random number if there is nothing to draw.
    #[inline]
    pub(crate) fn draw(self, random: &mut Random) -> Nanos {
        if self.width_ns == 0 {
            return Nanos(self.min_ns);
        }
        let values = u128::from(self.width_ns) + 1;
        let offset = (u128::from(random.0.next_u64()) * values) >> 64;
        Nanos(self.min_ns + offset as u64)
    }
}

/// Microseconds of a preset in whole nanoseconds.
pub(crate) fn from_us(us: f64) -> Nanos {
    Nanos(ns(us * 1e3))
}

/// Milliseconds of a preset in whole nanoseconds.
pub(crate) fn from_ms(ms: f64) -> Nanos {
    Nanos(ns(ms * 1e6))
}

/// To the nearest nanosecond. What is not a time (negative, not a number) is none; more than 2^62 ns (146 years)
/// is cut, so that sums stay far from overflow.
fn ns(ns: f64) -> u64 {
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
