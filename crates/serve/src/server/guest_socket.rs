//! Socket files: access rights, and the sockets of guests.

use std::thread::JoinHandle;

use crate::ground::stop::Stop;

/// Access to a socket file; `None` for the system's default.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketAccess {
    /// Its mode: processes that can write to it can connect.
    pub mode: Option<u32>,
    /// Its owner.
    pub user: Option<u32>,
    /// Its group.
    pub group: Option<u32>,
}

/// A socket for guests, with the thread that serves it.
pub(crate) struct GuestSocket {
    /// Its export.
    pub(crate) export: String,
    /// Its path.
    pub(crate) place: String,
    /// Stops the thread.
    pub(crate) stop: Stop,
    /// Accepts guests.
    pub(crate) thread: JoinHandle<()>,
}
