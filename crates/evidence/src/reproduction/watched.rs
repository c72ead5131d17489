//! Published loads, the job that each source reports on, and the job that a verdict picks as its focus.

use hoistway_experiment::{Comparison, Error};

use super::runs::Variables;

/// A published load.
pub(super) struct FocusedLoad {
    pub(super) name: String,
    pub(super) comparison: Comparison,
    pub(super) variables: Vec<(&'static str, String)>,
    /// The job that the source reports on.
    pub(super) job: &'static str,
}

/// Compares the job that a source reports on with the focus that a comparison picks without `--focus`.
#[derive(Clone, PartialEq, Debug)]
pub struct Party {
    /// The load.
    pub load: String,
    /// The job that the source reports on.
    pub watched: &'static str,
    /// The job that the verdict picks.
    pub named: String,
    /// The figure that the verdict picks.
    pub figure: String,
}

impl Party {
    /// Whether the verdict picks the job that the source reports on.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.named == self.watched
    }
}

impl FocusedLoad {
    pub(super) fn party(self) -> Result<Party, Error> {
        let FocusedLoad { name, comparison, variables, job } = self;
        let document = comparison.run(&Variables(&variables))?;
        let verdict = document.verdicts.first();
        let figure = verdict.and_then(|verdict| verdict.focus.first()).map(|focus| &focus.figure);
        Ok(Party {
            load: name,
            watched: job,
            named: figure.map(|figure| figure.job.clone()).unwrap_or_default(),
            figure: figure.map(ToString::to_string).unwrap_or_default(),
        })
    }
}
