//! Processes that are woken go to idle CPUs.

use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::Direction;
use hoistway_sim::{Control, Host, QueueSettings, RunResult, RunSpec, Scenario, run};

/// A seed with which the two busy readers begin on the same CPU of two: both have half of what one with a CPU of its own gets.
fn seed() -> u64 {
    let busy = |seed| reads(&run_seeded("", true, seed), 0);
    let most = (1..9).map(busy).fold(0.0, f64::max);
    (1..9).find(|&seed| busy(seed) < 0.7 * most).expect("a seed with which they begin together")
}

fn run_with(cpus_allowed: &str, keeps_cpus: bool) -> RunResult {
    run_seeded(cpus_allowed, keeps_cpus, seed())
}

/// Two readers would keep a CPU each busy; there is a third one, which hardly does anything.
fn run_seeded(cpus_allowed: &str, keeps_cpus: bool, seed: u64) -> RunResult {
    let job = format!(
        "[global]\nfilename=/dev/nullb0\ndirect=1\nioengine=libaio\nrw=randread\nruntime=200ms\ntime_based\n{cpus_allowed}\n\
         [busy]\niodepth=16\n[quiet]\nrate_iops=100\n[busy2]\niodepth=16\n"
    );
    let workload = JobFile::parse(&job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("null").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 2);
    let host = Host { keeps_cpus, ..Host::builtin(Host::DEFAULT).unwrap() };
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let spec = RunSpec::new("none", seed);
    run(&scenario, &spec, &Control::default()).unwrap()
}

fn reads(result: &RunResult, process: usize) -> f64 {
    result.processes[process].direction(Direction::Read).lat.count() as f64
}

#[test]
fn a_process_that_is_woken_while_its_cpu_is_busy_goes_to_an_idle_one() {
    let (kept, moved) = (run_with("", true), run_with("", false));
    for busy in [0, 2] {
        let gain = reads(&moved, busy) / reads(&kept, busy);
        assert!((1.6..2.1).contains(&gain), "process {busy}: {gain}");
    }
    assert_eq!(reads(&moved, 1), reads(&kept, 1), "the third one needs little");
}

#[test]
fn a_process_that_is_bound_to_one_cpu_stays_there() {
    let job = |result: RunResult| [0, 1, 2].map(|process| reads(&result, process));
    let split = [false, true].map(|keeps| job(run_with("cpus_allowed=0-1\ncpus_allowed_policy=split", keeps)));
    assert_eq!(split[0], split[1]);
    let together = [false, true].map(|keeps| job(run_with("cpus_allowed=0", keeps)));
    assert_eq!(together[0], together[1]);
    let shared = job(run_with("cpus_allowed=0-1", false));
    assert!(shared[0] > 1.6 * together[0][0], "one that may run on both does");
}

/// Sixteen readers on eight CPUs that are busy with completions: one is put off in the middle of a turn that had already woken it.
#[test]
fn a_process_that_is_woken_and_put_off_waits_in_one_place_only() {
    let job = "[global]\nfilename=/dev/nullb0\ndirect=1\nbs=8k\nruntime=300ms\ntime_based\n\
               [queries]\nrw=randread\nnumjobs=16\n[log]\nrw=write\nsize=1g\nfdatasync=1\n\
               [checkpoint]\nrw=randwrite\nioengine=libaio\niodepth=64\n";
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("null").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 8);
    let host = Host::builtin(Host::DEFAULT).unwrap();
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let spec = RunSpec::new("none", 1);
    let result = run(&scenario, &spec, &Control::default()).unwrap();
    assert!(result.simulated.as_secs_f64() < 0.31, "one was forgotten: {}", result.simulated.as_secs_f64());
    let least = result.processes.iter().map(|process| {
        let count = |direction| process.direction(direction).lat.count();
        count(Direction::Read) + count(Direction::Write)
    });
    assert!(least.min() > Some(3000), "all of them go on");
}

/// Two processes of the real-time class beside two with large reads, behind a transport, under blk-switch: mean latency of the two, and reads
/// of the others.
fn behind_transport(scheduler: &str, mode: &str, cpus_allowed: &str) -> (f64, f64) {
    let job = format!(
        "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=libaio\nrw=randread\nruntime=200ms\ntime_based\n{cpus_allowed}\n\
         [latency]\nbs=4k\nprioclass=1\nprio=4\nnumjobs=2\n[throughput]\nbs=64k\niodepth=32\nnumjobs=2\n"
    );
    let workload = JobFile::parse(&job, "test.fio", &Environment::empty()).unwrap().load;
    let preset = Preset::builtin("nvme-over-tcp").unwrap();
    let queue = QueueSettings::new(Kernel::V6_18, 4);
    let host = Host { keeps_cpus: true, ..Host::builtin(Host::DEFAULT).unwrap() };
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let mut spec = RunSpec::new(scheduler, 1);
    if scheduler != "none" {
        spec.setting.write("iosched/mode", mode);
    }
    let result = run(&scenario, &spec, &Control::default()).unwrap();
    let latency = |process: usize| result.processes[process].direction(Direction::Read).lat.mean();
    ((latency(0) + latency(1)) / 2.0, reads(&result, 2) + reads(&result, 3))
}

#[test]
fn blk_switch_sends_latency_requests_first_steers_others_and_moves_processes_that_may_move() {
    let one = "cpus_allowed=0";
    let (none, _) = behind_transport("none", "", one);
    let (priority, priority_reads) = behind_transport("blk-switch", "0", one);
    assert!(none > 10.0 * priority, "{none} and {priority} ns");
    let (_, steered_reads) = behind_transport("blk-switch", "1", one);
    assert!(steered_reads > 1.3 * priority_reads, "workers of other CPUs help: {steered_reads} of {priority_reads}");
    let (_, moved_reads) = behind_transport("blk-switch", "2", "cpus_allowed=0-3");
    let (_, kept_reads) = behind_transport("blk-switch", "0", "cpus_allowed=0-3");
    assert!(moved_reads > 0.8 * kept_reads, "{moved_reads} of {kept_reads}");
}

/// blk-switch asks for moves all the same: what a process may not do, it does not.
#[test]
fn a_process_bound_to_a_cpu_is_not_moved() {
    let of_mode = |mode, cpus_allowed| behind_transport("blk-switch", mode, cpus_allowed);
    assert_eq!(of_mode("2", "cpus_allowed=0"), of_mode("1", "cpus_allowed=0"), "requests are steered, nobody moves");
    assert_ne!(of_mode("2", "cpus_allowed=0-3"), of_mode("1", "cpus_allowed=0-3"), "one that may move does");
}
