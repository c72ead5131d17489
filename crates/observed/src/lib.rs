//! Simulations with any number of observers of each event.
//!
//! A crate of its own: built beside the simulator without observers, this second build of it would keep the compiler from inlining what
//! both call, which costs an I/O that nobody observes 3 to 5 % more instructions.

mod observers;

use hoistway_sim::{Control, RunError, RunResult, RunSpec, Scenario, Statistics, run_probed};

pub use observers::Observer;
use observers::Observers;

/// Runs a scenario as [`hoistway_sim::run_with_statistics`] does, with observers.
///
/// # Errors
/// As for [`hoistway_sim::run`].
pub fn run_observed(
    scenario: &Scenario<'_>,
    spec: &RunSpec,
    control: &Control,
    observers: &mut [&mut dyn Observer],
) -> Result<(RunResult, Statistics), RunError> {
    let probe = (Statistics::new(scenario, spec), Observers(observers));
    let (result, (statistics, _)) = run_probed(scenario, spec, control, probe)?;
    Ok((result, statistics))
}
