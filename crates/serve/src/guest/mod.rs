//! Guests: virtual machines whose disk is an export, over vhost-user.
//!
//! Used by: `operation`; the program `hoistway-serve`.
//! Tests: `crates/serve/tests/guest/`.
//!
//! The front end (the emulator) sends few messages, but each may have to wait for requests to complete, so a thread per guest
//! handles them. A worker reads the rings when they are kicked, and does the I/O. One lock is shared by both; it is almost
//! never contended.

mod connection;
mod listener;
mod messages;
mod requests;

pub use listener::GuestListener;
