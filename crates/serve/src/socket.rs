//! Sockets of both kinds, as one.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A connected socket that never makes a caller wait.
#[derive(Debug)]
pub enum Socket {
    /// On this machine.
    Unix(UnixStream),
    /// On any.
    Tcp(TcpStream),
}

impl Socket {
    /// Makes a socket of this machine one of ours.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn unix(stream: UnixStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        Ok(Socket::Unix(stream))
    }

    /// Makes a TCP socket one of ours.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn tcp(stream: TcpStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        // Answers are whole when they are sent: nothing is gained by waiting for more of them.
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    /// Receives what has come, as much as there is room for; 0 is the end of the stream.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has come; others end the connection.
    pub fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.read_vectored(into),
            Socket::Tcp(stream) => stream.read_vectored(into),
        }
    }

    /// Sends as much as the system takes.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if that is nothing; others end the connection.
    pub fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.write_vectored(pieces),
            Socket::Tcp(stream) => stream.write_vectored(pieces),
        }
    }

    /// Ends both directions, which whoever watches it is told of.
    pub fn shut_down(&self) {
        // What has gone already need not be shut down.
        let _ = match self {
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}
