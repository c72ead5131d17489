//! The configuration of an engine.
//!
//! Used by: `worker`, `engine`; crates `serve`, `calibrate`.
//! Tests: `crates/engine/tests/model.rs`, `crates/engine/tests/files.rs`.

use std::io;

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::policy::ContentionOptions;
use hoistway_blk::queue::ConfigError;
use hoistway_blk::request::Merging;

/// The configuration of an engine. The defaults suit a block server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Worker threads, each with its own hardware queue if the target has enough; 1 to 256.
    pub workers: usize,
    /// The scheduler, one of [`SCHEDULERS`](hoistway_blk::queue::SCHEDULERS).
    pub scheduler: String,
    /// The kernel whose block layer is reproduced.
    pub kernel: Kernel,
    /// Commands per hardware queue at the target; `None` for the target's maximum. Requests beyond it
    /// wait in the scheduler, which can reorder only those.
    pub queue_depth: Option<u32>,
    /// Requests per hardware queue; `None` for the kernel's default.
    pub nr_requests: Option<u32>,
    /// Contention options for the scheduler's lock. By default those that were measured to help: all except the ones for
    /// insertion.
    pub contention_options: ContentionOptions,
    /// Which kinds of merging are on (`queue/nomerges`); by default all.
    pub merging: Merging,
    /// Maximum requests of a worker's clients in the block layer at a time; others wait in their clients.
    pub requests_per_worker: u32,
    /// Bytes that a client may read or write before other clients of its worker have their turn; 16 times as many for
    /// discards and for zeroing that may unmap. Must be a multiple of the target's block size.
    pub turn_bytes: u32,
    /// How long an idle worker busy-polls before it sleeps. The default, 20 us, is assumed to be about what a wake-up costs.
    pub busy_poll_time: Nanos,
    /// Whether to keep the statistics of a kernel's `/sys/block/DEV/stat`, for [`Engine::disk_summary`](crate::Engine::disk_summary). Costs
    /// some time per request.
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
            contention_options: ContentionOptions::RECOMMENDED,
            merging: Merging::Full,
            requests_per_worker: 4096,
            turn_bytes: 1 << 20,
            busy_poll_time: Nanos::from_micros(20),
            keeps_statistics: false,
        }
    }
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A field of [`Config`] contradicts another one, the target or the machine.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The target could not be opened for a worker.
    #[error("worker {worker}: {why}")]
    WorkerTarget {
        /// The worker.
        worker: usize,
        /// The system's error.
        why: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
