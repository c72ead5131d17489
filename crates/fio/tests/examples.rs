//! Every example job file of fio either runs or is refused with a reason.
//!
//! The example files are under fio's licence and not part of this repository: on Debian they are in the package
//! fio-examples. `FIO_EXAMPLES` names their directory if it is another one. `examples.txt` has the result of each
//! example of fio 3.33.

use crate::examples_directory;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use examples_directory::examples_directory;
use hoistway_fio::{Environment, JobFile, JobFileError, log_in_memory};

const GOLDEN: &str = include_str!("examples.txt");
/// A device size that is large enough for all of them.
const DEVICE_BYTES: u64 = 64 << 40;
/// I/Os generated for each process.
const DRAWN: usize = 100;

/// Reads a job file, and generates the first I/Os of all its processes.
fn tried(path: &Path) -> Result<JobFile, JobFileError> {
    // Some files need variables; each variable is set to a word that is valid as a file name.
    let variable = |name: &str| match name {
        "FIO_RW" => Some("read".to_owned()),
        _ => Some("x".to_owned()),
    };
    let include = |name: &Path| fs::read_to_string(path.with_file_name(name));
    let log = |name: &Path| fs::read(path.with_file_name(name)).map(log_in_memory);
    let environment =
        Environment { variable: &variable, include: &include, log: &log, cpus: 4, ..Environment::empty() };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(path).expect("a job file is text");
    let job_file = JobFile::parse(&text, &name, &environment)?;
    for process in &job_file.load.processes {
        let ios = process.generator(0, 1, |_| DEVICE_BYTES).unwrap_or_else(|error| panic!("{error}"));
        assert!(ios.take(DRAWN).count() > 0, "{name} does nothing");
    }
    Ok(job_file)
}

/// A line of the golden file for a job file.
fn line(path: &Path) -> String {
    match tried(path) {
        Ok(job_file) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (processes, devices) = (job_file.load.processes.len(), job_file.load.files.len());
            format!("{name}: runs, processes {processes}, devices {devices}")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_example_of_fio_runs_or_is_refused_with_the_reason_that_is_written_down() {
    let Some(directory) = examples_directory() else { return };
    let golden: BTreeMap<&str, &str> =
        GOLDEN.lines().filter_map(|line| Some((line.split(':').next()?, line))).collect();
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "fio") {
            lines.push(line(&path));
        }
    }
    lines.sort();
    assert!(!lines.is_empty(), "there are no examples");
    let strange: Vec<_> = lines
        .iter()
        // Other versions of fio have other examples.
        .filter(|line| golden.get(line.split(':').next().unwrap_or_default()).is_some_and(|known| known != line))
        .collect();
    assert!(strange.is_empty(), "differ from examples.txt:\n{strange:#?}\nall of them:\n{}", lines.join("\n"));
    let known = lines.iter().filter(|line| golden.contains_key(line.split(':').next().unwrap_or_default())).count();
    assert!(known >= 60, "only {known} of fio's examples are known here:\n{}", lines.join("\n"));
}

#[test]
fn every_refusal_in_the_golden_file_names_the_place_and_says_what_to_do() {
    for line in GOLDEN.lines().filter(|line| !line.contains(": runs, ")) {
        let place = line.split(' ').next().unwrap_or_default();
        let mut parts = place.trim_end_matches(':').split(':');
        assert!(parts.next().is_some_and(|name| name.ends_with(".fio")), "{line}");
        assert!(parts.next().is_some_and(|number| number.parse::<u32>().is_ok()), "{line}");
        assert!(line.ends_with(')') && line.contains(" ["), "{line}");
    }
}
