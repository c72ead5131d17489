//! Compares fio's example job files with fio itself: each of its processes issues the I/Os generated here.
//!
//! The files are under fio's licence and not part of this repository: see `examples.rs`. `fio_trace/adapt.rs` changes
//! them for both sides.

use crate::examples_directory;
use crate::fio_run;
use crate::fio_trace;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use examples_directory::examples_directory;
use fio_trace::adapt::adapted;
use fio_trace::{compare, trace};
use hoistway_fio::{Environment, JobFile};

const GOLDEN: &str = include_str!("examples.txt");

/// The examples that run, the divisor of their sizes, and additional defaults: `size`, if they use the whole device.
const COMPARED: &[(&str, u64, &str)] = &[
    ("1mbs_clients.fio", 64, ""),
    ("aio-read.fio", 4, ""),
    ("backwards-read.fio", 64, ""),
    ("basic-verify.fio", 64, "size=8m"),
    ("butterfly.fio", 64, "size=8m"),
    ("cmdprio-bssplit.fio", 64, "size=256m"),
    ("cmdprio-percentage.fio", 64, "size=256m"),
    ("cross-stripe-verify.fio", 65536, "filesize=96m"),
    ("dedupe-global.fio", 16, ""),
    ("disk-zone-profile.fio", 64, "size=256m"),
    ("enospc-pressure.fio", 4096, ""),
    ("exitwhat.fio", 64, ""),
    ("fio-rand-RW.fio", 64, ""),
    ("fio-rand-read.fio", 64, ""),
    ("fio-rand-write.fio", 64, ""),
    ("fio-seq-RW.fio", 64, ""),
    ("fio-seq-read.fio", 64, ""),
    ("fio-seq-write.fio", 64, ""),
    ("fixed-rate-submission.fio", 16, ""),
    ("flow.fio", 1024, ""),
    ("fsx.fio", 64, ""),
    ("iometer-file-access-server.fio", 64, "size=64m"),
    ("jesd219.fio", 64, "size=64m"),
    ("latency-profile.fio", 64, "size=16m"),
    ("numa.fio", 4, ""),
    ("poisson-rate-submission.fio", 16, ""),
    ("rand-zones.fio", 64, ""),
    ("ssd-steadystate.fio", 64, "size=16m"),
    ("ssd-test.fio", 1024, ""),
    ("steadystate.fio", 16, ""),
    ("surface-scan.fio", 64, "size=16m"),
    ("tiobench-example.fio", 128, ""),
    ("waitfor.fio", 16, ""),
];

/// The examples that run and cannot be compared, with the reason.
const NOT_COMPARED: &[(&str, &str)] = &[];

fn compared(path: &Path, shrink: u64, defaults: &str) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let directory = fio_run::directory(&name);
    let text = adapted(&fs::read_to_string(path).expect("a job file is text"), shrink, defaults);
    for line in text.lines() {
        if let Some(own) = line.strip_prefix("directory=") {
            fs::create_dir_all(directory.join(own)).expect("a directory");
        }
    }
    let fio = trace(&directory, &text, &[("ENGINE", "null")]);
    fs::remove_dir_all(&directory).expect("the directory is there");
    let variable = |name: &str| (name == "ENGINE").then(|| "libaio".to_owned());
    let environment = Environment { variable: &variable, ..Environment::empty() };
    let job_file = JobFile::parse(&text, &name, &environment).map_err(|error| error.to_string())?;
    compare(&job_file, 1 << 40, &fio)
}

#[test]
fn processes_of_fios_examples_issue_the_same_ios_as_in_fio() {
    if !fio_run::is_installed() {
        return;
    }
    let Some(directory) = examples_directory() else { return };
    let mut differences = Vec::new();
    let mut count = 0;
    for (name, shrink, defaults) in COMPARED {
        let path = directory.join(name);
        // Other versions of fio have other examples.
        if !path.is_file() {
            eprintln!("skipped: there is no {name}");
            continue;
        }
        count += 1;
        if let Err(difference) = compared(&path, *shrink, defaults) {
            differences.push(format!("{name}: {difference}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(count >= 25, "only {count} of fio's examples are known here");
}

#[test]
fn every_example_that_runs_is_compared_or_named_with_the_reason_why_not() {
    let runs = GOLDEN.lines().filter(|line| line.contains(": runs, ")).filter_map(|line| line.split(':').next());
    let runs: BTreeSet<&str> = runs.collect();
    let compared = COMPARED.iter().map(|example| example.0);
    let named: Vec<&str> = compared.chain(NOT_COMPARED.iter().map(|example| example.0)).collect();
    assert_eq!(named.iter().copied().collect::<BTreeSet<_>>(), runs);
    assert_eq!(named.len(), runs.len(), "one is named twice");
    assert!(NOT_COMPARED.iter().all(|(_, reason)| !reason.is_empty()));
}
