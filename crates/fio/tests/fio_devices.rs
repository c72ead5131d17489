//! Compares jobs on a device with fio itself. To fio, an existing file that is larger than the job's region is like a
//! device.

use crate::fio_run;

use std::fs::{self, File};

use hoistway_blk::bio::Op;
use hoistway_fio::{Environment, JobFile};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const DEVICE_BYTES: u64 = 8 << 20;

/// Operation, offset and length of each I/O.
type Ios = Vec<(char, u64, u64)>;

fn by_fio(test: &str, options: &str) -> Ios {
    let directory = fio_run::directory(test);
    File::create(directory.join("disk")).and_then(|file| file.set_len(DEVICE_BYTES)).expect("a file");
    let text = format!("[a]\nioengine=psync\nfilename=disk\nwrite_iolog=log\nrandrepeat=0\n{options}\n");
    let output = fio_run::run(&directory, &text, &[], &[]);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(directory.join("log")).expect("an I/O log");
    fs::remove_dir_all(&directory).expect("the directory is there");
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, action, offset, length] = fields[..] else { return None };
        if !matches!(action, "read" | "write") {
            return None;
        }
        Some((action.chars().next()?, offset.parse().ok()?, length.parse().ok()?))
    };
    log.lines().filter_map(line).collect()
}

fn ours(options: &str, seed: u64) -> Ios {
    let text = format!("[a]\nioengine=libaio\ndirect=1\nfilename=disk\n{options}\n");
    let job_file =
        JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{options}: {e}"));
    let generator = job_file.load.processes[0].generator(0, seed, |_| DEVICE_BYTES).unwrap_or_else(|e| panic!("{e}"));
    let line = |io: hoistway_load::Io| {
        let letter = if io.op == Op::Read { 'r' } else { 'w' };
        (letter, io.offset_bytes, u64::from(io.bytes))
    };
    generator.take(20_000).map(line).collect()
}

fn check(strategy: impl Strategy<Value = String>, cases: u32, same: impl Fn(&str) -> Result<(), TestCaseError>) {
    if !fio_run::is_installed() {
        return;
    }
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&strategy, |options| same(&options)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn sequential_jobs_of_any_size_are_the_same_io_for_io() {
    let modes = prop::sample::select(vec!["read", "write", "rw", "read:4k", "write:8k", "rw:4k", "read:12k"]);
    let strategy = (modes, prop::sample::select(vec![0, 100]), 1..4_u32, 8..600_u64, 0..100_u64, any::<bool>());
    let options = strategy.prop_map(|(mode, mix, loops, size, offset, is_4k)| {
        let block = if is_4k { 4096 } else { 1024 };
        // In sectors, not in whole blocks.
        format!("rw={mode}\nrwmixread={mix}\nbs={block}\nloops={loops}\nsize={}\noffset={}", size * 512, offset * 4096)
    });
    check(options, 4, |options| {
        prop_assert_eq!(ours(options, 1), by_fio("devices-sequential", options), "{}", options);
        Ok(())
    });
}

#[test]
fn zones_continue_beyond_the_region_as_in_fio() {
    let strategy = (prop::sample::select(vec!["read", "randread", "randwrite"]), 1..6_u64, any::<bool>());
    let options = strategy.prop_map(|(mode, halves, has_map)| {
        format!(
            "rw={mode}\nbs=4k\nsize={}\nnorandommap={}\nzonemode=strided\nzonesize=64k\nzoneskip=64k\nzonerange=128k",
            halves * 512 * 1024,
            u8::from(!has_map)
        )
    });
    check(options, 4, |options| {
        let zones = |ios: Ios| {
            ios.into_iter().map(|(kind, offset, bytes)| (kind, offset / (192 << 10), bytes)).collect::<Vec<_>>()
        };
        prop_assert_eq!(zones(ours(options, 1)), zones(by_fio("devices-zones", options)), "{}", options);
        Ok(())
    });
}

#[test]
fn a_run_that_comes_to_the_end_of_its_region_ends_the_job() {
    let options = (2..9_u32, 16..64_u64)
        .prop_map(|(run, blocks)| format!("rw=randread:{run}\nbs=4k\nsize={}\noffset=64k", blocks * 4096));
    let end = |options: &str, ios: &Ios| {
        let size: u64 = options.lines().find_map(|line| line.strip_prefix("size=")?.parse().ok()).unwrap();
        let is_whole = ios.iter().map(|&(_, _, bytes)| bytes).sum::<u64>() >= size;
        let (_, offset, bytes) = *ios.last().unwrap();
        is_whole || offset + bytes == size + 65_536
    };
    let mut early = [0; 2];
    for seed in 0..200 {
        let options = "rw=randread:4\nbs=4k\nsize=262144\noffset=65536";
        let ios = ours(options, seed);
        assert!(end(options, &ios), "{ios:?}");
        early[0] += u32::from(ios.len() < 64);
        early[1] += 1;
    }
    // About half of fio's runs end like this, too.
    assert!((early[1] / 4..early[1] * 9 / 10).contains(&early[0]), "{early:?}");
    check(options, 4, |options| {
        prop_assert!(end(options, &by_fio("devices-runs", options)), "{}", options);
        Ok(())
    });
}
