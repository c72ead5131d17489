//! Looks up figures by name in an analysis.

use super::{Analysis, Estimate, JobAnalysis, OperationAnalysis, Row};
use crate::figure_name::{FigureName, figures, quoted};

/// The results do not contain a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name}: no such I/O happened (expected {}, each with one of {})",
    if known.is_empty() { "results with I/O".to_owned() } else { format!("one of {}", known.join(", ")) },
    figures()
)]
pub struct NoSuchFigure {
    /// The figure.
    pub name: FigureName,
    /// The jobs and operations that the results do contain.
    pub known: Vec<String>,
}

impl<'a> Analysis<'a> {
    /// The job and operation that a figure measures.
    ///
    /// # Errors
    /// If no variant had such I/O; the error lists the jobs and operations that have.
    pub fn find(&self, name: &FigureName) -> Result<(&JobAnalysis<'a>, &OperationAnalysis<'a>), NoSuchFigure> {
        let operations =
            || self.jobs.iter().flat_map(|job| job.operations.iter().map(move |operation| (job, operation)));
        let matches = |(job, operation): &(&JobAnalysis<'a>, &OperationAnalysis<'a>)| {
            job.name == name.job && operation.operation == name.operation && name.figure.is_of(name.operation)
        };
        operations().find(matches).ok_or_else(|| NoSuchFigure {
            name: name.clone(),
            known: operations()
                .map(|(job, operation)| format!("{}:{}", quoted(job.name), operation.operation.name()))
                .collect(),
        })
    }

    /// A figure under each variant that has it, with the variant's label.
    ///
    /// # Errors
    /// If no variant had such I/O; the error lists the jobs and operations that have.
    pub fn figure(&self, name: &FigureName) -> Result<Vec<(String, Estimate)>, NoSuchFigure> {
        let (_, operation) = self.find(name)?;
        let labelled_estimate = |row: &Row<'a>| (self.variants[row.variant].label.clone(), row.estimate(name.figure));
        Ok(operation.rows.iter().map(labelled_estimate).collect())
    }
}
