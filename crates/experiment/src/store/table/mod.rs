//! Tables of other programs, row by row.

pub(crate) mod csv;

use crate::store::error::DatasetError;

/// What a column holds.
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
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may lack it.
    pub is_optional: bool,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// There is none.
    Absent,
}

/// A table that is being written.
pub trait Table {
    /// Adds a row: a cell for each column, of its kind.
    ///
    /// # Errors
    /// If it cannot be written.
    fn row(&mut self, cells: &mut dyn Iterator<Item = Cell<'_>>) -> Result<(), DatasetError>;

    /// Writes what is left.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(self: Box<Self>) -> Result<(), DatasetError>;
}
