//! The results of a comparison as a Python object.

use hoistway_answer::{Analysis, Figure, FigureName, ResultsDocument, WeightedFigure};
use hoistway_render::text::Style;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::table::{Table, internal_error};
use crate::tables::{self, RunLog};

/// A result document, and the logs of its runs if they were requested.
#[pyclass(module = "hoistway", frozen)]
pub(crate) struct Results {
    document: ResultsDocument,
    logs: Option<Vec<RunLog>>,
}

/// Reads a result document. `file` is its name in errors.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, text: &str, file: &str) -> PyResult<Results> {
    let document = py.detach(|| ResultsDocument::from_json(text));
    let document = document.map_err(|error| errors::text(py, file, &format!("{file}: {error}")))?;
    Ok(Results { document, logs: None })
}

/// Parses ranking figures such as `wal:sync:p99*2`; returns the field of a comparison as JSON.
#[pyfunction]
pub(crate) fn focus(py: Python<'_>, text: &str) -> PyResult<String> {
    let focus = text.parse::<WeightedFigure>().map_err(|error| error.to_string());
    let json = focus.and_then(|focus| serde_json::to_string(&focus).map_err(|error| error.to_string()));
    json.map_err(|problem| errors::argument(py, "focus", &format!("focus {text}: {problem}")))
}

/// A figure's value with its unit; without a unit if the figure is unknown.
#[pyfunction]
pub(crate) fn shown(figure: &str, value: f64) -> String {
    let known = Figure::ALL.into_iter().find(|candidate| candidate.name() == figure);
    known.map_or_else(|| value.to_string(), |figure| hoistway_render::text::figure_value(figure, value))
}

impl Results {
    pub(crate) fn new(document: ResultsDocument, logs: Option<Vec<RunLog>>) -> Results {
        Results { document, logs }
    }
}

#[pymethods]
impl Results {
    /// The document as JSON, as `hoistway compare --format json` writes it; if `stable`, without anything that depends on
    /// the time and speed of the runs.
    fn json(&self, py: Python<'_>, stable: bool) -> String {
        py.detach(|| match stable {
            true => hoistway_render::text::json(&self.document.without_wall_clock()),
            false => hoistway_render::text::json(&self.document),
        })
    }

    /// The results as text. `width` is that of the terminal; 0 means no limit.
    fn text(&self, wide: bool, width: u16) -> String {
        let width = (width > 0).then_some(width);
        hoistway_render::text::table(&Analysis::of(&self.document), &Style { wide, width, ..Style::default() })
    }

    /// A self-contained page with charts.
    fn page(&self, py: Python<'_>) -> String {
        py.detach(|| hoistway_render::html::html(&Analysis::of(&self.document)))
    }

    /// The results as Markdown.
    fn markdown(&self) -> String {
        hoistway_render::text::markdown(&Analysis::of(&self.document))
    }

    /// A figure by its name: for each variant its label, the mean over the repeats and half the width of its interval.
    fn figure(&self, py: Python<'_>, name: &str) -> PyResult<Vec<(String, f64, Option<f64>)>> {
        let estimates = name.parse::<FigureName>().map_err(|error| error.to_string());
        let estimates =
            estimates.and_then(|name| Analysis::of(&self.document).figure(&name).map_err(|error| error.to_string()));
        let estimates =
            estimates.map_err(|problem| errors::argument(py, "name", &format!("figure {name}: {problem}")))?;
        Ok(estimates.into_iter().map(|(label, estimate)| (label, estimate.mean, estimate.half_width)).collect())
    }

    /// One row for each figure of each run.
    fn figures(&self) -> PyResult<Table> {
        Ok(Table::new(tables::figures(&self.document).map_err(internal_error)?, Vec::new()))
    }

    /// One row for each interval of each run.
    fn intervals(&self) -> PyResult<Table> {
        Ok(Table::new(tables::intervals(&self.document).map_err(internal_error)?, Vec::new()))
    }

    /// One row for each I/O.
    fn ios(&self, py: Python<'_>) -> PyResult<Table> {
        let Some(logs) = &self.logs else {
            return Err(PyValueError::new_err("no I/O was logged (expected a comparison with logs=True)"));
        };
        let rows = py.detach(|| tables::ios(&self.document, logs)).map_err(internal_error)?;
        Ok(Table::new(rows, Vec::new()))
    }
}
