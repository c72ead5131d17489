//! The byte streams below sockets of all kinds.
//!
//! Used by: `nbd`, `operation`; the program `hoistway-serve`.
//! Tests: `crates/serve/src/stream/timed_stream.rs`, `crates/serve/tests/tls.rs`.

pub(crate) mod socket;
pub(crate) mod timed_stream;
pub(crate) mod tls;

use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A connected non-blocking stream. After a short read there is no more data for now.
pub(crate) trait Stream: Read + Write + AsFd + Send + fmt::Debug {
    /// Shuts down both directions; pollers of the socket are notified.
    fn shut_down(&self);

    /// Whether the peer has closed both sides, or the socket is broken.
    fn has_left(&self) -> bool {
        let mut watched = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::empty())];
        let ready = poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        ready.is_ok() && watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
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
