//! Guests: virtual machines whose disk is an export, over vhost-user.
//!
//! Messages of the front end (the emulator) are few, and each may have to wait for requests to end: a thread of the guest's own
//! takes them. A worker reads the rings whenever they are kicked, and does the I/O. Between both is one lock,
//! which is free nearly always.

mod connection;
mod listener;
mod messages;
mod requests;

pub use listener::GuestListener;
