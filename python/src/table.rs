//! A table that other libraries read in place, through Arrow's C interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Columns of equal length, which pyarrow, polars, pandas and DuckDB read without copying.
#[pyclass(module = "hoistway", frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// A column: its name, whether values may be missing, and the values.
pub(crate) type Column = (&'static str, bool, ArrayRef);

/// Makes a batch of rows from columns.
pub(crate) fn batch(columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
    let field = |(name, nullable, values): &Column| Field::new(*name, values.data_type().clone(), *nullable);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(.., values)| values).collect())
}

/// Converts an error of Arrow, such as columns of unequal length, which can only come from a bug.
pub(crate) fn internal_error(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl Table {
    /// A table of batches, all with the columns of the first.
    pub(crate) fn new(first: RecordBatch, others: Vec<RecordBatch>) -> Table {
        let schema = first.schema();
        Table { schema, batches: std::iter::once(first).chain(others).collect() }
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("<hoistway.Table of {} rows: {}>", self.__len__(), self.column_names().join(", "))
    }

    /// The stream of batches from which other libraries read it; no value is copied. A requested schema is ignored, as the
    /// protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The names and types of its columns, for other libraries.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(internal_error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}
