//! How a run of a published load is made: its job file with the variables that its author set.

use hoistway_measure::fio::{DirectionStats, Job, Output};

use super::sensitivity::Change;
use hoistway_experiment::CallerEnvironment;
use hoistway_experiment::Error;
use hoistway_experiment::{Comparison, FioOutputs, Load, Profile};

/// How long runs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// As long as figures take to settle.
    Settled,
    /// As long as those that were published.
    Published,
}

/// How a table is reproduced.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Setting {
    pub(super) length: Length,
    /// What of the device is otherwise than its preset says.
    pub(super) change: Option<Change>,
    /// What everything random is drawn from.
    pub(super) seed: u64,
}

impl Setting {
    /// Of these seconds those that it means, ns.
    pub(super) fn of(self, settled_s: u64, published_s: u64) -> u64 {
        self.of_ms(settled_s * 1000, published_s * 1000)
    }

    /// Of these milliseconds those that it means, ns.
    pub(super) fn of_ms(self, settled_ms: u64, published_ms: u64) -> u64 {
        let ms = if self.length == Length::Settled { settled_ms } else { published_ms };
        ms * 1_000_000
    }
}

/// The variables that a job file names.
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

/// Runs a load under schedulers. Returns the result of each, in their order.
pub(super) fn run(
    mut comparison: Comparison,
    schedulers: &[&str],
    variables: &[(&str, String)],
    setting: Setting,
) -> Result<Vec<Output>, Error> {
    if let Some(change) = setting.change {
        for devices in &mut comparison.devices {
            for device in devices.common.iter_mut().chain(devices.files.values_mut()) {
                if let Some((changed, _)) = change.of_device(device).expect("devices of tables are built in") {
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

/// The host of a run, with the change if it is one of the host.
pub(super) fn hosts(mut hosts: Vec<Profile>, setting: Setting) -> Vec<Profile> {
    let usual = hosts.first().cloned().unwrap_or_else(|| Profile::Named("server".to_owned()));
    if let Some((changed, _)) = setting.change.and_then(|change| change.of_host(&usual)) {
        hosts = vec![changed];
    }
    hosts
}

/// The 99th percentile of latency from the submission on, us.
pub(super) fn p99_us(stats: &DirectionStats) -> f64 {
    let percentiles = stats.clat_ns.percentile.as_ref();
    percentiles.and_then(|all| all.get("99.000000")).map_or(0.0, |&ns| ns as f64 / 1e3)
}

/// The processes of a job.
pub(super) fn of_job<'a>(output: &'a Output, job: &'a str) -> impl Iterator<Item = &'a Job> {
    output.jobs.iter().filter(move |process| process.jobname == job)
}
