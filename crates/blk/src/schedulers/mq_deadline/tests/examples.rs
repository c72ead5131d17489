//! docs/rules/mq-deadline.md, for every generation that an example speaks of.

use super::*;

#[test]
fn the_first_batch_is_reads_by_pointer_and_writes_by_position() {
    for generation in BY_POINTER {
        assert_eq!(order(generation, "R10 R20 W100 W110"), "R10 R20 W100 W110", "{generation:?}");
    }
    for generation in BY_POSITION {
        assert_eq!(order(generation, "R10 R20 W100 W110"), "W100 W110 R10 R20", "{generation:?}");
    }
}

#[test]
fn a_sweep_is_remembered_over_a_change_of_direction() {
    let bench = |generation| {
        let requests = "R10 R20 R30 R40 W100 W110 W120 W130";
        Bench::new(generation).set("fifo_batch", 2).at(0.0, requests)
    };
    for generation in BY_POINTER {
        assert_eq!(bench(generation).order(), "R10 R20 R30 R40 W100 W110 W120 W130", "{generation:?}");
    }
    for generation in BY_POSITION {
        assert_eq!(bench(generation).order(), "W100 W110 R10 R20 R30 R40 W120 W130", "{generation:?}");
    }
    assert_eq!(bench(A).at(3.5, "R50 R60").order(), "R10 R20 R30 R40 W100 W110 R50 R60 W120 W130");
}

#[test]
fn the_first_sweep_begins_at_the_oldest_by_pointer_and_at_the_lowest_by_position() {
    for generation in BY_POINTER {
        assert_eq!(order(generation, "R100 R50 R200 R150"), "R100 R150 R200 R50", "{generation:?}");
    }
    for generation in BY_POSITION {
        assert_eq!(order(generation, "R100 R50 R200 R150"), "R50 R100 R150 R200", "{generation:?}");
    }
}

#[test]
fn a_late_arrival_inside_the_sweep_joins_a_position_but_not_a_pointer() {
    let bench = |generation| {
        Bench::new(generation).at(0.0, "R100 R200 R300").at(0.5, "R150").at(0.6, "R50").at(2.5, "R400").order()
    };
    for generation in BY_POINTER {
        assert_eq!(bench(generation), "R100 R200 R300 R150 R400 R50", "{generation:?}");
    }
    for generation in BY_POSITION {
        assert_eq!(bench(generation), "R100 R150 R200 R300 R400 R50", "{generation:?}");
    }
}

#[test]
fn a_batch_survives_an_idle_gap_by_position_but_not_by_pointer() {
    let bench = |generation| Bench::new(generation).at(0.0, "R100 R200").at(100.0, "R50 R300").order();
    for generation in BY_POINTER {
        assert_eq!(bench(generation), "R100 R200 R50 R300", "{generation:?}");
    }
    for generation in BY_POSITION {
        assert_eq!(bench(generation), "R100 R200 R300 R50", "{generation:?}");
    }
}

#[test]
fn classes_are_served_strictly_in_order() {
    for generation in [B2, C, CPrime] {
        let bench = Bench::new(generation).at(0.0, "R500").at(0.5, "rt/R10 rt/R20 rt/W30 idle/R600");
        assert_eq!(bench.schedule(), "0 R500, 1 R10, 2 R20, 3 W30, 4 R600", "{generation:?}");
    }
}

#[test]
fn a_lower_class_waits_for_the_last_request_in_flight_of_a_higher_one_since_5_16() {
    let bench = |generation| Bench::new(generation).depth(2).at(0.0, "R500").at(0.5, "rt/R10 idle/R600").schedule();
    assert_eq!(bench(B1), "0 R500, 0.5 R10, 1 R600");
    for generation in [B2, C, CPrime] {
        assert_eq!(bench(generation), "0 R500, 0.5 R10, 1.5 R600", "{generation:?}");
    }
}

#[test]
fn an_aged_request_goes_before_a_higher_class() {
    let realtime = run_of('R', 0, 10, 10).replace('R', "rt/R");
    for generation in [C, CPrime] {
        let bench = Bench::new(generation).service(10.0).at(0.0, &format!("R900 {realtime}"));
        let aged = bench.set("prio_aging_expire", 30).schedule();
        assert!(aged.starts_with("0 R0, 10 R10, 20 R20, 30 R900, 40 R30, 50 R40"), "{generation:?}: {aged}");
        assert!(aged.ends_with("100 R90"), "{generation:?}: {aged}");
        let bench = Bench::new(generation).service(10.0).at(0.0, &format!("R900 {realtime}"));
        let patient = bench.schedule();
        assert!(patient.ends_with("90 R90, 100 R900"), "{generation:?}: {patient}");
    }
}

#[test]
fn a_head_insertion_moves_the_position_but_disturbs_no_pointer() {
    let bench = |generation| Bench::new(generation).at(0.0, "R100 R200 R300 R800").at_head(0.5, "R700").order();
    assert_eq!(bench(CPrime), "R100 R700 R800 R200 R300");
    assert_eq!(bench(A), "R100 R700 R200 R300 R800");
}

#[test]
fn batches_of_one_with_reads_and_two_writes() {
    let bench =
        |generation| Bench::new(generation).set("fifo_batch", 1).at(0.0, "R10 R20 R30 R40 R50 W1000 W1010").order();
    assert_eq!(bench(A), "R10 R20 W1000 R30 R40 W1010 R50");
    for generation in BY_POSITION {
        assert_eq!(bench(generation), "W1000 R10 R20 W1010 R30 R40 R50", "{generation:?}");
    }
}

#[test]
fn expired_heads_and_batches_of_one_make_arrival_order() {
    for generation in GENERATIONS {
        let bench = Bench::new(generation).set("fifo_batch", 1).set("read_expire", 0).at(0.0, "R50 R10 R30 R20");
        assert_eq!(bench.order(), "R50 R10 R30 R20", "{generation:?}");
    }
}
