//! In which order the blocks of a random job are visited.

use super::lfsr::Lfsr;
use super::permutation::Walk;
use super::skew::{Distribution, Skewed};
use super::stream::{Purpose, Stream};

/// fio's `random_generator`; its two tausworthe generators differ only in range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RandomGenerator {
    Tausworthe,
    Lfsr,
}

/// What decides the order of a random job.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderRule {
    pub(super) generator: RandomGenerator,
    pub(super) distribution: Distribution,
    /// Whether each block is visited once in a pass.
    pub(super) map: bool,
    /// Whether all passes have the same order.
    pub(super) same_passes: bool,
}

/// Yields block numbers.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Each block once, in the order of a permutation.
    Map { walk: Box<Walk>, stream: Stream, same_passes: bool },
    /// Each block once, in the order of a shift register.
    Lfsr(Lfsr),
    /// Independent even draws.
    Free { blocks: u64, stream: Stream },
    /// Independent draws that favour some blocks.
    Skewed(Box<Skewed>),
}

impl Order {
    /// The order of `blocks` blocks, at least one.
    pub(super) fn new(rule: OrderRule, blocks: u64, seed: u64, process: u64) -> Order {
        let mut stream = Stream::new(seed, process, Purpose::Offset);
        if let Some(skewed) = Skewed::new(rule.distribution, blocks, stream.clone()) {
            return Order::Skewed(Box::new(skewed));
        }
        match rule.generator {
            // A register visits each block once with or without a map.
            RandomGenerator::Lfsr => Order::Lfsr(Lfsr::new(blocks, &mut stream)),
            RandomGenerator::Tausworthe if rule.map => {
                let walk = Box::new(Walk::new(blocks, &mut stream));
                Order::Map { walk, stream, same_passes: rule.same_passes }
            }
            RandomGenerator::Tausworthe => Order::Free { blocks, stream },
        }
    }

    /// The next block; `None` at the end of a pass.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        match self {
            Order::Map { walk, .. } => walk.next(),
            Order::Lfsr(lfsr) => lfsr.next(),
            Order::Free { blocks, stream } => Some(stream.below(*blocks)),
            Order::Skewed(skewed) => Some(skewed.next()),
        }
    }

    /// Starts a new pass.
    #[cold]
    pub(super) fn restart(&mut self) {
        match self {
            Order::Map { walk, same_passes: true, .. } => walk.restart(None),
            Order::Map { walk, stream, .. } => walk.restart(Some(stream)),
            Order::Lfsr(lfsr) => lfsr.restart(),
            Order::Free { .. } | Order::Skewed(_) => {}
        }
    }
}
