//! Admission control: admits clients, refuses them when a limit is reached, and disconnects them.

use std::sync::Arc;

use crate::export::clients::{Client, ClientState, Origin, Peer};
use crate::server::server_state::ServerState;

/// Maximum clients that are being refused with a protocol error: each holds a descriptor until it has read the error. Further connections
/// are closed at once.
const REFUSED_CLIENTS_MAX: usize = 16;

/// A connected client, counted against the limits until this is dropped.
pub struct Admission {
    server: Arc<ServerState>,
    client: Arc<Client>,
    /// Why the client is refused.
    refusal: Option<&'static str>,
}

impl Admission {
    /// The client.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &Arc<ServerState> {
        &self.server
    }

    /// Why the client is refused, if it is.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let connected = &mut *self.server.connected.lock();
        if self.refusal.is_some() {
            connected.refused_clients -= 1;
            return;
        }
        connected.clients.remove(&self.client.number);
        let origin = self.client.peer.origin;
        if let Some(count) = connected.clients_by_origin.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                connected.clients_by_origin.remove(&origin);
            }
        }
    }
}

impl ServerState {
    /// Admits a client, or prepares its refusal with an error. `None` if its connection is closed at once. Refusals are logged.
    #[must_use]
    pub fn admit(self: &Arc<Self>, peer: Peer) -> Option<Admission> {
        let connected = &mut *self.connected.lock();
        connected.number += 1;
        let number = connected.number;
        let client = Arc::new(Client::new(number, peer, self.now()));
        let (name, origin) = (&client.name, client.peer.origin);
        let clients_of_origin = connected.clients_by_origin.get(&origin).copied().unwrap_or(0);
        let refusal = if connected.clients.len() >= self.limits.connections {
            let connections_max = self.limits.connections;
            self.warn_of_client(format_args!(
                "{name}: refused, {connections_max} clients are connected (see --max-connections)"
            ));
            Some("too many clients are connected")
        } else if clients_of_origin >= self.limits.connections_per_peer && origin != Origin::Unknown {
            let option = "--max-connections-per-peer";
            self.warn_of_client(format_args!(
                "{name}: refused, {clients_of_origin} clients of the same address or user are connected (see {option})"
            ));
            Some("too many clients of this address or user are connected")
        } else {
            self.info_of_client(format_args!("{name}: connected"));
            connected.clients.insert(number, Arc::clone(&client));
            *connected.clients_by_origin.entry(origin).or_default() += 1;
            None
        };
        if refusal.is_some() {
            if connected.refused_clients >= REFUSED_CLIENTS_MAX {
                return None;
            }
            connected.refused_clients += 1;
        }
        Some(Admission { server: Arc::clone(self), client, refusal })
    }

    /// The clients, by number.
    #[must_use]
    pub fn clients_state(&self) -> Vec<ClientState> {
        let now = self.now();
        self.connected.lock().clients.values().map(|client| client.state(now)).collect()
    }

    /// Disconnects the clients for which `is_selected` returns true, after their requests in flight have completed. Returns their
    /// number.
    pub fn disconnect(&self, is_selected: impl Fn(&Client) -> bool) -> usize {
        let connected = self.connected.lock();
        let disconnected: Vec<_> = connected.clients.values().filter(|client| is_selected(client)).cloned().collect();
        drop(connected);
        disconnected.iter().filter_map(|client| client.disconnect()).for_each(|id| self.inboxes.notify(id));
        disconnected.len()
    }
}
