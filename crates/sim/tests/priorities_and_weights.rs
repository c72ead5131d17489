//! What priorities of processes and weights of groups are worth under each scheduler (CG-1, CG-2, CG-7, CG-8).

use crate::support::{run_job, spec, writing};
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_legacy::ALL_SCHEDULERS;
use hoistway_sim::QueueSettings;

/// How many times as much as the second of two sequential readers the first gets, whose depth bfq grants to each: one that
/// asks for more tags than its weight is worth sleeps for the first of them, and gets hardly any. The device says that it rotates,
/// so that idling protects shares, but seeks take no time, so that shares of time are shares of bytes.
fn ratio(scheduler: &str, options: [&str; 2]) -> f64 {
    let mut jobs = String::from("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\n");
    for (number, options) in options.iter().enumerate() {
        let offset = 100 * number;
        jobs += &format!("[r{number}]\nrw=read\nbs=128k\niodepth=4\nruntime=30\noffset={offset}g\n{options}\n");
    }
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let tunables: &[(&str, &str)] = match scheduler {
        "bfq" => &[("low_latency", "0")],
        // Zero if the device did not rotate when cfq was attached.
        "cfq" => &[("slice_idle", "8")],
        _ => &[],
    };
    let processes =
        run_job(&jobs, &preset, queue, None, &writing(spec(scheduler, tunables, 1), "rotational", "1")).processes;
    let bytes = [0, 1]
        .map(|index: usize| processes[index].directions.iter().map(|direction| direction.bytes).sum::<u64>() as f64);
    bytes[0] / bytes[1]
}

/// Every scheduler gives the first reader `expected(scheduler)` times as much, within `tolerance`.
fn assert_ratios(options: [&str; 2], tolerance: f64, expected: impl Fn(&str) -> f64) {
    for scheduler in ALL_SCHEDULERS {
        let (got, expected) = (ratio(scheduler, options), expected(scheduler));
        assert!((got / expected - 1.0).abs() < tolerance, "{scheduler}: {got:.3} instead of {expected}");
    }
}

#[test]
fn levels_weigh_180_to_40_in_cfq_and_80_to_10_in_bfq_and_nothing_elsewhere() {
    // For bfq somewhat more: a slot of the lighter one begins with what the other still has in the device, and if it lasts
    // more than 20 ms by that it is charged for its time.
    assert_ratios(["prio=0", "prio=7"], 0.1, |scheduler| match scheduler {
        "cfq" => 4.5,
        "bfq" => 8.0,
        _ => 1.0,
    });
}

#[test]
fn weights_of_two_to_one_count_for_cfq_and_bfq_only() {
    assert_ratios(["cgroup=a\ncgroup_weight=200", "cgroup=b\ncgroup_weight=100"], 0.05, |scheduler| match scheduler {
        "cfq" | "bfq" => 2.0,
        _ => 1.0,
    });
}

#[test]
fn classes_count_for_cfq_and_bfq_and_mq_deadline() {
    for scheduler in ALL_SCHEDULERS {
        let real_time = ratio(scheduler, ["prioclass=1\nprio=4", "prioclass=2\nprio=4"]);
        let idle = ratio(scheduler, ["prioclass=2\nprio=4", "prioclass=3"]);
        if ["cfq", "bfq", "mq-deadline"].contains(&scheduler) {
            assert!(real_time > 50.0 && idle > 50.0, "{scheduler}: {real_time:.3} and {idle:.3}");
        } else {
            assert!((real_time - 1.0).abs() < 0.05 && (idle - 1.0).abs() < 0.05, "{scheduler}: {real_time:.3}");
        }
    }
}
