//! The rules of docs/rules/mq-deadline.md that examples alone do not prove.

use super::*;
use crate::bio::Direction;
use crate::policy::Replayable as _;
use crate::watch::reason::Reason;

/// What a head insertion must leave alone.
fn batch_state(bench: &Bench) -> (Direction, u32, u32) {
    (bench.policy.last_direction, bench.policy.batching, bench.policy.starved)
}

/// Dispatches and completes at once.
fn give(bench: &mut Bench) -> String {
    let (rq, choice) = bench.dispatch();
    let rq = rq.unwrap_or_else(|| panic!("something waits: {}", choice.reason));
    let given = name(&rq);
    bench.complete(rq);
    given
}

fn filled(generation: DeadlineGeneration, requests: &str) -> Bench {
    let mut bench = Bench::new(generation);
    for text in requests.split_whitespace() {
        bench.insert(bio(text), Place::Sorted);
    }
    bench
}

#[test]
fn a_fresh_scheduler_has_a_write_batch_of_no_requests_at_sector_0() {
    for generation in GENERATIONS {
        let bench = Bench::new(generation);
        assert_eq!(batch_state(&bench), (Direction::Write, 0, 0), "{generation:?}");
        for class in &bench.policy.classes {
            assert_eq!((class.position, class.next, class.queued), ([0, 0], [None, None], 0), "{generation:?}");
        }
        assert!(!bench.policy.has_work());
    }
}

#[test]
fn a_request_at_the_position_itself_is_next() {
    for generation in BY_POSITION {
        let mut bench = filled(generation, "R100 R200");
        assert_eq!(give(&mut bench), "R100");
        bench.insert(bio("R100"), Place::Sorted);
        bench.insert(bio("R99"), Place::Sorted);
        assert_eq!([(); 3].map(|()| give(&mut bench)), ["R100", "R200", "R99"], "{generation:?}");
    }
}

#[test]
fn requests_at_equal_sectors_leave_oldest_first() {
    for generation in GENERATIONS {
        let mut bench = filled(generation, "R50");
        let ids: Vec<RqId> = (0..3).map(|_| bench.insert(bio("R100"), Place::Sorted)).collect();
        assert_eq!(give(&mut bench), "R50");
        let given: Vec<RqId> = (0..3).map(|_| bench.dispatch().1.rq.unwrap()).collect();
        assert_eq!(given, ids, "{generation:?}");
    }
}

#[test]
fn starved_counts_only_new_batches_for_which_both_directions_wait() {
    let mut bench = filled(C, "R10").set("fifo_batch", 1);
    assert_eq!((give(&mut bench), bench.policy.starved), ("R10".into(), 0), "only reads wait");
    for text in ["R20", "R30", "W5"] {
        bench.insert(bio(text), Place::Sorted);
    }
    assert_eq!((give(&mut bench), bench.policy.starved), ("R20".into(), 1));
    bench.write("fifo_batch", 9);
    assert_eq!((give(&mut bench), bench.policy.starved), ("R30".into(), 1), "the batch goes on");
    assert_eq!((give(&mut bench), bench.policy.starved), ("W5".into(), 0), "any choice of writes zeroes it");
}

#[test]
fn starved_and_the_batch_are_shared_by_the_classes() {
    let mut bench = filled(B1, "R20 W30").set("fifo_batch", 1);
    assert_eq!((give(&mut bench), bench.policy.starved), ("R20".into(), 1));
    for text in ["rt/R10", "rt/R11", "rt/W5"] {
        bench.insert(bio(text), Place::Sorted);
    }
    assert_eq!((give(&mut bench), bench.policy.starved), ("R10".into(), 2), "real time counts on");
    assert_eq!(give(&mut bench), "W5", "after two batches of reads, one of each class");
    let mut bench = filled(CPrime, "rt/R10 R20 R5");
    assert_eq!(give(&mut bench), "R10");
    assert_eq!((give(&mut bench), bench.policy.batching), ("R5".into(), 2), "the batch that real time began");
}

#[test]
fn with_a_negative_writes_starved_writes_never_overtake_reads() {
    for generation in GENERATIONS {
        let reads = run_of('R', 100, 10, 50);
        let bench = Bench::new(generation).set("fifo_batch", 0).set("writes_starved", -1);
        let order = bench.at(0.0, "W0").at(0.0, &reads).order();
        assert_eq!(order, format!("{reads} W0"), "{generation:?}");
    }
}

#[test]
fn fifo_batches_of_0_and_1_are_equivalent_in_generation_a() {
    let order = |fifo_batch| {
        let requests = "R30 W7 R10 W3 R20 W5 R40 W1 R25";
        Bench::new(A).set("fifo_batch", fifo_batch).at(0.0, requests).order()
    };
    assert_eq!(order(0), order(1));
}

#[test]
fn with_a_fifo_batch_of_0_the_first_batch_is_reads_also_by_position() {
    for generation in BY_POSITION {
        let bench = Bench::new(generation).set("fifo_batch", 0).at(0.0, "R10 W5");
        assert_eq!(bench.order(), "R10 W5", "{generation:?}");
    }
}

#[test]
fn the_later_of_two_head_insertions_goes_first_without_touching_the_batch() {
    for generation in GENERATIONS {
        let mut bench = filled(generation, "R10 R20 R500 W7");
        give(&mut bench);
        bench.insert(bio("R300"), Place::Head);
        bench.insert(bio("R400"), Place::Head);
        let before = batch_state(&bench);
        assert_eq!([(); 2].map(|()| give(&mut bench)), ["R400", "R300"], "{generation:?}");
        assert_eq!(batch_state(&bench), before, "{generation:?}");
    }
}

#[test]
fn a_request_from_the_head_list_moves_the_position_of_its_direction() {
    for generation in BY_POSITION {
        let mut bench = filled(generation, "R10 R20 R500");
        bench.insert(bio("R400"), Place::Head);
        assert_eq!([(); 3].map(|()| give(&mut bench)), ["R400", "R500", "R10"], "{generation:?}");
    }
}

#[test]
fn the_one_head_list_goes_before_classes_and_ageing() {
    let heads = |generation| {
        let mut bench = filled(generation, "rt/R10 R20");
        bench.insert(bio("idle/R30"), Place::Head);
        [(); 3].map(|()| give(&mut bench)).join(" ")
    };
    assert_eq!(heads(CPrime), "R30 R10 R20");
    for generation in [B2, C] {
        assert_eq!(heads(generation), "R10 R20 R30", "{generation:?}: a head list for each class");
    }
}

#[test]
fn a_requeued_request_is_counted_once() {
    for generation in GENERATIONS {
        let mut bench = filled(generation, "R10");
        for _ in 0..3 {
            let (rq, _) = bench.dispatch();
            let rq = rq.unwrap();
            let id = rq.id();
            bench.requests.hold(rq);
            bench.call(|policy, cx| policy.insert(cx, id, Place::Head));
        }
        assert_eq!(bench.policy.classes[1].queued, 1, "{generation:?}");
        give(&mut bench);
        assert_eq!(bench.policy.classes[1].queued, 0, "{generation:?}");
    }
}

#[test]
fn no_lower_class_goes_while_a_higher_one_has_requests_queued_or_in_flight() {
    for generation in [B2, C, CPrime] {
        let mut bench = filled(generation, "rt/R10 R20 idle/R30");
        let (first, _) = bench.dispatch();
        let (none, choice) = bench.dispatch();
        assert!(none.is_none() && choice.reason == Reason::HigherClassInFlight, "{generation:?}");
        bench.complete(first.unwrap());
        let (second, _) = bench.dispatch();
        assert_eq!(name(second.as_ref().unwrap()), "R20", "{generation:?}");
        assert!(bench.dispatch().0.is_none(), "{generation:?}: best effort is in flight");
        bench.complete(second.unwrap());
        assert_eq!(give(&mut bench), "R30", "{generation:?}");
    }
}

#[test]
fn in_5_14_a_lower_class_goes_when_the_higher_has_nothing_queued() {
    let mut bench = filled(B1, "rt/R10 R20 idle/R30");
    let given = [(); 3].map(|()| name(&bench.dispatch().0.unwrap()));
    assert_eq!(given, ["R10", "R20", "R30"]);
}

#[test]
fn best_effort_ages_before_idle_and_real_time_never_ages() {
    for generation in [B2, C, CPrime] {
        let mut bench = filled(generation, "rt/R10 rt/R20 R500 idle/R600");
        bench.now = moment(10_001.0);
        let reasons: Vec<(String, Reason)> = (0..4)
            .map(|_| {
                let (rq, choice) = bench.dispatch();
                let rq = rq.unwrap();
                let line = (name(&rq), choice.reason);
                bench.complete(rq);
                line
            })
            .collect();
        assert_eq!(reasons[0], ("R500".into(), Reason::Aged), "{generation:?}");
        assert_eq!(reasons[1], ("R600".into(), Reason::Aged), "{generation:?}");
        assert!(reasons[2..].iter().all(|(_, reason)| *reason != Reason::Aged), "{generation:?}");
    }
}

#[test]
fn with_one_class_nothing_is_aged() {
    for generation in [B2, C, CPrime] {
        let mut bench = filled(generation, "R10 R20");
        bench.now = moment(20_000.0);
        assert_ne!(bench.dispatch().1.reason, Reason::Aged, "{generation:?}");
    }
}

#[test]
fn the_aged_pass_leaves_its_marks_even_when_it_finds_nothing() {
    // Best effort has both directions and the batch is over: the pass counts starved, turns to reads and zeroes the
    // batch before it finds that the read is too young.
    for generation in BY_POSITION {
        let mut bench = filled(generation, "rt/R10 R20 W30").set("fifo_batch", 0);
        assert_eq!(give(&mut bench), "R10");
        assert_eq!(batch_state(&bench), (Direction::Read, 1, 1), "{generation:?}");
    }
    // Seen from outside: batches are cut short when two classes are active.
    let writes = run_of('W', 100, 10, 6).replace('W', "rt/W");
    let alone = Bench::new(C).set("fifo_batch", 3).at(0.0, &format!("{writes} rt/R1000 rt/R1010"));
    assert_eq!(alone.order(), "W100 W110 W120 R1000 R1010 W130 W140 W150");
    let shared = Bench::new(C).set("fifo_batch", 3).at(0.0, &format!("{writes} rt/R1000 rt/R1010 R5 R6"));
    assert_eq!(shared.order(), "R1000 R1010 W100 W110 W120 W130 W140 W150 R5 R6");
}

#[test]
fn an_ageing_time_of_0_puts_best_effort_before_idle_before_real_time() {
    for generation in [B2, C, CPrime] {
        let bench = Bench::new(generation).set("prio_aging_expire", 0);
        let order = bench.at(0.0, "rt/R10 rt/R20 idle/R300 idle/R310 R500 R510").order();
        assert_eq!(order, "R500 R510 R300 R310 R10 R20", "{generation:?}");
    }
}

#[test]
fn an_older_request_behind_the_swept_one_does_not_age_for_it() {
    // The sweep of best effort stands at the young R900; the old R100 is behind it and must wait for its turn.
    let mut bench = filled(C, "R800");
    assert_eq!(give(&mut bench), "R800");
    bench.insert(bio("R100"), Place::Sorted);
    bench.insert(bio("rt/R10"), Place::Sorted);
    bench.insert(bio("rt/R20"), Place::Sorted);
    bench.now = moment(10_000.0);
    bench.insert(bio("R900"), Place::Sorted);
    assert_eq!(give(&mut bench), "R10", "R900 is tried, and is too young");
}

#[test]
fn an_unset_priority_counts_as_best_effort() {
    let mut bench = filled(CPrime, "idle/R10");
    bench.insert(Bio { ioprio: IoPriority::UNSET, ..bio("R90") }, Place::Sorted);
    bench.insert(bio("R50"), Place::Sorted);
    assert_eq!([(); 3].map(|()| give(&mut bench)), ["R50", "R90", "R10"]);
}

#[test]
fn a_shortened_expiry_holds_back_waiting_requests_since_generation_b2() {
    for (generation, given) in [(A, "R10"), (B1, "R10"), (B2, "-"), (C, "-"), (CPrime, "-")] {
        let mut bench = filled(generation, "R10");
        bench.write("read_expire", 1);
        let give = |bench: &mut Bench| bench.dispatch().0.map_or("-".to_owned(), |rq| name(&rq));
        assert_eq!(give(&mut bench), given, "{generation:?}");
        // It looked as if it came half a second later.
        bench.now = moment(600.0);
        assert_eq!(give(&mut bench), if given == "-" { "R10" } else { "-" }, "{generation:?}");
    }
}

#[test]
fn an_adopted_choice_counts_for_batches_and_starvation_like_an_own_one() {
    for generation in GENERATIONS {
        let [mut chooses, mut adopts] = [(); 2].map(|()| {
            let mut bench = filled(generation, "R10 R20 R30 R40 R50 R60 W5 W15 W25").set("fifo_batch", 2);
            bench.insert(bio("R100"), Place::Head);
            bench
        });
        while chooses.policy.has_work() {
            let (rq, Choice { rq: Some(id), .. }) = chooses.dispatch() else { panic!("something waits") };
            adopts.call(|policy, cx| policy.adopt(cx, HctxId(0), id));
            let adopted = adopts.requests.release(id);
            assert_eq!(batch_state(&adopts), batch_state(&chooses), "{generation:?}: {}", name(&adopted));
            chooses.complete(rq.unwrap());
            adopts.complete(adopted);
        }
        assert!(!adopts.policy.has_work());
    }
}
