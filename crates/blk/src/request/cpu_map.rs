//! Mapping of CPUs to hardware queues, by type of I/O (BL-49 to BL-52).

use crate::bio::{BioFlags, Op};
use crate::ground::ids::{CpuId, HctxId};

/// The type of a hardware queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueType {
    /// All I/O without separate queues.
    Default = 0,
    /// Reads.
    Read = 1,
    /// Polled I/O.
    Poll = 2,
}

impl QueueType {
    /// All types.
    pub const ALL: [QueueType; 3] = [QueueType::Default, QueueType::Read, QueueType::Poll];

    /// The type for an I/O.
    #[inline]
    #[must_use]
    pub fn of(op: Op, flags: BioFlags) -> QueueType {
        if flags.contains(BioFlags::POLLED) {
            QueueType::Poll
        } else if op == Op::Read {
            QueueType::Read
        } else {
            QueueType::Default
        }
    }
}

/// The hardware queues of a device: those of type default first, then those for reads, then those for polled I/O.
#[derive(Clone, Debug)]
pub struct CpuMap {
    cpus: usize,
    /// For each type, the hardware queue of each CPU; a type without queues uses the default ones.
    hctx_of: Vec<HctxId>,
    /// The CPUs of each hardware queue, ascending.
    served: Vec<Vec<CpuId>>,
}

impl CpuMap {
    /// Hardware queues of each type for `cpus` CPUs; those beyond the number of CPUs are not used. Each serves a range
    /// of neighbouring CPUs.
    #[must_use]
    pub fn new(cpus: u16, queues: [u16; 3]) -> Self {
        let mut default_hctxs = Vec::new();
        let mut hctx_of = Vec::with_capacity(3 * usize::from(cpus));
        let mut first = 0;
        for kind in QueueType::ALL {
            let count = u32::from(queues[kind as usize].min(cpus));
            let hctx = |cpu: u32| HctxId((first + cpu * count / u32::from(cpus)) as u16);
            let type_hctxs: Vec<HctxId> = match count {
                0 => default_hctxs.clone(),
                _ => (0..u32::from(cpus)).map(hctx).collect(),
            };
            if kind == QueueType::Default {
                default_hctxs.clone_from(&type_hctxs);
            }
            hctx_of.extend(type_hctxs);
            first += count;
        }
        CpuMap::from_table(usize::from(cpus), hctx_of)
    }

    /// Hardware queues of one type, from the hardware queue of each CPU.
    #[must_use]
    pub fn of_one_type(hctx_of_cpu: &[HctxId]) -> Self {
        CpuMap::from_table(hctx_of_cpu.len(), hctx_of_cpu.repeat(QueueType::ALL.len()))
    }

    fn from_table(cpus: usize, hctx_of: Vec<HctxId>) -> Self {
        let hctxs = hctx_of.iter().map(|hctx| hctx.index() + 1).max().unwrap_or(0);
        let mut served = vec![Vec::new(); hctxs];
        for (index, hctx) in hctx_of.iter().enumerate() {
            let (cpu, served) = (CpuId((index % cpus) as u32), &mut served[hctx.index()]);
            if !served.contains(&cpu) {
                served.push(cpu);
            }
        }
        CpuMap { cpus, hctx_of, served }
    }

    /// The hardware queue of a type on a CPU.
    #[inline]
    #[must_use]
    pub fn hctx_of(&self, cpu: CpuId, kind: QueueType) -> HctxId {
        self.hctx_of[kind as usize * self.cpus + cpu.index()]
    }

    /// Number of hardware queues.
    #[must_use]
    pub fn hctxs(&self) -> u16 {
        self.served.len() as u16
    }

    /// Number of CPUs.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// The CPUs of a hardware queue, ascending.
    #[must_use]
    pub fn served(&self, hctx: HctxId) -> &[CpuId] {
        &self.served[hctx.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(map: &CpuMap, kind: QueueType) -> Vec<u16> {
        (0..map.cpus as u32).map(|cpu| map.hctx_of(CpuId(cpu), kind).0).collect()
    }

    #[test]
    fn a_type_without_queues_has_the_default_ones() {
        let map = CpuMap::new(4, [2, 0, 0]);
        for kind in QueueType::ALL {
            assert_eq!(of(&map, kind), [0, 0, 1, 1]);
        }
        assert_eq!(map.hctxs(), 2);
        assert_eq!(map.served(HctxId(1)), [CpuId(2), CpuId(3)]);
    }

    #[test]
    fn types_have_hardware_queues_one_after_the_other_and_no_more_than_there_are_cpus() {
        let map = CpuMap::new(4, [2, 64, 1]);
        assert_eq!(of(&map, QueueType::Default), [0, 0, 1, 1]);
        assert_eq!(of(&map, QueueType::Read), [2, 3, 4, 5]);
        assert_eq!(of(&map, QueueType::Poll), [6; 4]);
        assert_eq!(map.hctxs(), 7);
    }

    #[test]
    fn polled_io_asks_for_poll_queues_before_reads_ask_for_read_queues() {
        assert_eq!(QueueType::of(Op::Read, BioFlags::POLLED), QueueType::Poll);
        assert_eq!(QueueType::of(Op::Read, BioFlags::NONE), QueueType::Read);
        for op in [Op::Write, Op::Discard, Op::Flush, Op::WriteZeroes] {
            assert_eq!(QueueType::of(op, BioFlags::NONE), QueueType::Default);
        }
    }
}
