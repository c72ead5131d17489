//! Documents that come from elsewhere.

use std::collections::BTreeMap;

use crate::comparison::Comparison;
use crate::document::{ReadError, ResultsDocument};
use crate::figure::Figure;

/// Reads a document and looks whether its figures are still those of its runs.
///
/// # Errors
/// As [`ResultsDocument::from_json`], and if figures do not follow from the runs.
pub fn read(text: &str) -> Result<ResultsDocument, ReadError> {
    let document = ResultsDocument::from_json(text)?;
    check(&document)?;
    Ok(document)
}

/// Figures stand twice in a document: once by run, once together.
fn check(document: &ResultsDocument) -> Result<(), ReadError> {
    let Some(statistics) = &document.statistics else { return Ok(()) };
    let comparison = Comparison::of(document);
    let mut samples: BTreeMap<(&str, u32, &str, &str), Vec<f64>> = BTreeMap::new();
    for (job, operation) in
        comparison.jobs.iter().flat_map(|job| job.operations.iter().map(move |operation| (job, operation)))
    {
        for row in &operation.rows {
            for figure in Figure::ALL.into_iter().filter(|figure| figure.is_of(operation.operation)) {
                let key = (&*comparison.variants[row.variant].label, job.job, operation.operation.name(), figure.key());
                samples.insert(key, row.samples().map(|sample| sample.figure(figure)).collect());
            }
        }
    }
    for (number, row) in statistics.rows.iter().enumerate() {
        for (name, figure) in row.figures.iter() {
            let known = samples.get(&(&*row.scheduler, row.job_index, row.direction.name(), name));
            let is_same = known.is_none_or(|known| *known == figure.samples);
            if !is_same {
                return Err(ReadError::Inconsistent {
                    field: format!("statistics.rows[{number}].figures.{name}.samples"),
                    expected: "expected the figures of the runs (the document was edited)",
                });
            }
        }
    }
    Ok(())
}
