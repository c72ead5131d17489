//! The order in which a random job visits its blocks.

use super::grid::Grid;
use super::lfsr::Lfsr;
use super::permutation::Walk;
use super::skew::Skewed;
use super::unvisited::Unvisited;
use super::zones::Zoned;
use crate::stream::{Purpose, Stream};
use crate::{Distribution, Random, RandomGenerator};

/// Yields block numbers.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Each block once, in the order of a permutation.
    Map { walk: Box<Walk>, stream: Stream, same_passes: bool },
    /// Each block once, several of them in one I/O.
    Unvisited(Box<Unvisited>),
    /// Each block once, in the order of a shift register.
    Lfsr(Lfsr),
    /// Independent uniform draws.
    Free { blocks: u64, stream: Stream },
    /// Independent draws that favour some blocks.
    Skewed(Box<Skewed>),
    /// Independent draws that favour some zones.
    Zoned(Box<Zoned>),
}

impl Order {
    /// The order of the blocks of a grid for the direction `lane`. `same_passes`: all passes have the same order.
    pub(super) fn new(random: &Random, same_passes: bool, lane: usize, grid: Grid, seed: u64, process: u64) -> Order {
        let Grid { align, blocks } = grid;
        let mut stream = Stream::new(seed, process, Purpose::Offset);
        match &random.distribution {
            Distribution::Uniform => {}
            Distribution::Skewed { popularity, centre } => {
                return Order::Skewed(Box::new(Skewed::new(*popularity, *centre, blocks, stream)));
            }
            Distribution::Zoned(zones) => {
                return Order::Zoned(Box::new(Zoned::new(&zones[lane], blocks, align, stream)));
            }
        }
        match random.generator {
            // A shift register visits each block once, with or without a map.
            RandomGenerator::Lfsr => Order::Lfsr(Lfsr::new(blocks, &mut stream)),
            RandomGenerator::Tausworthe if random.has_map() => {
                let walk = Box::new(Walk::new(blocks, &mut stream));
                Order::Map { walk, stream, same_passes }
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

    /// The length of an I/O that starts with the drawn block.
    #[inline]
    pub(super) fn length_at(&mut self, start_bytes: u64, bytes: u32) -> u32 {
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
