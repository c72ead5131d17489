//! A linear feedback shift register of full period: visits every block once, with a single word of state. This is fio's
//! `random_generator=lfsr`, with its character: a block number is often half of the previous one.

use crate::stream::Stream;

/// Visits each of `n` blocks once, then starts over in the same order.
#[derive(Clone, Debug)]
pub(super) struct Lfsr {
    n: u64,
    taps: u64,
    first: u64,
    state: u64,
    left: u64,
}

impl Lfsr {
    /// A register for the blocks below `n` (at least 1), starting at a random block.
    pub(super) fn new(n: u64, stream: &mut Stream) -> Lfsr {
        // The states are 1 to 2^width - 1, and state s stands for block s - 1.
        let width = (64 - n.leading_zeros()).max(2);
        let first = 1 + stream.below(n);
        Lfsr { n, taps: TAPS[width as usize - 2], first, state: first, left: n }
    }

    /// The next block, or `None` at the end of a pass.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        loop {
            let state = self.state;
            self.state = (state >> 1) ^ (self.taps & (state & 1).wrapping_neg());
            if state <= self.n {
                return Some(state - 1);
            }
        }
    }

    /// Starts a new pass, in the same order.
    pub(super) fn restart(&mut self) {
        self.state = self.first;
        self.left = self.n;
    }
}

/// Feedback masks for a register of 2 to 64 bits that shifts right: bit t - 1 stands for x^t of a primitive
/// polynomial. Found by search: for each degree n the first trinomial, or else pentanomial, in which x has
/// order 2^n - 1 (tested with all prime factors of that number).
const TAPS: [u64; 63] = [
    0x3,
    0x6,
    0xc,
    0x14,
    0x30,
    0x60,
    0xe1,
    0x110,
    0x240,
    0x500,
    0xe08,
    0x1c80,
    0x3802,
    0x6000,
    0xd008,
    0x1_2000,
    0x2_0400,
    0x7_2000,
    0x9_0000,
    0x14_0000,
    0x30_0000,
    0x42_0000,
    0xe1_0000,
    0x120_0000,
    0x388_0000,
    0x720_0000,
    0x900_0000,
    0x1400_0000,
    0x3800_0040,
    0x4800_0000,
    0xe000_0200,
    0x1_0008_0000,
    0x3_8000_0040,
    0x5_0000_0000,
    0x8_0100_0000,
    0x1c_0800_0000,
    0x34_0100_0000,
    0x44_0000_0000,
    0xe0_0000_0010,
    0x120_0000_0000,
    0x380_0000_1000,
    0x700_4000_0000,
    0xd00_0000_0020,
    0x1b00_0000_0000,
    0x3410_0000_0000,
    0x4200_0000_0000,
    0xd000_0008_0000,
    0x1_0080_0000_0000,
    0x3_8002_0000_0000,
    0x7_0000_0040_0000,
    0x9_0000_0000_0000,
    0x1c_4000_0000_0000,
    0x38_0010_0000_0000,
    0x40_0000_4000_0000,
    0xe0_0000_0000_2000,
    0x102_0000_0000_0000,
    0x200_0040_0000_0000,
    0x700_0004_0000_0000,
    0xc00_0000_0000_0000,
    0x1c80_0000_0000_0000,
    0x3400_0002_0000_0000,
    0x6000_0000_0000_0000,
    0xe010_0000_0000_0000,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;

    fn register(n: u64) -> Lfsr {
        Lfsr::new(n, &mut Stream::new(n, 0, Purpose::Offset))
    }

    #[test]
    fn each_block_occurs_once_in_a_pass_and_passes_repeat() {
        for n in (1..=130).chain([255, 256, 257, 1021, 4095, 4096, 65_521, 65_535, 65_536, 1 << 20]) {
            let mut register = register(n);
            let pass: Vec<u64> = std::iter::from_fn(|| register.next()).collect();
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..n), "{n}");
            register.restart();
            assert!(std::iter::from_fn(|| register.next()).eq(pass), "{n}");
        }
    }

    /// x^(2^width) = x modulo the polynomial: a condition that an arbitrary mask does not meet. Together with the full
    /// periods of the small widths, this catches any mistake in the table.
    #[test]
    fn the_polynomial_of_each_width_divides_x_to_the_power_of_the_period() {
        for (width, taps) in (2u32..=64).zip(TAPS) {
            let polynomial = u128::from(taps) << 1 | 1;
            assert_eq!(polynomial >> width, 1, "{width}");
            let square = |a: u128| {
                let (mut product, mut shifted) = (0u128, a);
                for bit in 0..width {
                    product ^= shifted * (a >> bit & 1);
                    shifted <<= 1;
                    shifted ^= polynomial * (shifted >> width);
                }
                product
            };
            assert_eq!((0..width).fold(2, |x, _| square(x)), 2, "{width}");
        }
    }
}
