//! The default scheduler, if the configuration names none.

use std::time::Duration;

use hoistway_serve::ServerState;

use super::log::say;

/// The scheduler on fast targets, and while the target is measured.
pub(super) const FAST: &str = "none";
/// The scheduler of several exports on a slow target.
const SLOW: &str = "bfq";
/// A target is slow if three quarters of its reads take longer. Local solid-state disks take a fifth of it, network volumes as long or longer.
const SLOW_READ: Duration = Duration::from_micros(500);

/// Chooses the scheduler for this many exports by what the target is, and logs why.
///
/// With one export there is nothing to share. On a fast target a scheduler costs more than it gives, so exports share it by weight without
/// one; on a slow one bfq gives each export its share.
pub(super) fn choose(server: &ServerState, exports: usize) -> &'static str {
    if exports < 2 {
        return FAST;
    }
    // Virtual disks often claim to be rotational, so a measurement has precedence.
    let (name, why) = match server.read_time() {
        Some(time) if time > SLOW_READ => (SLOW, format!("a read of the target takes {:.1} ms", millis(time))),
        Some(time) => (FAST, format!("a read of the target takes {:.3} ms", millis(time))),
        None if server.is_rotational() => (SLOW, "the target is rotational and holds no data to measure".to_owned()),
        None => (FAST, "the target is not rotational and holds no data to measure".to_owned()),
    };
    let shares = if name == FAST { ", and shares by weight" } else { "" };
    let change = "--scheduler NAME sets another one; --scheduler none is without shares";
    say(&format!("scheduler {name}{shares} for {exports} exports, because {why} ({change})"));
    name
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
