//! CL-1 to CL-4, CL-6, CL-7: what is done against contention.

use std::cell::Cell;

use super::*;
use crate::ground::ids::IoContextId;
use crate::ground::meter::{Held, Meter, Site};
use crate::policy::{ContentionOptions, DispatchBatch, ElevatorCx, Insertion};
use crate::watch::reason::Reason;

fn with(contention_options: ContentionOptions, scheduler: &str) -> Bench {
    Bench::with(&QueueConfig { queue_depth: 4, contention_options, ..config(Kernel::V6_18) }, scheduler)
}

/// Reads and writes, some of them neighbours, over four tags; completions come one by one.
fn events_of_a_load(contention_options: ContentionOptions, scheduler: &str) -> (String, Vec<u64>) {
    let mut bench = with(contention_options, scheduler);
    for n in 0..60u64 {
        let sector = n / 3 * 7919 % 1000 * 64 + n % 3 * 8;
        if n % 10 == 0 {
            bench.plug();
        }
        bench.submit_as(n as u32, if n / 3 % 4 == 0 { write(sector) } else { read(sector) });
        if n % 10 == 5 {
            bench.unplug();
        }
        bench.now += Nanos::from_micros(50);
        if n % 2 == 0 && !bench.driver.in_flight.is_empty() {
            let first = bench.driver.in_flight[0].sector.0;
            bench.complete(first);
        }
        bench.work();
    }
    if bench.plug.is_some() {
        bench.unplug();
    }
    bench.drain();
    // How often a scheduler says that it has nothing depends on which CPU asks.
    (bench.events(), bench.probe.answers.into_iter().flatten().collect())
}

#[test]
fn a_single_cpu_sees_the_same_decisions_with_all_contention_options() {
    for scheduler in ["mq-deadline", "bfq"] {
        let plain = events_of_a_load(ContentionOptions::default(), scheduler);
        let (events, answers) = &plain;
        assert!(events.matches('M').count() >= 5 && events.matches('D').count() >= 30, "{scheduler}: {events}");
        assert!(answers.len() >= 30, "{scheduler}");
        for contention_options in [ContentionOptions::ALL, ContentionOptions::ALL_PENDING] {
            assert_eq!(events_of_a_load(contention_options, scheduler), plain, "{scheduler}");
        }
    }
}

/// Counts how often a lock is taken to ask for requests.
#[derive(Default)]
struct Asked(Cell<u32>);

impl Meter for Asked {
    fn enter(&self, _: &Held, site: Site) {
        self.0.set(self.0.get() + u32::from(site == Site::Dispatch));
    }

    fn try_enter(&self, lock: &Held, site: Site) -> bool {
        self.enter(lock, site);
        true
    }

    fn leave(&self, _: &Held, _: Site) {}
}

#[test]
fn batch_dispatch_takes_the_lock_once_instead_of_once_per_request() {
    for (contention_options, holds) in [
        (ContentionOptions { batch_dispatch: true, ..ContentionOptions::default() }, 1),
        (ContentionOptions::default(), 4),
    ] {
        let mut bench = with(contention_options, "mq-deadline");
        bench.queue.set_quiesced(true);
        bench.submit_all((0..4).map(|n| read(n * 100)));
        bench.work();
        bench.queue.set_quiesced(false);
        let asked = Asked::default();
        let mut cx = bench.caller.cx::<(Script, Letters, Asked)>(
            Hz(1000).now(bench.now),
            CpuId(0),
            &mut bench.driver,
            &mut bench.probe,
            &asked,
        );
        bench.queue.run_hctx(&mut cx, HctxId(0));
        assert_eq!(bench.issued().len(), 4, "{contention_options:?}: as many as there are tags");
        assert_eq!(asked.0.get(), holds, "{contention_options:?}");
        bench.drain();
    }
}

/// What happens while a CPU asks the policy, and so holds its lock.
struct Meanwhile<'a>(&'a mut dyn FnMut());

impl DispatchBatch for Meanwhile<'_> {
    fn may_dispatch(&mut self) -> bool {
        (self.0)();
        false
    }

    fn on_dispatched(&mut self, _: Option<Rq>, _: Reason) -> bool {
        unreachable!("nothing may be dispatched")
    }
}

#[test]
fn while_one_cpu_dispatches_another_sees_that_and_cannot_merge() {
    let mut bench = with(ContentionOptions::ALL, "mq-deadline");
    bench.occupy(4);
    bench.submit(read(100));
    bench.work();
    bench.forget();
    bench.submit(read(500));
    let hctx = HctxId(0);
    bench.queue.elevator(|elevator| {
        let ask = || ElevatorCx::alone(Now::default(), |cx| elevator.dispatch(&NoMeter, cx, hctx).1);
        let merge = || {
            let mut bio = Some(read(508));
            let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
            ElevatorCx::alone(Now::default(), |cx| elevator.merge_bio(&NoMeter, cx, &rules, &mut bio))
        };
        let mut told = Vec::new();
        let mut look = || told.push((ask(), merge()));
        ElevatorCx::alone(Now::default(), |cx| {
            elevator.dispatch_batch(&NoMeter, cx, hctx, 1, &mut Meanwhile(&mut look));
        });
        assert_eq!(told, [(Reason::Elsewhere, None)]);
        assert_eq!(merge(), Some(Edge::Back), "when the lock is free it is");
    });
    bench.drain();
}

/// 64 processes write 4 KiB after 4 KiB, each to a place of its own, over 64 tags and a device that completes one request in the time of
/// 256 writes. Returns how many turns they need, and how many requests come of it.
fn turns_and_requests_of_sequential_writers(contention_options: ContentionOptions, scheduler: &str) -> [usize; 2] {
    const WRITERS: u64 = 64;
    const WRITES: u64 = 32;
    let mut bench = Bench::with(&QueueConfig { contention_options, ..config(Kernel::V6_18) }, scheduler);
    // A busy device is not asked for, so the policy is not asked.
    bench.driver.budget = Some(4);
    let mut written = [0; WRITERS as usize];
    let mut turns = 0;
    while written.iter().any(|&count| count < WRITES) {
        for writer in 0..WRITERS {
            let count = &mut written[writer as usize];
            if *count < WRITES && !bench.parked.contains_key(&(writer as u32)) {
                let io_context = IoContextId(writer as u32 + 1);
                let bio = Bio { owner: writer, io_context, ..write(writer * 1_000_000 + *count * 8) };
                *count += 1;
                bench.on(writer as u32 % 4).submit_as(writer as u32, bio);
            }
            bench.now += Nanos::from_micros(5);
            turns += 1;
            if turns % 256 == 0 {
                if let Some(first) = bench.driver.in_flight.front().map(|rq| rq.sector.0) {
                    bench.complete(first);
                }
                bench.driver.budget = Some(4 - bench.driver.in_flight.len() as u32);
                bench.run(0);
            }
            bench.work();
        }
    }
    bench.driver.budget = None;
    for _ in 0..WRITERS * WRITES {
        bench.run(0);
        bench.complete_all();
        bench.work();
    }
    bench.drain();
    assert_eq!(bench.ended.len() as u64, WRITERS * WRITES);
    [turns, bench.driver.calls.len()]
}

#[test]
fn pending_lists_do_not_keep_sequential_writers_from_being_merged() {
    let direct = turns_and_requests_of_sequential_writers(ContentionOptions::default(), "mq-deadline");
    assert!(direct[1] < 64 * 32 / 4, "most writes are merged: {direct:?}");
    for contention_options in [
        ContentionOptions::ALL_PENDING,
        ContentionOptions { insertion: Insertion::Pending, ..ContentionOptions::default() },
    ] {
        let pending = turns_and_requests_of_sequential_writers(contention_options, "mq-deadline");
        let is_as_good = pending.iter().zip(direct).all(|(&pending, direct)| pending <= direct + direct / 20);
        assert!(is_as_good, "{pending:?} instead of {direct:?}");
    }
}
