//! What decides when a process issues its I/Os, beside fio itself where that is installed.

#[path = "../../fio/tests/fio_run/mod.rs"]
mod fio_run;

use std::fs;
use std::time::Duration;

use crate::support::{run_job, spec};
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_measure::ProcessResult;
use hoistway_sim::QueueSettings;
use serde_json::Value;

/// Runs jobs on a device that takes next to no time.
fn simulated(jobs: &str) -> Vec<ProcessResult> {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/nullb0\nsize=1g\n{jobs}");
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    run_job(&text, &Preset::builtin("null").unwrap(), queue, None, &spec("none", &[], 1)).processes
}

fn ios(processes: &[ProcessResult]) -> Vec<u64> {
    processes.iter().map(ProcessResult::total_ios).collect()
}

/// Whether the same jobs do with fio what is expected of how many reads each of them does; true if it is not installed.
///
/// fio goes by the clock, and a busy machine may stop it for longer than a job's pauses: it has five attempts.
fn is_so_with_fio(test: &str, jobs: &str, is_as_expected: impl Fn(&[u64]) -> bool) -> bool {
    if !fio_run::is_installed() {
        return true;
    }
    let directory = fio_run::directory(test);
    let text = format!("[global]\nthread\nioengine=null\nfilename=nothing\nsize=1g\n{jobs}");
    let is_so = (1..=5).any(|attempt| {
        let Some(output) = fio_run::try_run(&directory, &text, &[], &[], Duration::from_secs(20)) else {
            eprintln!("attempt {attempt}: fio did not end");
            return false;
        };
        assert!(output.status.success(), "{jobs}: {}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("fio's document");
        let jobs = document["jobs"].as_array().expect("a list").iter();
        let ios: Vec<u64> = jobs
            .map(|job| ["read", "write"].iter().map(|of| job[*of]["total_ios"].as_u64().expect("a number")).sum())
            .collect();
        eprintln!("attempt {attempt}: {ios:?}");
        is_as_expected(&ios)
    });
    fs::remove_dir_all(&directory).expect("the directory is there");
    is_so
}

#[test]
fn processes_of_a_flow_are_in_the_proportions_of_their_weights() {
    let flow = |weights: [u32; 2]| {
        let [a, b] = weights;
        ios(&simulated(&format!("time_based\nruntime=100ms\n[a]\nflow={a}\n[b]\nflow={b}\n")))
    };
    for (weights, expected) in [([8, 1], 8.0), ([1, 1], 1.0), ([2, 3], 2.0 / 3.0)] {
        let ios = flow(weights);
        let ratio = ios[0] as f64 / ios[1] as f64;
        assert!(ios[1] > 300 && (ratio / expected - 1.0).abs() < 0.01, "{weights:?}: {ios:?}");
    }
    // Jobs without a weight, or of another flow, go on by themselves.
    let ios = ios(&simulated("time_based\nruntime=100ms\n[a]\nflow=8\n[b]\nflow=1\n[c]\n[d]\nflow=1\nflow_id=2\n"));
    assert!(ios[2] > 4 * ios[1] && ios[3] > 4 * ios[1], "{ios:?}");
}

#[test]
fn a_process_that_is_ahead_sleeps_as_long_as_it_should() {
    let jobs = |sleep: &str| format!("time_based\nruntime=1s\n{sleep}[a]\nflow=1\n[b]\nflow=1\nrate_iops=1000\n");
    let balanced = ios(&simulated(&jobs("")));
    // It begins before or after the other one, and is alone then.
    assert!((990..=1010).contains(&balanced[0]), "{balanced:?}");
    // Now one, now the other is an I/O ahead and sleeps.
    let slept = ios(&simulated(&jobs("flow_sleep=50000\n")));
    assert!((76..=84).contains(&slept[0]) && (76..=84).contains(&slept[1]), "{slept:?}");
    let is_near = |fio: &[u64]| fio.iter().zip(&slept).all(|(fio, ours)| fio.abs_diff(*ours) <= 6);
    assert!(is_so_with_fio("flow-sleep", &jobs("flow_sleep=50000\n"), is_near), "{slept:?}");
}

#[test]
fn no_process_is_more_than_one_io_ahead_as_in_fio() {
    let sets = [&[3, 1][..], &[8, 1], &[5, 2], &[1, 1], &[1, 3], &[10, 10], &[3, 2, 1]];
    let mut jobs = String::from("flow_sleep=1000\n");
    for (id, weights) in sets.into_iter().enumerate() {
        jobs += &format!("[first]\nflow_id={id}\nflow={}\ntime_based\nruntime=1s\n", weights[0]);
        for weight in &weights[1..] {
            // One that has not begun counts nevertheless, so that the first can do almost nothing.
            jobs += &format!("[late]\nflow_id={id}\nflow={weight}\nstartdelay=1500ms\nnumber_ios=1\n");
        }
    }
    let ours = ios(&simulated(&jobs));
    let expected: Vec<u64> = sets
        .into_iter()
        .flat_map(|weights| {
            let others: u64 = weights[1..].iter().sum();
            std::iter::once((weights[0] + others) / others).chain(weights[1..].iter().map(|_| 1))
        })
        .collect();
    assert_eq!(ours, expected);
    // fio's start delays are in whole seconds.
    assert!(is_so_with_fio("flow-ahead", &jobs.replace("1500ms", "2"), |fio| fio == ours), "{ours:?}");
}

#[test]
fn a_process_that_ends_leaves_its_flow_just_as_in_fio() {
    let jobs = "time_based\nrate_iops=1000\nflow_sleep=100\n\
                [a]\nflow=3\nruntime=3\n[b]\nflow=2\nruntime=2\n[c]\nflow=1\nruntime=1\n";
    let ours = ios(&simulated(jobs));
    let near = |ios: &[u64], expected: [u64; 3]| {
        ios.iter().zip(expected).all(|(&ios, expected)| ios.abs_diff(expected) <= expected / 20)
    };
    assert!(near(&ours, [3000, 1333, 333]), "{ours:?}");
    assert!(is_so_with_fio("flow-end", jobs, |fio| near(fio, [ours[0], ours[1], ours[2]])), "{ours:?}");
}

#[test]
fn pauses_come_by_time_or_by_ios_just_as_in_fio() {
    let options = [
        ("thinktime=100ms\nthinktime_iotime=300ms\nrate_iops=1000\nrate_ignore_thinktime=1\n", 1600),
        ("thinktime=100ms\nthinktime_iotime=300ms\nrate_iops=1000\n", 2000),
        ("thinktime=200ms\nthinktime_blocks=50\nrate_iops=100\nrate_ignore_thinktime=1\n", 150),
        ("thinktime=100ms\nthinktime_iotime=1\nthinktime_blocks=50\nrate_iops=100\nrate_ignore_thinktime=1\n", 167),
        ("thinktime=20ms\nthinktime_blocks=10\nthinktime_blocks_type=issue\n", 1000),
        // An fsync is no I/O that counts.
        ("rw=write\nfsync=1\nthinktime=20ms\n", 100),
        ("rw=write\nfdatasync=3\nthinktime=20ms\nthinktime_blocks=3\n", 300),
        ("rw=randwrite\nfsync=4\nthinktime=20ms\nthinktime_blocks=4\nthinktime_blocks_type=issue\n", 400),
        ("thinktime=20ms\nthinktime_spin=15ms\nthinktime_blocks=10\n", 1000),
    ];
    let jobs = |options: &[(&str, u64)]| {
        let sections = options.iter().enumerate().map(|(number, (options, _))| format!("[{number}]\n{options}"));
        format!("time_based\nruntime=2s\n{}", sections.collect::<String>())
    };
    let near = |ios: &[u64], expected: &[u64]| {
        ios.iter().zip(expected).all(|(&ios, expected)| ios.abs_diff(*expected) <= expected / 50 + 2)
    };
    let ours = ios(&simulated(&jobs(&options)));
    assert!(near(&ours, &options.map(|(_, expected)| expected)), "{ours:?}");
    // The last one would hang fio (see `fio_run::try_run`).
    let with_fio = &options[..options.len() - 1];
    assert!(is_so_with_fio("think", &jobs(with_fio), |fio| near(fio, &ours)), "{ours:?}");
}

#[test]
fn a_process_that_spins_keeps_its_cpu_from_others() {
    let jobs = |think: &str| {
        let text = format!("cpus_allowed=0\ntime_based\nruntime=500ms\n[a]\nthinktime=10ms\n{think}[b]\n");
        simulated(&text)
    };
    let (sleeps, spins) = (jobs(""), jobs("thinktime_spin=5ms\n"));
    assert_eq!(sleeps[0].cpu.user_ns, 0);
    assert!((200_000_000..=255_000_000).contains(&spins[0].cpu.user_ns), "{}", spins[0].cpu.user_ns);
    let share = spins[1].total_ios() as f64 / sleeps[1].total_ios() as f64;
    assert!((0.45..0.6).contains(&share), "{share}");
}

#[test]
fn ios_that_overlap_wait_for_each_other_if_they_should() {
    let alone = |option: &str| {
        let text = format!("rw=randwrite\nnorandommap\nsize=4k\nio_size=4m\niodepth=8\n{option}[a]\n");
        let processes = simulated(&text);
        assert_eq!(processes[0].total_ios(), 1024);
        processes[0].depth_levels.counts()[0]
    };
    assert_eq!(alone("serialize_overlap=1\n"), 1024);
    assert!(alone("") < 100);
    let apart = simulated("rw=write\nsize=4m\niodepth=8\nserialize_overlap=1\n[a]\n");
    assert!(apart[0].depth_levels.counts()[0] < 100, "{:?}", apart[0].depth_levels);
}
