//! Clients that depart while they wait, while others wait for the same tags and a writer waits for the queue to empty.

use shuttle::rand::Rng;
use shuttle::thread;

use super::*;

impl Cpu<'_> {
    /// Submits; a submission that has to wait departs, or not. Returns whether it has.
    fn submit_or_depart(&mut self, submitter: &mut Submitter<Queue<Checked>>, bio: Bio) -> bool {
        submitter.begin(bio);
        while self.call(|queue, cx| submitter.make_progress(queue, cx)) == Submitted::Parked {
            self.serve();
            if shuttle::rand::thread_rng().gen_bool(0.5) {
                let bio = self.call(|queue, cx| submitter.cancel(queue, cx));
                assert!(bio.is_some(), "what waits has not gone");
                self.serve();
                return true;
            }
            self.served.beds.sleep(self.number);
        }
        self.serve();
        false
    }

    /// Freezes the queue, waits until it has emptied, changes its scheduler, and opens it again.
    fn switch(&mut self, scheduler: &str) {
        self.call(|queue, cx| queue.freeze(cx));
        self.serve();
        while !self.served.queue.is_drained() {
            thread::yield_now();
        }
        self.call(|queue, cx| queue.switch_scheduler(scheduler, cx.effects)).expect("it has emptied");
        self.call(|queue, cx| queue.unfreeze(cx));
        self.serve();
    }
}

fn clients_may_depart(
    pattern: Bio,
    scheduler: &'static str,
    clients: u32,
    queue_depth: u32,
    next: Option<&'static str>,
) {
    for contention_options in CONTENTION_OPTIONS {
        let pattern = pattern.clone();
        check(move || clients_depart(&pattern, scheduler, clients, queue_depth, next, contention_options));
    }
}

fn clients_depart(
    pattern: &Bio,
    scheduler: &str,
    clients: u32,
    queue_depth: u32,
    next: Option<&'static str>,
    contention_options: ContentionOptions,
) {
    let pattern = pattern.clone();
    let threads = clients + u32::from(next.is_some());
    let config = QueueConfig {
        contention_options,
        cpus: threads as u16,
        queue_depth,
        merging: Merging::Off,
        ..QueueConfig::new(Kernel::V6_18)
    };
    let queue = Queue::new(&config, scheduler).expect("a valid configuration");
    let shared = Arc::new(Served { queue, beds: Beds::new(threads), ended: AtomicU64::new(0) });
    on_threads(&shared, threads, move |served, number| {
        let mut cpu = Cpu::new(served, number);
        if let Some(next) = next.filter(|_| number == clients) {
            return cpu.switch(next);
        }
        let mut submitter = Submitter::new(&served.queue, Waiter(number));
        for n in 0..2 {
            let sector = Sector(u64::from(number) * 10_000 + n * 1000);
            if cpu.submit_or_depart(&mut submitter, Bio { sector, ..pattern.clone() }) {
                served.ended.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    assert_eq!(shared.ended.load(Ordering::SeqCst), u64::from(clients) * 2, "each bio has ended or come back");
    let queue = &shared.queue;
    assert_eq!((queue.requests_in_use(), queue.driver_tags_in_use(), queue.throttled_in_flight()), (0, 0, 0));
}

#[test]
fn a_turn_that_had_come_passes_on_when_its_sleeper_departs() {
    let read = Bio::new(Op::Read, Sector(0), 8);
    for scheduler in ["none", "mq-deadline"] {
        clients_may_depart(read.clone(), scheduler, 3, 1, None);
    }
}

#[test]
fn a_freeze_ends_and_the_scheduler_changes_although_clients_depart() {
    let read = Bio::new(Op::Read, Sector(0), 8);
    for (scheduler, next) in [("none", "mq-deadline"), ("mq-deadline", "none"), ("kyber", "none")] {
        clients_may_depart(read.clone(), scheduler, 2, 1, Some(next));
    }
}

#[test]
fn throttled_write_back_continues_when_other_waiters_depart() {
    let write_back = Bio { flags: BioFlags::BACKGROUND, ..Bio::new(Op::Write, Sector(0), 8) };
    clients_may_depart(write_back, "none", 3, 2, None);
}
