//! Where guests come from: a socket for each disk, and one guest at a time on it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};

use super::connection::Guest;
use super::messages;
use crate::front_end::FrontEnd;
use crate::listener::{OwnSocket, bind, pause_after};
use crate::served::Site;
use crate::server::ServerError;
use crate::stop::Stop;

/// Listens for the front end of a guest whose disk is an export. The socket goes with it.
#[derive(Debug)]
pub struct GuestListener {
    listener: UnixListener,
    socket: OwnSocket,
    /// The name of the export.
    export: String,
}

impl GuestListener {
    /// Listens at a path, for a guest that has this export. A socket that was left there by a server that has gone is replaced.
    ///
    /// # Errors
    /// If the path is in use, or the system refuses.
    pub fn new(path: &Path, export: &str) -> Result<GuestListener, ServerError> {
        let (listener, socket) = bind(path)?;
        Ok(GuestListener { listener, socket, export: export.to_owned() })
    }

    /// Accepts a front end. Returns a descriptor that becomes readable when its guest has disconnected.
    fn take_in(&self, site: &Arc<Site>, stream: UnixStream) -> io::Result<Option<OwnedFd>> {
        let Some(name) = site.name_client("vhost-user") else { return Ok(None) };
        let Some(served) = site.offer().named(&self.export).cloned() else {
            site.say(format_args!("{name}: export {:?} has been removed", self.export));
            return Ok(None);
        };
        stream.set_nonblocking(false)?;
        let watched = stream.try_clone()?;
        let (left, leaves) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut guest = None;
        site.inboxes.add(site.inboxes.least_loaded(), |id| {
            let made = Guest::new(Arc::clone(site), served, id, name);
            guest = Some(Arc::clone(&made));
            made.connection(watched, leaves)
        });
        if let Some(guest) = guest {
            let thread = std::thread::Builder::new().name("hoistway-guest".into());
            // Without the thread its end of the socket is closed, which ends the connection.
            thread.spawn(move || messages::run(&guest, stream))?;
        }
        Ok(Some(left))
    }
}

impl FrontEnd for GuestListener {
    fn place(&self) -> String {
        self.socket.path().display().to_string()
    }

    fn serve(&self, site: &Arc<Site>, stop: &Stop) {
        while !stop.is_stopped() {
            stop.wait_or(self.as_fd());
            let taken_in = match self.listener.accept() {
                Ok((stream, _)) => self.take_in(site, stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => Err(error),
            };
            match taken_in {
                // The next guest waits until the in-flight requests of the last one have ended.
                Ok(Some(left)) => stop.wait_or(left.as_fd()),
                Ok(None) => {}
                Err(error) => pause_after(site, &error),
            }
        }
    }
}

impl AsFd for GuestListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
