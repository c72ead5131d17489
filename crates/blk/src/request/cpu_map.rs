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

/// The class of a hardware queue on a drive with weighted round robin (NVMe).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueClass {
    /// The fastest.
    High = 0,
    /// Between the others.
    Medium = 1,
    /// The slowest.
    Low = 2,
}

impl QueueClass {
    /// All classes, the fastest first.
    pub const ALL: [QueueClass; 3] = [QueueClass::High, QueueClass::Medium, QueueClass::Low];
}

/// The weighted round robin of a drive: between the classes of its hardware queues, with weights that can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arbitration {
    /// The largest weight of a class.
    pub weight_max: u16,
}

/// A transport between block layer and device, such as a network: a worker on each CPU sends the requests of two hardware queues, those of
/// the first as soon as it can, those of the second in batches, and only while the first is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Requests of a batch.
    pub batch: u16,
}

/// The hardware queues of a device: those of type default first, then those for reads, then those for polled I/O.
#[derive(Clone, Debug)]
pub struct CpuMap {
    cpus: usize,
    /// For each type, the hardware queue of each CPU; a type without queues uses the default ones.
    hctx_of: Vec<HctxId>,
    /// The CPUs of each hardware queue, ascending.
    served: Vec<Vec<CpuId>>,
    /// The class of each hardware queue; empty if they have none.
    classes: Vec<QueueClass>,
    /// For each CPU its hardware queues of the classes high, medium and low; empty if they have none.
    hctxs_of_classes: Vec<[HctxId; 3]>,
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

    /// Hardware queues in three classes; `None` if there are fewer than three.
    ///
    /// If there are three for each CPU, a CPU has one of each class. Otherwise a CPU has one queue, as without classes, and neighbouring
    /// CPUs form groups of at least three queues: the first three are high, medium and low, further ones are medium, and every CPU of the
    /// group may use them. I/O without a class takes the CPU's medium queue, or in a group its own.
    #[must_use]
    pub fn of_classes(cpus: u16, queues: u16) -> Option<Self> {
        let (cpus, queues) = (usize::from(cpus), usize::from(queues));
        if queues < QueueClass::ALL.len() {
            return None;
        }
        let id = |index: usize| HctxId(index as u16);
        let (own, hctxs_of_classes, classes): (Vec<HctxId>, Vec<[HctxId; 3]>, Vec<QueueClass>) = if queues >= 3 * cpus {
            let of_classes = |cpu| [cpus + cpu, cpu, 2 * cpus + cpu].map(id);
            // The queues that I/O without a class takes come first, so that they have the numbers that they have without classes.
            let classes = [QueueClass::Medium, QueueClass::High, QueueClass::Low];
            let classes = classes.iter().flat_map(|class| std::iter::repeat_n(*class, cpus));
            ((0..cpus).map(id).collect(), (0..cpus).map(of_classes).collect(), classes.collect())
        } else {
            let used = queues.min(cpus.max(3));
            let groups = used / 3;
            let width = used / groups;
            // The first queue of the group of a queue; the last group also has the rest.
            let first_in_group = |queue: usize| (queue / width).min(groups - 1) * width;
            let own = (0..cpus).map(|cpu| cpu * used / cpus);
            let of_classes = |queue| [0, 1, 2].map(|class| id(first_in_group(queue) + class));
            let class = |queue| QueueClass::ALL.get(queue - first_in_group(queue)).copied();
            let classes = (0..used).map(|queue| class(queue).unwrap_or(QueueClass::Medium));
            (own.clone().map(id).collect(), own.map(of_classes).collect(), classes.collect())
        };
        let mut map = CpuMap { classes, ..CpuMap::of_one_type(&own) };
        map.served.resize(map.classes.len(), Vec::new());
        for (cpu, hctxs) in hctxs_of_classes.iter().enumerate() {
            for hctx in hctxs {
                let (cpu, served) = (CpuId(cpu as u32), &mut map.served[hctx.index()]);
                if !served.contains(&cpu) {
                    served.push(cpu);
                    served.sort_unstable();
                }
            }
        }
        Some(CpuMap { hctxs_of_classes, ..map })
    }

    /// Two hardware queues for each CPU of a device behind a [`Transport`]: the first of class high, which I/O without a class takes, and the
    /// second of class low; `None` if there are fewer.
    #[must_use]
    pub fn of_transport(cpus: u16, queues: u16) -> Option<Self> {
        if u32::from(queues) < 2 * u32::from(cpus) {
            return None;
        }
        let (cpus, id) = (usize::from(cpus), |index: usize| HctxId(index as u16));
        let map = CpuMap::of_one_type(&(0..cpus).map(id).collect::<Vec<_>>());
        let classes =
            [QueueClass::High, QueueClass::Low].into_iter().flat_map(|class| std::iter::repeat_n(class, cpus));
        Some(CpuMap {
            classes: classes.collect(),
            hctxs_of_classes: (0..cpus).map(|cpu| [cpu, cpu, cpus + cpu].map(id)).collect(),
            served: [map.served.clone(), map.served.clone()].concat(),
            ..map
        })
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
        CpuMap { cpus, hctx_of, served, classes: Vec::new(), hctxs_of_classes: Vec::new() }
    }

    /// The class of each hardware queue; empty if they have none.
    #[must_use]
    pub fn classes(&self) -> &[QueueClass] {
        &self.classes
    }

    /// The hardware queue of a class on a CPU, if there are classes.
    #[inline]
    #[must_use]
    pub fn hctx_of_class(&self, cpu: CpuId, class: QueueClass) -> Option<HctxId> {
        Some(self.hctxs_of_classes.get(cpu.index())?[class as usize])
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

    fn of_class(map: &CpuMap, cpu: u32) -> [u16; 3] {
        QueueClass::ALL.map(|class| map.hctx_of_class(CpuId(cpu), class).unwrap().0)
    }

    #[test]
    fn three_queues_for_each_cpu_are_one_of_each_class() {
        let map = CpuMap::of_classes(2, 7).unwrap();
        assert_eq!((map.hctxs(), of(&map, QueueType::Default), of(&map, QueueType::Read)), (6, vec![0, 1], vec![0, 1]));
        assert_eq!([0, 1].map(|cpu| of_class(&map, cpu)), [[2, 0, 4], [3, 1, 5]]);
        for cpu in [0, 1] {
            let classes = of_class(&map, cpu).map(|hctx| map.classes()[usize::from(hctx)]);
            assert_eq!(classes, QueueClass::ALL);
            assert!(of_class(&map, cpu).iter().all(|&hctx| map.served(HctxId(hctx)) == [CpuId(cpu)]));
        }
        assert!(CpuMap::of_classes(1, 2).is_none(), "a class would have none");
    }

    #[test]
    fn fewer_queues_are_shared_by_groups_of_cpus() {
        let letters =
            |map: &CpuMap| map.classes().iter().map(|class| format!("{class:?}").remove(0)).collect::<String>();
        let map = CpuMap::of_classes(8, 12).unwrap();
        assert_eq!((map.hctxs(), letters(&map)), (8, "HMLMHMLM".to_owned()), "groups of four");
        assert_eq!([0, 3, 4, 7].map(|cpu| of_class(&map, cpu)), [[0, 1, 2], [0, 1, 2], [4, 5, 6], [4, 5, 6]]);
        assert_eq!(of(&map, QueueType::Default), [0, 1, 2, 3, 4, 5, 6, 7], "each has its own without a class");
        assert_eq!((map.served(HctxId(0)), map.served(HctxId(3))), (&[0, 1, 2, 3].map(CpuId)[..], &[CpuId(3)][..]));
        let map = CpuMap::of_classes(6, 6).unwrap();
        assert_eq!((letters(&map), of_class(&map, 5)), ("HMLHML".to_owned(), [3, 4, 5]), "groups of three");
        let map = CpuMap::of_classes(2, 5).unwrap();
        assert_eq!((letters(&map), of_class(&map, 1)), ("HML".to_owned(), [0, 1, 2]));
        assert!((0..3).all(|hctx| map.served(HctxId(hctx)).len() == 2));
        let map = CpuMap::of_classes(7, 7).unwrap();
        assert_eq!(letters(&map), "HMLHMLM", "the last group has the rest");
    }

    #[test]
    fn behind_a_transport_each_cpu_has_a_first_and_a_second_queue() {
        let map = CpuMap::of_transport(3, 8).unwrap();
        assert_eq!(
            (map.hctxs(), of(&map, QueueType::Default), of(&map, QueueType::Read)),
            (6, vec![0, 1, 2], vec![0, 1, 2])
        );
        for cpu in 0..3 {
            assert_eq!(of_class(&map, cpu), [cpu as u16, cpu as u16, cpu as u16 + 3]);
            assert_eq!([cpu, cpu + 3].map(|hctx| map.served(HctxId(hctx as u16))), [[CpuId(cpu)]; 2]);
        }
        assert_eq!(map.classes()[2..4], [QueueClass::High, QueueClass::Low]);
        assert!(CpuMap::of_transport(3, 5).is_none(), "a CPU would have only one");
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
