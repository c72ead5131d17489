//! Apache Parquet: a dictionary for what repeats, so a sweep takes little more than its values.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use hoistway_lab::sweep::{Key, VERSION};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::{Cell, Column, Kind, Table};
use crate::error::DatasetError;

/// What the metadata says of the columns. The number grows when a reader of the old form would be misled.
const SCHEMA: &str = "hoistway-sweep-table/1";

/// Rows in memory.
const ROWS_OF_GROUP: usize = 65_536;

pub(crate) struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
}

/// The values of a column since the last group.
struct Values {
    of: Kept,
    /// For each row whether it has a value, if rows may lack one.
    is_there: Option<Vec<i16>>,
}

enum Kept {
    Texts(Vec<ByteArray>),
    Wholes(Vec<i64>),
    Numbers(Vec<f64>),
}

fn failed(error: impl Display) -> DatasetError {
    DatasetError::Table(error.to_string())
}

impl<W: Write + Send> Parquet<W> {
    pub(crate) fn new(to: W, columns: Vec<Column>, sweep: Key) -> Result<Self, DatasetError> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("figures").with_fields(fields).build().map_err(failed)?;
        let metadata =
            [("hoistway.schema", SCHEMA), ("hoistway.version", VERSION), ("hoistway.sweep", &sweep.to_string())];
        let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
        let properties = WriterProperties::builder()
            .set_created_by(format!("hoistway {VERSION}"))
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(metadata.to_vec()))
            .build();
        let writer = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        let columns = columns.iter().map(|column| Values {
            of: match column.kind {
                Kind::Text => Kept::Texts(Vec::new()),
                Kind::Whole => Kept::Wholes(Vec::new()),
                Kind::Number => Kept::Numbers(Vec::new()),
            },
            is_there: column.is_optional.then(Vec::new),
        });
        Ok(Parquet { columns: columns.collect(), writer, rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), DatasetError> {
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for values in &mut self.columns {
            values.write(&mut group)?;
        }
        self.rows = 0;
        group.close().map(|_| ()).map_err(failed)
    }
}

fn field(column: &Column) -> Result<Arc<Type>, DatasetError> {
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Whole => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
    };
    let repetition = if column.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
    builder.with_logical_type(logical).build().map(Arc::new).map_err(failed)
}

impl Values {
    fn push(&mut self, cell: Cell<'_>) -> Result<(), DatasetError> {
        if let Some(is_there) = &mut self.is_there {
            is_there.push(i16::from(cell != Cell::Absent));
            if cell == Cell::Absent {
                return Ok(());
            }
        }
        match (&mut self.of, cell) {
            (Kept::Texts(texts), Cell::Text(text)) => {
                // Most repeat the one above: then both share its bytes.
                let text = match texts.last() {
                    Some(above) if above.data() == text.as_bytes() => above.clone(),
                    _ => ByteArray::from(text),
                };
                texts.push(text);
            }
            // Readers take the bits for those of an unsigned number, as the type says.
            (Kept::Wholes(wholes), Cell::Whole(number)) => wholes.push(number as i64),
            (Kept::Numbers(numbers), Cell::Number(number)) => numbers.push(number),
            (_, cell) => return Err(failed(format!("{cell:?} is not of the column's kind"))),
        }
        Ok(())
    }

    fn write<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), DatasetError> {
        let mut column: SerializedColumnWriter<'_> =
            group.next_column().map_err(failed)?.ok_or_else(|| failed("a column is not in the schema"))?;
        let is_there = self.is_there.as_deref();
        match &mut self.of {
            Kept::Texts(texts) => {
                column.typed::<ByteArrayType>().write_batch(texts, is_there, None).map_err(failed)?;
                texts.clear();
            }
            Kept::Wholes(wholes) => {
                column.typed::<Int64Type>().write_batch(wholes, is_there, None).map_err(failed)?;
                wholes.clear();
            }
            Kept::Numbers(numbers) => {
                column.typed::<DoubleType>().write_batch(numbers, is_there, None).map_err(failed)?;
                numbers.clear();
            }
        }
        self.is_there.as_mut().map(Vec::clear);
        column.close().map_err(failed)
    }
}

impl<W: Write + Send> Table for Parquet<W> {
    fn row(&mut self, cells: &mut dyn Iterator<Item = Cell<'_>>) -> Result<(), DatasetError> {
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            values.push(cell)?;
        }
        self.rows += 1;
        if self.rows == ROWS_OF_GROUP { self.write_group() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), DatasetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.close().map(|_| ()).map_err(failed)
    }
}
