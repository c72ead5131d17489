//! Parses the values of options: sizes, times, percentages, ranges and lists.
//!
//! Used by: `options`, `build`, `jobfile`.
//! Tests: `crates/fio/src/values/` (in its files), `crates/fio/tests/fio_job_files.rs`.
//!
//! fio parses as much of a value as it understands and silently drops the rest: `4x` is 4 bytes, `1.5m` is 1, `1h30m`
//! is one hour. This parser rejects any value with characters that it does not understand.

mod bytes;
mod list;
mod number;
mod time;

pub(crate) use bytes::{KbBase, amount, bytes, has_reversed_unit, range_bytes};
pub(crate) use list::{merge, per_direction};
pub(crate) use number::{decimal, whole};
pub(crate) use time::{TimeUnit, delay_range, time};

/// Why a value was rejected; becomes a [`JobFileError`](crate::JobFileError) where the position is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }
}
