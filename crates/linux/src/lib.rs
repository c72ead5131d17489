//! A Linux system as data. Every path lies below a [`Root`]: the live system, or a folder with a copy of parts of one.

mod root;

pub use root::{Found, Root};
