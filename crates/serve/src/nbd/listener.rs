//! Listeners for NBD clients.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use hoistway_nbd::Tls;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::umask;

use crate::export::clients::Peer;
use crate::ground::stop::Stop;
use crate::nbd::connection::NbdConnection;
use crate::server::ServerError;
use crate::server::disks::LOBBY;
use crate::server::front_end::FrontEnd;
use crate::server::guest_socket::SocketAccess;
use crate::server::server_state::ServerState;
use crate::stream::socket::Socket;

/// A listener for NBD clients. Dropping it removes the socket file that it has created.
#[derive(Debug)]
pub struct Listener {
    socket: ListeningSocket,
    requires_tls: bool,
}

#[derive(Debug)]
enum ListeningSocket {
    /// A Unix socket, and its file if this process has to remove it.
    Unix { listener: UnixListener, _file: Option<OwnSocket> },
    /// A TCP socket.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at a path. A stale socket is replaced; a socket that is in use,
    /// and any other file, is not.
    ///
    /// # Errors
    /// If the path is in use, or the system refuses.
    pub fn unix(path: &Path, access: SocketAccess) -> Result<Listener, ServerError> {
        let (listener, own) = bind(path, access)?;
        Ok(Listener { socket: ListeningSocket::Unix { listener, _file: Some(own) }, requires_tls: false })
    }

    /// Listens at an address, HOST:PORT.
    ///
    /// # Errors
    /// If the address is in use or invalid, or the system refuses.
    pub fn tcp(address: &str) -> Result<Listener, ServerError> {
        let listening = TcpListener::bind(address).and_then(Listener::of_tcp);
        listening.map_err(|why| ServerError::Listen { place: address.to_owned(), why })
    }

    /// A listening socket that another process has created and will remove.
    ///
    /// # Errors
    /// If it does not listen, or the system refuses.
    pub fn of_unix(listener: UnixListener) -> io::Result<Listener> {
        listens(listener.as_fd())?;
        listener.set_nonblocking(true)?;
        Ok(Listener { socket: ListeningSocket::Unix { listener, _file: None }, requires_tls: false })
    }

    /// The same for TCP.
    ///
    /// # Errors
    /// If it does not listen, or the system refuses.
    pub fn of_tcp(listener: TcpListener) -> io::Result<Listener> {
        listens(listener.as_fd())?;
        listener.set_nonblocking(true)?;
        Ok(Listener { socket: ListeningSocket::Tcp(listener), requires_tls: false })
    }

    /// TCP clients have to use TLS; clients on Unix sockets may.
    #[must_use]
    pub fn requiring_tls(mut self) -> Listener {
        self.requires_tls = matches!(self.socket, ListeningSocket::Tcp(_));
        self
    }

    /// Whether other machines may connect.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        let ListeningSocket::Tcp(listener) = &self.socket else { return false };
        listener.local_addr().is_ok_and(|address| !address.ip().is_loopback())
    }

    fn accept(&self) -> io::Result<(Socket, Peer)> {
        match &self.socket {
            ListeningSocket::Unix { listener, .. } => {
                let (stream, _) = listener.accept()?;
                let peer = Peer::unix("unix", user_of(&stream));
                Ok((Socket::unix(stream)?, peer))
            }
            ListeningSocket::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                Ok((Socket::tcp(stream)?, Peer::tcp(address)))
            }
        }
    }
}

/// The path that a socket listens on.
pub(crate) fn path_of(listener: &UnixListener) -> String {
    let address = listener.local_addr().ok();
    let path = address.as_ref().and_then(|address| address.as_pathname());
    path.map_or_else(|| "a socket without a name".into(), |path| path.display().to_string())
}

/// With Accept=yes, a service manager passes a connected socket, on which nothing can be accepted.
pub(crate) fn listens(socket: BorrowedFd<'_>) -> io::Result<()> {
    match socket_acceptconn(socket)? {
        true => Ok(()),
        false => Err(io::Error::other("does not listen (expected ListenStream= and Accept=no in the .socket unit)")),
    }
}

impl FrontEnd for Listener {
    /// The address that it listens on; with port 0 the system has chosen the port.
    fn place(&self) -> String {
        match &self.socket {
            ListeningSocket::Unix { listener, .. } => path_of(listener),
            ListeningSocket::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string())
            }
        }
    }

    fn serve(&self, server: &Arc<ServerState>, stop: &Stop) {
        while !stop.is_stopped() {
            stop.wait_or(self.as_fd());
            match self.accept() {
                Ok((socket, peer)) => admit(server, socket, peer, self.requires_tls),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => back_off_after(server, &error),
            }
        }
    }
}

/// Accepts a client, or refuses it.
pub(crate) fn admit(server: &Arc<ServerState>, socket: Socket, peer: Peer, requires_tls: bool) {
    // Dropping the socket closes it; the client may retry.
    let Some(admission) = server.admit(peer) else { return };
    let tls = match server.tls() {
        None => Tls::Off,
        Some(_) if requires_tls => Tls::Required,
        Some(_) => Tls::Offered,
    };
    let begin = |id| NbdConnection::begin(admission, id, socket, tls);
    server.inboxes.add(LOBBY, begin);
}

/// The user of the process at the other end.
pub(crate) fn user_of(stream: &UnixStream) -> Option<u32> {
    socket_peercred(stream).ok().map(|peer| peer.uid.as_raw())
}

/// Accepting failed, most likely for lack of descriptors: retrying at once would fail again.
pub(crate) fn back_off_after(server: &ServerState, error: &io::Error) {
    let logged = server.accept_failures.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now());
    match logged {
        Some(0) => server.error(format_args!("cannot accept a connection: {error}")),
        Some(more) => server.error(format_args!("cannot accept a connection: {error} ({more} more in the last 10 s)")),
        None => {}
    }
    std::thread::sleep(Duration::from_millis(50));
}

/// A socket file that this process has created. Dropping it removes the file, unless it has been replaced meanwhile.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    path: PathBuf,
    /// The file system and the number in it.
    identity: (u64, u64),
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Another process may remove it at the same time.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Listens at a path. A stale socket is replaced.
pub(crate) fn bind(path: &Path, access: SocketAccess) -> Result<(UnixListener, OwnSocket), ServerError> {
    let listen = || -> io::Result<(UnixListener, OwnSocket)> {
        remove_stale_socket(path)?;
        // It gets its mode when it is created: later its path may name another file. The mask applies to the whole process, which creates
        // no other files meanwhile.
        let mask = access.mode.map(|mode| umask(Mode::from_raw_mode(!mode & 0o777)));
        let bound = UnixListener::bind(path);
        mask.map(umask);
        let listener = bound?;
        let own = OwnSocket { path: path.to_owned(), identity: identity(path)? };
        if access.user.is_some() || access.group.is_some() {
            give_to(path, access)?;
        }
        listener.set_nonblocking(true)?;
        Ok((listener, own))
    };
    listen().map_err(|why| ServerError::Listen { place: path.display().to_string(), why })
}

/// Gives a socket that this process has just created to its owner. Who may write to its folder may have put another file in its place, such
/// as a link to a file of this process' user: only a socket of this process' user, with no other name, is given away.
fn give_to(path: &Path, access: SocketAccess) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let status = rustix::fs::fstat(&file)?;
    let is_own = FileType::from_raw_mode(status.st_mode) == FileType::Socket
        && (status.st_uid, status.st_nlink) == (rustix::process::geteuid().as_raw(), 1);
    if !is_own {
        return Err(io::Error::other("was replaced by another file before it got its owner"));
    }
    let (user, group) = (access.user.map(Uid::from_raw), access.group.map(Gid::from_raw));
    Ok(rustix::fs::chownat(&file, c"", user, group, AtFlags::EMPTY_PATH)?)
}

/// Removes a stale socket.
///
/// # Errors
/// If it cannot be removed, or exists and is not a socket.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::other("exists and is not a socket"));
    }
    let is_stale = connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_stale { std::fs::remove_file(path) } else { Ok(()) }
}

/// Connects a non-blocking socket without blocking. If the backlog is full, that is
/// [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// If there is no listener, or the system refuses.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            ListeningSocket::Unix { listener, .. } => listener.as_fd(),
            ListeningSocket::Tcp(listener) => listener.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_removes_its_own_socket_and_no_other() {
        let folder = std::env::temp_dir().join(format!("hoistway-listener-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        drop(bind(&path, SocketAccess::default()).unwrap());
        assert!(!path.exists());
        let ours = bind(&path, SocketAccess::default()).unwrap();
        std::fs::rename(&path, folder.join("moved")).unwrap();
        let others = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(connect(&path).is_ok(), "it is another one's");
        assert!(bind(&path, SocketAccess::default()).is_err());
        drop(others);
        drop(bind(&path, SocketAccess::default()).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn connecting_does_not_block_on_a_full_backlog() {
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
        // There is a listener, even if its backlog is full.
        assert!(bind(&path, SocketAccess::default()).is_err());
        drop(hangs);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_a_socket_of_its_own_is_given_to_another_owner() {
        use std::os::unix::fs::symlink;
        let folder = std::env::temp_dir().join(format!("hoistway-owner-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, victim) = (folder.join("socket"), folder.join("victim"));
        std::fs::write(&victim, "secret").unwrap();
        let group = rustix::process::getegid().as_raw();
        let access = SocketAccess { mode: None, user: None, group: Some(group) };
        let is_refused = || give_to(&path, access).unwrap_err().to_string().contains("was replaced by another file");
        symlink(&victim, &path).unwrap();
        assert!(is_refused());
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&victim, &path).unwrap();
        assert!(is_refused());
        std::fs::remove_file(&path).unwrap();
        let _socket = UnixListener::bind(&path).unwrap();
        give_to(&path, access).unwrap();
        // Another name of a socket that is not in this folder.
        std::fs::hard_link(&path, folder.join("other")).unwrap();
        assert!(is_refused());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_socket_has_the_mode_and_group_that_it_is_given() {
        let folder = std::env::temp_dir().join(format!("hoistway-mode-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let group = rustix::process::getegid().as_raw();
        let bound = bind(&path, SocketAccess { mode: Some(0o660), user: None, group: Some(group) }).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = path.metadata().unwrap();
        assert_eq!((metadata.permissions().mode() & 0o777, metadata.gid()), (0o660, group));
        drop(bound);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
