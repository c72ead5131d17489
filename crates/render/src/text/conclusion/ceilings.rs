//! Sentences about schedulers whose single lock limits the throughput.

use hoistway_answer::analysis::Analysis;

use hoistway_measure::units;

/// A sentence for each scheduler that was limited in every repeat.
pub(super) fn ceilings(analysis: &Analysis<'_>) -> Vec<String> {
    let bound = analysis.variants.iter().filter_map(|variant| {
        let bounds = variant.runs.iter().map(|run| run.locks.and_then(|locks| locks.bound_iops()));
        let bounds = bounds.collect::<Option<Vec<f64>>>().filter(|bounds| !bounds.is_empty())?;
        let mean = bounds.iter().sum::<f64>() / bounds.len() as f64;
        Some(format!(
            "{} cannot exceed {} I/Os a second here: its single lock is always held, and the CPUs of this host pass it from \
             one to the next.",
            variant.label,
            units::rate(mean)
        ))
    });
    bound.collect()
}
