//! NBD clients: from a listening socket to the requests of a connection and their replies.
//!
//! Used by: `operation`, `guest`; the program `hoistway-serve`.
//! Tests: `crates/serve/src/nbd/` (in its files), `crates/serve/tests/clients.rs`, `crates/serve/tests/bounds.rs`.

pub(crate) mod connection;
pub(crate) mod input;
pub(crate) mod listener;
pub(crate) mod outbox;
pub(crate) mod session;
