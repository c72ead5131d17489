//! What I/O costs on this machine, measured: the block layer's operations and locks, threads that wake each other, and, where there
//! is a null device, the kernel's own schedulers.
//!
//! Everything is measured in rounds, in each round all of it once, so that all figures see the same weather; a figure is the median
//! of the rounds, with the least and the most. [`Costs::profile`] makes a host profile of them.

mod costs;
mod engine_load;
mod figure;
mod handing_over;
mod kernel;
mod machine;
mod profile;
mod queue_load;
mod report;
mod rounds;
mod spinning;
mod stopwatch;
mod waking;

use std::ops::ControlFlow;

pub use costs::{Contention, Costs, KernelCost, Operation, SchedulerCost, Sleep};
pub use figure::Figure;
pub use kernel::Paths;

/// Most rounds: they take a minute.
pub const ROUNDS_MAX: u32 = 60;

/// How a machine is measured.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Rounds, 1 to [`ROUNDS_MAX`]. Each takes about half a second, more with many CPUs.
    pub rounds: u32,
    /// Where the kernel shows its devices.
    pub paths: Paths,
}

impl Default for HostPlan {
    fn default() -> Self {
        HostPlan { rounds: 15, paths: Paths::default() }
    }
}

/// Why a machine cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It was stopped before a single round was over.
    #[error("stopped before the first round ended: nothing was measured")]
    Stopped,
    /// The block layer or the engine did not start.
    #[error("{0}")]
    Failed(String),
}

/// Measures this machine. `on_round` is called after each round with its number and the number of rounds; it may stop the rest.
///
/// # Errors
/// If nothing could be measured.
pub fn measure(plan: &HostPlan, mut on_round: impl FnMut(u32, u32) -> ControlFlow<()>) -> Result<Costs, HostError> {
    let total = plan.rounds.clamp(1, ROUNDS_MAX);
    let mut rounds = rounds::Rounds::begin(&plan.paths);
    for round in 0..total {
        if on_round(round, total).is_break() {
            break;
        }
        rounds.one_more().map_err(HostError::Failed)?;
    }
    rounds.end(total).ok_or(HostError::Stopped)
}
