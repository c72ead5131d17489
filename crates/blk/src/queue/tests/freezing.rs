//! Freezing and changing the scheduler: BL-20, BL-98 to BL-102, BL-105, BL-106, BL-109.

use super::*;

impl Bench {
    fn freeze(&mut self) {
        self.call(|queue, cx, _| queue.freeze(cx));
    }

    fn unfreeze(&mut self) {
        self.call(|queue, cx, _| queue.unfreeze(cx));
        self.work();
    }

    /// Freezes, waits until everything has ended, changes the scheduler, and lets everybody in again.
    pub(super) fn switch(&mut self, name: &str) -> Result<(), ChangeError> {
        self.freeze();
        self.work();
        while !self.queue.is_drained() {
            self.complete_all();
            self.work();
            self.run_delayed();
        }
        let answer = self.queue.switch_scheduler(name, &mut self.caller.effects);
        self.unfreeze();
        answer
    }
}

#[test]
fn a_frozen_queue_admits_no_bio_and_completes_those_inside() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 2, ..config(Kernel::V6_18) }, scheduler);
        for sector in [0, 100] {
            bench.submit_as(1, write(sector));
        }
        bench.freeze();
        assert_eq!(bench.submit_as(2, write(200)), Submitted::Parked, "{scheduler}");
        bench.work();
        assert!(!bench.queue.is_drained(), "{scheduler}: the driver has two");
        bench.complete_all();
        bench.work();
        assert_eq!(bench.ended.len(), 2);
        assert!(bench.queue.is_drained(), "{scheduler}");
        bench.unfreeze();
        assert!(bench.parked.is_empty(), "{scheduler}: those that waited are let in");
        bench.drain();
        assert_eq!(bench.ended.len(), 3);
    }
}

#[test]
fn freezing_nests() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.freeze();
    bench.freeze();
    assert_eq!(bench.submit_as(1, read(0)), Submitted::Parked);
    bench.unfreeze();
    assert!(bench.queue.is_frozen() && bench.ended.is_empty());
    bench.unfreeze();
    bench.drain();
    assert_eq!(bench.ended.len(), 1);
}

#[test]
fn a_nowait_bio_fails_at_a_frozen_queue() {
    let mut bench = Bench::new(Kernel::V6_18, "bfq");
    bench.freeze();
    let nowait = Bio { flags: BioFlags::NOWAIT, ..read(0) };
    assert_eq!(bench.submit(nowait), Submitted::Done);
    bench.asked();
    assert_eq!(bench.ended, [(0, Status::Again)]);
    assert!(bench.queue.is_drained());
}

#[test]
fn a_freeze_waits_for_tag_sleepers_and_plugged_requests() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 1, ..config(Kernel::V6_18) }, "none");
    bench.submit_as(1, read(0));
    assert_eq!(bench.submit_as(2, read(100)), Submitted::Parked);
    bench.freeze();
    bench.complete_all();
    // The tag is free and the sleeper not yet awake: no request exists, and still the queue is not empty.
    assert_eq!(bench.queue.requests_in_use(), 0);
    assert!(!bench.queue.is_drained());
    bench.unfreeze();
    bench.drain();

    let mut bench = Bench::new(Kernel::V6_18, "mq-deadline");
    bench.plug();
    bench.submit(read(0));
    bench.freeze();
    assert!(!bench.queue.is_drained());
    // The task wants more, has to wait, and gives up what it has plugged.
    assert_eq!(bench.submit_as(1, read(100)), Submitted::Parked);
    bench.work();
    bench.complete_all();
    bench.work();
    assert!(bench.queue.is_drained());
    bench.unfreeze();
    bench.unplug();
    bench.drain();
}

#[test]
fn a_12_switching_waits_until_the_old_scheduler_has_served_everything() {
    for (from, to) in [("bfq", "none"), ("mq-deadline", "kyber"), ("none", "bfq"), ("kyber", "mq-deadline")] {
        let mut bench = Bench::new(Kernel::V6_18, from);
        for number in 0..30 {
            bench.submit_as(1, write(number * 100));
        }
        bench.switch(to).expect("it can be switched");
        assert_eq!((bench.ended.len(), bench.queue.scheduler()), (30, to), "{from}");
        bench.submit_all((0..30).map(|number| read(number * 100)));
        bench.drain();
        assert_eq!(bench.ended.len(), 60);
    }
}

#[test]
fn a_queue_in_use_is_not_switched() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    let switched = bench.queue.switch_scheduler("bfq", &mut bench.caller.effects);
    assert_eq!(switched, Err(ChangeError::Busy), "not frozen");
    bench.submit(read(0));
    bench.freeze();
    let switched = bench.queue.switch_scheduler("bfq", &mut bench.caller.effects);
    assert_eq!((switched, bench.queue.scheduler()), (Err(ChangeError::Busy), "none"));
    bench.unfreeze();
    bench.drain();
}

#[test]
fn an_unknown_scheduler_is_refused_and_nothing_changes() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        for name in ["cfq", "", "bfqq", "mq-deadline-and-more", "non"] {
            assert_eq!(bench.switch(name), Err(ChangeError::Invalid), "{name}");
            assert_eq!(bench.queue.scheduler(), scheduler);
        }
    }
}

#[test]
fn the_present_name_changes_nothing_and_another_resets_tunables_and_nr_requests() {
    let mut bench = Bench::with(&QueueConfig { nr_requests: Some(100), ..config(Kernel::V6_18) }, "mq-deadline");
    let set = |bench: &mut Bench| {
        bench.queue.set_tunable(Hz(1000).now(Instant::ZERO), "fifo_batch", "3", &mut bench.caller.effects).unwrap();
    };
    let state = |bench: &Bench| {
        (bench.queue.elevator(|elevator| elevator.tunable("fifo_batch").ok()), bench.queue.nr_requests())
    };
    set(&mut bench);
    for same in ["mq-deadline", "deadline", " mq-deadline\n"] {
        assert_eq!(bench.queue.would_switch(same), Ok(false));
        bench.switch(same).unwrap();
        assert_eq!(state(&bench), (Some(3), 100), "{same}");
    }
    assert_eq!(bench.queue.would_switch("none"), Ok(true));
    bench.switch("none").unwrap();
    assert_eq!(state(&bench), (None, 32));
    bench.switch("mq-deadline").unwrap();
    assert_eq!(state(&bench), (Some(16), 64));
}

#[test]
fn names_are_read_as_the_kernel_reads_them() {
    for (text, name) in [
        ("none\n", "none"),
        (" none", "none"),
        ("nonesense", "none"),
        ("deadline", "mq-deadline"),
        ("\tkyber \n", "kyber"),
    ] {
        let other = if name == "bfq" { "none" } else { "bfq" };
        let mut bench = Bench::new(Kernel::V6_18, other);
        bench.switch(text).unwrap();
        assert_eq!(bench.queue.scheduler(), name, "{text:?}");
    }
}

#[test]
fn a_stopped_timer_does_not_reach_the_next_scheduler() {
    let mut bench = Bench::new(Kernel::V6_18, "bfq");
    bench.freeze();
    bench.asked();
    bench.queue.switch_scheduler("kyber", &mut bench.caller.effects).unwrap();
    assert_eq!(bench.asked(), ["cancel timer"]);
}
