//! Tables for other programs, written row by row.
//!
//! Used by: `store::merge`, `store`.
//! Tests: `crates/experiment/tests/sweep.rs`, `crates/hoistway/tests/sweep/tables.rs`.

pub(crate) mod csv;

use crate::store::error::DatasetError;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number from 0.
    Whole,
    /// Any number.
    Number,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// Whether a row may have no value.
    pub is_optional: bool,
}

/// A value in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// No value.
    Absent,
}

/// A table to write to.
pub trait Table {
    /// Adds a row: one cell per column, of the column's type.
    ///
    /// # Errors
    /// If it cannot be written.
    fn row(&mut self, cells: &mut dyn Iterator<Item = Cell<'_>>) -> Result<(), DatasetError>;

    /// Writes buffered rows and completes the table.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(self: Box<Self>) -> Result<(), DatasetError>;
}
