//! Ctrl-C, and the signals that ask a program to end in the same way.
//!
//! Used by: crates `hoistway`, `evidence`.
//! Tests: `crates/hoistway/tests/cli/ending.rs`.

use std::thread;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls the handler for each SIGINT, SIGTERM and SIGHUP from now on, on a thread of its own.
///
/// # Errors
/// If the system gives no handler or no thread.
pub fn on_interrupt(mut handler: impl FnMut() + Send + 'static) -> Result<()> {
    let watch = || -> std::io::Result<()> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        let body = move || signals.forever().for_each(|_| handler());
        thread::Builder::new().name("signals".into()).spawn(body).map(drop)
    };
    watch().context("cannot install a handler for Ctrl-C")
}
