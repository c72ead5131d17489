//! Guests, played by a client that is none.

mod client;
mod crashes;
mod front_ends;
mod hostile;
mod memory;
mod model;
mod panics;
mod requests;
mod ring;
mod sharing;

use std::path::PathBuf;

use crate::running::Running;

/// A server that listens for a guest at [`socket`], too.
fn serve(arguments: &[&str]) -> Running {
    let mut all = vec!["--vhost-user", "{}/guest.sock"];
    all.extend(arguments);
    Running::start(&all)
}

fn socket(server: &Running) -> PathBuf {
    server.folder().join("guest.sock")
}
