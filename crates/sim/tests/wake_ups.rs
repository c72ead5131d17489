//! What has a CPU that wakes up for several processes, and what that decides where they wait for tags.

use crate::support::spec;
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::Direction;
use hoistway_sim::QueueSettings;
use hoistway_sim::{Control, Host, Scenario, run};

/// A device that takes this many commands at a time, of half a millisecond each.
fn slow(depth: u32) -> Preset {
    let text = include_str!("../../device/presets/null.toml");
    let depth = format!("queue_depth = {depth}");
    let text = text.replace("queue_depth = 64", &depth).replace("delay_ns = 10_000", "delay_ns = 500_000");
    Preset::from_toml(&text, "slow.toml").unwrap()
}

/// Four readers on one CPU that never sleeps, each with one read under way, over a device that takes one command at a time, of half a millisecond. Returns
/// percentiles 40, 60 and 99 of the latencies of the first, in times of a command.
fn latencies(scheduler: &str) -> [u64; 3] {
    let job = "[r]\nfilename=/dev/nullb0\ndirect=1\nrw=randread\nnumjobs=4\nruntime=1\ntime_based\n";
    let queue = QueueSettings::new(Kernel::V6_18, 1);
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    // A CPU that sleeps makes every command a part of itself longer.
    let host = Host { idle_ns: Vec::new(), ..Host::builtin("server").unwrap() };
    let preset = slow(1);
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let processes = run(&scenario, &spec(scheduler, &[], 1), &Control::default()).unwrap().processes;
    let reads = &processes[0].direction(Direction::Read).lat;
    [40.0, 60.0, 99.0].map(|percent| (reads.percentile(percent).unwrap() + 250_000) / 500_000)
}

/// The completion of a read wakes its reader and a sleeper for the tag. Neither is owed anything, so that the reader goes first, takes the tag
/// again, and the sleeper finds none: it is owed time now, and takes the tag when they meet again. Linux 6.18 shows the same: half of
/// its reads take 1 time of a command, the others 7 (3.59 ms of 0.5 each, `seq-random-d1` in the closed loops of `crates/experiment`).
#[test]
fn a_reader_takes_its_tag_again_every_other_time() {
    assert_eq!(latencies("none"), [1, 7, 7]);
}

/// As the scheduler has two tags for the device's one, two readers take turns so: 2 and 6 times (3.06 ms there).
#[test]
fn two_readers_take_their_tags_again_where_there_are_two() {
    for scheduler in ["mq-deadline", "kyber"] {
        assert_eq!(latencies(scheduler), [2, 6, 6], "{scheduler}");
    }
}

/// With 64 tags eight come back before sleepers are woken for them, eight by one interrupt.
#[test]
fn an_interrupt_takes_longer_for_each_sleeper_that_it_wakes_beyond_the_first() {
    let ios = |waking_ns| {
        let job = "[r]\nfilename=/dev/nullb0\ndirect=1\nioengine=libaio\niodepth=16\nrw=randread\nnumjobs=16\nruntime=20ms\ntime_based\n";
        let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
        let host = Host { waking_ns: Some(waking_ns), ..Host::builtin("server").unwrap() };
        let (preset, queue) = (slow(64), QueueSettings::new(Kernel::V6_18, 1));
        let scenario =
            Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
        run(&scenario, &spec("none", &[], 1), &Control::default()).unwrap().ios
    };
    let [free, dear] = [0, 20_000].map(ios);
    assert!(dear * 10 < free * 8, "{free} and {dear}");
}
