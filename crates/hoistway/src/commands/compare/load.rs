//! The job file of a comparison.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use hoistway_blk::Nanos;
use hoistway_fio::{Environment, JobFile};

use crate::input;
use crate::scenarios::{self, Scenario};

/// The load of a first run.
const EXAMPLE: (&str, &str) = ("example.fio (bundled)", include_str!("../../../jobs/example.fio"));

/// A job file.
pub(super) struct Load {
    /// What it is called in messages and results.
    pub(super) name: String,
    pub(super) text: String,
    /// The bundled scenario that it is of, if it is.
    pub(super) scenario: Option<Scenario>,
}

/// The job file that was named, the scenario of that name if there is no such file, or the example.
pub(super) fn read_job(path: Option<&Path>) -> Result<Load> {
    let Some(path) = path else {
        return Ok(Load { name: EXAMPLE.0.to_owned(), text: EXAMPLE.1.to_owned(), scenario: None });
    };
    let name = path.display().to_string();
    if !path.exists()
        && let Some(scenario) = scenarios::named(&name)
    {
        let text = scenario.job.to_owned();
        return Ok(Load { name: format!("{name}.fio (bundled)"), text, scenario: Some(scenario) });
    }
    // A bare word was meant to be a scenario, as likely as not.
    let expected = if path.extension().is_none() && path.components().count() == 1 {
        let names: Vec<_> = scenarios::names().collect();
        format!("a fio job file, or one of the scenarios {}", names.join(", "))
    } else {
        "a fio job file".to_owned()
    };
    Ok(Load { text: input::text(path, &expected)?, name, scenario: None })
}

pub(super) fn parse_job(text: &str, name: &str, cpus: u16, memory_bytes: u64) -> Result<JobFile> {
    let environment = Environment {
        variable: &|name| std::env::var(name).ok(),
        include: &input::included,
        log: &input::log,
        cpus: u32::from(cpus),
        page_bytes: 4096,
        memory_mib: memory_bytes >> 20,
    };
    Ok(JobFile::parse(text, name, &environment)?)
}

/// Replaces the ramp of every process.
pub(super) fn override_ramp(workload: &mut hoistway_load::Load, ramp: Option<Nanos>) {
    let Some(ramp) = ramp else { return };
    workload.processes.iter_mut().for_each(|process| process.schedule.ramp = ramp);
}

/// Virtual time of a run, if every process is bounded by time.
pub(super) fn expected_ns(workload: &hoistway_load::Load, runtime: Option<Nanos>) -> Option<u64> {
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    for process in &workload.processes {
        let parts = [process.schedule.start_delay, process.schedule.ramp, runtime.or(process.schedule.runtime)?];
        let length = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.0));
        let phase = phases.entry(process.schedule.phase).or_default();
        *phase = length.max(*phase);
    }
    Some(phases.values().fold(0, |sum, phase| sum.saturating_add(*phase)))
}
