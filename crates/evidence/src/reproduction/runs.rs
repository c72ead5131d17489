//! Runs a published load: its job file with the variables that its author set.

use hoistway_measure::fio::{DirectionStats, Job, Output};

use super::sensitivity::Variation;
use hoistway_experiment::CallerEnvironment;
use hoistway_experiment::Error;
use hoistway_experiment::{Comparison, FioOutputs, Load, Profile};

/// The length of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// As long as figures need to settle.
    Settled,
    /// As long as the published runs.
    Published,
}

/// The settings of a reproduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Setting {
    pub(super) length: Length,
    /// A change to the device or host.
    pub(super) change: Option<Variation>,
    /// The seed of all random numbers.
    pub(super) seed: u64,
}

impl Setting {
    /// Selects one of these times in seconds; returns ns.
    pub(super) fn duration_from_s(self, settled_s: u64, published_s: u64) -> u64 {
        self.duration_from_ms(settled_s * 1000, published_s * 1000)
    }

    /// Selects one of these times in milliseconds; returns ns.
    pub(super) fn duration_from_ms(self, settled_ms: u64, published_ms: u64) -> u64 {
        let ms = if self.length == Length::Settled { settled_ms } else { published_ms };
        ms * 1_000_000
    }
}

/// The variables used by a job file.
pub(super) struct Variables<'a>(pub(super) &'a [(&'a str, String)]);

impl CallerEnvironment for Variables<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }
}

/// A published job file.
pub(super) fn load(name: &str, text: &str) -> Load {
    Load::Text { name: name.to_owned(), text: text.to_owned() }
}

/// Runs a load under schedulers. Returns the result of each, in order.
pub(super) fn run(
    mut comparison: Comparison,
    schedulers: &[&str],
    variables: &[(&str, String)],
    setting: Setting,
) -> Result<Vec<Output>, Error> {
    if let Some(change) = setting.change {
        for devices in &mut comparison.devices {
            for device in devices.common.iter_mut().chain(devices.files.values_mut()) {
                if let Some((changed, _)) = change.changed_device(device).expect("devices of tables are built in") {
                    *device = changed;
                }
            }
        }
    }
    comparison.hosts = hosts(comparison.hosts, setting);
    let schedulers = schedulers.iter().map(|&name| name.to_owned()).collect();
    let outputs = FioOutputs::default();
    let comparison = Comparison { schedulers, seed: setting.seed, ..comparison };
    let document = comparison.run_observed(&Variables(variables), &outputs)?;
    Ok(outputs.of_runs(&document))
}

/// The host of a run, with the change applied if it concerns the host.
pub(super) fn hosts(mut hosts: Vec<Profile>, setting: Setting) -> Vec<Profile> {
    let default_host = hosts.first().cloned().unwrap_or_else(|| Profile::Named("server".to_owned()));
    if let Some((changed, _)) = setting.change.and_then(|change| change.changed_host(&default_host)) {
        hosts = vec![changed];
    }
    hosts
}

/// The 99th percentile of latency, us.
pub(super) fn p99_us(stats: &DirectionStats) -> f64 {
    let percentiles = stats.clat_ns.percentile.as_ref();
    percentiles.and_then(|all| all.get("99.000000")).map_or(0.0, |&ns| ns as f64 / 1e3)
}

/// The processes of a job.
pub(super) fn of_job<'a>(output: &'a Output, job: &'a str) -> impl Iterator<Item = &'a Job> {
    output.jobs.iter().filter(move |process| process.jobname == job)
}
