//! Ends programs with a signal while they work. Tests of other crates use this, too.

use std::fs;
use std::process::{Child, Command, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process that has not ended or begun after this time counts as hung.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// CPU time, in ticks of 10 ms, after which a run certainly has results.
const TICKS_OF_WORK: u64 = 20;

/// Waits until `condition` holds, and returns whether it ever did.
pub(crate) fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < EXIT_TIMEOUT {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// The CPU time of a process, in ticks. Fields of the file are counted after the name in brackets.
pub(crate) fn ticks(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    fields.get(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Whether a process has a handler for Ctrl-C.
pub(crate) fn handles_interrupts(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught >> (Signal::INT.as_raw() - 1) & 1 == 1
}

/// The complete output of a process. It is read while the process runs, since results may be longer than a pipe holds.
pub(crate) fn ended(child: Child) -> Output {
    let process = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(EXIT_TIMEOUT);
    if output.is_err() {
        kill_process(process, Signal::KILL).unwrap();
    }
    waiter.join().unwrap().unwrap();
    output.expect("does not end").unwrap()
}

/// Starts a long command, and sends it a signal when it has done some work.
pub(crate) fn cut_short(mut command: Command, signal: Signal) -> Output {
    let child = command.spawn().unwrap();
    assert!(eventually(|| handles_interrupts(&child)), "does not begin");
    let before = ticks(&child);
    assert!(eventually(|| ticks(&child) >= before + TICKS_OF_WORK), "does not work");
    kill_process(Pid::from_child(&child), signal).unwrap();
    ended(child)
}

/// Its standard error without progress lines, which begin with a time and whose number depends on the machine.
pub(crate) fn complaints(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let is_progress = |line: &&str| line.split_once(" s: ").is_some_and(|(seconds, _)| seconds.parse::<f64>().is_ok());
    text.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
}

pub(crate) fn assert_interrupted(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(complaints(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}
