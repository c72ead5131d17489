//! In which order the blocks of a random job are visited.

use std::sync::Arc;

use super::lane::Grid;
use super::lfsr::Lfsr;
use super::permutation::Walk;
use super::ranks::Popularity;
use super::skew::Skewed;
use super::stream::{Purpose, Stream};
use super::unvisited::Unvisited;
use super::zones::{Zone, Zoned};

/// fio's `random_generator`; its two tausworthe generators differ only in range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RandomGenerator {
    Tausworthe,
    Lfsr,
}

/// How random offsets are distributed over the region: `random_distribution`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Distribution {
    /// All blocks alike.
    Uniform,
    /// Some blocks more often than others, the hottest at the centre: a fraction of the region.
    Skewed { popularity: Popularity, centre: Option<f64> },
    /// By zones, for reads, writes and trims.
    Zoned([Arc<[Zone]>; 3]),
}

/// What decides the order of a random job.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderRule<'a> {
    pub(super) generator: RandomGenerator,
    pub(super) distribution: &'a Distribution,
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
    /// Each block once, several in one I/O.
    Unvisited(Box<Unvisited>),
    /// Each block once, in the order of a shift register.
    Lfsr(Lfsr),
    /// Independent even draws.
    Free { blocks: u64, stream: Stream },
    /// Independent draws that favour some blocks.
    Skewed(Box<Skewed>),
    /// Independent draws that favour some zones.
    Zoned(Box<Zoned>),
}

impl Order {
    /// The order of the blocks of a grid for the direction `lane`.
    pub(super) fn new(rule: OrderRule<'_>, lane: usize, grid: Grid, seed: u64, process: u64) -> Order {
        let Grid { align, blocks } = grid;
        let mut stream = Stream::new(seed, process, Purpose::Offset);
        match rule.distribution {
            Distribution::Uniform => {}
            Distribution::Skewed { popularity, centre } => {
                return Order::Skewed(Box::new(Skewed::new(*popularity, *centre, blocks, stream)));
            }
            Distribution::Zoned(zones) => {
                return Order::Zoned(Box::new(Zoned::new(&zones[lane], blocks, align, stream)));
            }
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

    /// The order of a random map with blocks of several sizes.
    pub(super) fn unvisited(grid: Grid, seed: u64, process: u64) -> Order {
        let stream = Stream::new(seed, process, Purpose::Offset);
        Order::Unvisited(Box::new(Unvisited::new(grid.align, grid.blocks, stream)))
    }

    /// The next block; `None` at the end of a pass.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        match self {
            Order::Map { walk, .. } => walk.next(),
            Order::Unvisited(unvisited) => unvisited.next(),
            Order::Lfsr(lfsr) => lfsr.next(),
            Order::Free { blocks, stream } => Some(stream.below(*blocks)),
            Order::Skewed(skewed) => Some(skewed.next()),
            Order::Zoned(zoned) => Some(zoned.next()),
        }
    }

    /// How long an I/O is that begins with the block that was drawn.
    #[inline]
    pub(super) fn cut(&mut self, start_bytes: u64, bytes: u32) -> u32 {
        match self {
            Order::Unvisited(unvisited) => unvisited.visit(start_bytes, bytes),
            _ => bytes,
        }
    }

    /// Starts a new pass.
    #[cold]
    pub(super) fn restart(&mut self) {
        match self {
            Order::Map { walk, same_passes: true, .. } => walk.restart(None),
            Order::Map { walk, stream, .. } => walk.restart(Some(stream)),
            Order::Unvisited(unvisited) => unvisited.restart(),
            Order::Lfsr(lfsr) => lfsr.restart(),
            Order::Free { .. } | Order::Skewed(_) | Order::Zoned(_) => {}
        }
    }
}
