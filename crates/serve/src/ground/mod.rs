//! What every part needs: log lines and stopping.

pub(crate) mod log;
pub(crate) mod stop;
