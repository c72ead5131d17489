//! Signals: drain and exit, exit at once, reload.

use std::sync::mpsc::{Receiver, channel};

use anyhow::Result;
use hoistway_serve::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::log::{self, say};

/// Handles signals from now on. The first SIGTERM or SIGINT drains the server, the second exits at once. Each SIGHUP
/// is sent to the returned channel if there is a configuration to reload; otherwise it ends the server like SIGTERM.
pub(super) fn watch(stop: Stop, can_reload: bool) -> Result<Receiver<()>> {
    let (sender, receiver) = channel();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut sender = Some(sender);
        for signal in &mut signals {
            match &sender {
                Some(sender) if signal == SIGHUP && can_reload => {
                    // The receiver lives as long as the server runs.
                    let _ = sender.send(());
                }
                // A server that drains ignores reloads.
                None if signal == SIGHUP => {}
                None => {
                    say("second signal: exiting at once");
                    log::end();
                    std::process::exit(130);
                }
                Some(_) => {
                    sender = None;
                    stop.stop();
                }
            }
        }
    })?;
    Ok(receiver)
}
