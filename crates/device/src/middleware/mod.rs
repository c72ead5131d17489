//! Wrappers around devices: each wraps any model, and they can be stacked. In a preset they are separate sections, applied
//! to the model in this order: throttle, faults, tracer (whose commands and completions include the effects of both). Innermost is the command queue of
//! a SATA drive, which `sata` in `[shape]` turns on.
//!
//! Used by: `preset`.
//! Tests: `crates/device/tests/exact.rs`.
//!
//! Alarms of the wrapped device keep their order: a wrapper with its own alarm uses number 0 and increments the others.
//! The SATA command queue uses a large number instead.

mod faults;
mod ncq;
mod throttle;
mod tracer;

pub use faults::{FaultInjector, FaultParameters};
pub(crate) use ncq::Ncq;
pub use throttle::{Throttle, ThrottleBurst, ThrottleParameters};
pub use tracer::{Tracer, TracerParameters};
