//! The load of the published SATA SSD table (habr) on the legacy front, as it was measured there: noop, deadline and cfq
//! on Linux 4.12. The device is calibrated on `none` alone, so these are predictions; what is tested is that they are
//! plausible.

use crate::support::{run_job, spec};
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_legacy::LEGACY_SCHEDULERS;
use hoistway_measure::ProcessResult;
use hoistway_sim::QueueSettings;

const JOB: &str = include_str!("data/habr-ssd.fio");

fn simulate_job(job: &str, runtime: Nanos, kernel: Kernel, scheduler: &str, seed: u64) -> Vec<ProcessResult> {
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings::new(kernel, 8);
    run_job(job, &preset, queue, Some(runtime), &spec(scheduler, &[], seed)).processes
}

fn simulate(kernel: Kernel, scheduler: &str, seed: u64) -> Vec<ProcessResult> {
    simulate_job(JOB, Nanos::from_secs(15), kernel, scheduler, seed)
}

fn iops(process: &ProcessResult) -> f64 {
    let ios: u64 = process.directions.iter().map(|direction| direction.ios).sum();
    ios as f64 / (process.runtime_ns as f64 / 1e9)
}

#[test]
fn the_device_does_about_as_much_as_was_published() {
    for (scheduler, published) in [("noop", 37_401.0), ("deadline", 38_148.0), ("cfq", 36_612.0)] {
        let total: f64 = simulate(Kernel::V4_12, scheduler, 1).iter().map(iops).sum();
        assert!((total / published - 1.0).abs() < 0.1, "{scheduler}: {total:.0} IOPS, published {published}");
    }
}

#[test]
fn noop_and_deadline_treat_processes_equally() {
    for scheduler in ["noop", "deadline"] {
        let processes = simulate(Kernel::V4_12, scheduler, 1);
        let mean = processes.iter().map(iops).sum::<f64>() / processes.len() as f64;
        for process in &processes {
            let share = iops(process) / mean;
            assert!((0.9..1.1).contains(&share), "{scheduler}, {}: {share:.2} of the mean", process.name);
        }
    }
}

#[test]
fn littles_law_holds_for_every_process_under_noop_and_deadline() {
    for scheduler in ["noop", "deadline"] {
        for process in simulate(Kernel::V4_12, scheduler, 3) {
            let seconds = process.runtime_ns as f64 / 1e9;
            let parts = process.directions.iter().map(|d| d.ios as f64 / seconds * (d.lat.mean() / 1e9));
            let outstanding: f64 = parts.sum();
            assert!((outstanding / 4.0 - 1.0).abs() < 0.01, "{scheduler}: {outstanding} outstanding");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_results() {
    for scheduler in LEGACY_SCHEDULERS {
        let [one, same] = [(); 2].map(|()| simulate(Kernel::V4_12, scheduler, 5));
        assert_eq!(one, same, "{scheduler}");
    }
}

#[test]
fn a_kernel_that_no_longer_has_a_legacy_queue_runs_that_of_4_20() {
    for scheduler in LEGACY_SCHEDULERS {
        let [new, last] = [Kernel::V6_18, Kernel::V4_19].map(|kernel| simulate(kernel, scheduler, 5));
        assert_eq!(new, last, "{scheduler}");
    }
}

#[test]
fn processes_that_run_one_after_the_other_all_finish_under_schedulers_that_keep_states_for_them() {
    let job = "[global]\nfilename=/dev/sda\ndirect=1\nrw=read\n[a]\nsize=1m\n[b]\nstonewall\nsize=1m\n";
    for scheduler in ["cfq", "bfq"] {
        let processes = simulate_job(job, Nanos::from_secs(5), Kernel::V4_19, scheduler, 1);
        let done: Vec<u64> = processes.iter().map(|p| p.directions.iter().map(|d| d.ios).sum()).collect();
        assert_eq!(done, [256, 256], "{scheduler}");
    }
}

/// The longest read of a program beside ten buffered streams on an SSD, ms.
fn longest_read_beside_streams(scheduler: &str, tunables: &[(&str, &str)]) -> u64 {
    let job = "[global]\nioengine=psync\nfilename=/dev/sda\ntime_based\nruntime=5\n\
               [streams]\nrw=read\nbs=128k\nnumjobs=10\nsize=4g\noffset_increment=6g\n\
               [program]\nrw=randread\nbs=16k\nsize=1g\noffset=70g\nstartdelay=1\nruntime=4\n";
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let result = run_job(job, &preset, QueueSettings::new(Kernel::V4_12, 4), None, &spec(scheduler, tunables, 1));
    let program = result.processes.iter().find(|process| process.name == "program").unwrap();
    let longest = program.directions.iter().filter_map(|direction| direction.lat.max()).max();
    longest.expect("it reads") / 1_000_000
}

#[test]
fn cfq_keeps_a_program_waiting_behind_streams_on_flash_only_if_it_idles() {
    for scheduler in ["noop", "cfq"] {
        let ms = longest_read_beside_streams(scheduler, &[]);
        assert!(ms < 20, "nothing waits in {scheduler}: {ms} ms");
    }
    let ms = longest_read_beside_streams("cfq", &[("slice_idle", "8")]);
    assert!((500..2000).contains(&ms), "until the turns of ten streams are over: {ms} ms");
}
