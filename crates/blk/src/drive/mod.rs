//! At the device: who carries requests out, what calls lead to, what is in flight and for how long.

pub mod driver;
pub mod effects;
pub mod flights;
pub mod timeouts;
