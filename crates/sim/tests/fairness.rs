//! Do equal processes get equal parts? On the host that is the default, whose processes take their time to react, none
//! may starve; what a scheduler prefers is not of interest here.

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::ProcessResult;
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario, run};

/// A preset and the load of its published table.
type Table = (&'static str, &'static str);
const S3520: Table = ("intel-s3520-1600gb", include_str!("data/habr-ssd.fio"));
const MICRON: Table = ("micron-9100-1600gb", include_str!("data/habr-nvme.fio"));

fn simulate(table: Table, scheduler: &str, kernel: Kernel, seconds: u64) -> Vec<ProcessResult> {
    simulate_on(Host::DEFAULT, table, scheduler, kernel, seconds)
}

fn simulate_on(host: &str, (preset, job): Table, scheduler: &str, kernel: Kernel, seconds: u64) -> Vec<ProcessResult> {
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin(preset).unwrap();
    let scenario = Scenario {
        workload: &workload,
        devices: vec![&preset],
        guests: None,
        queue: QueueSettings::new(kernel, 8),
        host: Host::builtin(host).unwrap(),
        runtime: Some(Nanos::from_secs(seconds)),
    };
    let spec = RunSpec::new(scheduler, 1);
    run(&scenario, &spec, &Control::default()).unwrap().processes
}

fn ios(process: &ProcessResult) -> f64 {
    process.directions.iter().map(|direction| direction.ios).sum::<u64>() as f64
}

fn longest_ms(processes: &[ProcessResult]) -> f64 {
    let longest = processes.iter().flat_map(|process| &process.directions).filter_map(|d| d.lat.max()).max();
    longest.unwrap_or_default() as f64 / 1e6
}

/// What the least served writer got, as a part of the mean of all writers.
fn least_writer(processes: &[ProcessResult]) -> f64 {
    let writers: Vec<f64> = processes.iter().filter(|process| process.name == "writers").map(ios).collect();
    writers.iter().fold(f64::INFINITY, |least, one| least.min(*one))
        / (writers.iter().sum::<f64>() / writers.len() as f64)
}

#[test]
fn no_writer_starves_on_a_drive_with_one_queue() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"] {
        let processes = simulate(S3520, scheduler, Kernel::V6_18, 15);
        let (least, longest) = (least_writer(&processes), longest_ms(&processes));
        assert!(least > 0.8, "{scheduler}: the least served writer gets {least:.2} of the mean");
        assert!(longest < 1000.0, "{scheduler}: {longest} ms");
    }
}

#[test]
fn no_writer_starves_on_a_drive_with_a_queue_for_each_cpu() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let processes = simulate(MICRON, scheduler, Kernel::V6_18, 6);
        let (least, longest) = (least_writer(&processes), longest_ms(&processes));
        // kyber shares among hardware queues, of which some serve two processes and some one. Beside the lock of the others a
        // process that shares its CPU comes a little later.
        let expected = if scheduler == "kyber" { 0.45 } else { 0.85 };
        assert!(least > expected, "{scheduler}: the least served writer gets {least:.2} of the mean");
        assert!(longest < 1000.0, "{scheduler}: {longest} ms");
    }
}

#[test]
fn tags_are_shared_evenly_even_where_all_react_at_once() {
    let processes = simulate_on("instant", S3520, "none", Kernel::V6_18, 5);
    let least = least_writer(&processes);
    assert!(least > 0.9, "the least served writer gets {least:.2} of the mean");
}

#[test]
fn cfq_gives_processes_that_also_read_less_as_measured() {
    let processes = simulate(S3520, "cfq", Kernel::V4_12, 30);
    let mean = |name: &str| {
        let of_job: Vec<f64> = processes.iter().filter(|process| process.name == name).map(ios).collect();
        of_job.iter().sum::<f64>() / of_job.len() as f64
    };
    let ratio = mean("reader_20") / mean("writers");
    // Published: 0.60. Under noop, which shares alike, 0.98.
    assert!((0.5..0.8).contains(&ratio), "{ratio:.2}");
}
