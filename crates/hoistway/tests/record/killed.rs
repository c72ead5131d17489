//! The next recording removes everything that a killed one has left.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

use crate::ends::Load;
use crate::support::{Bench, has, succeeded};

/// The number of kills, unless `HOISTWAY_KILLS` is set.
const KILLS: u32 = 8;
/// A recording changes most settings in its first moments.
const MOMENTS_MS: u64 = 400;

#[test]
fn the_remains_of_a_killed_recording_are_removed_by_the_next() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let _load = Load::on(&bench);
    let kills = std::env::var("HOISTWAY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    // Another program may record on this machine at the same time, so only instances of these processes count.
    let mut killed = BTreeSet::new();
    let of_killed = |killed: &BTreeSet<String>| -> Vec<String> {
        Bench::instances().into_iter().filter(|name| killed.contains(name)).collect()
    };
    let mut left = 0;
    for _ in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let after = Duration::from_micros(random % (MOMENTS_MS * 1000));
        let mut child = bench.record().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(after);
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        killed.insert(format!("hoistway-{}", child.id()));
        left += of_killed(&killed).len();
        // If nothing was written, there is no recording.
        if fs::metadata(bench.path("x.blktrace.0")).is_ok_and(|file| file.len() > 0) {
            let (_, losses, _) = bench.events();
            assert!(losses.unknown_actions == 0, "killed after {after:?}: {losses:?}");
        }
    }
    assert!(left > 0, "no kill came while an instance was there");
    succeeded(bench.record().args(["--for", "100ms"]));
    assert_eq!(of_killed(&killed), [""; 0]);
    let names = fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with('x') && !name.starts_with("x.blktrace."));
    assert_eq!(names, ["x.host.json"]);
}
