//! Sockets of all kinds, as one.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::stream::Stream;
use crate::tls::TlsLayer;

/// A connected socket that never makes a caller wait.
#[derive(Debug)]
pub struct Socket {
    plain: Box<dyn Stream>,
    /// What is spoken on it, if that is not plain.
    tls: Option<Box<TlsLayer>>,
}

impl Socket {
    /// Makes a socket of this machine one of ours.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn unix(stream: UnixStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        Ok(Socket::of(stream))
    }

    /// Makes a TCP socket one of ours.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn tcp(stream: TcpStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        // Replies are sent whole, so delaying them gains nothing.
        stream.set_nodelay(true)?;
        Ok(Socket::of(stream))
    }

    /// A stream that never makes a caller wait.
    pub(crate) fn of(stream: impl Stream + 'static) -> Socket {
        Socket { plain: Box::new(stream), tls: None }
    }

    /// From now on TLS is spoken, which the client begins.
    ///
    /// # Errors
    /// If the configuration is none for servers.
    pub fn begin_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        self.tls = Some(Box::new(TlsLayer::new(config)?));
        Ok(())
    }

    /// Receives what has come, as much as there is room for; 0 is the end of the stream.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has come; others end the connection.
    pub fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.read_vectored(into),
            Some(tls) => tls.receive(&mut *self.plain, into),
        }
    }

    /// DNS names of the client's certificate, once, when it has presented one.
    pub fn peer_names(&mut self) -> Option<Vec<String>> {
        self.tls.as_mut()?.peer_names()
    }

    /// Whether the end of the stream has been seen behind what was received.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_ended())
    }

    /// Sends as much as the system takes.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if that is nothing; others end the connection.
    pub fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.write_vectored(pieces),
            Some(tls) => tls.send(&mut *self.plain, pieces),
        }
    }

    /// Sends what it keeps of what it took, as far as the system takes it.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn push(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.push(&mut *self.plain))
    }

    /// Whether it keeps something of what it took.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Announces the end of the stream, if the protocol can.
    pub fn say_farewell(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.say_farewell();
        }
    }

    /// Shuts down both directions, which pollers of the socket notice.
    pub fn shut_down(&self) {
        self.plain.shut_down();
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.plain.as_fd()
    }
}
