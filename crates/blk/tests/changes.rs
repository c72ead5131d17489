//! The scheduler and the number of requests change while other threads submit, run hardware queues and complete, under a
//! model checker: nothing is lost, nothing ends twice, and every change comes to its end.

use std::collections::VecDeque;
use std::sync::Arc;

use hoistway_blk::{
    Bio, CpuId, Cx, Driver, Effect, Effects, Front, FrontSubmission, Kernel, Nanos, NoMeter, NoProbe, Now, Op,
    QueueConfig, Rejected, Rq, Sector, Status, Step, Submitted, Waiter,
};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

#[path = "support/checked.rs"]
mod checked;
use checked::{Beds, Checked, check, on_threads};

const SUBMITTERS: u32 = 2;
const BIOS: u64 = 2;

/// Takes everything; what it holds is completed by its thread.
#[derive(Default)]
struct Null {
    in_flight: VecDeque<Rq>,
}

impl Driver for Null {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Result<(), Rejected> {
        self.in_flight.push_back(rq);
        Ok(())
    }
}

struct Served {
    front: Front<Checked>,
    beds: Beds,
    ended: AtomicU64,
}

/// A CPU with its device.
struct Cpu<'a> {
    served: &'a Served,
    number: u32,
    device: Null,
    effects: Effects,
}

impl Cpu<'_> {
    fn call<R>(&mut self, body: impl FnOnce(&Front<Checked>, &mut Cx<'_, (Null, NoProbe)>) -> R) -> R {
        let (driver, effects, probe) = (&mut self.device, &mut self.effects, &mut NoProbe);
        let mut cx = Cx { now: Now::default(), cpu: CpuId(self.number), driver, effects, probe, meter: &NoMeter };
        body(&self.served.front, &mut cx)
    }

    /// Carries out effects and completes requests until there are none. Delayed runs never come due: they are a
    /// safety net that nothing here may need.
    fn serve(&mut self) {
        loop {
            if let Some(effect) = self.effects.pop() {
                match effect {
                    Effect::EndBio { .. } => {
                        self.served.ended.fetch_add(1, Ordering::SeqCst);
                    }
                    Effect::Wake(waiter) => self.served.beds.wake(waiter),
                    Effect::RunHctx { hctx, delay: Nanos::ZERO } => self.call(|front, cx| front.run_hctx(cx, hctx)),
                    Effect::RunAll { delay: Nanos::ZERO } => self.call(|front, cx| {
                        for hctx in front.hctxs_of_run_all(cx.cpu) {
                            front.run_hctx(cx, hctx);
                        }
                    }),
                    _ => {}
                }
            } else if let Some(rq) = self.device.in_flight.pop_front() {
                self.call(|front, cx| front.complete(cx, rq, Status::Ok));
            } else {
                return;
            }
        }
    }

    fn submit(&mut self, submission: &mut FrontSubmission) {
        while self.call(|front, cx| front.submit(cx, submission, None)) == Submitted::Parked {
            self.serve();
            self.served.beds.sleep(self.number);
        }
        self.serve();
    }

    /// Writes a file and sees the change to its end.
    fn write(&mut self, (file, text): (&str, &str)) {
        let mut change = self.call(|front, cx| front.begin_change(cx, file, text)).expect("it can be changed");
        self.serve();
        while let Some(waiting) = change.take() {
            if self.call(|front, cx| front.poll_change(cx, &waiting)).expect("it can be made") == Step::More {
                change = Some(waiting);
                thread::yield_now();
            }
            self.serve();
        }
    }
}

/// `writes` go to `queue/` while everybody submits.
fn nothing_is_lost_under(kernel: Kernel, scheduler: &'static str, writes: &'static [(&'static str, &'static str)]) {
    check(move || {
        let config = QueueConfig { cpus: SUBMITTERS as u16 + 1, queue_depth: 4, ..QueueConfig::new(kernel) };
        let front = Front::new(&config, scheduler).expect("a valid configuration");
        let shared = Arc::new(Served { front, beds: Beds::new(SUBMITTERS), ended: AtomicU64::new(0) });
        on_threads(&shared, SUBMITTERS + 1, move |served, number| {
            let mut cpu = Cpu { served, number, device: Null::default(), effects: Effects::new() };
            if number == SUBMITTERS {
                writes.iter().for_each(|&write| cpu.write(write));
                return;
            }
            let mut submission = served.front.submission(Waiter(number));
            for n in 0..BIOS {
                submission.begin(Bio::new(Op::Read, Sector(u64::from(number) * 10_000 + n * 1000), 8));
                cpu.submit(&mut submission);
            }
        });
        let front = &shared.front;
        assert_eq!(shared.ended.load(Ordering::SeqCst), u64::from(SUBMITTERS) * BIOS, "every bio has ended");
        assert_eq!((front.requests_in_use(), front.driver_tags_in_use()), (0, 0));
        for (file, text) in writes {
            let shown = front.attribute(file).expect("it can be read");
            assert!(shown.trim() == *text || shown.contains(&format!("[{text}]")), "{file}: {shown}");
        }
    });
}

#[test]
fn the_scheduler_changes_under_load_and_every_bio_ends_once() {
    nothing_is_lost_under(Kernel::V6_18, "none", &[("scheduler", "mq-deadline")]);
    nothing_is_lost_under(Kernel::V6_18, "mq-deadline", &[("scheduler", "none")]);
}

#[test]
fn the_number_of_requests_changes_under_load_and_every_bio_ends_once() {
    nothing_is_lost_under(Kernel::V6_18, "mq-deadline", &[("nr_requests", "16")]);
}

#[test]
fn limits_change_under_load_and_every_bio_ends_once() {
    nothing_is_lost_under(Kernel::V6_18, "none", &[("nomerges", "2"), ("max_sectors_kb", "4")]);
}

#[test]
fn a_legacy_scheduler_changes_under_load_and_every_bio_ends_once() {
    nothing_is_lost_under(Kernel::V4_19, "noop", &[("scheduler", "deadline")]);
}
