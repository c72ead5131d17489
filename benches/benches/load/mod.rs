//! The load of the benchmarks: 4 KiB I/O at a constant depth over a driver that accepts everything, through either kind
//! of queue.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::caller::{Action, Agenda, BlockQueue, Caller, Cx, Submitter};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{CpuId, HctxId, Hz, Instant, Kernel, Local, NoMeter, Now, Sector, Waiter};
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::request::Rq;
use hoistway_blk::watch::NoProbe;
use hoistway_legacy::{AnyQueue, all_schedulers};

/// Keeps requests until they are collected. With a limit it refuses more, like a full SCSI disk.
struct Shelf {
    requests: VecDeque<Rq>,
    limit: usize,
}

impl Driver for Shelf {
    fn get_budget(&mut self, _: HctxId) -> bool {
        self.requests.len() < self.limit
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        self.requests.push_back(rq);
        Answer::Queued
    }
}

/// The offsets of a load's I/Os.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Random: nothing merges.
    Random,
    /// Runs of eight adjacent I/Os, each submitted while the previous one waits: seven of eight merge.
    Runs,
}

/// I/Os of a run.
const RUN: u32 = 8;

/// A queue under a closed loop with a constant number of outstanding I/Os.
pub struct Load {
    front: AnyQueue<Local>,
    pattern: Pattern,
    shelf: Shelf,
    caller: Caller,
    agenda: Agenda,
    submitter: Submitter<AnyQueue<Local>>,
    at: u64,
    random: u64,
}

impl Load {
    /// `depth` outstanding I/Os. With a scheduler half of them wait in it (none at depth 1), because the driver takes
    /// the other half.
    pub fn new(scheduler: &str, depth: u32, pattern: Pattern) -> Load {
        let nr_requests = 2 * depth.max(4);
        let schedulers = all_schedulers();
        let config = QueueConfig {
            queue_depth: depth.max(4),
            schedulers: schedulers.clone(),
            nr_requests: (scheduler != "none").then_some(nr_requests),
            ..QueueConfig::new(schedulers.kernel_under(Kernel::DEFAULT, scheduler))
        };
        let limit = if scheduler == "none" { depth } else { depth.div_ceil(2) } as usize;
        let front = AnyQueue::new(&config, scheduler).expect("the configuration is possible");
        let mut load = Load {
            submitter: Submitter::new(&front, Waiter(0)),
            agenda: Agenda::new(front.hw_queues()),
            front,
            pattern,
            shelf: Shelf { requests: VecDeque::with_capacity(limit), limit },
            caller: Caller::new(),
            at: 0,
            random: 1,
        };
        for _ in 0..depth {
            load.submit();
        }
        load
    }

    /// One I/O: the oldest at the driver completes, and another is submitted.
    #[inline(never)]
    pub fn cycle(&mut self) {
        self.at += 25_000;
        let Some(rq) = self.shelf.requests.pop_front() else { return };
        self.with_front(|front, cx, _| {
            front.complete(cx, rq, Status::Ok);
            front.run_hctx(cx, HctxId(0));
        });
        self.submit();
    }

    fn submit(&mut self) {
        // A linear congruential generator is enough to scatter sectors.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (op, flags) = if self.random >> 63 == 0 {
            (Op::Read, BioFlags::NONE)
        } else {
            (Op::Write, BioFlags::SYNC.with(BioFlags::IDLE))
        };
        let first = Sector((self.random >> 30) & !7);
        let count = if self.pattern == Pattern::Runs { RUN } else { 1 };
        for neighbour in 0..count {
            let bio = Bio { flags, ..Bio::new(op, first + 8 * neighbour, 8) };
            self.with_front(|front, cx, submitter| submitter.submit(front, cx, bio));
        }
    }

    fn with_front<R>(
        &mut self,
        body: impl FnOnce(&AnyQueue<Local>, &mut Cx<'_, (Shelf, NoProbe)>, &mut Submitter<AnyQueue<Local>>) -> R,
    ) {
        let (now, mut probe) = (Hz::DEFAULT.now(Instant(self.at)), NoProbe);
        let mut cx = self.caller.cx(now, CpuId(0), &mut self.shelf, &mut probe, &NoMeter);
        body(&self.front, &mut cx, &mut self.submitter);
        self.agenda.carry_out(&self.front, &mut cx, |_, action| {
            std::hint::black_box(matches!(action, Action::End { .. }));
        });
    }
}
