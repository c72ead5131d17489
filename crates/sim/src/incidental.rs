//! Incidental conditions of a run that no configuration determines: drawn from the seed, and the same for all schedulers.
//!
//! Used by: `simulation`, `disk`.
//! Tests: below.
//!
//! On a real host they differ from run to run: on which CPU a process starts, which CPU takes the interrupts of a device, and which of
//! several identical processes comes first.

use hoistway_blk::ground::CpuId;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Separate the random streams of each kind from each other and from all others of the seed.
const HINT_STREAM: u64 = 0x6869_6e74_7300_0000;
const INTERRUPT_STREAM: u64 = 0x6972_7100_0000_0000;
const FIRST_CPU_STREAM: u64 = 0x6370_7573_0000_0000;
const START_STREAM: u64 = 0x7374_6172_7400_0000;

/// A uniformly distributed number below `count`.
fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    ((u64::from(random.next_u32()) * count as u64) >> 32) as usize
}

/// Shuffles a slice.
pub(crate) fn shuffle<T>(things: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..things.len()).rev() {
        things.swap(last, below(random, last + 1));
    }
}

/// The seed of the allocation hints of a disk's tags.
pub(crate) fn hint_seed(disk_seed: u64) -> u64 {
    disk_seed ^ HINT_STREAM
}

/// Random offset at which interrupts start to be spread over the CPUs.
pub(crate) fn first_interrupt(seed: u64, cpus: u16) -> usize {
    below(&mut Xoshiro256PlusPlus::seed_from_u64(seed ^ INTERRUPT_STREAM), cpus.into())
}

/// Random stream for the order and spacing of processes that start together.
pub(crate) fn starts(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed ^ START_STREAM)
}

/// Initial placement of processes.
pub(crate) struct FirstCpus {
    cpus: u16,
    random: Xoshiro256PlusPlus,
    /// CPUs that have one process less than the others.
    free: Vec<u32>,
}

impl FirstCpus {
    pub(crate) fn new(seed: u64, cpus: u16) -> Self {
        FirstCpus { cpus, random: Xoshiro256PlusPlus::seed_from_u64(seed ^ FIRST_CPU_STREAM), free: Vec::new() }
    }

    /// The CPU of the next process: one of those with the fewest processes among `allowed` (`None` for all), as Linux places a new
    /// process on an idle CPU.
    pub(crate) fn next(&mut self, allowed: Option<&[u32]>) -> CpuId {
        let cpus = u32::from(self.cpus);
        let is_allowed = |cpu: u32| allowed.is_none_or(|allowed| allowed.iter().any(|&other| other % cpus == cpu));
        if !self.free.iter().any(|&cpu| is_allowed(cpu)) {
            let begin = self.free.len();
            self.free.extend((0..cpus).filter(|&cpu| is_allowed(cpu)));
            shuffle(&mut self.free[begin..], &mut self.random);
        }
        let Some(index) = self.free.iter().position(|&cpu| is_allowed(cpu)) else { return CpuId(0) };
        CpuId(self.free.remove(index))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn processes_spread_over_all_cpus_before_a_second_one_comes_to_any() {
        for seed in 0..20 {
            let mut first = FirstCpus::new(seed, 8);
            for _ in 0..3 {
                let round: BTreeSet<u32> = (0..8).map(|_| first.next(None).0).collect();
                assert_eq!(round.len(), 8);
            }
        }
        let beginnings: BTreeSet<u32> = (0..50).map(|seed| FirstCpus::new(seed, 8).next(None).0).collect();
        assert_eq!(beginnings.len(), 8, "any CPU may be the first");
    }

    #[test]
    fn a_process_that_is_bound_begins_where_it_may() {
        let mut first = FirstCpus::new(1, 4);
        let shared: BTreeSet<u32> = (0..2).map(|_| first.next(Some(&[1, 3])).0).collect();
        assert_eq!(shared, BTreeSet::from([1, 3]));
        assert_eq!([first.next(Some(&[2])).0, first.next(Some(&[2])).0], [2, 2]);
        assert_eq!(first.next(Some(&[5])), CpuId(1), "CPUs that the host does not have stand for others");
    }

    #[test]
    fn every_order_comes_about() {
        let mut random = starts(1);
        let orders: BTreeSet<[u8; 3]> = (0..100)
            .map(|_| {
                let mut order = [1, 2, 3];
                shuffle(&mut order, &mut random);
                order
            })
            .collect();
        assert_eq!(orders.len(), 6);
    }
}
