//! Measures the costs of I/O on this machine: operations and locks of the block layer, wake-ups between threads, and, if there is a
//! null device, the kernel's own schedulers.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/calibrate/src/host/` (in its files), `crates/hoistway/tests/cli/calibrate.rs`.
//!
//! Every round measures everything once, so all figures are measured under the same conditions. A figure is the median
//! over the rounds, with minimum and maximum. [`Costs::profile`] turns them into a host profile.

mod caches;
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

pub use costs::{Contention, Costs, FarHandover, KernelCost, MeasuredOperation, SchedulerCost, Sleep};
pub use figure::MedianOfRounds;
pub use kernel::Paths;

/// Maximum rounds; they take about half a minute.
pub const ROUNDS_MAX: u32 = 60;

/// The plan of a measurement.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Rounds, 1 to [`ROUNDS_MAX`]. Each takes about half a second, more with many CPUs.
    pub rounds: u32,
    /// The folders in which the kernel shows its devices.
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
    /// It was stopped before the first round ended.
    #[error("stopped before the first round ended: nothing was measured")]
    Stopped,
    /// The block layer or the engine did not start.
    #[error("{0}")]
    Failed(String),
}

/// Measures this machine. `on_round` is called after each round with its number and the total; it may stop the measurement.
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
        rounds.measure_round().map_err(HostError::Failed)?;
    }
    rounds.end(total).ok_or(HostError::Stopped)
}
