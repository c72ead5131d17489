//! Schedulers whose single lock limits the result.

use hoistway_answer::analysis::Analysis;

use hoistway_measure::units;

/// A sentence for each scheduler that was limited in every repeat.
pub(super) fn ceilings(analysis: &Analysis<'_>) -> Vec<String> {
    let bound = analysis.variants.iter().filter_map(|variant| {
        let bounds = variant.runs.iter().map(|run| run.locks.and_then(|locks| locks.bound_iops()));
        let bounds = bounds.collect::<Option<Vec<f64>>>().filter(|bounds| !bounds.is_empty())?;
        let mean = bounds.iter().sum::<f64>() / bounds.len() as f64;
        Some(format!(
            "{} cannot give more than {} I/Os a second here: its one lock is held all the time, and the CPUs of this host \
             hand it to each other.",
            variant.label,
            units::rate(mean)
        ))
    });
    bound.collect()
}
