//! Checks that the focus names existing jobs.

use hoistway_answer::{FigureName, WeightedFigure};

/// The first of these figures that names no job of the experiment, and what is wrong with it. `names` are the names of its
/// processes.
pub fn unknown_job<'a>(
    focus: &'a [WeightedFigure],
    names: impl Iterator<Item = &'a str>,
) -> Option<(&'a FigureName, String)> {
    let mut jobs: Vec<&str> = Vec::new();
    for name in names {
        if !jobs.contains(&name) {
            jobs.push(name);
        }
    }
    let figure = focus.iter().map(|focus| &focus.figure).find(|figure| !jobs.contains(&&*figure.job))?;
    let problem = format!("there is no job \"{}\" (expected one of {})", figure.job, jobs.join(", "));
    Some((figure, problem))
}
