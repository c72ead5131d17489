//! The moment at which the time of a process is over.

use crate::support::spec;
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Control, Host, QueueSettings, Scenario, run};

/// I/Os of each process, and when all was over, ns. A read takes 10 us, and nothing else takes any time.
fn simulated(job: &str) -> (Vec<u64>, u64) {
    let text = format!("[global]\nfilename=/dev/nullb0\ndirect=1\nioengine=libaio\nrw=randread\ntime_based\n{job}");
    let workload = JobFile::parse(&text, "test.fio", &Environment::empty()).unwrap().load;
    let host = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 0\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n\
                idle_ns = []\n";
    let (preset, host) = (Preset::builtin("null").unwrap(), Host::from_toml(host, "x.toml").unwrap());
    let queue = QueueSettings::new(Kernel::V6_18, 1);
    let scenario = Scenario { workload: &workload, devices: vec![&preset], guests: None, queue, host, runtime: None };
    let result = run(&scenario, &spec("none", &[], 1), &Control::default()).unwrap();
    (result.processes.iter().map(|process| process.total_ios()).collect(), result.simulated.0)
}

#[test]
fn no_io_begins_just_when_the_time_is_over_and_those_of_the_next_phase_begin_then() {
    assert_eq!(simulated("[a]\nruntime=100us\n[b]\nstonewall\nruntime=50us\n"), (vec![10, 5], 150_000));
}

#[test]
fn no_pause_begins_just_when_the_time_is_over() {
    let pauses = |every: u32| simulated(&format!("[a]\nruntime=200us\nthinktime=70us\nthinktime_blocks={every}\n"));
    assert_eq!(pauses(10), (vec![13], 200_000), "100 us of I/O, 70 of a pause, and 30 are left");
    assert_eq!(pauses(20), (vec![20], 200_000));
}
