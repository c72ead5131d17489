//! How a process calls fsync, which depends on its engine.
//!
//! Used by: `process`.
//! Tests: `crates/load/tests/process.rs`, `crates/sim/tests/fsync.rs`.

use crate::description::Engine;

/// How an engine carries out an fsync.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fsync {
    /// The process sleeps in it, whatever else is in flight: libaio has no asynchronous fsync, and synchronous engines
    /// have nothing else in flight.
    Sleeps,
    /// The same, but only after all earlier I/Os have completed: the threads of POSIX asynchronous I/O process the
    /// requests of a file in order.
    SleepsAlone,
    /// An I/O like the others; more I/Os may be submitted while it is in flight.
    IsQueued,
}

impl Fsync {
    /// How this engine carries out an fsync.
    #[must_use]
    pub fn of(engine: Engine) -> Fsync {
        match engine {
            Engine::IoUring => Fsync::IsQueued,
            Engine::Posixaio => Fsync::SleepsAlone,
            Engine::Libaio | Engine::Psync | Engine::Sync | Engine::Vsync | Engine::Pvsync | Engine::Pvsync2 => {
                Fsync::Sleeps
            }
        }
    }

    /// Whether it waits for earlier submissions.
    #[must_use]
    pub fn waits(self) -> bool {
        self == Fsync::SleepsAlone
    }
}
