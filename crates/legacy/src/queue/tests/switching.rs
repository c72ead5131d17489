//! LQ-32, LQ-33: changing the scheduler.

use hoistway_blk::queue::Step;

use super::*;

fn begin(bench: &mut Bench) -> Step {
    bench.call(|queue, cx, _| queue.begin_switch(cx))
}

fn poll(bench: &mut Bench) -> Step {
    bench.call(|queue, cx, _| queue.poll_switch(cx))
}

fn end(bench: &mut Bench, to: Option<&str>) {
    let next = to.map(|name| LegacyElevator::named(name, &bench.config, bench.moment()).expect("a scheduler"));
    bench.call(|queue, cx, _| queue.end_switch(cx, next));
}

#[test]
fn a_switch_waits_for_requests_of_the_old_scheduler_while_io_continues() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 2, ..config(Kernel::V4_12) }, "deadline");
    bench.submit("R100 R300 R200 R400");
    assert_eq!(begin(&mut bench), Step::More);
    assert_eq!(bench.dispatch_queue(), [200, 400], "drained, but not ended");
    // New I/O goes behind them, past the scheduler.
    bench.submit("W50");
    assert_eq!(bench.dispatch_queue(), [200, 400, 50]);
    for _ in 0..3 {
        assert_eq!(poll(&mut bench), Step::More);
        bench.complete_oldest();
    }
    assert_eq!(poll(&mut bench), Step::More, "one of them is still at the device");
    bench.complete_oldest();
    assert_eq!(poll(&mut bench), Step::Done, "what went past the scheduler is not waited for");
    assert_eq!(bench.queue.in_flight(), 1);
    end(&mut bench, Some("noop"));
    assert_eq!((bench.queue.scheduler(), bench.queue.nr_requests()), ("noop", 128));
    bench.calls();
    bench.submit("R900 R800 R700");
    assert_eq!(bench.serve(), "R900+8 R800+8 R700+8", "first come, first served");
    bench.assert_empty();
}

#[test]
fn requests_plugged_before_a_switch_still_pass_the_old_scheduler() {
    let mut bench = Bench::new("cfq");
    bench.plug();
    bench.submit("R500 R100");
    assert_eq!(begin(&mut bench), Step::More, "nothing is queued, but two are managed");
    bench.unplug();
    assert_eq!(bench.calls(), "", "the scheduler is not asked");
    assert_eq!(poll(&mut bench), Step::More);
    assert_eq!(bench.calls(), "R100+8 R500+8", "it is made to give them out");
    bench.complete_oldest();
    bench.complete_oldest();
    assert_eq!(poll(&mut bench), Step::Done);
}

#[test]
fn a_change_that_fails_leaves_the_old_scheduler_with_its_settings() {
    let mut bench = Bench::new("deadline");
    let now = bench.moment();
    bench.queue.set_tunable(now, "fifo_batch", "3", &mut bench.caller.effects).unwrap();
    assert_eq!(begin(&mut bench), Step::Done);
    end(&mut bench, None);
    assert_eq!((bench.queue.scheduler(), bench.queue.tunable("fifo_batch")), ("deadline", Ok(3)));
    assert_eq!(begin(&mut bench), Step::Done);
    end(&mut bench, Some("deadline"));
    assert_eq!(bench.queue.tunable("fifo_batch"), Ok(16), "a change resets the tunables");
}

#[test]
fn during_a_scheduler_switch_nothing_merges_under_the_lock() {
    let mut bench = Bench::stopped("deadline");
    bench.submit("W100");
    begin(&mut bench);
    bench.submit("W108 W116");
    assert_eq!(bench.serve(), "W100+8 W108+8 W116+8");
}

#[test]
fn the_scheduler_file_lists_legacy_types_only_and_takes_no_others() {
    let bench = Bench::new("deadline");
    assert_eq!(bench.queue.show_scheduler(), "noop [deadline] cfq \n");
    assert_eq!(bench.queue.would_switch(" cfq\n"), Some(true));
    assert_eq!(bench.queue.would_switch("deadline"), Some(false), "the present one: nothing to do");
    for text in ["mq-deadline", "none", "bfq", "", "a-name-that-is-too-long"] {
        assert_eq!(bench.queue.would_switch(text), None, "{text}");
    }
}

#[test]
fn there_is_no_write_back_throttling_and_its_file_is_unreadable_until_that_is_written() {
    use hoistway_blk::sysfs::AttributeError::{Invalid, Unknown};
    let bench = Bench::new("cfq");
    let (now, mut effects) = (bench.moment(), Effects::new());
    assert_eq!(bench.queue.attribute("wbt_lat_usec"), Err(Invalid));
    for text in ["2000", "-1", "x"] {
        assert_eq!(bench.queue.set_attribute(now, "wbt_lat_usec", text, &mut effects), Err(Invalid), "{text}");
    }
    bench.queue.set_attribute(now, "wbt_lat_usec", "0", &mut effects).unwrap();
    assert_eq!(bench.queue.attribute("wbt_lat_usec"), Ok("0\n".into()));
    let old = Bench::with(config(Kernel::V4_4), "cfq");
    assert_eq!(old.queue.attribute("wbt_lat_usec"), Err(Unknown));
}
