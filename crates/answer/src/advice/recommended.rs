//! The recommendation of a document as files of `queue/`, for programs that write them.

use hoistway_measure::Setting;

use super::Adviser;
use crate::analysis::Analysis;
use crate::document::{Decision, Run};

/// A document's recommendation, as files of `queue/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommended {
    /// The label of the scheduler with its settings.
    pub label: String,
    /// Whether it differs from the reference.
    pub is_change: bool,
    /// Files below `queue/` and their contents, in the order in which they are to be written: the scheduler first.
    pub files: Vec<(String, String)>,
}

/// Why nothing can be written for a document.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoRecommendation {
    /// It was cut short.
    #[error("was interrupted, and has no verdict (expected a whole comparison)")]
    Partial,
    /// Its device is not the observed one.
    #[error(
        "is of a device model that does not fit the observed disk (expected one that does, see its first sentence)"
    )]
    OtherDevice,
    /// There are none, or several.
    #[error("has {0} verdicts (expected one: a comparison of schedulers on one device, host and kernel)")]
    Verdicts(usize),
    /// Too few variants or runs to choose from.
    #[error(
        "compares too little for a verdict (expected several schedulers or settings, and several runs of each, as with --repeat 5)"
    )]
    TooLittle,
    /// It is about virtual disks.
    #[error("is about guests, whose disks are configured inside the guests (expected a comparison without guests)")]
    Guests,
    /// It is about files that are not of the device.
    #[error(
        "recommends {0}, other settings of io.cost, which are not written here (expected the lines of compare --advice to be written)"
    )]
    IoCost(String),
    /// It is about files of cgroups.
    #[error(
        "recommends {0}, other targets of io.latency, which are not written here (expected the lines of compare --advice to be written)"
    )]
    IoLatency(String),
    /// No kernel has the scheduler.
    #[error("recommends {0}, which its kernel does not have (expected a scheduler of that kernel)")]
    NotInKernel(String),
}

/// The settings that a document's only verdict recommends.
///
/// # Errors
/// There is none, or it cannot be written to a device of this system.
pub fn recommended(analysis: &Analysis<'_>) -> Result<Recommended, NoRecommendation> {
    let document = analysis.document;
    if document.partial {
        return Err(NoRecommendation::Partial);
    }
    if document.verdicts.is_empty() && document.device_mismatch(0).is_some() {
        return Err(NoRecommendation::OtherDevice);
    }
    let [verdict] = document.verdicts.as_slice() else {
        return Err(NoRecommendation::Verdicts(document.verdicts.len()));
    };
    if document.guests.is_some() {
        return Err(NoRecommendation::Guests);
    }
    let adviser = Adviser::of(analysis, verdict).ok_or(NoRecommendation::TooLittle)?;
    if matches!(verdict.decision, Decision::Alone | Decision::OneRun) {
        return Err(NoRecommendation::TooLittle);
    }
    let cost =
        |run: &Run| -> Vec<_> { run.io_cost.iter().map(|cost| (cost.qos.clone(), cost.model.clone())).collect() };
    if cost(adviser.from_run) != cost(adviser.run) {
        return Err(NoRecommendation::IoCost(verdict.recommended.clone()));
    }
    if targets(adviser.from_run) != targets(adviser.run) {
        return Err(NoRecommendation::IoLatency(verdict.recommended.clone()));
    }
    let Setting { scheduler, writes } = adviser.to;
    if adviser.run.ran_as.is_some() || adviser.run.research.is_some() {
        return Err(NoRecommendation::NotInKernel(scheduler));
    }
    let files = std::iter::once(("scheduler".to_owned(), scheduler)).chain(writes).collect();
    Ok(Recommended { label: verdict.recommended.clone(), is_change: verdict.decision == Decision::Change, files })
}

/// The latency targets of a run, by device and group.
fn targets(run: &Run) -> Vec<(&str, &str, u32)> {
    let groups = run.io_latency.iter().flat_map(|disk| disk.groups.iter().map(move |group| (disk, group)));
    let targets = groups.map(|(disk, group)| (disk.disk.as_str(), group.cgroup.as_str(), group.target_us));
    targets.filter(|&(.., us)| us > 0).collect()
}
