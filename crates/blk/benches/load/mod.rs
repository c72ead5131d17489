//! What the benchmarks measure: random 4 KiB I/O kept at a constant depth over a driver that takes everything.

use std::collections::VecDeque;

use hoistway_blk::{
    Bio, BioFlags, CpuId, Cx, Driver, Effect, Effects, Hz, Instant, Kernel, Limits, Local, NoMerges, NoProbe, Now, Op,
    Queue, QueueConfig, Rejected, Rq, Sector, Status, Submission, Waiter,
};

/// Keeps what it is given until it is asked for it. With a limit it refuses more, as a full SCSI disk does.
struct Shelf {
    requests: VecDeque<Rq>,
    limit: usize,
}

impl Driver for Shelf {
    fn get_budget(&mut self, _: hoistway_blk::HctxId) -> bool {
        self.requests.len() < self.limit
    }

    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Result<(), Rejected> {
        self.requests.push_back(rq);
        Ok(())
    }
}

/// A queue under a closed loop of so many outstanding I/Os.
pub struct Load {
    queue: Queue<Local>,
    shelf: Shelf,
    effects: Effects,
    submission: Submission,
    at: u64,
    random: u64,
}

impl Load {
    /// `depth` I/Os outstanding. With a scheduler half of them wait in it (at least none at depth 1), because the
    /// driver takes the other half.
    pub fn new(scheduler: &str, depth: u32) -> Load {
        let config = QueueConfig {
            kernel: Kernel::DEFAULT,
            cpus: 1,
            hw_queues: 1,
            queue_depth: depth.max(4),
            nr_requests: (scheduler != "none").then_some(2 * depth.max(4)),
            nomerges: NoMerges::All,
            limits: Limits::default(),
            ..QueueConfig::new(Kernel::DEFAULT)
        };
        let limit = if scheduler == "none" { depth } else { depth.div_ceil(2) } as usize;
        let mut load = Load {
            queue: Queue::new(&config, scheduler).expect("the configuration is possible"),
            shelf: Shelf { requests: VecDeque::with_capacity(limit), limit },
            effects: Effects::new(),
            submission: Submission::idle(Waiter(0)),
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
        self.with_queue(|queue, cx, _| {
            queue.complete(cx, rq, Status::Ok);
            queue.run_hctx(cx, hoistway_blk::HctxId(0));
        });
        while let Some(effect) = self.effects.pop() {
            std::hint::black_box(matches!(effect, Effect::EndBio { .. }));
        }
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
        let bio = Bio { flags, ..Bio::new(op, Sector((self.random >> 30) & !7), 8) };
        self.submission.begin(bio);
        self.with_queue(|queue, cx, submission| queue.submit(cx, submission, None));
    }

    fn with_queue<R>(
        &mut self,
        body: impl FnOnce(&Queue<Local>, &mut Cx<'_, Shelf, NoProbe>, &mut Submission) -> R,
    ) -> R {
        let mut cx = Cx {
            now: Hz::DEFAULT.now(Instant(self.at)),
            cpu: CpuId(0),
            driver: &mut self.shelf,
            effects: &mut self.effects,
            probe: &mut NoProbe,
        };
        body(&self.queue, &mut cx, &mut self.submission)
    }
}
