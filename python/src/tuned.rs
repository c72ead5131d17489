//! The result of a search as a Python object.

use hoistway_answer::tuning::{FORMAT, Tuning};
use pyo3::prelude::*;

use crate::errors;
use crate::table::{Table, internal_error};
use crate::tables;

/// The document of a search.
#[pyclass(module = "hoistway._hoistway", frozen)]
pub(crate) struct Tuned(Tuning);

impl Tuned {
    pub(crate) fn of(mut document: Tuning) -> Tuned {
        document.conclusion = hoistway_render::text::tuning_conclusion(&document);
        Tuned(document)
    }
}

/// Reads the document of a search. `file` is its name in errors.
#[pyfunction]
pub(crate) fn read_tuning(py: Python<'_>, text: &str, file: &str) -> PyResult<Tuned> {
    let document_error = |problem: String| errors::text(py, file, &format!("{file}: {problem}"));
    let document: Tuning =
        serde_json::from_str(text).map_err(|error| document_error(format!("not the results of a search: {error}")))?;
    if document.format != FORMAT {
        return Err(document_error(format!("`format` is {:?} (expected {FORMAT:?})", document.format)));
    }
    Ok(Tuned(document))
}

#[pymethods]
impl Tuned {
    /// The document as JSON, as `hoistway tune --format json --stable` writes it.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string_pretty(&self.0)).map(|text| text + "\n").map_err(internal_error)
    }

    /// The figures of the objective, the optimized one first.
    fn names(&self) -> Vec<String> {
        self.0.objective.figures().into_iter().map(ToString::to_string).collect()
    }

    /// The result as text. `width` is that of the terminal.
    fn text(&self, width: usize) -> String {
        hoistway_render::text::tuning(&self.0, width)
    }

    /// One row for each figure of each run.
    fn figures(&self) -> PyResult<Table> {
        Ok(Table::new(tables::figures_of_search(&self.0).map_err(internal_error)?, Vec::new()))
    }
}
