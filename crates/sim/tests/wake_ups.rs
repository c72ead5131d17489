//! Who has a CPU that wakes up for several processes, and what that decides where they wait for tags.

mod support;

use hoistway_blk::Kernel;
use hoistway_device::Preset;
use hoistway_results::Direction;
use hoistway_sim::QueueSettings;
use support::{run_job, spec};

/// Four readers on one CPU, each with one read under way, over a device that takes one command at a time, of half a millisecond. Answers
/// percentiles 40, 60 and 99 of the latencies of the first, in times of a command.
fn latencies(scheduler: &str) -> [u64; 3] {
    let job = "[r]\nfilename=/dev/nullb0\ndirect=1\nrw=randread\nnumjobs=4\nruntime=1\ntime_based\n";
    let text = include_str!("../../device/presets/null.toml");
    let text = text.replace("queue_depth = 64", "queue_depth = 1").replace("delay_ns = 10_000", "delay_ns = 500_000");
    let preset = Preset::from_toml(&text, "slow.toml").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 1);
    let processes = run_job(job, &preset, queue, None, &spec(scheduler, &[], 1)).processes;
    let reads = &processes[0].direction(Direction::Read).lat;
    [40.0, 60.0, 99.0].map(|percent| (reads.percentile(percent).unwrap() + 250_000) / 500_000)
}

/// The completion of a read wakes its reader and a sleeper for the tag. Neither is owed anything, so that the reader goes first, takes the tag
/// again, and the sleeper finds none: it is owed time now, and takes the tag when they meet again. Linux 6.18 shows the same: half of
/// its reads take 1 time of a command, the others 7 (3.59 ms of 0.5 each, `seq-random-d1` in the closed loops of `crates/lab`).
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
