//! Devices around devices: each wraps any model and can be stacked. In a preset they are sections of their own, put
//! around the model in this order: throttle, faults, tracer (which sees what the host sees).
//!
//! Alarms of the wrapped device keep their order: a wrapper with an alarm of its own takes number 0 and counts the
//! others up by one.

mod faults;
mod throttle;
mod tracer;

pub use faults::{FaultInjector, FaultParameters};
pub use throttle::{Throttle, ThrottleBurst, ThrottleParameters};
pub use tracer::{Tracer, TracerParameters};
