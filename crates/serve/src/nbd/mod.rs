//! NBD clients: from a listening socket to the requests of a connection and their replies.

pub(crate) mod connection;
pub(crate) mod input;
pub(crate) mod listener;
pub(crate) mod outbox;
pub(crate) mod session;
