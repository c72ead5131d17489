//! How to start an engine.

use std::io;

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::ConfigError;
use hoistway_blk::request::NoMerges;

/// How to start an engine. The defaults suit a block server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Worker threads, each with a hardware queue of its own if the target has as many; 1 to 256.
    pub workers: usize,
    /// The scheduler, one of [`SCHEDULERS`](hoistway_blk::queue::SCHEDULERS).
    pub scheduler: String,
    /// The kernel whose behaviour the block layer has.
    pub kernel: Kernel,
    /// Commands of each hardware queue at the target; `None` for as many as the target takes. A scheduler has a choice
    /// only among what is beyond it.
    pub queue_depth: Option<u32>,
    /// Requests of each hardware queue; `None` for the kernel's default.
    pub nr_requests: Option<u32>,
    /// What is done against contention for the scheduler's lock. By default all that there is.
    pub techniques: ContentionOptions,
    /// How much merging is switched off.
    pub nomerges: NoMerges,
    /// Requests of a worker's clients that the block layer has at once; more wait with their clients.
    pub requests_per_worker: u32,
    /// Bytes that a client may read or write before other clients of its worker have their turn; 16 times as many that it discards or
    /// zeroes as holes. A multiple of the target's blocks.
    pub turn_bytes: u32,
    /// How long a worker without work looks for more before it sleeps. Being woken takes longer than this.
    pub spin: Nanos,
    /// Whether it counts what a kernel's `/sys/block/DEV/stat` shows, for [`Engine::disk_summary`](crate::Engine::disk_summary). That takes
    /// some time of each request.
    pub keeps_statistics: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: 1,
            scheduler: "none".into(),
            kernel: Kernel::DEFAULT,
            queue_depth: None,
            nr_requests: None,
            techniques: ContentionOptions::USUAL,
            nomerges: NoMerges::All,
            requests_per_worker: 4096,
            turn_bytes: 1 << 20,
            spin: Nanos::from_micros(20),
            keeps_statistics: false,
        }
    }
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A field of [`Config`] contradicts itself, the target or the machine.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The target could not be opened for a worker.
    #[error("worker {worker}: {source}")]
    Station {
        /// Which.
        worker: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
