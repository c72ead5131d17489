//! The default scheduler of each disk, if the configuration names none.

use std::sync::Arc;
use std::time::Duration;

use hoistway_serve::{DefaultScheduler, LiveExport, ServerState};

use super::log::say;

/// The scheduler of a fast disk, and of each disk while it is measured.
pub(super) const FAST: &str = "none";
/// The scheduler of several exports on a slow disk.
const SLOW: &str = "bfq";
/// A disk is slow if three quarters of its reads take longer. Local solid-state disks take a fifth of it, network volumes as long or longer.
const SLOW_READ: Duration = Duration::from_micros(500);

/// Chooses the scheduler of each disk by what it is, and logs why.
///
/// With one export there is nothing to share. On a fast disk a scheduler costs more than it gives, so exports share it by weight without
/// one; on a slow one bfq gives each export its share.
pub(super) fn choose(server: &ServerState) {
    let (disks, exports) = (server.disks(), server.exports());
    for disk in &disks {
        let on_it: Vec<_> = exports.live.iter().filter(|export| Arc::ptr_eq(&export.disk, disk)).collect();
        let name = match on_it.first() {
            Some(first) if on_it.len() > 1 => {
                let place = if disks.len() > 1 { format!(" on {}", disk.name) } else { String::new() };
                choose_for(first, &format!("{} exports{place}", on_it.len()))
            }
            _ => FAST,
        };
        disk.set_default_scheduler(DefaultScheduler { name: name.to_owned(), shares: name == FAST });
    }
}

/// Chooses the scheduler of the disk of this export.
fn choose_for(export: &LiveExport, exports: &str) -> &'static str {
    // Virtual disks often claim to be rotational, so a measurement has precedence.
    let (name, why) = match export.read_time() {
        Some(time) if time > SLOW_READ => (SLOW, format!("a read of the target takes {:.1} ms", millis(time))),
        Some(time) => (FAST, format!("a read of the target takes {:.3} ms", millis(time))),
        None if export.description().rotational => {
            (SLOW, "the target is rotational and holds no data to measure".to_owned())
        }
        None => (FAST, "the target is not rotational and holds no data to measure".to_owned()),
    };
    let shares = if name == FAST { ", and shares by weight" } else { "" };
    let change = "--scheduler NAME sets another one; --scheduler none is without shares";
    say(&format!("scheduler {name}{shares} for {exports}, because {why} ({change})"));
    name
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
