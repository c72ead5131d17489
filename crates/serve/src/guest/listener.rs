//! Listeners for guests: one socket per disk, and one guest at a time on it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

use super::connection::Guest;
use super::messages;
use crate::export::clients::Peer;
use crate::ground::stop::Stop;
use crate::nbd::listener::{OwnSocket, back_off_after, bind, listens, path_of, user_of};
use crate::server::ServerError;
use crate::server::front_end::FrontEnd;
use crate::server::guest_socket::{GuestSocket, SocketAccess};
use crate::server::server_state::ServerState;

/// Listens for the front end of a guest whose disk is an export. Dropping it removes the socket.
#[derive(Debug)]
pub struct GuestListener {
    listener: UnixListener,
    /// Its file, if this process has to remove it.
    _socket: Option<OwnSocket>,
    /// The name of the export.
    export: String,
}

impl GuestListener {
    /// Listens at a path for a guest with this export. A stale socket of an earlier server is replaced.
    ///
    /// # Errors
    /// If the path is in use, or the system refuses.
    pub fn new(path: &Path, access: SocketAccess, export: &str) -> Result<GuestListener, ServerError> {
        let (listener, socket) = bind(path, access)?;
        Ok(GuestListener { listener, _socket: Some(socket), export: export.to_owned() })
    }

    /// A listening socket that another process has created and will remove.
    ///
    /// # Errors
    /// If it does not listen, or the system refuses.
    pub fn of(listener: UnixListener, export: &str) -> io::Result<GuestListener> {
        listens(listener.as_fd())?;
        listener.set_nonblocking(true)?;
        Ok(GuestListener { listener, _socket: None, export: export.to_owned() })
    }

    /// Accepts a front end. Returns a descriptor that becomes readable when its guest has disconnected.
    fn accept_guest(&self, server: &Arc<ServerState>, stream: UnixStream) -> io::Result<Option<OwnedFd>> {
        let admission = server.admit(Peer::unix("vhost-user", user_of(&stream)));
        // The protocol cannot report the reason.
        let Some(admission) = admission.filter(|admission| admission.refusal().is_none()) else { return Ok(None) };
        let name = &admission.client().name;
        let Some(export) = server.exports().named(&self.export).cloned() else {
            server.info_of_client(format_args!("{name}: export {:?} has been removed", self.export));
            return Ok(None);
        };
        if !export.access().allows(admission.client()) {
            server.warn_of_client(format_args!("{name}: may not use export {:?} (see its clients=)", self.export));
            return Ok(None);
        }
        stream.set_nonblocking(false)?;
        let watched = stream.try_clone()?;
        let (disconnected, disconnect_guard) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut guest = None;
        server.inboxes.add(export.disk.least_loaded_worker(), |id| {
            let (new, connection) = Guest::begin(export, id, admission, watched, disconnect_guard);
            guest = Some(new);
            connection
        });
        if let Some(guest) = guest {
            let thread = std::thread::Builder::new().name("hoistway-guest".into());
            // Without the thread its end of the socket is closed, which ends the connection.
            thread.spawn(move || messages::run(&guest, stream))?;
        }
        Ok(Some(disconnected))
    }
}

impl ServerState {
    /// Serves the guests of a socket on a separate thread, until its export is removed or the server drains.
    ///
    /// # Errors
    /// If the system has no thread or descriptor left.
    pub fn serve_guests(self: &Arc<Self>, listener: GuestListener) -> io::Result<()> {
        let (export, place, stop) = (listener.export.clone(), listener.place(), Stop::new()?);
        let (server, thread_stop) = (Arc::clone(self), stop.clone());
        let thread = std::thread::Builder::new().name("guests".into());
        let thread = thread.spawn(move || listener.serve(&server, &thread_stop))?;
        self.sockets().push(GuestSocket { export, place, stop, thread });
        Ok(())
    }

    /// The sockets of guests.
    #[must_use]
    pub fn guest_places(&self) -> Vec<String> {
        self.sockets().iter().map(|socket| socket.place.clone()).collect()
    }

    /// Sets who may connect to the sockets of exports that are added later. To be called once.
    pub fn set_guest_access(&self, access: SocketAccess) {
        let _ = self.guest_access.set(access);
    }

    /// Closes the sockets of exports for which this holds. Connected guests stay.
    pub(crate) fn stop_guests(&self, is_selected: impl Fn(&str) -> bool) {
        let sockets = std::mem::take(&mut *self.sockets());
        let (stopped, others): (Vec<_>, Vec<_>) = sockets.into_iter().partition(|socket| is_selected(&socket.export));
        self.sockets().extend(others);
        stopped.iter().for_each(|socket| socket.stop.stop());
        for socket in stopped {
            // A thread that panicked has ended, too.
            let _ = socket.thread.join();
        }
    }

    /// Closes the sockets of all guests.
    pub fn stop_all_guests(&self) {
        self.stop_guests(|_| true);
    }

    fn sockets(&self) -> MutexGuard<'_, Vec<GuestSocket>> {
        self.guest_sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FrontEnd for GuestListener {
    fn place(&self) -> String {
        path_of(&self.listener)
    }

    fn serve(&self, server: &Arc<ServerState>, stop: &Stop) {
        while !stop.is_stopped() {
            stop.wait_or(self.as_fd());
            let accepted = match self.listener.accept() {
                Ok((stream, _)) => self.accept_guest(server, stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => Err(error),
            };
            match accepted {
                // The next guest waits until the requests in flight of the previous one have completed.
                Ok(Some(disconnected)) => stop.wait_or(disconnected.as_fd()),
                Ok(None) => {}
                Err(error) => back_off_after(server, &error),
            }
        }
    }
}

impl AsFd for GuestListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
