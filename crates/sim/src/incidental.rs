//! What a job file does not decide, and no user of a host either: drawn from the seed of a run, the same for all schedulers.
//!
//! On a real host the order of the sections of a job file, or of processes that are alike, decides nothing that would be the same in the
//! next run: where the kernel puts a process that begins, which CPU takes the interrupts of a device, which process comes first.

use hoistway_blk::ground::CpuId;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Keep the random streams of each kind apart from each other and from all others of the seed.
const HINT_STREAM: u64 = 0x6869_6e74_7300_0000;
const INTERRUPT_STREAM: u64 = 0x6972_7100_0000_0000;
const FIRST_CPU_STREAM: u64 = 0x6370_7573_0000_0000;
const START_STREAM: u64 = 0x7374_6172_7400_0000;

/// A number below `count`, each as likely as any other.
fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    ((u64::from(random.next_u32()) * count as u64) >> 32) as usize
}

/// Brings things into a random order.
pub(crate) fn shuffle<T>(things: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..things.len()).rev() {
        things.swap(last, below(random, last + 1));
    }
}

/// The seed of the allocation hints of a disk's tags.
pub(crate) fn hint_seed(disk_seed: u64) -> u64 {
    disk_seed ^ HINT_STREAM
}

/// How far from CPU 0 interrupts are spread from.
pub(crate) fn first_interrupt(seed: u64, cpus: u16) -> usize {
    below(&mut Xoshiro256PlusPlus::seed_from_u64(seed ^ INTERRUPT_STREAM), cpus.into())
}

/// Which of the processes that begin together comes first, and how far apart they are.
pub(crate) fn starts(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed ^ START_STREAM)
}

/// Where processes begin.
pub(crate) struct FirstCpus {
    cpus: u16,
    random: Xoshiro256PlusPlus,
    /// CPUs that no process has been put on since all had as many.
    free: Vec<u32>,
}

impl FirstCpus {
    pub(crate) fn new(seed: u64, cpus: u16) -> Self {
        FirstCpus { cpus, random: Xoshiro256PlusPlus::seed_from_u64(seed ^ FIRST_CPU_STREAM), free: Vec::new() }
    }

    /// The CPU of the next process, which may begin on those that are `allowed`, if not on all: one of those with the fewest, as
    /// Linux puts a new process on an idle CPU.
    pub(crate) fn next(&mut self, allowed: Option<&[u32]>) -> CpuId {
        let cpus = u32::from(self.cpus);
        let is_allowed = |cpu: u32| allowed.is_none_or(|allowed| allowed.iter().any(|&other| other % cpus == cpu));
        if !self.free.iter().any(|&cpu| is_allowed(cpu)) {
            let begin = self.free.len();
            self.free.extend((0..cpus).filter(|&cpu| is_allowed(cpu)));
            shuffle(&mut self.free[begin..], &mut self.random);
        }
        let Some(at) = self.free.iter().position(|&cpu| is_allowed(cpu)) else { return CpuId(0) };
        CpuId(self.free.remove(at))
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
