//! Times that are drawn.

use hoistway_blk::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// A time that is drawn: each from the least to the most is as likely as any other.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    least: Nanos,
    /// How many times there are.
    count: u64,
}

impl Span {
    pub(crate) fn new([least, most]: [u64; 2]) -> Self {
        Span { least: Nanos(least), count: most - least + 1 }
    }

    pub(crate) fn max(self) -> Nanos {
        Nanos(self.least.0 + self.count - 1)
    }

    #[inline]
    pub(crate) fn draw(self, random: &mut Xoshiro256PlusPlus) -> Nanos {
        if self.count == 1 {
            return self.least;
        }
        // Host profiles allow a second at most, so that the product fits.
        Nanos(self.least.0 + ((u64::from(random.next_u32()) * self.count) >> 32))
    }
}
