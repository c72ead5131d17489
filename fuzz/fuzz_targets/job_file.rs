//! No job file makes the parser panic, and what it accepts can be run and stays on its device.

#![no_main]

use std::io;
use std::path::Path;

use hoistway_fio::{Environment, JobFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let variable = |name: &str| (name.len() < 4).then(|| "8".to_owned());
    let include = |path: &Path| match path.to_str() {
        Some("missing") => Err(io::Error::from(io::ErrorKind::NotFound)),
        _ => Ok("bs=8k\ninclude x\n".to_owned()),
    };
    let environment = Environment { variable: &variable, include: &include, cpus: 2, ..Environment::empty() };
    match JobFile::parse(text, "fuzz.fio", &environment) {
        Ok(job_file) => {
            for process in job_file.load.processes.iter().take(3) {
                // In blocks of one byte a device has at most as many as a permutation can hold.
                for device_bytes in [0, 511, 4096, 1 << 30, 1 << 62] {
                    let Ok(generator) = process.generator(0, 1, |_| device_bytes) else { continue };
                    for io in generator.take(50) {
                        let end = io.offset_bytes.checked_add(u64::from(io.bytes));
                        assert!(end.is_some_and(|end| end <= device_bytes), "beyond the end: {io:?}");
                    }
                }
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "not one message: {error}"),
    }
});
