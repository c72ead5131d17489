//! The native half of the Python package `hoistway`, which only the typed half in `python/hoistway` imports.
//!
//! Modules, bottom up: `table` (Arrow's C interface), `tables` (the contents of tables), `errors` (Rust errors as exceptions),
//! `stop` (ends runs early and keeps the reason), `interruptible` (work during which Python's signals are handled), `request` and
//! `python_scheduler` (schedulers written in Python), `environment` (files, variables and schedulers), `results`, `run` (virtual time),
//! `real` (real time), `sweep` (plans, tasks and data sets), `search` (with `search_environment`, `evaluate`, `state_file` and `tuned`),
//! `catalogue` (the names of built-in items).

mod catalogue;
mod environment;
mod errors;
mod evaluate;
mod interruptible;
mod python_scheduler;
mod real;
mod request;
mod results;
mod run;
mod search;
mod search_environment;
mod state_file;
mod stop;
mod sweep;
mod table;
mod tables;
mod tuned;

use pyo3::prelude::*;

/// The native half of `hoistway`.
#[pymodule]
mod _hoistway {
    #[pymodule_export]
    use crate::catalogue::{device_toml, devices, host_toml, hosts, scenarios, schedulers, toml_text};
    #[pymodule_export]
    use crate::real::run_real;
    #[pymodule_export]
    use crate::request::Request;
    #[pymodule_export]
    use crate::results::{Results, focus, read, shown};
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::search::{Search, figures};
    #[pymodule_export]
    use crate::sweep::{DataSet, Sweep, make, plan};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::tuned::{Tuned, read_tuning};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "what Python calls it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The version with a fingerprint of the sources: runs of different versions may differ.
    #[pymodule_export]
    const SOURCES: &str = hoistway_experiment::sweep::VERSION;
}
