//! docs/rules/deadline.md: generation A makes deadline's choices. Merging is in `merging`.

use super::*;

#[test]
fn a_sweep_and_a_restart_at_the_oldest() {
    let bench = Bench::new(A).at(0.0, "R100 R50 R200 R150");
    assert_eq!(bench.schedule(), "0 R100, 1 R150, 2 R200, 3 R50");
}

#[test]
fn writes_overtake_after_two_batches_of_reads() {
    let bench = Bench::new(A).set("fifo_batch", 1).at(0.0, "R10 R20 R30 R40 R50 W1000 W1010");
    assert_eq!(bench.schedule(), "0 R10, 1 R20, 2 W1000, 3 R30, 4 R40, 5 W1010, 6 R50");
}

#[test]
fn default_batches_are_of_16() {
    let bench = Bench::new(A).at(0.0, &run_of('R', 0, 10, 40)).at(0.0, &run_of('W', 10_000, 10, 20));
    let expected = [
        run_of('R', 0, 10, 16),
        run_of('R', 160, 10, 16),
        run_of('W', 10_000, 10, 16),
        run_of('R', 320, 10, 8),
        run_of('W', 10_160, 10, 4),
    ];
    assert_eq!(bench.order(), expected.join(" "));
}

#[test]
fn an_expiry_is_seen_only_between_batches() {
    let bench = |service, upper| {
        let arrivals = Bench::new(A).at(0.0, "R1000 R1008").at(1.0, "R5").at(2.0, &run_of('R', 1016, 8, upper));
        arrivals.service(service).schedule()
    };
    let slow = bench(40.0, 30);
    assert!(slow.starts_with("0 R1000, 40 R1008, 80 R1016"), "{slow}");
    assert!(slow.contains("600 R1120, 640 R5, 680 R1128, 720 R1136"), "{slow}");
    let fast = bench(10.0, 60);
    assert!(fast.contains("150 R1120, 160 R1128") && fast.ends_with("610 R1488, 620 R5"), "{fast}");
}

#[test]
fn a_change_of_direction_forgets_the_sweep() {
    let bench = || {
        let requests = "R10 R20 R30 R40 W100 W110 W120 W130";
        Bench::new(A).set("fifo_batch", 2).at(0.0, requests)
    };
    assert_eq!(bench().order(), "R10 R20 R30 R40 W100 W110 W120 W130");
    assert_eq!(bench().at(3.5, "R50 R60").order(), "R10 R20 R30 R40 W100 W110 R50 R60 W120 W130");
}

#[test]
fn writes_go_first_if_they_may_not_starve() {
    let bench = Bench::new(A).set("fifo_batch", 1).set("writes_starved", 0).at(0.0, "R10 R20 W100 W110");
    assert_eq!(bench.order(), "W100 W110 R10 R20");
}

#[test]
fn expired_reads_in_batches_of_one_leave_in_arrival_order() {
    let bench = Bench::new(A).set("read_expire", 0).set("fifo_batch", 1).at(0.0, "R50 R10 R30 R20");
    assert_eq!(bench.order(), "R50 R10 R30 R20");
    for fifo_batch in [0, 1] {
        let bench = Bench::new(A).set("fifo_batch", fifo_batch).at(0.0, "R50 R10 R30");
        assert_eq!(bench.order(), "R50 R10 R30", "fifo_batch {fifo_batch}");
    }
}

#[test]
fn at_most_one_next_pointer_is_set_and_it_points_at_a_queued_request() {
    let mut bench = Bench::new(A).set("fifo_batch", 2);
    for text in ["R10", "R20", "R30", "W5", "W15", "W25"] {
        bench.insert(bio(text), Place::Sorted);
    }
    while let (Some(rq), _) = bench.dispatch() {
        let set: Vec<u32> = bench.policy.classes[1].next.into_iter().flatten().collect();
        assert!(set.len() <= 1, "after {}", name(&rq));
        assert!(set.iter().all(|&id| bench.requests.holds(RqId(id))), "after {}", name(&rq));
        bench.complete(rq);
    }
}

#[test]
fn a_changed_expire_tunable_holds_for_later_insertions_only() {
    for generation in GENERATIONS {
        let mut bench = Bench::new(generation);
        let before = bench.insert(bio("R10"), Place::Sorted);
        bench.write("read_expire", 7);
        let after = bench.insert(bio("R20"), Place::Sorted);
        let expiry = [before, after].map(|id| bench.policy.entries[id.index()].expiry);
        assert_eq!(expiry, [500, 7], "{generation:?}");
    }
}

#[test]
fn with_one_direction_and_nothing_expired_service_is_ascending_sweeps_that_begin_at_the_oldest() {
    let ascending = run_of('R', 0, 10, 40);
    assert_eq!(order(A, &format!("R900 R800 R950 {ascending}")), format!("R900 R950 R800 {ascending}"));
}

#[test]
fn discards_are_writes() {
    for generation in BY_POINTER {
        assert_eq!(order(generation, "D5 R10 W20"), "R10 D5 W20", "{generation:?}");
    }
    for generation in BY_POSITION {
        assert_eq!(order(generation, "D5 R10 W20"), "D5 W20 R10", "{generation:?}");
    }
}
