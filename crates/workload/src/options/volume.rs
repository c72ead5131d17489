//! How much is done, and where.

use super::setter::{Setter, U32_MAX};
use super::spec::OptionSpec;
use crate::values::Amount;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "size",
        "100%",
        Setter::Amount(|s, v| s.size = (v != Amount::Bytes(0)).then_some(v)),
        "Size of the region that is used, and bytes to do if io_size is not given",
    ),
    OptionSpec::new(
        "io_size",
        "",
        Setter::Amount(|s, v| s.io_size = (v != Amount::Bytes(0)).then_some(v)),
        "Bytes to do; more than size wraps around",
    )
    .alias(&["io_limit"]),
    OptionSpec::new("offset", "0", Setter::Amount(|s, v| s.offset = v), "Where the region starts")
        .alias(&["fileoffset"]),
    OptionSpec::new(
        "offset_increment",
        "0",
        Setter::Amount(|s, v| s.offset_increment = v),
        "Added to offset once for the last clone of a job, twice for the one before it and so on, never for the first",
    ),
    OptionSpec::new(
        "number_ios",
        "",
        Setter::Int { min: 0, max: i64::MAX, set: |s, v| s.number_ios = v },
        "End the job after so many I/Os, if its size does not end it first",
    ),
    OptionSpec::new(
        "loops",
        "1",
        Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.loops = v },
        "How often the size is done",
    ),
];
