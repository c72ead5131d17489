//! Processes that end by what is measured of them, or fail by it.

use crate::support::{run_job, spec};
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_measure::fio::{Output, OutputParameters};
use hoistway_measure::{Direction, ProcessResult};
use hoistway_sim::QueueSettings;

fn simulated(jobs: &str) -> Vec<ProcessResult> {
    let text = format!("[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nrw=randread\nsize=1g\n{jobs}");
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    run_job(&text, &preset, queue, None, &spec("none", &[], 1)).processes
}

fn documents(processes: &[ProcessResult]) -> Vec<hoistway_measure::fio::Job> {
    Output::from_processes(&[], processes, &OutputParameters::default()).jobs
}

/// Percent of the reads that took longer than this, us.
fn slow_percent(process: &ProcessResult, us: u64) -> f64 {
    let lat = &process.direction(Direction::Read).lat;
    let slow: u64 = lat.bins().filter(|(midpoint_ns, _)| *midpoint_ns > us * 1000).map(|(_, count)| count).sum();
    100.0 * slow as f64 / lat.count() as f64
}

#[test]
fn the_depth_that_is_found_keeps_the_latency_and_more_would_not() {
    let target_us = 300;
    let search =
        "time_based\nruntime=60\niodepth=64\nlatency_target=300\nlatency_window=200ms\nlatency_percentile=95\n";
    let processes = simulated(&format!("{search}[a]\n"));
    let job = &documents(&processes)[0];
    let depth = job.latency_depth;
    assert!(depth > 1 && depth < 64, "{depth}");
    assert_eq!((job.latency_target, job.latency_window, job.latency_percentile), (300_000, 200_000, 95.0));
    // Only the last window is in the results.
    assert!((200..=203).contains(&job.job_runtime), "{}", job.job_runtime);
    let slow_percent_at = |depth: u32| {
        let fixed = simulated(&format!("time_based\nruntime=1\niodepth={depth}\n[a]\n"));
        slow_percent(&fixed[0], target_us)
    };
    assert!(
        slow_percent_at(depth.saturating_sub(1)) < 6.0 && slow_percent_at(depth + 2) > 5.0,
        "{depth}: {} {}",
        slow_percent_at(depth),
        slow_percent_at(depth + 2)
    );
}

#[test]
fn the_runtime_begins_again_when_the_depth_is_found() {
    // Found after 200 ms; then it is measured as long again, and not only until 300 ms.
    let search =
        "time_based\nruntime=300ms\niodepth=1\nlatency_target=10ms\nlatency_window=200ms\nlatency_percentile=50\n";
    let process = &simulated(&format!("{search}[a]\n"))[0];
    assert_eq!(process.runtime_ns / 1_000_000, 200);
}

#[test]
fn a_continuing_latency_search_lasts_as_long_as_the_job() {
    let search = "time_based\nruntime=3\niodepth=32\nlatency_target=300\nlatency_window=100ms\nlatency_percentile=95\n";
    let process = &simulated(&format!("{search}latency_run=1\n[a]\n"))[0];
    assert_eq!(process.runtime_ns / 1_000_000, 3000);
    // One I/O at a time is too slow: the depth stays where it is.
    let never = search.replace("latency_target=300", "latency_target=1");
    let process = &simulated(&format!("{never}[a]\n"))[0];
    assert_eq!((process.runtime_ns / 1_000_000, process.latency_search.unwrap().depth), (3000, 1));
    assert_eq!(process.error, 0);
}

#[test]
fn a_job_exceeding_its_max_latency_fails_as_in_fio_and_others_continue() {
    let jobs = "time_based\nruntime=200ms\niodepth=4\n[a]\nmax_latency=10\n[b]\nmax_latency=10s\n[c]\nmax_latency=0,10\n\
                [d]\nlatency_target=10\nlatency_window=1s\n";
    let jobs = documents(&simulated(jobs));
    assert_eq!(jobs.iter().map(|job| job.error).collect::<Vec<_>>(), [110, 0, 0, 110]);
    let ios: Vec<_> = jobs.iter().map(|job| job.read.total_ios).collect();
    assert!((1..=4).contains(&ios[0]) && ios[1] > 1000 && ios[2] > 1000 && ios[3] == 1, "{ios:?}");
}

#[test]
fn a_job_ends_when_it_is_steady() {
    let jobs =
        "time_based\nruntime=60\nss_dur=3\nss_ramp=1\n[a]\nss=iops:10%\n[b]\nss=bw_slope:0.0000001%\nruntime=6\n";
    let processes = simulated(jobs);
    let jobs = documents(&processes);
    assert!((4000..4100).contains(&jobs[0].job_runtime), "{}", jobs[0].job_runtime);
    assert!((6000..6100).contains(&jobs[1].job_runtime), "{}", jobs[1].job_runtime);
    let found = |job: usize| jobs[job].steadystate.clone().unwrap();
    assert_eq!((found(0).attained, found(0).duration, found(0).ss.as_str()), (1, 3, "iops:10.000000%"));
    assert_eq!((found(1).attained, found(1).data.iops.len()), (0, 3));
    let iops = jobs[0].read.iops as u64;
    assert!(found(0).data.iops.iter().all(|sample| sample.abs_diff(iops) < iops / 10), "{:?} {iops}", found(0).data);
    assert!(simulated("number_ios=9\n[a]\nss=iops:10%\n")[0].steady_state.is_none());
}

#[test]
fn a_group_that_is_reported_as_one_is_steady_as_one() {
    let jobs = "time_based\nruntime=60\ngroup_reporting\nss=iops:20%\nss_dur=2\n[a]\nnumjobs=2\nrate_iops=100\n[b]\nrate_iops=300\n";
    let processes = simulated(jobs);
    assert!(processes.iter().all(|process| (2000..2100).contains(&(process.runtime_ns / 1_000_000))));
    let found = documents(&processes)[0].steadystate.clone().unwrap();
    assert!(found.data.iops.iter().all(|sample| sample.abs_diff(500) < 10), "{:?}", found.data);
}
