//! What tests of whole runs share: a job file on devices of the default host.

#![allow(dead_code, reason = "each test program uses a part of it")]

use hoistway_blk::ground::Nanos;
use hoistway_blk::watch::Probe;
use hoistway_device::Preset;
use hoistway_fio::{Environment, JobFile};
use hoistway_measure::Setting;
use hoistway_observed::run_observed;
use hoistway_sim::{Control, Host, QueueSettings, RunError, RunResult, RunSpec, Scenario, run};

/// A run of a scheduler with these tunables.
pub fn spec(scheduler: &str, tunables: &[(&str, &str)], seed: u64) -> RunSpec {
    let mut spec = RunSpec::new(scheduler, seed);
    tunables.iter().for_each(|(name, text)| spec.setting.write(&Setting::file_of(name), text));
    spec
}

/// A run that writes a file of `queue/` beforehand.
pub fn writing(mut spec: RunSpec, file: &str, text: &str) -> RunSpec {
    spec.setting.write(file, text);
    spec
}

/// Runs a scenario with one probe.
pub fn observe<P: Probe>(scenario: &Scenario<'_>, spec: &RunSpec, mut probe: P) -> Result<(RunResult, P), RunError> {
    let (result, _) = run_observed(scenario, spec, &Control::default(), &mut [&mut probe])?;
    Ok((result, probe))
}

/// Calls `body` with the scenario of a job file on one device. A `runtime` replaces that of every process.
fn with_job<R>(
    job: &str,
    preset: &Preset,
    queue: QueueSettings,
    runtime: Option<Nanos>,
    body: impl FnOnce(&Scenario<'_>) -> R,
) -> R {
    let workload = JobFile::parse(job, "test.fio", &Environment::empty()).unwrap().load;
    let host = Host::builtin(Host::DEFAULT).unwrap();
    body(&Scenario { workload: &workload, devices: vec![preset], guests: None, queue, host, runtime })
}

/// Runs a job file on one device, with a probe.
pub fn run_job_probed<P: Probe>(
    job: &str,
    preset: &Preset,
    queue: QueueSettings,
    runtime: Option<Nanos>,
    spec: &RunSpec,
    probe: P,
) -> (RunResult, P) {
    with_job(job, preset, queue, runtime, |scenario| observe(scenario, spec, probe).unwrap())
}

/// Runs a job file on one device.
pub fn run_job(job: &str, preset: &Preset, queue: QueueSettings, runtime: Option<Nanos>, spec: &RunSpec) -> RunResult {
    with_job(job, preset, queue, runtime, |scenario| run(scenario, spec, &Control::default()).unwrap())
}
