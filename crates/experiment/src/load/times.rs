//! Checks times that replace the runtime or ramp time of a load.

use hoistway_blk::ground::Nanos;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;

/// Maximum replacement time: ten years, as in job files.
pub const TIME_NS_MAX: u64 = 3_653 * 86_400_000_000_000;

/// Checks a replacement time.
pub(crate) fn time(options: &Options<'_>, field: Field, ns: Option<u64>) -> Result<Option<Nanos>, Error> {
    match ns {
        Some(ns) if ns > TIME_NS_MAX || (ns == 0 && field != Field::RampNs) => {
            Err(options.refuse(field, Nanos(ns), "expected a time between 1 us and 10 years"))
        }
        ns => Ok(ns.map(Nanos)),
    }
}
