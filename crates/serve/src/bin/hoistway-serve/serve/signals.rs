//! Signals: the end, the end at once, and a configuration that is to be read again.

use std::sync::mpsc::{Receiver, channel};

use anyhow::Result;
use hoistway_serve::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::log::{self, say};

/// Watches for them from now on. The first SIGTERM or SIGINT ends the server well, the second at once. Of each SIGHUP there is
/// word to be received, if it can be obeyed; else it is the end, too, as it is for programs whose terminal has gone.
pub(super) fn watch(stop: Stop, can_reload: bool) -> Result<Receiver<()>> {
    let (sender, receiver) = channel();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut sender = Some(sender);
        for signal in &mut signals {
            match &sender {
                Some(sender) if signal == SIGHUP && can_reload => {
                    // It is received as long as this thread does not end it.
                    let _ = sender.send(());
                }
                // Between the first signal and the end nothing is changed any more.
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
