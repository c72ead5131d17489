//! A guest's connection: its worker runs it when kicked. Its message thread waits here until requests have completed.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hoistway_blk::ground::{Instant, SECTOR_BYTES};
use hoistway_engine::{Completion, TRANSFER_BYTES_MAX};
use hoistway_vhost::{Device, Disk, Limits, Problem, QUEUES_MAX};

use super::requests::Requests;
use crate::event_loop::{Connection, ConnectionId, Next, Ready, SharedConnection, Watch, completion_handler};
use crate::export::clients::Client;
use crate::export::exports::LiveExport;
use crate::memory::Account;
use crate::memory::pool::Pool;
use crate::server::admission::Admission;
use crate::server::server_state::ServerState;
use crate::server::throttled_client::ThrottledClient;

/// Requests of the engine for one request of a guest: one for each range.
const PARTS: u32 = 33;

/// A guest.
pub struct Guest {
    pub server: Arc<ServerState>,
    export: Arc<LiveExport>,
    id: ConnectionId,
    client: Arc<Client>,
    state: Mutex<GuestState>,
    /// Notified when requests have completed.
    ended: Condvar,
}

/// State shared by a guest's worker and its message thread.
pub struct GuestState {
    /// `None` if it could not start, or has ended.
    pub requests: Option<Requests>,
    pub watch: Option<Watch>,
    /// No more requests are taken; it ends when those in flight have completed.
    is_disconnecting: bool,
}

impl GuestState {
    fn next(&self) -> Next {
        match &self.requests {
            Some(requests) if !self.is_disconnecting || requests.in_flight() > 0 => {
                Next::Wait(requests.client.release_at())
            }
            _ => Next::Close,
        }
    }
}

impl Guest {
    /// A guest, and the connection for its worker. `disconnect_guard` is closed when it has ended.
    pub fn begin(
        export: Arc<LiveExport>,
        id: ConnectionId,
        admission: Admission,
        socket: UnixStream,
        disconnect_guard: OwnedFd,
    ) -> (Arc<Guest>, SharedConnection) {
        let (server, client) = (Arc::clone(admission.server()), Arc::clone(admission.client()));
        client.set_connection(id);
        client.opened(&export.name);
        let guest = Arc::new(Guest {
            export,
            id,
            client,
            state: Mutex::new(GuestState { requests: None, watch: None, is_disconnecting: false }),
            ended: Condvar::new(),
            server,
        });
        let connection = Arc::new(Mutex::new(GuestConnection {
            guest: Arc::clone(&guest),
            _admission: admission,
            socket,
            _disconnect_guard: disconnect_guard,
        }));
        guest.open(&(Arc::clone(&connection) as SharedConnection));
        (guest, connection)
    }

    /// Opens its client of the engine, whose completions the connection gets.
    fn open(&self, connection: &SharedConnection) {
        let depth = self.server.limits.in_flight * PARTS + 1;
        let export = &self.export;
        let account = Account::new(Arc::clone(&self.server.memory), self.id);
        let (clock, keeps) = (Arc::clone(&self.server), (Arc::clone(&account), export.file()));
        let (connection, inboxes) = (Arc::downgrade(connection), self.server.inboxes.clone());
        let handler = completion_handler(connection, self.id, inboxes, move || clock.now(), keeps);
        match ThrottledClient::open(Arc::clone(export), self.id, depth, handler) {
            Ok(client) => {
                let limits = Limits { data_bytes_max: TRANSFER_BYTES_MAX as u32 };
                self.lock().requests = Some(Requests::new(
                    Arc::clone(export),
                    Arc::clone(&self.client),
                    Device::new(disk(export), limits),
                    client,
                    Pool::new(export.disk.engine.buffers(), account),
                ));
                export.counts.connections.fetch_add(1, Relaxed);
                self.say(&format!("opened export {:?}", export.name));
            }
            Err(errno) => self.say(&format!("{errno}")),
        }
    }

    pub fn say(&self, message: &str) {
        self.server.info_of_client(format_args!("{}: {message}", self.client.name));
    }

    pub fn lock(&self) -> MutexGuard<'_, GuestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes its worker run it.
    pub fn wake_worker(&self) {
        self.server.inboxes.notify(self.id);
    }

    /// Waits until this holds. Returns `false` if the guest disconnects before.
    pub fn wait<'a>(
        &self,
        state: MutexGuard<'a, GuestState>,
        holds: impl Fn(&Requests) -> bool,
    ) -> (MutexGuard<'a, GuestState>, bool) {
        let is_to_wait = |state: &mut GuestState| {
            !state.is_disconnecting && state.requests.as_ref().is_some_and(|requests| !holds(requests))
        };
        let state = self.ended.wait_while(state, is_to_wait).unwrap_or_else(PoisonError::into_inner);
        let is_connected = !state.is_disconnecting && state.requests.is_some();
        (state, is_connected)
    }

    /// The front end has disconnected or violated the protocol: no requests are returned to a guest that may be gone.
    pub fn disconnect_guest(&self) {
        self.begin_disconnecting(true);
        self.wake_worker();
    }

    fn begin_disconnecting(&self, is_gone: bool) {
        let state = &mut *self.lock();
        if let Some(requests) = &mut state.requests {
            requests.is_gone |= is_gone;
            if !state.is_disconnecting {
                requests.stop_taking();
            }
        }
        state.is_disconnecting = true;
        self.ended.notify_all();
    }

    fn completed(&self, now: Instant, batch: &mut Vec<Completion>) {
        let state = &mut *self.lock();
        let Some(requests) = &mut state.requests else { return };
        batch.drain(..).for_each(|completion| requests.completed(now, completion));
        if requests.advance(&self.server, now, &|message| self.say(message)) {
            self.wake_worker();
        }
        self.server.log_failure(&self.export);
        self.ended.notify_all();
    }

    fn end_after_panic(&self) {
        self.say("internal error (panic); guest disconnected, others continue");
        self.lock().requests = None;
        self.disconnect_guest();
    }

    /// Does what can be done now.
    fn run(&self, now: Instant) -> Next {
        if self.server.is_draining() || self.client.is_to_disconnect() || self.export.is_withdrawn() {
            self.begin_disconnecting(false);
        }
        let state = &mut *self.lock();
        let Some(requests) = &mut state.requests else { return Next::Close };
        requests.client.release(&self.server, now);
        if requests.advance(&self.server, now, &|message| self.say(message)) {
            self.wake_worker();
        }
        state.next()
    }

    fn on_disconnect(&self) {
        let state = &mut *self.lock();
        if let Some(requests) = state.requests.take() {
            self.export.counts.connections.fetch_sub(1, Relaxed);
            let malformed = match requests.malformed {
                0 => String::new(),
                malformed => format!(", {malformed} malformed"),
            };
            self.say(&format!("disconnected after {} requests{malformed}", requests.completed));
            state.watch.iter().for_each(|watch| unwatch(watch, &requests.device));
        }
        state.is_disconnecting = true;
        self.ended.notify_all();
    }
}

fn disk(export: &LiveExport) -> Disk {
    let description = &export.description();
    Disk {
        sectors: description.size_bytes / SECTOR_BYTES,
        block_bytes: export.block_bytes,
        preferred_block_bytes: description.block_bytes_preferred,
        read_only: description.read_only,
        queues: QUEUES_MAX,
        id: Disk::id(if description.name.is_empty() { "hoistway" } else { &description.name }),
    }
}

fn unwatch(watch: &Watch, device: &Device) {
    (0..device.rings().len() as u8).filter_map(|ring| device.kick(ring)).for_each(|kick| watch.remove(kick));
}

/// A guest's connection, as the event loop has it.
struct GuestConnection {
    guest: Arc<Guest>,
    _admission: Admission,
    socket: UnixStream,
    _disconnect_guard: OwnedFd,
}

impl Connection for GuestConnection {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn registered(&mut self, watch: Watch) {
        let state = &mut *self.guest.lock();
        if let Some(requests) = &state.requests {
            let device = &requests.device;
            let mut kicks = (0..device.rings().len() as u8).filter_map(|ring| device.kick(ring));
            if let Err(error) = kicks.try_for_each(|kick| watch.add(kick)) {
                // The kick descriptor came before the guest was registered.
                self.guest.say(&format!("{}; closed", Problem::EventFd(error)));
                state.is_disconnecting = true;
            }
        }
        state.watch = Some(watch);
    }

    fn run(&mut self, now: Instant, _: Ready) -> Next {
        self.guest.run(now)
    }

    fn next(&self) -> Next {
        self.guest.lock().next()
    }

    fn completed(&mut self, now: Instant, batch: &mut Vec<Completion>) {
        self.guest.completed(now, batch);
    }

    fn take_cost(&mut self) -> u32 {
        self.guest.lock().requests.as_mut().map_or(0, |requests| std::mem::take(&mut requests.cost))
    }

    fn panicked(&mut self) {
        self.guest.end_after_panic();
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn poll(&mut self, is_about_to_sleep: bool) -> bool {
        let guest = &self.guest;
        guest.lock().requests.as_mut().is_some_and(|requests| requests.poll(&guest.server, is_about_to_sleep))
    }
}

impl Drop for GuestConnection {
    fn drop(&mut self) {
        self.guest.on_disconnect();
        // Ends the message thread.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}
