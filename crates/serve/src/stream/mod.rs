//! The byte streams below sockets of all kinds.

pub(crate) mod socket;
pub(crate) mod timed_stream;
pub(crate) mod tls;

use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// A connected non-blocking stream. After a short read there is no more data for now.
pub(crate) trait Stream: Read + Write + AsFd + Send + fmt::Debug {
    /// Shuts down both directions; pollers of the socket are notified.
    fn shut_down(&self);
}

impl Stream for UnixStream {
    fn shut_down(&self) {
        // A stream that is closed already need not be shut down.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Stream for TcpStream {
    fn shut_down(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
