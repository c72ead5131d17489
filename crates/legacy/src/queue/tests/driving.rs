//! LQ-7, LQ-14, LQ-23, LQ-24: the driver, and what runs the queue. cfq requests runs itself.

use super::*;

#[test]
fn a_run_takes_requests_up_to_the_device_depth() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 3, ..config(Kernel::V4_12) }, "noop");
    bench.submit("R100 R200 R300 R400 R500");
    assert_eq!(bench.calls(), "R100+8 R200+8 R300+8");
    bench.complete_oldest();
    assert_eq!(bench.calls(), "R400+8", "a completion runs the queue in its own context");
    assert_eq!(bench.take_effects(), "");
}

#[test]
fn a_busy_device_is_run_again_by_a_completion_or_with_nothing_in_flight_after_3_ms() {
    for why in [Refusal::Busy, Refusal::UntilCompletion] {
        let mut bench = Bench::new("noop");
        bench.driver.refusals.push_back(Some(why));
        bench.submit("R100");
        assert_eq!(bench.take_effects(), "run in 3 ms");
        assert_eq!(bench.dispatch_queue(), [100]);
        bench.run();
        assert_eq!(bench.calls(), "R100+8");
        bench.driver.refusals.push_back(Some(why));
        bench.submit("R200");
        assert_eq!(bench.take_effects(), "", "the completion will run it");
        bench.complete_oldest();
        assert_eq!(bench.calls(), "R200+8");
        assert_eq!(bench.serve(), "");
        bench.assert_empty();
    }
}

#[test]
fn a_device_without_budget_gets_nothing_and_no_budget_is_lost() {
    let mut bench = Bench::new("noop");
    bench.driver.budget = Some(0);
    bench.submit("R100");
    assert_eq!((bench.calls(), bench.take_effects()), (String::new(), "run in 3 ms".to_owned()));
    assert_eq!(bench.queue.driver_tags_in_use(), 0);
    bench.driver.budget = Some(2);
    bench.driver.refusals.push_back(Some(Refusal::Busy));
    bench.run();
    assert_eq!(bench.driver.budget, Some(2));
    bench.submit("R200 R300");
    assert_eq!((bench.calls(), bench.driver.budget), ("R100+8 R200+8".to_owned(), Some(0)));
}

#[test]
fn a_request_that_fails_at_the_driver_ends_and_the_run_continues() {
    let mut bench = Bench::stopped("noop");
    bench.submit("R100 R200");
    bench.driver.ends_next = Some(Status::Medium);
    bench.queue.set_stopped(false);
    bench.run();
    assert_eq!(bench.calls(), "R200+8");
    let mut ended = Vec::new();
    bench.caller.effects.pop_ended(|bio, status| ended.push((bio.sector, status)));
    assert_eq!(ended, [(Sector(100), Status::Medium)]);
}

#[test]
fn a_stopped_queue_gives_nothing_out() {
    let mut bench = Bench::stopped("noop");
    bench.submit("R100");
    bench.run();
    assert_eq!((bench.calls(), bench.events()), (String::new(), "Q100 G100 I100".to_owned()));
}

#[test]
fn async_requests_leave_two_of_the_block_layers_tags_to_sync_ones() {
    let tagging = Tagging::Lowest;
    let mut bench = Bench::with(LegacyConfig { queue_depth: 4, tagging, ..config(Kernel::V4_12) }, "noop");
    bench.submit("W100 W200 W300");
    assert_eq!(bench.calls(), "W100+8 W200+8");
    bench.queue.set_stopped(true);
    let mut bench = Bench::with(LegacyConfig { queue_depth: 4, tagging, ..config(Kernel::V4_12) }, "noop");
    bench.submit("W100 W200 R10 R20 R30");
    assert_eq!(bench.calls(), "W100+8 W200+8 R10+8 R20+8");
}

#[test]
fn cfq_keeps_the_device_idle_and_is_run_on_a_worker_when_its_timer_fires() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "cfq");
    // A reader that continues where it stopped, and another one.
    for n in 0..4 {
        bench.submit_as(1, bio(&format!("R{}", 1000 + 8 * n)));
        bench.complete_oldest();
        bench.pass(1);
    }
    bench.take_effects();
    bench.submit_as(1, bio("R1032"));
    bench.submit_as(2, bio("R900000"));
    bench.calls();
    bench.complete_oldest();
    let effects = bench.take_effects();
    assert!(effects.contains("timer ") && bench.calls().is_empty(), "{effects}: the device is kept for the first");
    bench.pass(9);
    bench.call(|queue, cx, _| queue.timer(cx));
    assert_eq!((bench.take_effects(), bench.calls()), ("run".to_owned(), String::new()));
    bench.run();
    assert_eq!(bench.calls(), "R900000+8");
}

#[test]
fn a_request_that_ends_cfqs_idling_goes_to_the_driver_at_once() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "cfq");
    for n in 0..4 {
        bench.submit_as(1, bio(&format!("R{}", 1000 + 8 * n)));
        bench.complete_oldest();
        bench.pass(1);
    }
    bench.submit_as(1, bio("R1032"));
    bench.submit_as(2, bio("R900000"));
    bench.complete_oldest();
    bench.take_effects();
    bench.calls();
    bench.events();
    // Two at once: the first one runs the queue before the second is in.
    bench.plug();
    bench.submit_as(1, bio("R1040"));
    bench.submit_as(1, bio("R2040"));
    bench.unplug();
    let events = bench.events();
    assert!(events.contains("I1040 ask:1040 D1040 ask:- I2040"), "{events}");
    assert!(bench.take_effects().contains("no timer"));
}

#[test]
fn a_process_that_ends_frees_the_device_from_waiting_for_it() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "cfq");
    for n in 0..4 {
        bench.submit_as(1, bio(&format!("R{}", 1000 + 8 * n)));
        bench.complete_oldest();
        bench.pass(1);
    }
    bench.submit_as(1, bio("R1032"));
    bench.submit_as(2, bio("R900000"));
    bench.complete_oldest();
    bench.take_effects();
    bench.calls();
    let now = bench.moment();
    bench.queue.notify(now, &mut bench.caller.effects, SchedulerEvent::IoContextExited(IoContextId(1)));
    assert!(bench.take_effects().contains("run"));
    bench.run();
    assert_eq!(bench.calls(), "R900000+8");
}
