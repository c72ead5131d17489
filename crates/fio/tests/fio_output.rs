//! The output of fio as a load: the job file in it is the one that ran.

use std::fs;
use std::process::Command;

use hoistway_fio::{Environment, JobFile, output};
use proptest::prelude::*;

use crate::fio_run;

const JOBS: &str = "[global]\nsize=16m\nioengine=psync\nruntime=1\ntime_based\n\
                    [a]\nrw=randread\nbs=4k\nnumjobs=2\nrate_iops=2000\n[b]\nrw=randrw\nbs=16k,64k\nrate_iops=500\n";

#[test]
fn the_job_file_in_the_output_of_fio_is_the_one_that_ran() {
    if !fio_run::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.fio"), JOBS).unwrap();
    let run =
        Command::new("fio").current_dir(&folder).args(["--output-format=normal,json", "jobs.fio"]).output().unwrap();
    let both = String::from_utf8(run.stdout).unwrap();
    let (start, end) = (both.find("\n{\n").unwrap() + 1, both.find("\n}\n").unwrap() + 3);
    let (json, normal) = (&both[start..end], [&both[..start], &both[end..]].concat());
    let [json, normal] = [json, &normal].map(|text| output::read(text).unwrap().unwrap());
    for (format, read) in [("json", &json), ("normal", &normal)] {
        let parsed = JobFile::parse(&read.job_text, "output", &Environment::empty()).unwrap();
        let processes = &parsed.load.processes;
        let names: Vec<&str> = processes.iter().map(|process| &*process.name).collect();
        assert_eq!(names, ["a", "a", "b"], "{format}: {}", read.job_text);
        let rows: Vec<_> = read.measured.iter().map(|row| (&*row.job, row.operation, row.processes)).collect();
        assert_eq!(rows, [("a", "read", 2), ("b", "read", 1), ("b", "write", 1)], "{format}");
        assert!(read.version.starts_with("fio-"));
        assert_eq!(read.assumed.is_empty(), format == "json");
    }
    // A machine that does other work as well misses the jobs' rates; it cannot exceed them.
    assert!((100.0..2200.0).contains(&json.measured[0].iops), "{:?}", json.measured);
    for (exact, rounded) in json.measured.iter().zip(&normal.measured) {
        assert!((exact.iops / rounded.iops - 1.0).abs() < 0.02, "{exact:?} {rounded:?}");
        assert!((exact.mean_ns / rounded.mean_ns - 1.0).abs() < 0.02, "{exact:?} {rounded:?}");
    }
}

#[test]
fn other_texts_are_not_taken_for_it_and_damaged_ones_are_named() {
    for text in ["", "[a]\nrw=read\n", "{}", "{\"sysstat\": 1}", "a: (g=0)"] {
        assert_eq!(output::read(text), None, "{text}");
    }
    let damaged = output::read("{\"fio version\": \"fio-3.33\", \"jobs\": [").unwrap().unwrap_err();
    assert!(damaged.contains("damaged"), "{damaged}");
    let empty = output::read("{\"fio version\": \"fio-3.33\"}").unwrap().unwrap_err();
    assert!(empty.contains("no job"), "{empty}");
}

/// Pieces of fio's output, and of what may stand between them.
const PIECES: [&str; 14] = [
    "a: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 16.0KiB-64.0KiB, ioengine=psync, iodepth=1\n",
    "a: (groupid=0, jobs=4294967295): err= 0\n",
    "  read: IOPS=85.3k, BW=1MiB/s (1MB/s)(2MiB/1002msec)\n",
    "     lat (usec): min=1, max=2, avg=3.5, stdev=1\n",
    "fio-3.33\n",
    "{\"fio version\": \"fio-3.33\", \"jobs\": [",
    "{\"jobname\": \"a\", \"read\": {\"total_ios\": 1}}",
    "]}",
    "jobs=",
    "avg=",
    ": (g=",
    "IOPS=",
    "/",
    "\u{e9}",
];

proptest! {
    #[test]
    fn no_text_ends_the_reader(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..12), cut in 0..400_usize) {
        let text: String = pieces.concat().chars().take(cut).collect();
        if let Some(Ok(read)) = output::read(&text) {
            prop_assert!(read.job_text.contains('['), "{}", read.job_text);
            let _ = JobFile::parse(&read.job_text, "output", &Environment::empty());
        }
    }
}
