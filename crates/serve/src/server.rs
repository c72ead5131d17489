//! A server: a target under a scheduler, exports on it, and doors for clients.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hoistway_blk::ConfigError;
use hoistway_engine::{Backend, Engine, StartError};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::connection::Connection;
use crate::lobby::{Doors, Lobby};
use crate::served::{Bounds, Log, Site, TunableNames};
use crate::socket::Socket;
use crate::spec::{ExportSpec, SpecError};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An export.
    #[error("{0}")]
    Export(#[from] SpecError),
    /// A weight.
    #[error("{0}")]
    Weight(#[from] ConfigError),
    /// What a running server does not change, or its queue does not take.
    #[error("{0}")]
    Refused(String),
    /// The block layer or the target.
    #[error("{0}")]
    Engine(#[from] StartError),
    /// The system.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A socket.
    #[error("cannot listen on {place}: {why}")]
    Listen {
        /// Where.
        place: String,
        /// What the system said.
        why: io::Error,
    },
}

/// An export and the volume of the target that it is on.
#[derive(Clone, Debug)]
pub struct Placed {
    /// What is asked for.
    pub spec: ExportSpec,
    /// Which volume.
    pub volume: usize,
}

/// A running server. Clients come when somebody [accepts](Self::accept) them.
pub struct Server {
    site: Arc<Site>,
}

impl Server {
    /// Starts the block layer over `target`, with these exports on it.
    ///
    /// # Errors
    /// If something of that contradicts something else, or the system refuses.
    pub fn start(
        config: &hoistway_engine::Config,
        target: Box<dyn Backend>,
        exports: &[Placed],
        bounds: Bounds,
        log: Log,
        tunable_names: TunableNames,
    ) -> Result<Server, ServerError> {
        let is_rotational = target.shape().limits.rotational;
        let doors = Doors::new(config.workers)?;
        let engine = Engine::start(config, Lobby::around(target, doors.clone()))?;
        let site = Site {
            engine,
            is_rotational,
            offer: Mutex::default(),
            withdrawn: Mutex::default(),
            defaults: Mutex::default(),
            doors,
            bounds,
            is_draining: AtomicBool::new(false),
            log,
            tunable_names,
        };
        site.remember_defaults();
        site.offer_these(exports)?;
        Ok(Server { site: Arc::new(site) })
    }

    /// What it is made of.
    #[must_use]
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Takes clients in until somebody stops that. Errors of single clients are told and that is all.
    pub fn accept(&self, listeners: &[Listener], stop: &Stop) {
        let clients = AtomicU64::new(0);
        while !stop.is_stopped() {
            let mut watched: Vec<_> =
                listeners.iter().map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN)).collect();
            watched.push(PollFd::new(&stop.0.bell, PollFlags::IN));
            if poll(&mut watched, None).is_err() {
                continue;
            }
            let ready: Vec<bool> = watched.iter().map(|it| !it.revents().is_empty()).collect();
            for (listener, _) in listeners.iter().zip(ready).filter(|(_, ready)| *ready) {
                match listener.accept() {
                    Ok((socket, peer)) => self.take_in(socket, &peer, clients.fetch_add(1, Relaxed) + 1),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        self.site.say(format_args!("cannot accept: {error}"));
                        // Out of descriptors, most likely: trying again at once would only say so again.
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }
            }
        }
    }

    fn take_in(&self, socket: Socket, peer: &str, number: u64) {
        let name = format!("client {number} ({peer})");
        if self.site.doors.visitors() >= self.site.bounds.connections {
            // Closed by being dropped: a client that is told nothing tries again.
            self.site.say(format_args!("{name}: turned away, {} are connected", self.site.bounds.connections));
            return;
        }
        self.site.say(format_args!("{name}: connected"));
        let doors = &self.site.doors;
        doors.enter(doors.emptiest(), |id| Connection::begin(Arc::clone(&self.site), id, name, socket));
    }

    /// Ends: what clients have under way is answered, then they are closed. Waits until none is left.
    pub fn drain(&self) {
        self.site.is_draining.store(true, Relaxed);
        self.site.doors.call_all();
        while self.site.doors.visitors() > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops the block layer, once nobody is connected any more.
    pub fn stop(self) {
        let mut site = self.site;
        // What a worker has just let go of may hold it for a moment; a worker cannot be the one to stop the workers.
        for _ in 0..1000 {
            match Arc::try_unwrap(site) {
                Ok(site) => return site.engine.stop(),
                Err(shared) => site = shared,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::mem::forget(site);
    }
}

/// What stops a loop of [`Server::accept`], from any thread.
#[derive(Clone)]
pub struct Stop(Arc<StopInside>);

struct StopInside {
    bell: OwnedFd,
    is_stopped: AtomicBool,
}

impl Stop {
    /// Not yet.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new() -> io::Result<Stop> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Stop(Arc::new(StopInside { bell, is_stopped: AtomicBool::new(false) })))
    }

    /// Now.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Relaxed);
        // It stays rung: there is no second start.
        let _ = rustix::io::write(&self.0.bell, &1_u64.to_ne_bytes());
    }

    /// Whether it has been stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Relaxed)
    }

    /// Waits until it is stopped, or something comes to `listener`.
    pub(crate) fn wait_or(&self, listener: BorrowedFd<'_>) {
        let mut watched = [PollFd::from_borrowed_fd(listener, PollFlags::IN), PollFd::new(&self.0.bell, PollFlags::IN)];
        let _ = poll(&mut watched, None::<&Timespec>);
    }
}

/// Where clients come from. A socket in the file system goes with it.
#[derive(Debug)]
pub enum Listener {
    /// On this machine.
    Unix(UnixListener, PathBuf),
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
        let listen = || -> io::Result<UnixListener> {
            if is_left_over(path) {
                std::fs::remove_file(path)?;
            }
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        match listen() {
            Ok(listener) => Ok(Listener::Unix(listener, path.to_owned())),
            Err(why) => Err(ServerError::Listen { place: path.display().to_string(), why }),
        }
    }

    /// Listens at an address, HOST:PORT.
    ///
    /// # Errors
    /// If it is in use or none, or the system refuses.
    pub fn tcp(address: &str) -> Result<Listener, ServerError> {
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        listen().map(Listener::Tcp).map_err(|why| ServerError::Listen { place: address.to_owned(), why })
    }

    /// Where it really listens, which with port 0 nobody knows before.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Listener::Unix(_, path) => path.display().to_string(),
            Listener::Tcp(listener) => listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string()),
        }
    }

    fn accept(&self) -> io::Result<(Socket, String)> {
        match self {
            Listener::Unix(listener, _) => Ok((Socket::unix(listener.accept()?.0)?, "unix".into())),
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                Ok((Socket::tcp(stream)?, address.to_string()))
            }
        }
    }
}

/// Whether there is a socket on which nobody listens.
pub(crate) fn is_left_over(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    is_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // It may have been taken away already.
            let _ = std::fs::remove_file(path);
        }
    }
}
