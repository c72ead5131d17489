//! Comma-separated values.

use std::fmt::Display;
use std::io::Write;

use super::{Cell, Column, Table};
use crate::store::error::DatasetError;

pub(crate) struct Csv<W: Write> {
    writer: csv::Writer<W>,
}

fn failed(error: impl Display) -> DatasetError {
    DatasetError::Table(error.to_string())
}

impl<W: Write> Csv<W> {
    pub(crate) fn new(to: W, columns: Vec<Column>) -> Result<Self, DatasetError> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(columns.iter().map(|column| &column.name)).map_err(failed)?;
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
            .map_err(failed)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<(), DatasetError> {
        self.writer.flush().map_err(failed)
    }
}
