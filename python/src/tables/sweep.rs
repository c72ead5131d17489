//! The table of a sweep.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hoistway_experiment::store::{Cell, Column, DatasetError, Kind, Table};

use super::keys::Names;

/// Rows per batch, which limits the size of its dictionaries.
const BATCH_ROWS: usize = 65_536;

/// Receives the rows, one batch at a time.
pub(crate) struct Rows<'a> {
    schema: SchemaRef,
    columns: Vec<Values>,
    rows: usize,
    batches: &'a mut Vec<RecordBatch>,
}

enum Values {
    Texts(Names),
    Wholes(UInt64Builder),
    Numbers(Float64Builder),
}

impl Values {
    fn of(kind: Kind) -> Values {
        match kind {
            Kind::Text => Values::Texts(Names::new()),
            Kind::Whole => Values::Wholes(UInt64Builder::new()),
            Kind::Number => Values::Numbers(Float64Builder::new()),
        }
    }

    fn push(&mut self, cell: Cell<'_>) -> Result<(), DatasetError> {
        match (self, cell) {
            (Values::Texts(texts), Cell::Text(text)) => texts.append_value(text),
            (Values::Texts(texts), Cell::Absent) => texts.append_null(),
            (Values::Wholes(wholes), Cell::Whole(number)) => wholes.append_value(number),
            (Values::Numbers(numbers), Cell::Number(number)) => numbers.append_value(number),
            (_, cell) => return Err(DatasetError::Table(format!("{cell:?} does not have the column's type"))),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Values::Texts(texts) => Arc::new(texts.finish()),
            Values::Wholes(wholes) => Arc::new(wholes.finish()),
            Values::Numbers(numbers) => Arc::new(numbers.finish()),
        }
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn new(columns: &[Column], batches: &'a mut Vec<RecordBatch>) -> Rows<'a> {
        let field = |column: &Column| {
            let kind = match column.kind {
                Kind::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                Kind::Whole => DataType::UInt64,
                Kind::Number => DataType::Float64,
            };
            Field::new(&column.name, kind, column.is_optional)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        Rows { schema, columns: columns.iter().map(|column| Values::of(column.kind)).collect(), rows: 0, batches }
    }

    fn end_batch(&mut self) -> Result<(), DatasetError> {
        let columns = self.columns.iter_mut().map(Values::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        self.batches.push(batch.map_err(|error| DatasetError::Table(error.to_string()))?);
        self.rows = 0;
        Ok(())
    }
}

impl Table for Rows<'_> {
    fn row(&mut self, cells: &mut dyn Iterator<Item = Cell<'_>>) -> Result<(), DatasetError> {
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            values.push(cell)?;
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.end_batch() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), DatasetError> {
        // Without rows there is an empty batch, which defines the columns.
        if self.rows > 0 || self.batches.is_empty() { self.end_batch() } else { Ok(()) }
    }
}
