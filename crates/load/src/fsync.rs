//! How a process calls fsync: that depends on how its engine does.

use crate::description::Engine;

/// What an fsync is to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fsync {
    /// The process sleeps in it, beside whatever it has under way: libaio has no other, and synchronous engines have
    /// nothing else under way.
    Sleeps,
    /// The same, once all that was submitted before has ended: the threads of POSIX asynchronous I/O take what belongs
    /// to a file in its order.
    SleepsAlone,
    /// An I/O like the others, beside which more may be submitted.
    IsQueued,
}

impl Fsync {
    /// As this engine makes it.
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

    /// Whether it waits for what was submitted before.
    #[must_use]
    pub fn waits(self) -> bool {
        self == Fsync::SleepsAlone
    }
}
