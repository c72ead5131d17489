//! Between block layer and device: drivers, effects of calls, the in-flight table and timeouts.

pub(crate) mod driver;
pub(crate) mod effects;
pub(crate) mod flights;
pub(crate) mod timeouts;

pub use driver::{Answer, Driver, Expired, Refusal};
pub use effects::{Effect, Effects, RESOURCE_DELAY};
