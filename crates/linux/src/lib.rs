//! A Linux system as data. Every path lies below a [`Root`]: the live system, or a folder with a copy of parts of one.

pub mod apply;
pub mod below;
pub mod dump;
pub mod host;
pub mod record;
mod root;
mod secrets;

pub use root::{Found, Root};
