//! Guests: virtual machines whose disk is an export, over vhost-user.
//!
//! Messages of the front end (the emulator) are few, and each may have to wait for requests to end: a thread of the guest's own
//! takes them. The rings are looked at by a worker, where its I/O is done, whenever they are kicked. Between both is one lock,
//! which is free nearly always.

mod listener;
mod messages;
mod requests;
mod seat;

pub use listener::GuestListener;
