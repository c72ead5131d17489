//! Hardware queues (hctx) and the software queues (ctx) that feed them: order without a scheduler, dispatch list, restart mark
//! and busy average (BL-4, BL-49 to BL-52, BL-74 to BL-89; docs/rules/none.md).
//!
//! **No dispatch list is forgotten.** A run that finds no driver tag sets the restart mark and tries once more, like a sleeper
//! (`tags`); a CPU that frees a tag then checks the mark. Remaining requests go into the dispatch list, after which the run
//! checks whether the mark is still set. If not, a CPU has taken it and is running the queue, perhaps before the list was filled,
//! so the run has to repeat. In both pairs at least one side must see the other: `SeqCst`.
//!
//! All other accesses are `Relaxed`. A bit of `pending` is written under the lock of its software queue: a CPU that has queued a
//! request sees it, or the value of a later holder of that lock, and runs the queue or requests a run. The other words are hints,
//! averages, and settings of the driver.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::bio::Bio;
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::meter::{Meter, Site};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::request::Rq;
use crate::request::merge::{Edge, MergeRules};

/// The requests queued by one CPU, without a scheduler.
pub struct SoftwareQueue<Sh: Sharing> {
    list: Sh::Lock<VecDeque<Rq>>,
}

impl<Sh: Sharing> Default for SoftwareQueue<Sh> {
    fn default() -> Self {
        SoftwareQueue { list: Sh::Lock::new(VecDeque::new()) }
    }
}

impl<Sh: Sharing> SoftwareQueue<Sh> {
    /// Tries to merge a bio into one of the newest requests; the first adjacent one decides.
    pub fn merge(&self, meter: &impl Meter, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        self.list.with(meter, Site::SoftwareQueue, |list| rules.merge_with_newest(list, bio))
    }
}

/// One hardware queue.
pub struct HardwareQueue<Sh: Sharing> {
    id: HctxId,
    /// Its CPUs in ascending order; a software queue's index here is its number in `pending`.
    cpus: Vec<CpuId>,
    software_queues: Vec<Padded<SoftwareQueue<Sh>>>,
    /// A bit for each software queue that may hold requests.
    pending: Vec<Sh::Word>,
    /// The dispatch list: requests that the driver refused or that bypass the scheduler. It always goes first.
    dispatch_list: Sh::Lock<VecDeque<Rq>>,
    /// Length of `dispatch_list`, readable without its lock.
    dispatch_len: Sh::Word,
    /// The next software queue when requests are taken one at a time.
    next_software_queue: Sh::Word,
    /// The busy average.
    busy: Sh::Word,
    restart: Sh::Word,
    stopped: Sh::Word,
    /// Wait queues for tags that it has dealt to its sleepers.
    dealt_wait_queues: Sh::Word,
}

impl<Sh: Sharing> HardwareQueue<Sh> {
    /// An empty hardware queue that serves `cpus`, which are in ascending order.
    #[must_use]
    pub fn new(id: HctxId, cpus: Vec<CpuId>) -> Self {
        let words = cpus.len().div_ceil(64).max(1);
        HardwareQueue {
            id,
            software_queues: cpus.iter().map(|_| Padded::default()).collect(),
            cpus,
            pending: (0..words).map(|_| Sh::Word::new(0)).collect(),
            dispatch_list: Sh::Lock::new(VecDeque::new()),
            dispatch_len: Sh::Word::new(0),
            next_software_queue: Sh::Word::new(0),
            busy: Sh::Word::new(0),
            restart: Sh::Word::new(0),
            stopped: Sh::Word::new(0),
            dealt_wait_queues: Sh::Word::new(0),
        }
    }

    /// The number of the hardware queue.
    #[must_use]
    pub fn id(&self) -> HctxId {
        self.id
    }

    /// Its CPUs, ascending.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    /// The wait queue for tags that its next sleeper joins, modulo their number: one after the other.
    #[inline]
    pub fn next_wait_queue(&self) -> u64 {
        self.dealt_wait_queues.fetch_add(1, Relaxed)
    }

    fn index_of(&self, cpu: CpuId) -> usize {
        self.cpus.binary_search(&cpu).unwrap_or(0)
    }

    // --- software queues ---

    /// Tries to merge a bio into the software queue of `cpu`.
    #[inline]
    pub fn merge_into_software_queue(
        &self,
        meter: &impl Meter,
        cpu: CpuId,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        // Software queues are nearly always empty; skip the lock if they appear to be.
        if !self.has_queued() {
            return None;
        }
        let index = self.index_of(cpu);
        if self.is_pending(index) { self.software_queues[index].merge(meter, rules, bio) } else { None }
    }

    /// Queues a request in its software queue.
    pub fn insert(&self, meter: &impl Meter, rq: Rq, at_head: bool) {
        let index = self.index_of(rq.ctx);
        self.software_queues[index].list.with(meter, Site::SoftwareQueue, |list| {
            if at_head {
                list.push_front(rq);
            } else {
                list.push_back(rq);
            }
            self.pending[index / 64].fetch_or(1 << (index % 64), Relaxed);
        });
    }

    fn is_pending(&self, index: usize) -> bool {
        self.pending[index / 64].load(Relaxed) & (1 << (index % 64)) != 0
    }

    /// Whether a software queue may hold requests.
    #[inline]
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.pending.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Moves all queued requests to `out`: software queues in ascending order, each in order of arrival.
    pub fn take_all(&self, meter: &impl Meter, out: &mut VecDeque<Rq>) {
        for (index, queue) in self.software_queues.iter().enumerate() {
            if self.is_pending(index) {
                queue.list.with(meter, Site::SoftwareQueue, |list| {
                    self.pending[index / 64].fetch_and(!(1 << (index % 64)), Relaxed);
                    out.extend(list.drain(..));
                });
            }
        }
    }

    /// Takes one request from the next non-empty software queue, in rotation.
    pub fn take_next(&self, meter: &impl Meter) -> Option<Rq> {
        let count = self.software_queues.len();
        let start = self.next_software_queue.load(Relaxed) as usize;
        for offset in 0..count {
            let index = (start + offset) % count;
            if !self.is_pending(index) {
                continue;
            }
            let rq = self.software_queues[index].list.with(meter, Site::SoftwareQueue, |list| {
                let rq = list.pop_front();
                if list.is_empty() {
                    self.pending[index / 64].fetch_and(!(1 << (index % 64)), Relaxed);
                }
                rq
            });
            if rq.is_some() {
                self.next_software_queue.store(((index + 1) % count) as u64, Relaxed);
                return rq;
            }
        }
        None
    }

    // --- the dispatch list ---

    /// Whether the dispatch list is non-empty.
    #[inline]
    #[must_use]
    pub fn has_dispatch_list(&self) -> bool {
        self.dispatch_len.load(SeqCst) != 0
    }

    /// Moves the dispatch list to the end of `out`.
    pub fn take_dispatch_list(&self, meter: &impl Meter, out: &mut VecDeque<Rq>) {
        if self.has_dispatch_list() {
            self.dispatch_list.with(meter, Site::DispatchList, |list| {
                out.extend(list.drain(..));
                self.dispatch_len.store(0, Relaxed);
            });
        }
    }

    /// Adds requests to the dispatch list, in order, at its tail or its head.
    pub fn append_to_dispatch_list(&self, meter: &impl Meter, requests: &mut VecDeque<Rq>, at_head: bool) {
        self.dispatch_list.with(meter, Site::DispatchList, |list| {
            if at_head {
                for rq in requests.drain(..).rev() {
                    list.push_front(rq);
                }
            } else {
                list.extend(requests.drain(..));
            }
            self.dispatch_len.store(list.len() as u64, SeqCst);
        });
    }

    /// Adds one request to the head of the dispatch list.
    pub fn put_first(&self, meter: &impl Meter, rq: Rq) {
        self.dispatch_list.with(meter, Site::DispatchList, |list| {
            list.push_front(rq);
            self.dispatch_len.store(list.len() as u64, SeqCst);
        });
    }

    /// Adds one request to the tail of the dispatch list.
    pub fn push_to_dispatch_list(&self, meter: &impl Meter, rq: Rq) {
        self.dispatch_list.with(meter, Site::DispatchList, |list| {
            list.push_back(rq);
            self.dispatch_len.store(list.len() as u64, SeqCst);
        });
    }

    // --- marks ---

    /// The busy average: 0 if the driver has recently accepted requests, up to 9 otherwise.
    #[inline]
    #[must_use]
    pub fn busy(&self) -> u32 {
        self.busy.load(Relaxed) as u32
    }

    /// Updates the busy average after issuing a list or a single request.
    #[inline]
    pub fn update_busy(&self, was_busy: bool) {
        let average = self.busy.load(Relaxed);
        if average != 0 || was_busy {
            self.busy.store((7 * average + if was_busy { 16 } else { 0 }) / 8, Relaxed);
        }
    }

    /// Sets the restart mark: the next completion runs the queue.
    #[inline]
    pub fn mark_restart(&self) {
        self.restart.store(1, SeqCst);
    }

    /// Whether the restart mark is set.
    #[inline]
    #[must_use]
    pub fn wants_restart(&self) -> bool {
        self.restart.load(SeqCst) != 0
    }

    /// Clears the restart mark. Returns whether it was set.
    #[inline]
    pub fn take_restart(&self) -> bool {
        self.restart.load(SeqCst) != 0 && self.restart.swap(0, SeqCst) != 0
    }

    /// Whether the driver has stopped the queue.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed) != 0
    }

    /// Stops or restarts calls to the driver, at its request.
    pub fn set_stopped(&self, stopped: bool) {
        self.stopped.store(u64::from(stopped), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Op;
    use crate::bio::limits::Limits;
    use crate::ground::ids::{RqId, Sector};
    use crate::ground::kernel::Kernel;
    use crate::ground::meter::NoMeter;
    use crate::ground::sharing::Local;
    use crate::ground::time::Instant;
    use crate::request::RequestPool;
    use crate::request::merge::Merging;

    struct Bench {
        pool: RequestPool<Local>,
        hctx: HardwareQueue<Local>,
        next: u32,
    }

    impl Bench {
        fn new() -> Self {
            let cpus = (0..3).map(CpuId).collect();
            Bench { pool: RequestPool::new(32), hctx: HardwareQueue::new(HctxId(0), cpus), next: 0 }
        }

        fn insert(&mut self, cpu: u32, sector: u64) {
            let mut rq = self.pool.take(RqId(self.next));
            self.next += 1;
            rq.found(Bio::new(Op::Write, Sector(sector), 8), Instant::ZERO);
            rq.ctx = CpuId(cpu);
            self.hctx.insert(&NoMeter, rq, false);
        }

        fn arrivals(&mut self) {
            // A on c2, B on c0, C on c1, D on c0, E on c2 in this order of time.
            for (cpu, name) in [(2, b'A'), (0, b'B'), (1, b'C'), (0, b'D'), (2, b'E')] {
                self.insert(cpu, u64::from(name) * 1000);
            }
        }

        fn merges(&self, cpu: u32, sector: u64) -> bool {
            let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
            let mut bio = Some(Bio::new(Op::Write, Sector(sector), 8));
            self.hctx.merge_into_software_queue(&NoMeter, CpuId(cpu), &rules, &mut bio).is_some()
        }
    }

    fn names(requests: &VecDeque<Rq>) -> String {
        requests.iter().map(|rq| char::from((rq.sector.0 / 1000) as u8)).collect()
    }

    #[test]
    fn a_flush_takes_software_queues_in_ascending_order() {
        let mut bench = Bench::new();
        bench.arrivals();
        let mut out = VecDeque::new();
        bench.hctx.take_all(&NoMeter, &mut out);
        assert_eq!(names(&out), "BDCAE");
        assert!(!bench.hctx.has_queued());
    }

    #[test]
    fn one_by_one_dispatch_is_round_robin_and_keeps_its_position() {
        let mut bench = Bench::new();
        bench.arrivals();
        bench.hctx.next_software_queue.store(1, Relaxed);
        let out: VecDeque<Rq> = std::iter::from_fn(|| bench.hctx.take_next(&NoMeter)).collect();
        assert_eq!(names(&out), "CABED");
        assert_eq!(bench.hctx.next_software_queue.load(Relaxed), 1);
    }

    #[test]
    fn a_bio_is_compared_with_the_eight_newest_requests_of_its_cpu() {
        let mut bench = Bench::new();
        for n in 0..10 {
            bench.insert(0, n * 1000);
        }
        assert!(bench.merges(0, 9008), "the newest");
        assert!(bench.merges(0, 2008), "the eighth");
        assert!(!bench.merges(0, 1008), "the ninth");
        assert!(!bench.merges(1, 9016), "another CPU's");
    }

    #[test]
    fn dispatch_busy_rises_to_9_and_falls_to_0_by_integer_steps() {
        let hctx: HardwareQueue<Local> = HardwareQueue::new(HctxId(0), vec![CpuId(0)]);
        let step = |busy: bool| {
            hctx.update_busy(busy);
            hctx.busy()
        };
        assert_eq!([(); 9].map(|()| step(true)), [2, 3, 4, 5, 6, 7, 8, 9, 9]);
        assert_eq!([(); 8].map(|()| step(false)), [7, 6, 5, 4, 3, 2, 1, 0]);
        let mixed = [true, true, true, false, false, false, false, false].map(step);
        assert_eq!(mixed, [2, 3, 4, 3, 2, 1, 0, 0]);
    }

    #[test]
    fn dispatch_list_requests_keep_their_order_at_either_end() {
        let mut bench = Bench::new();
        bench.arrivals();
        let mut first =
            VecDeque::from([bench.hctx.take_next(&NoMeter).unwrap(), bench.hctx.take_next(&NoMeter).unwrap()]);
        let mut second = VecDeque::from([bench.hctx.take_next(&NoMeter).unwrap()]);
        let mut third = VecDeque::from([bench.hctx.take_next(&NoMeter).unwrap()]);
        let expected = names(&third) + &names(&first) + &names(&second);
        bench.hctx.append_to_dispatch_list(&NoMeter, &mut first, false);
        bench.hctx.append_to_dispatch_list(&NoMeter, &mut second, false);
        bench.hctx.append_to_dispatch_list(&NoMeter, &mut third, true);
        let mut out = VecDeque::new();
        bench.hctx.take_dispatch_list(&NoMeter, &mut out);
        assert_eq!(names(&out), expected);
        assert!(!bench.hctx.has_dispatch_list());
    }

    #[test]
    fn with_more_than_64_cpus_each_software_queue_is_known_by_itself() {
        for run_sequentially in [false, true] {
            let cpus = (0..130).map(CpuId).collect();
            let mut bench = Bench { pool: RequestPool::new(32), hctx: HardwareQueue::new(HctxId(0), cpus), next: 0 };
            for cpu in [3, 67, 129] {
                bench.insert(cpu, u64::from(cpu) * 1000);
            }
            assert!(bench.merges(67, 67_008), "it is looked for where it is");
            assert!(!bench.merges(4, 67_016) && !bench.merges(65, 3_008));
            let mut out = VecDeque::new();
            if run_sequentially {
                for left in [true, true, false] {
                    out.extend(bench.hctx.take_next(&NoMeter));
                    assert_eq!(bench.hctx.has_queued(), left, "{} taken", out.len());
                }
            } else {
                bench.hctx.take_all(&NoMeter, &mut out);
            }
            assert_eq!(out.iter().map(|rq| rq.ctx.0).collect::<Vec<_>>(), [3, 67, 129]);
            assert!(!bench.hctx.has_queued() && (0..130).all(|index| !bench.hctx.is_pending(index)));
        }
    }
}
