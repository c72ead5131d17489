//! A common type for all kinds of sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::stream::Stream;
use crate::stream::tls::TlsLayer;

/// A connected non-blocking socket.
#[derive(Debug)]
pub struct Socket {
    plain: Box<dyn Stream>,
    /// The TLS layer, if the connection uses TLS.
    tls: Option<Box<TlsLayer>>,
}

impl Socket {
    /// Wraps a Unix socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn unix(stream: UnixStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        Ok(Socket::of(stream))
    }

    /// Wraps a TCP socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn tcp(stream: TcpStream) -> io::Result<Socket> {
        stream.set_nonblocking(true)?;
        // Replies are sent whole, so delaying them gains nothing.
        stream.set_nodelay(true)?;
        Ok(Socket::of(stream))
    }

    /// Wraps a non-blocking stream.
    pub(crate) fn of(stream: impl Stream + 'static) -> Socket {
        Socket { plain: Box::new(stream), tls: None }
    }

    /// Starts TLS; the client begins the handshake.
    ///
    /// # Errors
    /// If the configuration is not valid for a server.
    pub fn begin_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        self.tls = Some(Box::new(TlsLayer::new(config)?));
        Ok(())
    }

    /// Receives available data, as much as there is room for; 0 is the end of the stream.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none; other errors end the connection.
    pub fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.read_vectored(into),
            Some(tls) => tls.receive(&mut *self.plain, into),
        }
    }

    /// Whether TLS has begun and keys are being agreed on, which takes milliseconds.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// DNS names of the client's certificate; returned once, after the client has presented one.
    pub fn peer_names(&mut self) -> Option<Vec<String>> {
        self.tls.as_mut()?.peer_names()
    }

    /// Whether the end of the stream directly follows the received data.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_ended())
    }

    /// Sends as much as the system accepts.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it accepts nothing; other errors end the connection.
    pub fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.write_vectored(pieces),
            Some(tls) => tls.send(&mut *self.plain, pieces),
        }
    }

    /// Sends buffered TLS records, as far as the system accepts them.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn push(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.write_records(&mut *self.plain))
    }

    /// Whether TLS records are buffered.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Announces the end of the stream, if the protocol supports that.
    pub fn announce_end_of_stream(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.announce_end_of_stream();
        }
    }

    /// Whether the peer has closed both sides, or the socket is broken: nothing can be sent any more.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.plain.has_left()
    }

    /// Shuts down both directions; pollers of the socket are notified.
    pub fn shut_down(&self) {
        self.plain.shut_down();
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.plain.as_fd()
    }
}
