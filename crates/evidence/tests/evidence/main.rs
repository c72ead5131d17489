//! How near whole tables and decisions are to those that were published: `cargo test -p hoistway-evidence --test evidence`.

mod decide;
mod reproduce;
#[path = "../program/support.rs"]
mod support;
mod techniques;
