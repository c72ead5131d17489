//! kyber in a queue: tokens, timer, wake-ups and requeues on the way of requests, on one thread and on two.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::bio::Status;
use crate::caller::Caller;
use crate::caller::agenda::{Action, Agenda, Due};
use crate::caller::block_queue::Submitted;
use crate::caller::env::Cx;
use crate::drive::driver::{Answer, Driver};
use crate::drive::effects::Effects;
use crate::ground::ids::Waiter;
use crate::ground::meter::NoMeter;
use crate::ground::sharing::Threads;
use crate::ground::time::Nanos;
use crate::queue::{Queue, QueueConfig, QueueSubmission};
use crate::request::plug::Plug;
use crate::watch::probe::NoProbe;

/// What has been started, for all CPUs.
#[derive(Default)]
struct Device {
    started: Mutex<Vec<Rq>>,
}

impl Device {
    fn with<R>(&self, body: impl FnOnce(&mut Vec<Rq>) -> R) -> R {
        body(&mut self.started.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A CPU's view of it: it takes everything.
struct NullDriver<'a>(&'a Device);

impl Driver for NullDriver<'_> {
    fn queue_rq(&mut self, _now: Now, rq: Rq, _last: bool) -> Answer {
        self.0.with(|started| started.push(rq));
        Answer::Queued
    }
}

fn queue<Sh: Sharing>(kernel: Kernel, cpus: u16, hw_queues: u16) -> Queue<Sh> {
    let config = QueueConfig {
        kernel,
        cpus,
        hw_queues,
        queue_depth: 32,
        nr_requests: None,
        merging: Merging::Off,
        limits: Limits::default(),
        ..QueueConfig::new(kernel)
    };
    Queue::new(&config, "kyber").expect("kyber is among the schedulers")
}

fn kyber_of<Sh: Sharing, R>(queue: &Queue<Sh>, look: impl FnOnce(&Kyber<Sh>) -> R) -> R {
    queue.elevator(|elevator| look(elevator.as_kyber().expect("the scheduler is kyber")))
}

/// One CPU of a queue and all that it does.
struct Cpu<'a, Sh: Sharing> {
    queue: &'a Queue<Sh>,
    device: &'a Device,
    cpu: CpuId,
    now: Now,
    caller: Caller,
    agenda: Agenda,
    /// Bios that ended here, by owner.
    ended: Vec<u64>,
}

impl<'a, Sh: Sharing> Cpu<'a, Sh> {
    fn new(queue: &'a Queue<Sh>, device: &'a Device, cpu: u32) -> Self {
        let (caller, agenda) = (Caller::new(), Agenda::new(queue.hw_queues()));
        Cpu { queue, device, cpu: CpuId(cpu), now: at_ms(1), caller, agenda, ended: Vec::new() }
    }

    fn call<R>(&mut self, body: impl FnOnce(&Queue<Sh>, &mut Cx<'_, (NullDriver<'_>, NoProbe)>) -> R) -> R {
        let mut driver = NullDriver(self.device);
        body(self.queue, &mut self.caller.cx(self.now, self.cpu, &mut driver, &mut NoProbe, &NoMeter))
    }

    fn submit(&mut self, submission: &mut QueueSubmission, plug: Option<&mut Plug>) -> Submitted {
        self.call(|queue, cx| queue.submit(cx, submission, plug))
    }

    /// Carries out what is due now. A delayed run is forgotten: kyber must not depend on it.
    fn settle(&mut self, mut wake: impl FnMut(Waiter)) {
        let (mut driver, mut probe) = (NullDriver(self.device), NoProbe);
        let mut cx = self.caller.cx::<(NullDriver<'_>, NoProbe)>(self.now, self.cpu, &mut driver, &mut probe, &NoMeter);
        self.agenda.carry_out(self.queue, &mut cx, |_, action| match action {
            Action::End { bio, status } => {
                assert_eq!(status, Status::Ok);
                self.ended.push(bio.owner);
            }
            Action::Wake(waiter) => wake(waiter),
            Action::TimedOut { .. } | Action::RunOther { .. } | Action::Arbitrate(_) | Action::MoveSubmitter { .. } => {
                unreachable!("its tags are not shared")
            }
        });
        for hctx in (0..self.queue.hw_queues()).map(HctxId) {
            self.agenda.cancel(Due::Run(hctx));
        }
    }

    fn complete(&mut self, rq: Rq) {
        self.call(|queue, cx| queue.complete(cx, rq, Status::Ok));
    }

    fn submit_one(&mut self, op: Op, owner: u64) {
        let bio = Bio { owner, ..super::bio(op, owner * 1000) };
        assert_eq!(self.submit(&mut QueueSubmission::new(bio, Waiter(0)), None), Submitted::Done);
        self.settle(|_| {});
    }
}

#[test]
fn all_hardware_queues_run_and_a_throttled_one_resumes_with_a_token() {
    for kernel in [Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_18] {
        let queue: Queue<Local> = queue(kernel, 2, 2);
        kyber_of(&queue, |kyber| kyber.adopt_depth(Domain::Read, 1));
        assert!([0, 1].iter().all(|&hctx| queue.is_run_by_run_all(CpuId(0), HctxId(hctx))));
        let device = Device::default();
        let (mut cpu0, mut cpu1) = (Cpu::new(&queue, &device, 0), Cpu::new(&queue, &device, 1));
        cpu0.submit_one(Op::Read, 1);
        cpu1.submit_one(Op::Read, 2);
        assert_eq!(device.with(|started| started.len()), 1, "{kernel}: one token, one request");
        assert_eq!(kyber_of(&queue, |kyber| kyber.waiting(Domain::Read)), 1);

        let first = device.with(Vec::pop).unwrap();
        cpu0.complete(first);
        cpu0.settle(|_| {});
        assert_eq!((&cpu0.ended[..], device.with(|started| started.len())), (&[1][..], 1), "{kernel}");
        let second = device.with(Vec::pop).unwrap();
        assert_eq!(second.hctx, HctxId(1), "the completing CPU ran the waiting hardware queue");
        cpu1.complete(second);
        cpu1.settle(|_| {});
        assert_eq!((cpu1.ended, kyber_of(&queue, |kyber| kyber.tokens_in_use(Domain::Read))), (vec![2], 0));
    }
}

#[test]
fn a_requeued_request_takes_a_new_token() {
    let queue: Queue<Local> = queue(Kernel::V6_18, 1, 1);
    let device = Device::default();
    let mut cpu = Cpu::new(&queue, &device, 0);
    cpu.submit_one(Op::Write, 1);
    let rq = device.with(Vec::pop).unwrap();
    cpu.call(|queue, cx| queue.requeue(cx, rq));
    assert_eq!(kyber_of(&queue, |kyber| kyber.tokens_in_use(Domain::Write)), 0);
    cpu.settle(|_| {});
    assert_eq!(kyber_of(&queue, |kyber| kyber.tokens_in_use(Domain::Write)), 1);
    let rq = device.with(Vec::pop).unwrap();
    cpu.complete(rq);
    cpu.settle(|_| {});
    assert_eq!(
        (cpu.ended, kyber_of(&queue, |kyber| kyber.tokens_in_use(Domain::Write)), queue.requests_in_use()),
        (vec![1], 0, 0)
    );
}

#[test]
fn completions_set_the_timer_and_its_round_changes_depths() {
    let queue: Queue<Local> = queue(Kernel::V6_18, 1, 1);
    let device = Device::default();
    let mut cpu = Cpu::new(&queue, &device, 0);
    for n in 0..600 {
        cpu.now = at_ms(1000);
        cpu.submit_one(if n % 2 == 0 { Op::Read } else { Op::Write }, n);
        cpu.now = at_ms(1003);
        let rq = device.with(Vec::pop).unwrap();
        cpu.complete(rq);
        cpu.settle(|_| {});
    }
    // 300 samples of each do only when the deadline, a second after the first round, has passed.
    for round in [at_ms(1104), at_ms(2104)] {
        assert_eq!(cpu.agenda.cancel(Due::Timer), Some(round.at));
        cpu.now = round;
        cpu.call(|queue, cx| queue.timer(cx));
        cpu.submit_one(Op::Discard, 1000);
        let rq = device.with(Vec::pop).unwrap();
        cpu.now = at_ms(2000);
        cpu.complete(rq);
        cpu.settle(|_| {});
    }
    // Reads of 3 ms miss their target of 2 ms; writes of 3 ms are in the second quarter of theirs. Their total
    // latency waits for a deadline of its own.
    assert_eq!(
        kyber_of(&queue, Kyber::last_round).map(|round| round.io[0].map(|reading| reading.bucket)),
        Some(Some(5))
    );
    assert_eq!(kyber_of(&queue, |kyber| kyber.depth(Domain::Write)), 128);
    cpu.now = at_ms(3208);
    cpu.call(|queue, cx| queue.timer(cx));
    assert_eq!(
        kyber_of(&queue, Kyber::last_round).map(|round| round.total[1].map(|reading| reading.bucket)),
        Some(Some(1))
    );
}

#[test]
fn selecting_it_again_resets_depths_measurements_and_targets() {
    let queue: Queue<Local> = queue(Kernel::V6_18, 1, 1);
    kyber_of(&queue, |kyber| kyber.adopt_depth(Domain::Write, 7));
    kyber_of(&queue, |kyber| kyber.set_tunable("read_lat_nsec", "5")).unwrap();
    let device = Device::default();
    for scheduler in ["none", "kyber"] {
        Cpu::new(&queue, &device, 0).call(|queue, cx| queue.freeze(cx));
        queue.switch_scheduler(scheduler, &mut Effects::new()).unwrap();
        Cpu::new(&queue, &device, 0).call(|queue, cx| queue.unfreeze(cx));
    }
    let shown: Vec<i128> = kyber_of(&queue, Kyber::tunables).into_iter().map(|(_, value)| value).collect();
    assert_eq!((kyber_of(&queue, |kyber| kyber.depth(Domain::Write)), shown), (128, vec![2_000_000, 10_000_000]));
    assert_eq!(kyber_of(&queue, Kyber::last_round), Some(super::super::percentiles::ControllerRound::default()));
}

/// Bios that each thread submits.
const BIOS: u64 = 4000;

/// Looks around without anything to do before a thread gives up.
const IDLE_MAX: u32 = 50_000_000;

/// What the threads share beside the queue.
struct Crowd {
    /// How often each bio has ended.
    ended: Vec<AtomicU32>,
    /// Bios that have ended.
    count: AtomicUsize,
    /// Whether the submitter of each thread has been woken.
    woken: [AtomicBool; 2],
}

fn hammer(queue: &Queue<Threads>, device: &Device, crowd: &Crowd, thread: u32) {
    let mut cpu = Cpu::new(queue, device, thread);
    let mut parked: Option<QueueSubmission> = None;
    let mut submitted = 0;
    let mut seed = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(u64::from(thread) + 1);
    let mut idle = 0;
    while crowd.count.load(Ordering::SeqCst) < crowd.ended.len() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        cpu.now = Hz(250).now(cpu.now.at + Nanos::from_micros(50));
        idle += 1;
        assert!(idle < IDLE_MAX, "a request was forgotten");
        let may_go_on = parked.is_none() || crowd.woken[thread as usize].swap(false, Ordering::SeqCst);
        if may_go_on && (parked.is_some() || submitted < BIOS) {
            let mut submission = parked.take().unwrap_or_else(|| {
                let op = [Op::Read, Op::Read, Op::Write, Op::Discard][(seed >> 40) as usize % 4];
                let owner = u64::from(thread) * BIOS + submitted;
                submitted += 1;
                QueueSubmission::new(Bio { owner, ..super::bio(op, owner * 1000) }, Waiter(thread))
            });
            if cpu.submit(&mut submission, None) == Submitted::Parked {
                parked = Some(submission);
            }
            idle = 0;
        } else if let Some(rq) = device.with(|started| {
            let count = started.len();
            (count > 0).then(|| started.swap_remove((seed >> 33) as usize % count.max(1)))
        }) {
            if seed >> 58 == 0 {
                cpu.call(|queue, cx| queue.requeue(cx, rq));
            } else {
                cpu.complete(rq);
            }
            idle = 0;
        } else {
            std::thread::yield_now();
        }
        cpu.settle(|Waiter(waiter)| crowd.woken[waiter as usize].store(true, Ordering::SeqCst));
        for owner in cpu.ended.drain(..) {
            crowd.ended[owner as usize].fetch_add(1, Ordering::SeqCst);
            crowd.count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn two_threads_lose_or_duplicate_no_request_and_return_all_tokens() {
    for (kernel, hw_queues) in [(Kernel::V6_18, 2), (Kernel::V6_18, 1), (Kernel::V4_19, 2), (Kernel::V4_12, 1)] {
        let queue: Queue<Threads> = queue(kernel, 2, hw_queues);
        for (domain, depth) in [(Domain::Read, 3), (Domain::Write, 2), (Domain::Other, 2)] {
            kyber_of(&queue, |kyber| kyber.adopt_depth(domain, depth));
        }
        let device = Device::default();
        let crowd = Crowd {
            ended: (0..2 * BIOS).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicUsize::new(0),
            woken: Default::default(),
        };
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (queue, device, crowd) = (&queue, &device, &crowd);
                scope.spawn(move || hammer(queue, device, crowd, thread));
            }
        });
        assert!(crowd.ended.iter().all(|count| count.load(Ordering::SeqCst) == 1), "{kernel}");
        assert_eq!((queue.requests_in_use(), queue.driver_tags_in_use()), (0, 0));
        for domain in Domain::ALL {
            assert_eq!(
                (
                    kyber_of(&queue, |kyber| kyber.tokens_in_use(domain)),
                    kyber_of(&queue, |kyber| kyber.waiting(domain))
                ),
                (0, 0),
                "{kernel}, {domain:?}"
            );
        }
    }
}
