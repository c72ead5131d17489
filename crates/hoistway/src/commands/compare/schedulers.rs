//! The schedulers of a comparison: `--schedulers`, and what must be said of some of them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use hoistway_blk::{ALL_SCHEDULERS, Kernel, is_legacy, kernel_of_front};
use hoistway_workload::Workload;

pub(super) fn choose(wanted: &[String]) -> Result<Vec<String>> {
    let mut chosen: Vec<String> = Vec::new();
    for name in wanted {
        if name == "all" {
            chosen.extend(ALL_SCHEDULERS.map(str::to_owned));
        } else if ALL_SCHEDULERS.contains(&name.as_str()) {
            chosen.push(name.clone());
        } else {
            bail!("--schedulers {name}: unknown scheduler (expected all, or some of {})", ALL_SCHEDULERS.join(", "));
        }
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|name| seen.insert(name.clone()));
    Ok(chosen)
}

/// The scheduler of `--baseline`.
pub(super) fn baseline(wanted: Option<&str>, schedulers: &[String]) -> Result<Option<String>> {
    match wanted {
        Some(name) if !schedulers.iter().any(|known| known == name) => bail!(
            "--baseline {name}: not among the schedulers that are compared (expected one of {})",
            schedulers.join(", ")
        ),
        wanted => Ok(wanted.map(str::to_owned)),
    }
}

/// What must be said of schedulers that run on a block layer which the kernel no longer has.
pub(super) fn legacy_notice(schedulers: &[String], kernel: Kernel) -> Option<String> {
    let legacy: Vec<&str> = schedulers.iter().map(String::as_str).filter(|name| is_legacy(name)).collect();
    let runs_as = kernel_of_front(kernel, legacy.first()?);
    (runs_as != kernel).then(|| {
        format!(
            "{}: the legacy single queue, which Linux {kernel} no longer has; run as in 4.20, the last release with it.",
            legacy.join(", ")
        )
    })
}

/// cfq gives turns, and kyber the few tokens that it leaves to several hardware queues, to whoever comes first after a
/// completion. Simulated processes come at once, which no real one does.
fn depend_on_reactions<'a>(schedulers: &'a [String], workload: &Workload, hw_queues: u16) -> Vec<&'a String> {
    let is_concerned = |name: &&String| match name.as_str() {
        "cfq" => workload.processes.len() > 1,
        "kyber" => workload.processes.len() > 1 && hw_queues > 1,
        _ => false,
    };
    schedulers.iter().filter(is_concerned).collect()
}

pub(super) fn reaction_notices(schedulers: &[String], workload: &Workload, hw_queues: u16) -> Vec<String> {
    let notice = |name: &String| {
        format!(
            "{name}: how it divides the device among processes depends on how fast they react, which is not modelled \
             yet: its sum is a prediction, its shares and longest latencies are not."
        )
    };
    depend_on_reactions(schedulers, workload, hw_queues).into_iter().map(notice).collect()
}

/// The same as half a sentence.
pub(super) fn reaction_doubt(schedulers: &[String], workload: &Workload, hw_queues: u16) -> Option<String> {
    let concerned: Vec<&str> =
        depend_on_reactions(schedulers, workload, hw_queues).into_iter().map(String::as_str).collect();
    (!concerned.is_empty())
        .then(|| format!("how {} divides the device among processes is not a prediction", concerned.join(" or ")))
}
