//! The disks of a server: each has a block layer and workers of its own.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hoistway_blk::ground::Nanos;
use hoistway_engine::{Backend, Config, DiskId, Engine};

use crate::event_loop::EventLoop;
use crate::export::disk::Disk;
use crate::server::ServerError;
use crate::server::server_state::{ServerState, StartDisk};

/// Maximum number of disks.
pub(crate) const DISKS_MAX: usize = 128;
/// The worker of the lobby, which is the first of all, and how many there are.
pub(crate) const LOBBY: usize = 0;
pub(crate) const LOBBY_WORKERS: usize = 1;

/// A disk to be served.
pub struct NewDisk {
    /// Its name, for operators.
    pub name: String,
    /// What it is, if files may be on it.
    pub id: Option<DiskId>,
    /// Its content.
    pub backend: Box<dyn Backend>,
}

/// The engine of the lobby: nothing is submitted to it.
pub(crate) fn lobby_config() -> Config {
    Config { queue_depth: Some(1), requests_per_worker: 1, busy_poll_time: Nanos::ZERO, ..Config::default() }
}

impl ServerState {
    /// Starts the block layer of a disk, and returns the number of the disk.
    ///
    /// # Errors
    /// If the configuration contradicts the disk, the system refuses, or there are too many disks.
    pub fn start_disk(&self, config: &Config, new: NewDisk) -> Result<usize, ServerError> {
        let workers = self.inboxes.open(config.workers)?;
        // Workers busy-poll in their event loops, which also poll the sockets.
        let busy_poll_max = Duration::from_nanos(config.busy_poll_time.0);
        let config = Config { busy_poll_time: Nanos::ZERO, ..config.clone() };
        let event_loop = EventLoop::around(new.backend, self.inboxes.clone()).from_worker(workers.start);
        let engine = Engine::start_with(&config, event_loop.busy_polling(busy_poll_max), self.lobby.clock())?;
        Ok(self.add_disk(Disk::new(new.name, new.id, engine, workers, self.inboxes.clone())))
    }

    /// Adds a disk, and returns its number.
    pub(crate) fn add_disk(&self, disk: Disk) -> usize {
        let mut disks = self.disks.write().unwrap_or_else(PoisonError::into_inner);
        disks.push(Arc::new(disk));
        disks.len() - 1
    }

    /// Sets how further disks are started. To be called once.
    pub fn set_start_disk(&self, start: StartDisk) {
        let _ = self.start_disk.set(start);
    }
}
