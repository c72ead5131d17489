//! Which process gets how much, from first principles: weights of groups, classes and levels of processes, limits of
//! groups
//! (CG-1, CG-2, CG-7 to CG-15).

use crate::support::{run_job, spec, writing};
use hoistway_blk::bio::CgroupPriority;
use hoistway_blk::ground::Kernel;
use hoistway_cgroup::IoMax;
use hoistway_device::Preset;
use hoistway_legacy::ALL_SCHEDULERS;
use hoistway_measure::ProcessResult;
use hoistway_sim::QueueSettings;

const DISK: &str = "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\n";

fn simulate(jobs: &str, scheduler: &str, tunables: &[(&str, &str)], io_max: &[(&str, &str)]) -> Vec<ProcessResult> {
    simulate_on("intel-s3520-1600gb", &[], jobs, scheduler, tunables, io_max)
}

/// The same on a rotating disk.
fn simulate_on_disk(jobs: &str, scheduler: &str, tunables: &[(&str, &str)]) -> Vec<ProcessResult> {
    simulate_on("hgst-he10-8tb", &[], jobs, scheduler, tunables, &[])
}

fn simulate_on(
    preset: &str,
    attributes: &[(&str, &str)],
    jobs: &str,
    scheduler: &str,
    tunables: &[(&str, &str)],
    io_max: &[(&str, &str)],
) -> Vec<ProcessResult> {
    let text = format!("{DISK}{jobs}");
    let preset = Preset::builtin(preset).unwrap();
    let mut queue = QueueSettings::new(Kernel::V6_18, 8);
    for (cgroup, text) in io_max {
        let mut limit = IoMax::default();
        limit.update(text).unwrap();
        queue.io_max.push(((*cgroup).to_owned(), limit));
    }
    let spec = attributes.iter().fold(spec(scheduler, tunables, 1), |spec, (file, text)| writing(spec, file, text));
    run_job(&text, &preset, queue, None, &spec).processes
}

fn bytes(process: &ProcessResult) -> f64 {
    process.directions.iter().map(|direction| direction.bytes).sum::<u64>() as f64
}

fn iops(process: &ProcessResult) -> f64 {
    let ios: u64 = process.directions.iter().map(|direction| direction.ios).sum();
    ios as f64 / (process.runtime_ns as f64 / 1e9)
}

/// The parts of the whole that the processes got.
fn shares(processes: &[ProcessResult]) -> Vec<f64> {
    let total: f64 = processes.iter().map(bytes).sum();
    processes.iter().map(|process| bytes(process) / total).collect()
}

fn assert_shares(got: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    for (got_one, expected_one) in got.iter().zip(expected) {
        assert!((got_one / expected_one - 1.0).abs() < tolerance, "{what}: {got:.3?}, expected {expected:.3?}");
    }
}

/// Sequential readers, one for each line of options.
fn readers(options: &[&str]) -> String {
    let reader = |(number, options): (usize, &&str)| {
        format!("[r{number}]\nrw=read\nbs=128k\niodepth=8\nruntime=60\noffset={}g\n{options}\n", 100 * number)
    };
    options.iter().enumerate().map(reader).collect()
}

const EXACT: [(&str, &str); 1] = [("low_latency", "0")];

#[test]
fn bfq_divides_sequential_reads_by_the_weights_of_groups() {
    let jobs = readers(&["cgroup=a\ncgroup_weight=100", "cgroup=b\ncgroup_weight=200", "cgroup=c\ncgroup_weight=400"]);
    let got = shares(&simulate(&jobs, "bfq", &EXACT, &[]));
    assert_shares(&got, &[1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0], 0.05, "bfq 1:2:4");
    let got = shares(&simulate_on_disk(&jobs, "bfq", &EXACT));
    assert_shares(&got, &[1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0], 0.05, "bfq 1:2:4 on a disk");
}

#[test]
fn cfq_divides_the_time_of_a_disk_by_the_weights_of_groups_and_the_levels_of_priorities() {
    // Time, not bytes: each slice begins with a seek, which is a larger part of the short slices of a light group.
    let groups = ["cgroup=a\ncgroup_weight=250", "cgroup=b\ncgroup_weight=500", "cgroup=c\ncgroup_weight=1000"];
    let got = shares(&simulate_on_disk(&readers(&groups), "cfq", &[]));
    assert_shares(&got, &[1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0], 0.15, "cfq 250:500:1000");
    // Slices of 180, 100 and 40 ms, of which a long seek and half a turn take some 14.
    let got = shares(&simulate_on_disk(&readers(&["prio=0", "prio=4", "prio=7"]), "cfq", &[]));
    assert_shares(&got, &[166.0 / 278.0, 86.0 / 278.0, 26.0 / 278.0], 0.1, "cfq, levels 0, 4 and 7");
}

#[test]
fn bfq_divides_the_share_of_a_group_among_its_children() {
    let jobs =
        readers(&["cgroup=a/x\ncgroup_weight=100", "cgroup=a/y\ncgroup_weight=300", "cgroup=b\ncgroup_weight=100"]);
    let got = shares(&simulate(&jobs, "bfq", &EXACT, &[]));
    assert_shares(&got, &[0.125, 0.375, 0.5], 0.05, "bfq with a group of two groups");
}

#[test]
fn bfq_divides_by_the_level_of_the_io_priority_on_a_disk_that_seeks() {
    let jobs = readers(&["prioclass=2\nprio=0", "prioclass=2\nprio=4", "prioclass=2\nprio=6"]);
    // On flash bfq does not wait for the queue of the smallest weight, which then gets less than its share.
    let got = shares(&simulate_on("intel-s3520-1600gb", &[("rotational", "1")], &jobs, "bfq", &EXACT, &[]));
    let expected = [80.0 / 140.0, 40.0 / 140.0, 20.0 / 140.0];
    assert_shares(&got, &expected, 0.05, "bfq BE 0, 4 and 6");
}

#[test]
fn real_time_goes_before_best_effort_and_that_before_idle() {
    let jobs = readers(&["prioclass=1\nprio=4", "prioclass=2\nprio=4", "prioclass=3"]);
    for scheduler in ["bfq", "mq-deadline"] {
        let tunables: &[(&str, &str)] = if scheduler == "bfq" { &EXACT } else { &[] };
        let got = shares(&simulate(&jobs, scheduler, tunables, &[]));
        assert!(got[0] > 0.9, "{scheduler}: {got:.3?}");
    }
    for scheduler in ["none", "kyber"] {
        let got = shares(&simulate(&jobs, scheduler, &[], &[]));
        assert_shares(&got, &[1.0 / 3.0; 3], 0.05, scheduler);
    }
}

#[test]
fn an_iops_limit_holds_under_every_scheduler() {
    let jobs =
        "[limited]\nrw=randread\nbs=4k\niodepth=4\nruntime=10\ncgroup=slow\n[free]\nrw=randread\nbs=4k\nruntime=10\n";
    for scheduler in ALL_SCHEDULERS {
        let processes = simulate(jobs, scheduler, &[], &[("slow", "riops=100")]);
        let limited = iops(&processes[0]);
        // Under cfq the limited process also waits for its turns.
        let least = if scheduler == "cfq" { 90.0 } else { 99.0 };
        assert!((least..=102.0).contains(&limited), "{scheduler}: {limited}");
        assert!(iops(&processes[1]) > 2000.0, "{scheduler}: the other goes on");
    }
}

#[test]
fn a_mebibyte_a_second_is_256_reads_of_4_kib() {
    let jobs = "[limited]\nrw=randread\nbs=4k\nruntime=10\ncgroup=slow\n";
    let processes = simulate(jobs, "none", &[], &[("slow", "rbps=1048576")]);
    let got = iops(&processes[0]);
    assert!((254.0..=259.0).contains(&got), "{got}");
    let writes = "[limited]\nrw=randwrite\nbs=4k\nruntime=2\ncgroup=slow\n";
    let processes = simulate(writes, "none", &[], &[("slow", "rbps=1048576")]);
    assert!(iops(&processes[0]) > 5000.0, "a limit of reads is none of writes");
}

#[test]
fn children_share_the_limit_of_their_parent() {
    let jobs = "[a]\nrw=randwrite\nbs=4k\niodepth=8\nruntime=10\ncgroup=p/a\n[b]\nrw=randwrite\nbs=4k\niodepth=8\nruntime=10\ncgroup=p/b\n";
    let processes = simulate(jobs, "mq-deadline", &[], &[("p", "wiops=120")]);
    let (a, b) = (iops(&processes[0]), iops(&processes[1]));
    assert!((118.0..=123.0).contains(&(a + b)), "{a} + {b}");
    assert!((a / b - 1.0).abs() < 0.1, "{a} and {b}");
}

#[test]
fn io_prio_class_of_a_group_replaces_the_class_of_its_io_since_5_14_and_does_not_act_below_it() {
    let jobs = "[a]\nrw=randread\niodepth=16\nruntime=2\ncgroup=x\nprioclass=1\n\
                [b]\nrw=randread\niodepth=16\nruntime=2\ncgroup=x/below\nprioclass=2\n";
    let share = |kernel, classes: &[(&str, &str)]| {
        let mut queue = QueueSettings::new(kernel, 8);
        let class = |text| CgroupPriority::parse(text).unwrap();
        queue.io_prio_class = classes.iter().map(|&(path, text)| (path.to_owned(), class(text))).collect();
        let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
        let spec = spec("mq-deadline", &[("prio_aging_expire", "100000")], 1);
        let spec = if kernel < Kernel::V6_3 { crate::support::spec("mq-deadline", &[], 1) } else { spec };
        shares(&run_job(&format!("{DISK}{jobs}"), &preset, queue, None, &spec).processes)[0]
    };
    let now = Kernel::V6_18;
    assert!(share(now, &[]) > 0.9, "real time before best effort");
    assert!(share(now, &[("x", "idle")]) < 0.1, "idle after best effort");
    assert!((0.45..0.55).contains(&share(now, &[("x", "restrict-to-be")])), "alike");
    assert!((0.45..0.55).contains(&share(now, &[("x/below", "promote-to-rt")])), "alike");
    assert!((0.45..0.55).contains(&share(Kernel::V5_10, &[("x", "idle")])), "no such file");
}
