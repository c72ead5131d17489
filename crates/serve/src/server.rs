//! A server: a target under a scheduler, exports on it, and doors for clients.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hoistway_blk::ConfigError;
use hoistway_engine::{Backend, Engine, StartError};
use hoistway_nbd::Export;

use crate::connection::Connection;
use crate::front_end::FrontEnd;
use crate::lobby::{Doors, Lobby};
use crate::quota::Quota;
use crate::served::{Bounds, Log, Served, Site, TunableNames};
use crate::socket::Socket;
use crate::spec::{ExportSpec, SpecError, check_names};
use crate::stop::Stop;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An export.
    #[error("{0}")]
    Export(#[from] SpecError),
    /// A weight.
    #[error("{0}")]
    Weight(#[from] ConfigError),
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
        exports: Vec<Placed>,
        bounds: Bounds,
        log: Log,
        tunable_names: TunableNames,
    ) -> Result<Server, ServerError> {
        let specs: Vec<_> = exports.iter().map(|placed| placed.spec.clone()).collect();
        check_names(&specs)?;
        let is_rotational = target.shape().limits.rotational;
        let doors = Doors::new(config.workers)?;
        let engine = Engine::start(config, Lobby::around(target, doors.clone()))?;
        let quota = Quota::new(exports.len());
        let mut served = Vec::new();
        for (at, Placed { spec, volume }) in exports.into_iter().enumerate() {
            let on = engine.volumes().into_iter().nth(volume).ok_or(io::ErrorKind::NotFound);
            let on = on.map_err(io::Error::from)?;
            let range = spec.range(on.bytes(), u64::from(on.block_bytes()))?;
            let export = Export {
                description: spec.description.clone(),
                read_only: spec.read_only || on.is_read_only(),
                rotational: is_rotational,
                block_bytes_min: on.block_bytes(),
                block_bytes_preferred: on.preferred_block_bytes().max(4096),
                ..Export::new(&spec.name, range.end - range.start)
            };
            let group = engine.add_group(spec.settings.weight)?;
            quota.set_limits(engine.now(), at, spec.limits);
            served.push(Served::new(export, volume, range, group, spec.settings));
        }
        let exports = served.iter().map(|served| served.export.clone()).collect();
        let is_draining = AtomicBool::new(false);
        let clients = AtomicU64::new(0);
        let site = Site { engine, served, exports, quota, doors, bounds, clients, is_draining, log, tunable_names };
        Ok(Server { site: Arc::new(site) })
    }

    /// What it is made of.
    #[must_use]
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Takes clients in, by all of these, until somebody stops that.
    pub fn accept(&self, front_ends: &[Box<dyn FrontEnd>], stop: &Stop) {
        std::thread::scope(|scope| {
            for front_end in front_ends {
                scope.spawn(|| front_end.serve(&self.site, stop));
            }
        });
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

/// Where clients of NBD come from. A socket in the file system goes with it.
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

impl FrontEnd for Listener {
    /// Where it really listens, which with port 0 nobody knows before.
    fn place(&self) -> String {
        match self {
            Listener::Unix(_, path) => path.display().to_string(),
            Listener::Tcp(listener) => listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string()),
        }
    }

    fn serve(&self, site: &Arc<Site>, stop: &Stop) {
        while !stop.is_stopped() {
            stop.wait_or(self.as_fd());
            match self.accept() {
                Ok((socket, peer)) => {
                    // Closed by being dropped: a client that is told nothing tries again.
                    let Some(name) = site.name_client(&peer) else { continue };
                    site.doors.enter(site.doors.emptiest(), |id| Connection::begin(Arc::clone(site), id, name, socket));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => pause_after(site, &error),
            }
        }
    }
}

/// Nobody could be accepted: out of descriptors, most likely, and trying again at once would only say so again.
pub(crate) fn pause_after(site: &Site, error: &io::Error) {
    site.say(format_args!("cannot accept: {error}"));
    std::thread::sleep(Duration::from_millis(50));
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
