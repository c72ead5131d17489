//! mqfq: virtual time and slots, as threads share them.

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::IoContextId;
use hoistway_blk::policy::Concurrent;
use hoistway_blk::request::CpuMap;
use hoistway_blk::schedulers::Mqfq;
use shuttle::sync::Mutex;

use super::*;

/// Processes, each on a CPU with a hardware queue of its own.
const CPUS: u16 = 3;
const REQUESTS_OF_EACH: u32 = 2;

struct Fair {
    scheduler: Mqfq<Checked>,
    pool: RequestPool<Checked>,
    /// What was given out and has not ended.
    at_device: Mutex<Vec<Rq>>,
    given: AtomicU64,
    latest: AtomicU64,
}

impl Fair {
    fn new(tunables: &[(&str, &str)]) -> Self {
        let capacity = u32::from(CPUS) * REQUESTS_OF_EACH;
        let scheduler = Mqfq::new(&CpuMap::new(CPUS, [CPUS, 0, 0]), capacity);
        for (name, text) in tunables {
            ElevatorCx::alone(Now::default(), |cx| scheduler.set_tunable(cx, name, text)).expect("a valid value");
        }
        Fair {
            scheduler,
            pool: RequestPool::new(capacity),
            at_device: Mutex::new(Vec::new()),
            given: AtomicU64::new(0),
            latest: AtomicU64::new(0),
        }
    }

    fn insert(&self, cpu: u32, n: u32) {
        let mut rq = self.pool.take(RqId(cpu * REQUESTS_OF_EACH + n));
        let bio = Bio { io_context: IoContextId(cpu), ..Bio::new(Op::Read, Sector(u64::from(n) * 1000), 8 << cpu) };
        rq.found(bio, Instant::ZERO);
        rq.hctx = HctxId(cpu as u16);
        let list = &mut std::iter::once(rq);
        ElevatorCx::alone(Now::default(), |cx| self.scheduler.insert(&NoMeter, cx, list, Place::Sorted));
        self.observe_time();
    }

    /// Gives out what may go now.
    fn run(&self, hctx: HctxId) {
        while self.scheduler.has_work(hctx) {
            let (rq, _) = ElevatorCx::alone(Now::default(), |cx| self.scheduler.dispatch(&NoMeter, cx, hctx));
            self.observe_time();
            let Some(rq) = rq else { break };
            self.given.fetch_add(1, Ordering::SeqCst);
            self.at_device.lock().unwrap().push(rq);
        }
    }

    /// Ends a request of the device, if it has any, and runs what that asks for. Returns whether it had any.
    fn complete(&self, hctx: HctxId) -> bool {
        let Some(rq) = self.at_device.lock().unwrap().pop() else { return false };
        let id = rq.id();
        self.pool.put(rq);
        let runs = ElevatorCx::alone(Now::default(), |cx| {
            self.scheduler.finish(&NoMeter, cx, id);
            cx.requested.run_queues
        });
        if runs {
            self.run(hctx);
        }
        true
    }

    /// Virtual time was no later before: what another thread has read is no later than what is read after that.
    fn observe_time(&self) {
        let before = self.latest.load(Ordering::SeqCst);
        let now = self.scheduler.virtual_time();
        assert!(now >= before, "{now} after {before}");
        self.latest.fetch_max(now, Ordering::SeqCst);
    }
}

fn all_are_served(tunables: &'static [(&'static str, &'static str)]) {
    check(move || {
        let fair = Arc::new(Fair::new(tunables));
        on_threads(&fair, u32::from(CPUS), |fair, cpu| {
            let hctx = HctxId(cpu as u16);
            for n in 0..REQUESTS_OF_EACH {
                fair.insert(cpu, n);
                fair.run(hctx);
                fair.complete(hctx);
            }
        });
        // The device ends what it has. No queue is run but for what completions ask for.
        while fair.complete(HctxId(0)) {}
        assert_eq!(
            fair.given.load(Ordering::SeqCst),
            u64::from(u32::from(CPUS) * REQUESTS_OF_EACH),
            "one was left behind"
        );
        assert_eq!((fair.scheduler.waiting(), fair.scheduler.inflight()), (0, 0));
    });
}

#[test]
fn virtual_time_never_steps_back_though_a_submitter_read_it_late() {
    all_are_served(&[("threshold_kb", "0"), ("slots", "6")]);
}

#[test]
fn no_queue_sleeps_while_a_slot_is_free() {
    all_are_served(&[("threshold_kb", "0"), ("slots", "1")]);
    all_are_served(&[("threshold_kb", "0"), ("slots", "2")]);
}
