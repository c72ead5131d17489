//! Compares the whole legacy front with recordings of Linux 4.19 in *free* replays: bios and completions arrive as
//! recorded. Everything between them (plugging, merging, which task gets a request, insertion, when the elevator is
//! asked and what it returns, what the driver gets) is decided by the front, and never corrected.
//!
//! A recording agrees if exactly its events have happened here. In `shares` the arrivals, too, depend on what happens
//! here.

mod host;
mod replay;
mod shares;

use std::path::{Path, PathBuf};

use hoistway_trace::iosched::Trace;

fn recordings(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(folder);
    let files = std::fs::read_dir(folder).expect("the recordings");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

fn recording(folder: &str, name: &str) -> Trace {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/{folder}/{name}.jsonl.gz"));
    Trace::open(file).unwrap_or_else(|error| panic!("{error}"))
}

/// The recordings of a folder that do not agree, and the number of those that do.
fn disagreements(folder: &str) -> (Vec<String>, usize) {
    let (mut differ, mut agree) = (Vec::new(), 0);
    for file in recordings(folder) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().replace(".jsonl.gz", "");
        let trace = Trace::open(file).unwrap_or_else(|error| panic!("{error}"));
        match replay::replay(&trace) {
            Ok(()) => agree += 1,
            Err(difference) => {
                println!("{folder}/{name}: {difference}");
                differ.push(name);
            }
        }
    }
    (differ, agree)
}

/// Recordings that differ, and why. No others may be added.
const DIFFER: [(&str, &[&str]); 3] = [
    // When a change of scheduler begins is not recorded and has to be guessed.
    ("noop", &["switch-noop-deadline-cfq-noop-deadline"]),
    // `dups`: several requests begin at the same sector, and which of them a bio is put in front of depends on the shape of
    // the kernel's tree. `mixed-ssd`: a tick passes between the arrival of a bio and its insertion.
    ("deadline", &["dups", "mixed-ssd"]),
    // `smp2`: two CPUs in host time, where the moment of an event is not the one that cfq saw. `mixed-ncq31` and
    // `cg-ssd-quantum`: a difference of microseconds between the two.
    ("cfq", &["cg-ssd-quantum", "dups", "mixed-ncq31", "smp2"]),
];

#[test]
fn all_recordings_of_legacy_queues_but_those_that_are_named_agree_in_every_event() {
    let mut agree = 0;
    for (folder, known) in DIFFER {
        let (differ, others) = disagreements(folder);
        assert_eq!(differ, known, "{folder}");
        agree += others;
    }
    assert_eq!(agree, 141);
}
