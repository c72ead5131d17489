//! The legacy front as a whole against recordings of Linux 4.19: it is driven *freely*. Bios enter and completions come when
//! the recording says so; everything between (plugging, merging, who gets a request, insertion, when the elevator is asked
//! and what it answers, what the driver gets) is the front's own, and is never corrected.
//!
//! A recording agrees if each of its events has happened here, and nothing else has.

mod host;
mod replay;

use std::path::{Path, PathBuf};

use hoistway_trace::iosched::Trace;

fn recordings(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(folder);
    let files = std::fs::read_dir(folder).expect("the recordings");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

/// The recordings of a folder that do not agree, and how many do.
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

#[test]
fn noop_recordings_agree_in_every_event() {
    assert_eq!(disagreements("noop"), (Vec::<String>::new(), 15));
}

#[test]
fn deadline_recordings_agree_in_every_event() {
    assert_eq!(disagreements("deadline"), (Vec::<String>::new(), 36));
}

#[test]
fn cfq_recordings_agree_in_every_event() {
    assert_eq!(disagreements("cfq"), (Vec::<String>::new(), 97));
}
