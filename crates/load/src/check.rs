//! Validation of a load: ranges of fields, and consistency between them. Each part checks its own fields.
//!
//! Used by: `load`, `description`, `plan`, `pattern`.
//! Tests: `crates/load/tests/checking.rs`, `crates/load/tests/bounds.rs`.

use std::fmt::Display;

use hoistway_blk::ground::Nanos;

use crate::LoadError;

pub type Checked = Result<(), LoadError>;

/// Returns an error about `field` unless `is_right` holds.
pub fn ensure(is_valid: bool, field: &'static str, message: impl Display, hint: impl Display) -> Checked {
    if is_valid { Ok(()) } else { Err(LoadError::new(field, message.to_string(), hint.to_string())) }
}

/// Ten years: far more than any run, and far from overflow when times are added.
const TIME_MAX: Nanos = Nanos(3_653 * 86_400 * 1_000_000_000);

pub fn times(field: &'static str, times: impl IntoIterator<Item = Nanos>) -> Checked {
    ensure(times.into_iter().all(|time| time <= TIME_MAX), field, "longer than ten years", "expected less")
}

pub fn whole_sectors(field: &'static str, bytes: u64) -> Checked {
    let message = format_args!("{bytes} bytes are not a multiple of a sector of 512");
    ensure(bytes.is_multiple_of(512), field, message, "direct I/O and trims need whole sectors")
}
