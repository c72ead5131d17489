//! A measurement that is killed at any moment is undone by the next command. `apply` and `record` have such tests of
//! their own.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::tempdir;

use crate::loop_device::Loop;
use crate::support::{ended_with, has_fio, hoistway};

/// Few I/Os, so that the simulation is quick.
const JOB: &str = "[load]\nrw=randread\nrate_iops=50\nioengine=libaio\ndirect=1\nsize=32m\nruntime=100ms\ntime_based\n";

/// The default number of kills of each command; `HOISTWAY_KILLS=200` increases it.
fn kills() -> u32 {
    std::env::var("HOISTWAY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Kills a command at random moments while the device has other settings, and lets another command restore it.
fn is_restored_after_kills(command: &[&str], restore: &[&str]) {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), JOB).unwrap();
    device.set("scheduler", "bfq");
    device.set("iosched/slice_idle", "3");
    device.set("nr_requests", "77");
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    let line: Vec<&str> = command.iter().map(|word| if *word == "DEVICE" { &path } else { *word }).collect();
    let restore: Vec<&str> = restore.iter().map(|word| if *word == "DEVICE" { &path } else { *word }).collect();
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let mut left = 0;
    for number in 0..kills() {
        let mut child = hoistway(folder.path(), &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Most kills come after the device is changed, the others at any moment before.
        let begin = Instant::now();
        while number % 4 != 0 && device.state() == before && begin.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(random % 500_000));
        child.kill().unwrap();
        child.wait().unwrap();
        left += u32::from(device.state() != before);
        ended_with(&[0], &mut hoistway(folder.path(), &restore));
        assert_eq!(device.state(), before, "after kill {number}");
        assert_eq!(journals(folder.path()), 0);
    }
    assert!(left > 0, "no kill came while the device was set");
}

fn journals(folder: &Path) -> usize {
    let entries = fs::read_dir(folder.join("journal")).into_iter().flatten();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "json")).count()
}

#[test]
fn a_calibration_that_is_killed_leaves_a_device_that_the_next_command_restores() {
    let measure =
        ["calibrate", "device", "DEVICE", "--quick", "--runtime", "20ms", "--journal", "journal", "-o", "x.toml"];
    is_restored_after_kills(&measure, &["apply", "--undo", "--journal", "journal"]);
}

#[test]
fn a_verification_that_is_killed_leaves_a_device_that_the_next_command_restores() {
    let verify = ["verify", "load.fio", "--device", "null", "--target", "DEVICE", "--journal", "journal"];
    // The next verification restores it, too.
    let again = [&verify[..], &["--rounds", "2", "--repeat", "2", "--schedulers", "none"]].concat();
    is_restored_after_kills(&verify, &again);
}

#[test]
fn settings_that_a_killed_verification_varied_are_restored() {
    let verify = ["verify", "load.fio", "--device", "null", "--target", "DEVICE", "--journal", "journal"];
    let settings = ["--schedulers", "bfq", "--vary", "bfq.slice_idle=0,8", "--queue", "read_ahead_kb=64"];
    is_restored_after_kills(&[&verify[..], &settings].concat(), &["apply", "--undo", "--journal", "journal"]);
}
