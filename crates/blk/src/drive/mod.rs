//! At the device: who carries requests out, what calls lead to, what is in flight and for how long.

pub(crate) mod driver;
pub(crate) mod effects;
pub(crate) mod flights;
pub(crate) mod timeouts;

pub use driver::{Answer, Driver, Expired, Refusal};
pub use effects::{Effect, Effects, RESOURCE_DELAY};
