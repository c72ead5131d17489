//! Tables of other programs, row by row.

pub(crate) mod csv;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;

use crate::error::DatasetError;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Whole,
    Number,
}

/// A column.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "comma-separated values have no types"))]
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether a row may lack it.
    pub(crate) is_optional: bool,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    Whole(u64),
    Number(f64),
    Absent,
}

/// A table that is being written.
pub(crate) trait Table {
    /// Adds a row: a cell for each column, of its kind.
    fn row(&mut self, cells: &mut dyn Iterator<Item = Cell<'_>>) -> Result<(), DatasetError>;

    /// Writes what is left.
    fn finish(self: Box<Self>) -> Result<(), DatasetError>;
}
