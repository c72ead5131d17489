//! Comma-separated values.

use std::fmt::Display;
use std::io::Write;

use super::{Cell, Column, Table};
use crate::store::error::DatasetError;

pub(crate) struct Csv<W: Write> {
    writer: csv::Writer<W>,
}

fn table_error(error: impl Display) -> DatasetError {
    DatasetError::Table(error.to_string())
}

impl<W: Write> Csv<W> {
    pub(crate) fn new(output: W, columns: Vec<Column>) -> Result<Self, DatasetError> {
        let mut writer = csv::Writer::from_writer(output);
        writer.write_record(columns.iter().map(|column| &column.name)).map_err(table_error)?;
        Ok(Csv { writer })
    }
}

impl<W: Write> Table for Csv<W> {
    fn row(&mut self, cells: &mut dyn Iterator<Item = Cell<'_>>) -> Result<(), DatasetError> {
        for cell in cells {
            match cell {
                Cell::Text(text) => self.writer.write_field(text),
                Cell::Whole(number) => self.writer.write_field(number.to_string()),
                Cell::Number(number) => self.writer.write_field(number.to_string()),
                Cell::Absent => self.writer.write_field(""),
            }
            .map_err(table_error)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(table_error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), DatasetError> {
        self.writer.flush().map_err(table_error)
    }
}
