//! The generation that counts in ticks.
//!
//! Rules: CFQ-1, CFQ-2, CFQ-31, CFQ-32, CFQ-34.

use hoistway_blk::ground::{Hz, Kernel};
use hoistway_blk::policy::Scheduler;

use super::super::{CfqConfig, CfqEvent};
use super::*;

fn bench(depth: usize) -> Bench {
    Bench::with(CfqConfig::new(&Kernel::V4_4.generation(), true), depth)
}

#[test]
fn tunables_read_back_in_whole_ticks_and_there_are_none_in_microseconds() {
    let mut bench = bench(1);
    assert_eq!((bench.get("fifo_expire_sync"), bench.get("fifo_expire_async")), (124, 248));
    assert_eq!((bench.get("slice_sync"), bench.get("slice_async"), bench.get("slice_idle")), (100, 40, 8));
    assert!(bench.policy.tunables().iter().all(|(file, _)| !file.name.ends_with("_us")));
    bench.set("slice_idle", "5");
    assert_eq!(bench.get("slice_idle"), 8);
}

#[test]
fn the_declared_defaults_are_those_that_the_files_show_at_every_tick_rate() {
    for hz in [100, 250, 300, 1000] {
        let config = CfqConfig { hz: Hz(hz), ..CfqConfig::new(&Kernel::V4_4.generation(), true) };
        let bench = Bench::with(config, 1);
        for (file, _) in bench.policy.tunables() {
            assert_eq!(bench.get(file.name), file.default, "{} at {hz} Hz", file.name);
        }
    }
    let bench = bench(1);
    let files = bench.policy.tunables();
    let declared = |name| files.iter().find(|(file, _)| file.name == name).map(|(file, _)| file.default);
    assert_eq!((declared("fifo_expire_sync"), declared("fifo_expire_async")), (Some(124), Some(248)));
}

#[test]
fn slices_and_the_idle_timer_count_ticks() {
    let mut bench = bench(1);
    bench.add(Job { count: 1, ..Job::new(1, 1) });
    bench.run_until(2 * MS);
    assert!(bench.events_of(1).contains(&CfqEvent::SetSlice(25)));
    assert_eq!(bench.timer, Some(8 * MS), "two ticks after tick 0");
}

#[test]
fn a_turn_within_one_tick_is_charged_a_whole_one() {
    let mut bench = bench(1);
    bench.add(Job { count: 1, ..Job::new(1, 1) }.class(hoistway_blk::bio::PriorityClass::Idle, 0));
    bench.run_until(3 * MS);
    let charged = |event: &CfqEvent| matches!(event, CfqEvent::SliceUsed { used: 1, charge: 1, .. });
    assert!(bench.events_of(1).iter().any(charged));
}

#[test]
fn two_streams_share_the_device_by_ticks_as_well() {
    let mut bench = bench(31);
    bench.add(Job::new(1, 16));
    bench.add(Job { start: US, ..Job::new(2, 16) });
    bench.run_until(4_000 * MS);
    assert!(bench.count(1).abs_diff(bench.count(2)) < 200, "{} {}", bench.count(1), bench.count(2));
    assert!(bench.turns().len() > 30);
}
