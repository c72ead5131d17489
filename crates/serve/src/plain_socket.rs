//! Sockets as the system has them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A socket without TLS.
#[derive(Debug)]
pub(crate) enum PlainSocket {
    /// On this machine.
    Unix(UnixStream),
    /// On any.
    Tcp(TcpStream),
}

impl PlainSocket {
    /// Ends both directions, which whoever watches it is told of.
    pub(crate) fn shut_down(&self) {
        // What has gone already need not be shut down.
        let _ = match self {
            PlainSocket::Unix(stream) => stream.shutdown(Shutdown::Both),
            PlainSocket::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for PlainSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            PlainSocket::Unix(stream) => stream.read(into),
            PlainSocket::Tcp(stream) => stream.read(into),
        }
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            PlainSocket::Unix(stream) => stream.read_vectored(into),
            PlainSocket::Tcp(stream) => stream.read_vectored(into),
        }
    }
}

impl Write for PlainSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PlainSocket::Unix(stream) => stream.write(bytes),
            PlainSocket::Tcp(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            PlainSocket::Unix(stream) => stream.write_vectored(pieces),
            PlainSocket::Tcp(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for PlainSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            PlainSocket::Unix(stream) => stream.as_fd(),
            PlainSocket::Tcp(stream) => stream.as_fd(),
        }
    }
}
