//! No text makes the parser panic, and all that it accepts can be run.

use std::io;
use std::path::Path;

use hoistway_fio::{Environment, JobFile, log_in_memory, options};
use proptest::prelude::*;

/// Parses a text, for which most variables and files exist, and generates some I/Os if it is accepted.
fn survives(text: &str) {
    let variable = |name: &str| (name.len() < 4).then(|| "8".to_owned());
    let include = |path: &Path| match path.to_str() {
        Some("missing") => Err(io::Error::from(io::ErrorKind::NotFound)),
        _ => Ok("bs=8k\ninclude x\n".to_owned()),
    };
    let log = |path: &Path| match path.to_str() {
        Some("missing") => Err(io::Error::from(io::ErrorKind::NotFound)),
        _ => Ok(log_in_memory(LOG.as_bytes())),
    };
    let environment =
        Environment { variable: &variable, include: &include, log: &log, cpus: 2, ..Environment::empty() };
    match JobFile::parse(text, "jobs.fio", &environment) {
        Ok(job_file) => {
            for process in job_file.load.processes.iter().take(3) {
                for device_bytes in [0, 511, 4096, 1 << 30, u64::MAX] {
                    if let Ok(generator) = process.generator(0, 1, |_| device_bytes) {
                        for io in generator.take(50) {
                            let end = io.offset_bytes.checked_add(u64::from(io.bytes));
                            assert!(end.is_some_and(|end| end <= device_bytes), "{text}");
                        }
                    }
                }
                let mut pacer = process.pacer(0, 1);
                if let Some(pacer) = &mut pacer {
                    pacer.issued(hoistway_blk::bio::Op::Write, u32::MAX, hoistway_blk::ground::Nanos::ZERO);
                }
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("jobs.fio") || message.contains(": "), "{message}");
            assert!(!message.contains('\n') && message.len() < 1500, "{message}");
        }
    }
}

const LOG: &str = "fio version 3 iolog\n0 x add\n0 x open\n10 x read 0 4096\n20 y write 4096 512\n30 x sync 0 0\n\
                   900 y trim 8192 8192\n950 x close\n";

const VALID: &[&str] = &[
    include_str!("data/habr-ssd.fio"),
    include_str!("data/groups.fio"),
    include_str!("data/suse-cfq-dd.fio"),
    include_str!("data/icpe24-interference-11a.fio"),
    include_str!("data/options.fio"),
];

#[test]
fn every_option_survives_every_kind_of_value() {
    const VALUES: &[&str] = &[
        "",
        "0",
        "1",
        "-1",
        "100",
        "101",
        "18446744073709551615",
        "99999999999999999999",
        "0x",
        "1.5",
        "50%",
        "4k",
        "4kib",
        "1p",
        "4k-8k",
        "8k:4k",
        "4k/50:8k/",
        ",",
        ",4k",
        "4k,,8k",
        "1,2,3,4",
        "1h",
        "randrw:3",
        "read:-8k",
        "zipf:0.5",
        "zipf:1.2:0.5",
        "pareto:0.9",
        "zipf:nan",
        "zipf:inf",
        "é",
        "\u{202e}",
        "a:b",
        "random:3",
        "gauss:99",
        "4k/50/2/3:8k/10,4k/100",
        "read,sync",
        "\\:",
        "${",
        "${A}",
        "$ncpus*0",
        "1/0",
        "none",
        "sync",
        "libaio",
        "x",
    ];
    for spec in options() {
        for name in spec.aliases.iter().chain([&spec.name]) {
            survives(&format!("[a]\nfilename=x\ndirect=1\n{name}\n"));
            for value in VALUES {
                for rw in ["read", "randrw"] {
                    survives(&format!("[a]\nfilename=x\ndirect=1\nrw={rw}\n{name}={value}\n"));
                }
            }
        }
    }
}

#[test]
fn a_file_of_ten_thousand_jobs_is_read() {
    let mut text = String::from("[global]\nfilename=/dev/sda\ndirect=1\n");
    for i in 0..10_000 {
        text.push_str(&format!("[job {i}]\nrw=randrw\niodepth=8\nioengine=libaio\n"));
    }
    let job_file = JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap();
    assert_eq!((job_file.load.processes.len(), job_file.load.processes[9999].schedule.job), (10_000, 9999));
    text.push_str("[one too many]\n");
    assert!(JobFile::parse(&text, "jobs.fio", &Environment::empty()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parsing_random_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn parsing_random_plausible_lines_never_panics(text in "(\\[[a-z]{0,6}\\]?\n|(rw|bs|size|offset|include|bssplit|filename|numjobs|direct|loops) ?=? ?[0-9a-z%$\\{\\}:,/.*;#-]{0,12}\n){0,12}") {
        survives(&text);
    }

    #[test]
    fn parsing_mutated_logs_never_panics(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        is_2 in any::<bool>(),
    ) {
        let mut bytes = if is_2 {
            b"fio version 2 iolog\nx add\nx read 0 4096\nx wait 5 0\ny write 4096 512\nx datasync 0 0\n".to_vec()
        } else {
            LOG.as_bytes().to_vec()
        };
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let log = |_: &Path| Ok(log_in_memory(bytes.clone()));
        let environment = Environment { log: &log, ..Environment::empty() };
        match JobFile::parse("[a]\ndirect=1\nread_iolog=log\n", "jobs.fio", &environment) {
            Ok(job_file) => {
                for device_bytes in [0, 4096, 1 << 30, u64::MAX] {
                    if let Ok(generator) = job_file.load.processes[0].generator(0, 1, |_| device_bytes) {
                        assert!(generator.count() < 10);
                    }
                }
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.starts_with("log:") || message.starts_with("jobs.fio:"), "{message}");
                assert!(!message.contains('\n') && message.len() < 1500, "{message}");
            }
        }
    }

    #[test]
    fn parsing_mutated_job_files_never_panics(
        which in 0..VALID.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..8),
    ) {
        let mut bytes = VALID[which].as_bytes().to_vec();
        for (at, byte, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                // Repeats some of the bytes.
                _ => {
                    let end = (at + usize::from(byte)).min(bytes.len());
                    let run = bytes[at..end].to_vec();
                    bytes.splice(at..at, run);
                }
            }
        }
        survives(&String::from_utf8_lossy(&bytes));
    }
}
