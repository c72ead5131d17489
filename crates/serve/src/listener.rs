//! Where clients of NBD come from.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hoistway_nbd::Tls;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::connection::Connection;
use crate::front_end::FrontEnd;
use crate::served::Site;
use crate::server::ServerError;
use crate::socket::Socket;
use crate::stop::Stop;

/// Where clients of NBD come from. A socket in the file system that it has made goes with it.
#[derive(Debug)]
pub struct Listener {
    place: Place,
    requires_tls: bool,
}

#[derive(Debug)]
enum Place {
    /// On this machine, and the socket if it is ours to remove.
    Unix(UnixListener, Option<OwnSocket>),
    /// From any.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at a path. A socket that was left there by a server that has gone is replaced; one that somebody listens on,
    /// and any other file, is not.
    ///
    /// # Errors
    /// If the path is in use, or the system refuses.
    pub fn unix(path: &Path) -> Result<Listener, ServerError> {
        let (listener, own) = bind(path)?;
        Ok(Listener { place: Place::Unix(listener, Some(own)), requires_tls: false })
    }

    /// Listens at an address, HOST:PORT.
    ///
    /// # Errors
    /// If it is in use or none, or the system refuses.
    pub fn tcp(address: &str) -> Result<Listener, ServerError> {
        let listening = TcpListener::bind(address).and_then(Listener::of_tcp);
        listening.map_err(|why| ServerError::Listen { place: address.to_owned(), why })
    }

    /// A socket that somebody else has made, and removes.
    ///
    /// # Errors
    /// If nobody can come there, or the system refuses.
    pub fn of_unix(listener: UnixListener) -> io::Result<Listener> {
        listens(listener.as_fd())?;
        listener.set_nonblocking(true)?;
        Ok(Listener { place: Place::Unix(listener, None), requires_tls: false })
    }

    /// The same for TCP.
    ///
    /// # Errors
    /// If nobody can come there, or the system refuses.
    pub fn of_tcp(listener: TcpListener) -> io::Result<Listener> {
        listens(listener.as_fd())?;
        listener.set_nonblocking(true)?;
        Ok(Listener { place: Place::Tcp(listener), requires_tls: false })
    }

    /// Clients over TCP have to begin with TLS; those of this machine may.
    #[must_use]
    pub fn requiring_tls(mut self) -> Listener {
        self.requires_tls = matches!(self.place, Place::Tcp(_));
        self
    }

    fn accept(&self) -> io::Result<(Socket, String)> {
        match &self.place {
            Place::Unix(listener, _) => Ok((Socket::unix(listener.accept()?.0)?, "unix".into())),
            Place::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                Ok((Socket::tcp(stream)?, address.to_string()))
            }
        }
    }
}

/// A service manager may hand over what is one client already, of which nothing would ever be accepted.
fn listens(socket: BorrowedFd<'_>) -> io::Result<()> {
    match socket_acceptconn(socket)? {
        true => Ok(()),
        false => Err(io::Error::other("does not listen (expected ListenStream= and Accept=no in the .socket unit)")),
    }
}

impl FrontEnd for Listener {
    /// Where it really listens, which with port 0 nobody knows before.
    fn place(&self) -> String {
        match &self.place {
            Place::Unix(_, Some(own)) => own.path.display().to_string(),
            Place::Unix(listener, None) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                path.map_or_else(|| "a socket without a name".into(), |path| path.display().to_string())
            }
            Place::Tcp(listener) => listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string()),
        }
    }

    fn serve(&self, site: &Arc<Site>, stop: &Stop) {
        while !stop.is_stopped() {
            stop.wait_or(self.as_fd());
            match self.accept() {
                Ok((socket, peer)) => admit(site, socket, &peer, self.requires_tls),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => pause_after(site, &error),
            }
        }
    }
}

/// Has a client in, or turns it away.
pub(crate) fn admit(site: &Arc<Site>, socket: Socket, peer: &str, requires_tls: bool) {
    // Closed by being dropped: a client that is told nothing tries again.
    let Some(name) = site.name_client(peer) else { return };
    let tls = match site.tls() {
        None => Tls::Off,
        Some(_) if requires_tls => Tls::Required,
        Some(_) => Tls::Offered,
    };
    let begin = |id| Connection::begin(Arc::clone(site), id, name, socket, tls);
    site.doors.enter(site.doors.emptiest(), begin);
}

/// Nobody could be accepted: out of descriptors, most likely, and trying again at once would only say so again.
pub(crate) fn pause_after(site: &Site, error: &io::Error) {
    site.say(format_args!("cannot accept: {error}"));
    std::thread::sleep(Duration::from_millis(50));
}

/// A socket in the file system that we have made. It goes with us, unless somebody has put another one there meanwhile.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    path: PathBuf,
    /// The file system and the number in it.
    identity: (u64, u64),
}

impl OwnSocket {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // It may be taken away by somebody else just now.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let there = std::fs::symlink_metadata(path)?;
    Ok((there.dev(), there.ino()))
}

/// Listens at a path. A socket on which nobody listens is replaced.
pub(crate) fn bind(path: &Path) -> Result<(UnixListener, OwnSocket), ServerError> {
    let listen = || -> io::Result<(UnixListener, OwnSocket)> {
        make_room(path)?;
        let listener = UnixListener::bind(path)?;
        let own = OwnSocket { path: path.to_owned(), identity: identity(path)? };
        listener.set_nonblocking(true)?;
        Ok((listener, own))
    };
    listen().map_err(|why| ServerError::Listen { place: path.display().to_string(), why })
}

/// Takes away a socket on which nobody listens.
///
/// # Errors
/// If it cannot be taken away, or what is there is no socket.
fn make_room(path: &Path) -> io::Result<()> {
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err(io::Error::other("what is there is no socket"));
    }
    let is_left_over = connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left_over { std::fs::remove_file(path) } else { Ok(()) }
}

/// Connects without waiting, to read and write without waiting. If so many are waiting there that nobody else may, that is
/// [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// If nobody listens there, or the system refuses.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.place {
            Place::Unix(listener, _) => listener.as_fd(),
            Place::Tcp(listener) => listener.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_goes_with_its_listener_and_another_ones_does_not() {
        let folder = std::env::temp_dir().join(format!("hoistway-listener-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        drop(bind(&path).unwrap());
        assert!(!path.exists());
        let ours = bind(&path).unwrap();
        std::fs::rename(&path, folder.join("moved")).unwrap();
        let others = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(connect(&path).is_ok(), "it is another one's");
        assert!(bind(&path).is_err());
        drop(others);
        drop(bind(&path).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn where_too_many_wait_nobody_waits_to_be_let_in() {
        let folder = std::env::temp_dir().join(format!("hoistway-backlog-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let hangs = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        let refusal = loop {
            match connect(&path) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(refusal.kind(), io::ErrorKind::WouldBlock);
        // Somebody listens there, if not to all.
        assert!(bind(&path).is_err());
        drop(hangs);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
