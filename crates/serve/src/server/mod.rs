//! A server: disks, each under a scheduler, with exports.
//!
//! Used by: `nbd`, `guest`, `operation`, `ublk`; the program `hoistway-serve`.
//! Tests: `crates/serve/tests/disks.rs`, `crates/serve/tests/faults.rs`.

pub(crate) mod admission;
pub(crate) mod disks;
pub(crate) mod front_end;
pub(crate) mod guest_socket;
pub(crate) mod placing;
pub(crate) mod served_device;
pub(crate) mod server_state;
pub(crate) mod throttled_client;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::queue::ConfigError;
use hoistway_engine::{Config, Engine, MonotonicClock, Null, StartError};

use crate::event_loop::{EventLoop, Inboxes};
use crate::export::spec::{Placed, SpecError};
use crate::ground::log::Log;
use crate::ground::stop::Stop;
use crate::server::disks::{DISKS_MAX, LOBBY_WORKERS, NewDisk, lobby_config};
use crate::server::front_end::FrontEnd;
use crate::server::server_state::{ServerLimits, ServerState};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An export is invalid.
    #[error(transparent)]
    Export(#[from] SpecError),
    /// A weight is invalid.
    #[error(transparent)]
    Weight(#[from] ConfigError),
    /// A change that is not possible while running, or that the queue rejects.
    #[error("{0}")]
    Refused(String),
    /// The block layer or the target failed to start.
    #[error(transparent)]
    Engine(#[from] StartError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A socket cannot be opened.
    #[error("cannot listen on {place}: {why}")]
    Listen {
        /// Its address.
        place: String,
        /// The system's error.
        why: io::Error,
    },
}

/// A running server. [`accept`](Self::accept) lets clients connect.
pub struct Server {
    state: Arc<ServerState>,
}

impl Server {
    /// Starts the block layers of these disks, with these exports on them.
    ///
    /// # Errors
    /// If the options contradict each other or a disk, or the system refuses.
    pub fn start(
        config: &Config,
        disks: Vec<NewDisk>,
        exports: &[Placed],
        limits: ServerLimits,
        log: Log,
    ) -> Result<Server, ServerError> {
        let inboxes = Inboxes::with_room(LOBBY_WORKERS + DISKS_MAX * config.workers);
        let lobby = EventLoop::around(Box::new(Null::new(1)), inboxes.clone());
        inboxes.open(LOBBY_WORKERS)?;
        let lobby = Engine::start_with(&lobby_config(), lobby, MonotonicClock::start())?;
        let state = ServerState::new(lobby, inboxes, limits, log);
        for disk in disks {
            state.start_disk(config, disk)?;
        }
        let exports: Vec<_> = exports.iter().map(|placed| state.take_over(placed)).collect();
        state.replace_exports(&exports)?;
        Ok(Server { state: Arc::new(state) })
    }

    /// The state that all connections share.
    #[must_use]
    pub fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// Accepts clients of all these front ends until `stop` is set.
    pub fn accept(&self, front_ends: &[Box<dyn FrontEnd>], stop: &Stop) {
        std::thread::scope(|scope| {
            for front_end in front_ends {
                scope.spawn(|| front_end.serve(&self.state, stop));
            }
        });
    }

    /// Drains the server: requests in flight complete, throttled ones are refused, and connections are closed. Waits until none is
    /// left, at most for `grace`; returns how many are left.
    #[must_use]
    pub fn drain(&self, grace: Duration) -> usize {
        self.state.drain();
        self.state.inboxes.wait_until_empty(grace)
    }

    /// Stops the block layer and its workers; remaining connections are dropped.
    pub fn stop(self) {
        self.state.disks().iter().for_each(|disk| disk.engine.stop());
        self.state.lobby.stop();
    }

    /// The same without waiting for the workers: after [`drain`](Self::drain) timed out, their commands may never
    /// complete.
    pub fn abandon(self) {
        self.state.disks().iter().for_each(|disk| disk.engine.abandon());
        self.state.lobby.stop();
    }
}
