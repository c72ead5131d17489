//! Devices around devices: each wraps any model and can be stacked. In a preset they are sections of their own, put
//! around the model in this order: throttle, faults, tracer (which sees what the host sees). Inside of them is the command
//! queue of a SATA drive, which `sata` of `[shape]` asks for.
//!
//! Alarms of the wrapped device keep their order: a wrapper with an alarm of its own takes number 0 and counts the
//! others up by one. That queue takes a large number instead.

mod faults;
mod ncq;
mod throttle;
mod tracer;

pub use faults::{FaultInjector, FaultParameters};
pub(crate) use ncq::Ncq;
pub use throttle::{Throttle, ThrottleBurst, ThrottleParameters};
pub use tracer::{Tracer, TracerParameters};
