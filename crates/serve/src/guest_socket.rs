//! Files of sockets: who may connect to them, and those that guests use.

use std::thread::JoinHandle;

use crate::stop::Stop;

/// Who may connect to the file of a socket; `None` is what the system makes of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketAccess {
    /// Its mode: who can write to it can connect.
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
