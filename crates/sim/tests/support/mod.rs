//! What tests of whole runs share: a job file on devices of the default host.

use hoistway_blk::{Nanos, NoProbe, Probe};
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_sim::{Control, Host, QueueSettings, RunResult, RunSpec, Scenario, run_probed};

/// A run of a scheduler with these tunables.
pub fn spec(scheduler: &str, tunables: &[(&str, &str)], seed: u64) -> RunSpec {
    let tunables = tunables.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    RunSpec { scheduler: scheduler.to_owned(), tunables, guest: None, seed }
}

/// Runs a job file on one device, watched by a probe. A `runtime` replaces that of every process.
pub fn run_job_probed<P: Probe>(
    job: &str,
    preset: &Preset,
    queue: QueueSettings,
    runtime: Option<Nanos>,
    spec: &RunSpec,
    probe: P,
) -> (RunResult, P) {
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let host = Host::builtin(Host::DEFAULT).unwrap();
    let scenario = Scenario { workload: &workload, devices: vec![preset], guests: None, queue, host, runtime };
    run_probed(&scenario, spec, &Control::default(), probe).unwrap()
}

/// The same, with nobody watching.
pub fn run_job(job: &str, preset: &Preset, queue: QueueSettings, runtime: Option<Nanos>, spec: &RunSpec) -> RunResult {
    run_job_probed(job, preset, queue, runtime, spec, NoProbe).0
}
