//! What bytes come and go by, whatever kind of socket it is.

use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// A connected stream that never makes a caller wait. One that reads less than there was room for has nothing more at present.
pub(crate) trait Stream: Read + Write + AsFd + Send + fmt::Debug {
    /// Shuts down both directions, which pollers of the socket notice.
    fn shut_down(&self);
}

impl Stream for UnixStream {
    fn shut_down(&self) {
        // What has gone already need not be shut down.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Stream for TcpStream {
    fn shut_down(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
