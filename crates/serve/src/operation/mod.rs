//! Operating a running server: the control socket, changes, and metrics.

pub(crate) mod change;
pub(crate) mod control;
pub(crate) mod metrics;
pub(crate) mod request_threads;
