//! The connection of a device, as its worker serves it.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, Weak};

use hoistway_blk::ground::Instant;
use hoistway_engine::Completion;
use hoistway_ublk::UblkQueue;

use super::requests::Requests;
use crate::event_loop::{Connection, ConnectionId, Next, Ready, Watch, completion_handler};
use crate::export::exports::LiveExport;
use crate::ground::stop::Stop;
use crate::memory::Account;
use crate::memory::pool::Pool;
use crate::server::admission::Admission;
use crate::server::server_state::ServerState;
use crate::server::throttled_client::ThrottledClient;

/// A device.
pub struct UblkConnection {
    server: Arc<ServerState>,
    id: ConnectionId,
    export: Arc<LiveExport>,
    admission: Admission,
    /// `None` if it could not start.
    requests: Option<Requests>,
    /// Makes the thread of the device remove it. Meanwhile requests are served.
    stop: Stop,
    /// Notified when requests are fetched.
    fetches: Option<SyncSender<()>>,
    /// Closed when it has ended, after its queue.
    disconnect_guard: OwnedFd,
}

impl UblkConnection {
    /// A device of an export, with its queue. `signals` reach the thread that controls the device.
    pub fn begin(
        admission: Admission,
        id: ConnectionId,
        export: Arc<LiveExport>,
        queue: UblkQueue,
        signals: (Stop, SyncSender<()>, OwnedFd),
    ) -> Arc<Mutex<UblkConnection>> {
        let (stop, fetches, disconnect_guard) = signals;
        let server = Arc::clone(admission.server());
        admission.client().set_connection(id);
        admission.client().opened(&export.name);
        let depth = u32::from(queue.depth());
        Arc::new_cyclic(|weak_self: &Weak<Mutex<UblkConnection>>| {
            let account = Account::new(Arc::clone(&server.memory), id);
            let connection: Weak<Mutex<dyn Connection>> = weak_self.clone();
            let (clock, keeps) = (Arc::clone(&server), (Arc::clone(&account), export.file()));
            let handler = completion_handler(connection, id, server.inboxes.clone(), move || clock.now(), keeps);
            let opened = ThrottledClient::open(Arc::clone(&export), id, depth, handler);
            let requests = match opened {
                Ok(client) => {
                    let pool = Pool::new(export.disk.engine.buffers(), account);
                    Some(Requests::new(Arc::clone(&export), Arc::clone(admission.client()), queue, client, pool))
                }
                Err(errno) => {
                    server.info_of_client(format_args!("{}: {errno}", admission.client().name));
                    None
                }
            };
            Mutex::new(UblkConnection {
                server,
                id,
                export,
                admission,
                requests,
                stop,
                fetches: Some(fetches),
                disconnect_guard,
            })
        })
    }

    fn say(&self, message: &str) {
        self.server.info_of_client(format_args!("{}: {message}", self.admission.client().name));
    }

    /// Does what can be done now.
    fn advance(&mut self, now: Instant) {
        let Some(requests) = &mut self.requests else { return };
        let is_first_bad = requests.bad == 0;
        let is_more = requests.advance(&self.server, now);
        if let Some(bad) = requests.last_bad.take().filter(|_| is_first_bad) {
            self.say(&format!("refused a request of the kernel: {bad} (further ones are not logged)"));
        }
        if is_more {
            // Other connections run before.
            self.server.inboxes.notify(self.id);
        }
    }
}

impl Connection for UblkConnection {
    /// It has no socket; the ring is watched once it is registered.
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.disconnect_guard.as_fd()
    }

    fn registered(&mut self, watch: Watch) {
        let Some(requests) = &self.requests else { return };
        if let Err(error) = watch.add(requests.queue.descriptor()) {
            self.say(&format!("{error}; closed"));
            self.requests = None;
        }
    }

    fn run(&mut self, now: Instant, _: Ready) -> Next {
        if self.server.is_draining() || self.admission.client().is_to_disconnect() || self.export.is_withdrawn() {
            self.stop.stop();
        }
        let Some(requests) = &mut self.requests else { return Next::Close };
        if let Some(fetches) = self.fetches.take() {
            requests.queue.fetch_all();
            // The thread waits for it.
            let _ = fetches.send(());
        }
        requests.client.release(&self.server, now);
        self.advance(now);
        self.next()
    }

    fn next(&self) -> Next {
        match &self.requests {
            Some(requests) if !requests.is_finished() => Next::Wait(requests.client.release_at()),
            _ => Next::Close,
        }
    }

    fn completed(&mut self, now: Instant, batch: &mut Vec<Completion>) {
        let Some(requests) = &mut self.requests else { return };
        batch.drain(..).for_each(|completion| requests.completed(now, completion));
        self.advance(now);
        self.server.log_failure(&self.export);
    }

    fn take_cost(&mut self) -> u32 {
        self.requests.as_mut().map_or(0, |requests| std::mem::take(&mut requests.cost))
    }

    fn panicked(&mut self) {
        self.say("internal error (panic); device removed, others continue");
        self.requests = None;
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn poll(&mut self, _: bool) -> bool {
        self.requests.as_mut().is_some_and(|requests| requests.queue.has_more())
    }
}

impl Drop for UblkConnection {
    fn drop(&mut self) {
        if let Some(requests) = self.requests.take() {
            let bad = if requests.bad == 0 { String::new() } else { format!(", {} malformed", requests.bad) };
            self.say(&format!("disconnected after {} requests{bad}", requests.done));
        }
    }
}
