//! Loads of the sources with the job that each source is about, and the job that a verdict names.

use hoistway_experiment::{Comparison, Error};

use super::runs::Variables;

/// A load of a source.
pub(super) struct FocusedLoad {
    pub(super) name: String,
    pub(super) comparison: Comparison,
    pub(super) variables: Vec<(&'static str, String)>,
    /// The job that the source is about.
    pub(super) job: &'static str,
}

/// The job that a comparison without `--focus` names for a load.
#[derive(Clone, PartialEq, Debug)]
pub struct Party {
    /// The load.
    pub load: String,
    /// The job that the source is about.
    pub watched: &'static str,
    /// The job that the verdict names.
    pub named: String,
    /// Its figure.
    pub figure: String,
}

impl Party {
    /// Whether the verdict names the job that the source is about.
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
