//! Simulations with any number of observers of each event.
//!
//! Used by: crate `experiment`.
//! Tests: `crates/sim/tests/`, `crates/experiment/tests/closed_loop/`.
//!
//! A separate crate: if the simulator were compiled with and without observers in one crate, the compiler would not inline the
//! functions that both use, which costs an unobserved I/O 3 to 5 % more instructions.

mod observers;

use hoistway_sim::{Control, RunError, RunResult, RunSpec, Scenario, Statistics, run_probed};

pub use observers::Observer;
use observers::Observers;

/// Runs a scenario as [`hoistway_sim::run_with_statistics`] does, with observers.
///
/// The same as [`hoistway_sim::run`].
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
