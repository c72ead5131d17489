//! The files in `queue/iosched/` (BFQ-13, BFQ-14).

use super::super::{BfqConfig, BfqVariant};
use super::machine::{Machine, config};
use crate::ground::kernel::Kernel;
use crate::ground::time::Hz;
use crate::policy::Scheduler;

#[test]
fn the_defaults_are_shown_and_read_back() {
    let machine = Machine::new(BfqConfig { hz: Hz(250), ..config(true) });
    for (tunable, _) in machine.bfq.tunables() {
        if !matches!(tunable.name, "low_latency" | "max_budget") {
            assert_eq!(machine.get(tunable.name), tunable.default, "{}", tunable.name);
        }
    }
}

#[test]
fn slice_idle_has_two_files_and_strict_guarantees_need_it() {
    let mut machine = Machine::new(config(true));
    machine.set("slice_idle_us", 2500);
    assert_eq!(machine.get("slice_idle"), 2);
    machine.set("slice_idle", 0);
    assert_eq!(machine.get("slice_idle_us"), 0);
    machine.set("strict_guarantees", 1);
    assert_eq!(machine.get("slice_idle"), 8);
}

#[test]
fn the_largest_budget_is_recomputed_at_once_by_a_write_of_zero_or_of_the_timeout() {
    let mut machine = Machine::new(config(true));
    assert_eq!(machine.bfq.max_budget, 16_384);
    machine.set("timeout_sync", 250);
    assert_eq!(machine.bfq.max_budget, 16_384, "fixed by the user");
    machine.set("max_budget", 0);
    assert_eq!(machine.bfq.max_budget, 35_602);
    machine.set("timeout_sync", 125);
    assert_eq!(machine.bfq.max_budget, 17_801);
}

#[test]
fn before_5_0_any_text_is_a_number() {
    let old = BfqConfig { variant: BfqVariant::of(Kernel::V4_12), ..config(true) };
    let written = |config: BfqConfig, text| {
        let mut machine = Machine::new(config);
        machine.call(|bfq, cx| bfq.set_tunable(cx, "low_latency", text)).map(|()| machine.get("low_latency"))
    };
    assert_eq!(written(old, "abc"), Ok(0));
    assert!(written(config(true), "abc").is_err());
    assert_eq!(written(config(true), "7"), Ok(1), "clamped");
}
