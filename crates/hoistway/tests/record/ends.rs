//! The ends of a recording: only its files remain.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::skips::skipped;
use crate::support::{Bench, has, succeeded};

/// Reads from the device until it is dropped.
pub struct Load(Child);

impl Load {
    pub fn on(bench: &Bench) -> Load {
        let options = "--rw=randread --bs=4k --ioengine=psync --time_based --runtime=600 --size=32m";
        let mut command = bench.fio(options);
        command.retain(|option| option != "--output=fio.json");
        let stat = || fs::read_to_string(format!("/sys/block/{}/stat", bench.name())).unwrap();
        let (before, begin) = (stat(), Instant::now());
        let load = Load(Command::new(&command[0]).args(&command[1..]).stdout(Stdio::null()).spawn().unwrap());
        // On a busy machine fio needs some time to begin.
        while stat() == before && begin.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The output of a recording that was ended by a signal.
fn ended_by(bench: &Bench, signal: Signal) -> Output {
    let child = bench.record().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !bench.path("x.blktrace.0").exists() && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn is_whole(bench: &Bench) {
    let (events, losses, _) = bench.events();
    assert!(!events.is_empty() && losses.truncated == 0, "{losses:?}");
    assert_eq!(Bench::instances(), [""; 0]);
    let names = fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().ends_with(".part")));
}

#[test]
fn it_ends_after_its_time() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let _load = Load::on(&bench);
    let begin = Instant::now();
    let (printed, _) = succeeded(bench.record().args(["--for", "700ms"]));
    assert!(begin.elapsed() >= Duration::from_millis(700) && printed.contains("for 0.7 s"), "{printed}");
    is_whole(&bench);
}

#[test]
fn it_ends_when_its_files_are_large_enough() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let _load = Load::on(&bench);
    let (printed, _) = succeeded(bench.record().args(["--max", "100k", "--for", "60s"]));
    assert!(printed.contains("the limit of --max"), "{printed}");
    is_whole(&bench);
}

#[test]
fn a_signal_ends_a_recording_and_keeps_its_data() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let _load = Load::on(&bench);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let output = ended_by(&bench, signal);
        assert!(output.status.success(), "{signal:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("Recorded loop"), "{signal:?}");
        is_whole(&bench);
    }
}

#[test]
fn a_command_that_runs_on_is_named() {
    let Some(bench) = Bench::new() else { return };
    let (_, said) = succeeded(bench.record().args(["--for", "200ms", "--", "sleep", "3"]));
    assert!(said.contains("sleep is still running (process "), "{said}");
}

#[test]
fn a_command_that_fails_is_reported() {
    let Some(bench) = Bench::new() else { return };
    let output = bench.record().args(["--", "sh", "-c", "exit 7"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("sh ended with exit status: 7"), "{output:?}");
    let output = bench.record().args(["--", "/no/such/program"]).output().unwrap();
    assert!(output.status.code() == Some(2), "{output:?}");
    assert_eq!(Bench::instances(), [""; 0]);
}

#[test]
fn a_full_disk_ends_it_with_whole_records() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let small = bench.path("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small).status();
    if !mounted.is_ok_and(|status| status.success()) {
        skipped("no file system may be mounted");
        return;
    }
    let load = Load::on(&bench);
    let mut command = bench.hoistway();
    command.args(["record", &bench.device, "-o", "small/x", "--for", "60s"]);
    let output = command.output().unwrap();
    drop(load);
    let read = bench.hoistway().args(["trace", "info", "small/x.blktrace.0"]).output().unwrap();
    let unmounted = Command::new("umount").arg(&small).status().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("the file system was full"), "{output:?}");
    assert!(read.status.success() && unmounted.success(), "{read:?}");
    assert_eq!(Bench::instances(), [""; 0]);
}
