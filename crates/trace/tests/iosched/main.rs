//! The reader of `iosched-trace/1` from outside: what it makes of good files and of bad ones.

mod arbitrary;
mod errors;
mod events;
mod recordings;
mod small;
