//! A worker issues and ends requests while another looks for what has been at the device for too long.

use hoistway_blk::drive::{Effect, Expired};
use hoistway_blk::ground::Nanos;
use shuttle::sync::Mutex;

use super::*;

const TIMEOUT: Nanos = Nanos::from_secs(30);

/// Keeps one request, and checks what it is notified of.
#[derive(Default)]
struct Keeper {
    kept: Option<Rq>,
    told: u32,
}

impl Driver for Keeper {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        assert!(self.kept.is_none(), "there is one tag");
        self.kept = Some(rq);
        Answer::Queued
    }

    fn timed_out(&mut self, now: Instant, id: RqId) -> Expired {
        let rq = self.kept.as_ref().filter(|rq| rq.id() == id).expect("only its own, and only while it has it");
        assert!(now.since(rq.issued) >= TIMEOUT, "it has its whole time");
        self.told += 1;
        Expired::RestartTimeout
    }
}

/// The queue, and the requests that the scanning thread has found overdue.
struct Watched {
    queue: Queue<Checked>,
    overdue: Mutex<Vec<(CpuId, RqId)>>,
}

impl Watched {
    fn call<R>(
        &self,
        (second, cpu): (u64, u32),
        driver: &mut Keeper,
        body: impl FnOnce(&Queue<Checked>, &mut Cx<'_, (Keeper, NoProbe)>) -> R,
    ) -> R {
        let (mut caller, mut probe) = (Caller::new(), NoProbe);
        let now = Hz::DEFAULT.now(Instant::ZERO + Nanos::from_secs(second));
        let mut cx = caller.cx(now, CpuId(cpu), driver, &mut probe, &NoMeter);
        let answer = body(&self.queue, &mut cx);
        while let Some(effect) = caller.effects.pop() {
            if let Effect::TimedOut { cpu, id } = effect {
                self.overdue.lock().unwrap().push((cpu, id));
            }
        }
        answer
    }

    /// The first CPU: two requests in the same slot, one of which is overdue in the end.
    fn issue_and_end(&self) {
        let mut driver = Keeper::default();
        for (begin, end) in [(0, 31), (32, 33)] {
            let bio = Bio::new(Op::Read, Sector(begin * 1000), 8);
            self.call((begin, 0), &mut driver, |queue, cx| Submitter::new(queue, Waiter(0)).submit(queue, cx, bio));
            self.deal_with_overdue(end, &mut driver);
            let rq = driver.kept.take().expect("it was issued");
            self.call((end, 0), &mut driver, |queue, cx| queue.complete(cx, rq, Status::Ok));
            self.deal_with_overdue(end, &mut driver);
        }
        assert!(driver.told <= 1, "told once for each expiry");
    }

    fn deal_with_overdue(&self, second: u64, driver: &mut Keeper) {
        let overdue = std::mem::take(&mut *self.overdue.lock().unwrap());
        for (cpu, id) in overdue {
            assert_eq!(cpu, CpuId(0), "the other one issues nothing");
            self.call((second, 0), driver, |queue, cx| queue.timed_out(cx, id));
        }
    }
}

#[test]
fn a_timeout_scan_reports_only_expired_requests_at_the_driver() {
    check(|| {
        let config = QueueConfig { cpus: 2, queue_depth: 1, ..QueueConfig::new(Kernel::V6_18) };
        let queue = Queue::new(&config, "none").expect("a valid configuration");
        let shared = Arc::new(Watched { queue, overdue: Mutex::new(Vec::new()) });
        on_threads(&shared, 2, |watched, number| {
            if number == 0 {
                return watched.issue_and_end();
            }
            for _ in 0..2 {
                watched.call((31, 1), &mut Keeper::default(), |queue, cx| queue.scan_timeouts(cx));
            }
        });
        shared.overdue.lock().unwrap().clear();
        shared.call((100, 1), &mut Keeper::default(), |queue, cx| queue.scan_timeouts(cx));
        assert!(shared.overdue.lock().unwrap().is_empty(), "what has ended is not at the device");
    });
}
