//! Times between events against btt's.

use std::path::Path;
use std::process::{Command, Stdio};

use hoistway_trace::block::{Flights, Interval, Intervals, Names, Recording, Spread, Spreads};

use crate::support::bytes;

/// Runs a program of blktrace; none if it is not installed, which only a developer's machine may be without.
fn ran(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).stderr(Stdio::null()).output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) if std::env::var("CI").is_ok_and(|value| value == "true") => panic!("{program}: {error}"),
        Err(_) => {
            eprintln!("skipped: there is no {program}");
            None
        }
    }
}

/// The rows of btt's tables of one section: interval, name, mean in seconds, count.
fn rows(text: &str, section: &str) -> Vec<(String, String, f64, u64)> {
    let mut interval = String::new();
    let mut rows = Vec::new();
    let title = format!("==================== {section} ====================");
    for line in text.lines().skip_while(|line| *line != title).skip(1).take_while(|line| !line.starts_with("====")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "MIN", "AVG", "MAX", "N"] => interval = name.to_owned(),
            [ref name @ .., _, mean, _, count] if !name.is_empty() && !line.starts_with('-') => {
                let (mean, count) = (mean.parse().unwrap(), count.parse().unwrap());
                rows.push((interval.clone(), name.join(" "), mean, count));
            }
            _ => {}
        }
    }
    rows
}

fn check(ours: &Spread, mean: f64, count: u64, what: &str) {
    assert_eq!(ours.count, count, "{what}");
    let mean_of_ours = ours.mean_ns().unwrap_or(0.0) / 1e9;
    // btt prints nanoseconds.
    assert!((mean_of_ours - mean).abs() <= mean * 1e-3 + 1e-9, "{what}: {mean_of_ours} instead of {mean}");
}

fn interval(name: &str) -> Option<Interval> {
    Interval::ALL.into_iter().find(|interval| interval.name() == name)
}

/// Compares everything that btt prints of a merged stream. Returns how many rows that was.
fn compare(folder: &Path, merged: &str) -> Option<usize> {
    let text = ran("btt", &["-A", "-i", merged], folder)?;
    let mut recording = Recording::open(&folder.join(merged)).unwrap();
    let (mut flights, mut intervals) = (Flights::new(false), Intervals::default());
    while let Some(event) = recording.next_event().unwrap() {
        flights.take(&event, &mut |step, flight| intervals.take(step, flight, event.time_ns));
    }
    let mut all = Spreads::default();
    intervals.devices().iter().for_each(|(_, spreads)| all.merge(spreads));
    let mut compared = 0;
    for (_, name, mean, count) in rows(&text, "All Devices") {
        check(all.get(interval(&name).expect("a known interval")), mean, count, &name);
        compared += 1;
    }
    for (of, task, mean, count) in rows(&text, "Per Process") {
        let Some(interval) = interval(&of) else { continue };
        let spreads = of_task(&intervals, recording.names(), &task);
        check(spreads.get(interval), mean, count, &format!("{of} of {task}"));
        compared += 1;
    }
    Some(compared)
}

/// The intervals of all tasks of a name, which btt cuts off at a slash.
fn of_task(intervals: &Intervals, names: &Names, task: &str) -> Spreads {
    let mut sum = Spreads::default();
    let tasks = intervals.tasks();
    // A task without a name is called by its number.
    let name = |pid: u32| names.get(pid).map_or_else(|| format!("pid{pid:09}"), str::to_owned);
    let its = tasks.iter().filter(|(pid, _)| name(*pid).split('/').next() == Some(task));
    its.for_each(|(_, spreads)| sum.merge(spreads));
    sum
}

#[test]
fn times_are_those_of_btt_for_a_database() {
    let folder = tempfile::tempdir().unwrap();
    for cpu in 0..2 {
        let name = format!("sqlite-commits.blktrace.{cpu}");
        std::fs::write(folder.path().join(&name), bytes(&format!("{name}.gz"))).unwrap();
    }
    // blkparse loses the end: the same is read here.
    if ran("blkparse", &["-q", "-O", "-i", "sqlite-commits", "-d", "merged"], folder.path()).is_some() {
        let compared = compare(folder.path(), "merged").expect("btt comes with blkparse");
        assert!(compared > 20, "{compared} rows");
    }
}

#[test]
fn times_are_those_of_btt_for_a_merged_stream_of_others() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("merged"), bytes("blktrace-viewer.bin.gz")).unwrap();
    if let Some(compared) = compare(folder.path(), "merged") {
        assert!(compared >= 4, "{compared} rows");
    }
}
