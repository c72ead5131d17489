//! The scheduler and the number of requests change while other threads submit, run hardware queues and complete, under a
//! model checker: nothing is lost, nothing ends twice, and every change comes to its end.

use std::collections::VecDeque;
use std::sync::Arc;

use hoistway_blk::bio::{Bio, Op, Status};
use hoistway_blk::caller::{Action, Agenda, BlockQueue, Caller, Cx, Submitted, Submitter};
use hoistway_blk::drive::{Answer, Driver};
use hoistway_blk::ground::{CpuId, Kernel, NoMeter, Now, Sector, Waiter};
use hoistway_blk::queue::{QueueConfig, Step};
use hoistway_blk::request::Rq;
use hoistway_blk::watch::NoProbe;
use hoistway_legacy::{AnyQueue, all_schedulers};
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
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        self.in_flight.push_back(rq);
        Answer::Queued
    }
}

struct Served {
    front: AnyQueue<Checked>,
    beds: Beds,
    ended: AtomicU64,
}

/// A CPU with its device.
struct Cpu<'a> {
    served: &'a Served,
    number: u32,
    device: Null,
    caller: Caller,
    agenda: Agenda,
}

impl Cpu<'_> {
    /// Calls, and does what follows at once. Delayed runs never come due: they are a safety net that nothing here may need.
    fn call<R>(&mut self, body: impl FnOnce(&AnyQueue<Checked>, &mut Cx<'_, (Null, NoProbe)>) -> R) -> R {
        let (served, mut probe) = (self.served, NoProbe);
        let mut cx = self.caller.cx(Now::default(), CpuId(self.number), &mut self.device, &mut probe, &NoMeter);
        let answer = body(&served.front, &mut cx);
        self.agenda.carry_out(&served.front, &mut cx, |_, action| match action {
            Action::End { .. } => {
                served.ended.fetch_add(1, Ordering::SeqCst);
            }
            Action::Wake(waiter) => served.beds.wake(waiter),
            Action::TimedOut { .. } | Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
                unreachable!("its tags are not shared")
            }
        });
        answer
    }

    /// Completes requests until there are none.
    fn serve(&mut self) {
        while let Some(rq) = self.device.in_flight.pop_front() {
            self.call(|front, cx| front.complete(cx, rq, Status::Ok));
        }
    }

    fn submit(&mut self, submitter: &mut Submitter<AnyQueue<Checked>>, bio: Bio) {
        submitter.begin(bio);
        while self.call(|front, cx| submitter.make_progress(front, cx)) == Submitted::Parked {
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
        let config = QueueConfig {
            cpus: SUBMITTERS as u16 + 1,
            queue_depth: 4,
            schedulers: all_schedulers(),
            ..QueueConfig::new(kernel)
        };
        let front = AnyQueue::new(&config, scheduler).expect("a valid configuration");
        let shared = Arc::new(Served { front, beds: Beds::new(SUBMITTERS), ended: AtomicU64::new(0) });
        on_threads(&shared, SUBMITTERS + 1, move |served, number| {
            let agenda = Agenda::new(served.front.hw_queues());
            let mut cpu = Cpu { served, number, device: Null::default(), caller: Caller::new(), agenda };
            if number == SUBMITTERS {
                writes.iter().for_each(|&write| cpu.write(write));
                return;
            }
            let mut submitter = Submitter::new(&served.front, Waiter(number));
            for n in 0..BIOS {
                let sector = Sector(u64::from(number) * 10_000 + n * 1000);
                cpu.submit(&mut submitter, Bio::new(Op::Read, sector, 8));
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
