//! Compares jobs with several files with fio itself: the file, offset and length of each I/O.

use crate::fio_run;

use std::collections::BTreeMap;
use std::fs::{self, File};

use hoistway_fio::{Environment, JobFile};

/// A line of a log: `a:r4+8` is a read of 8 KiB at 4 KiB of file a; the length is left out if it is 4 KiB.
fn shown(file: &str, letter: char, offset: u64, bytes: u64) -> String {
    match (letter, bytes) {
        ('s', _) => format!("{file}:s"),
        (_, 4096) => format!("{file}:{letter}{}", offset / 1024),
        _ => format!("{file}:{letter}{}+{}", offset / 1024, bytes / 1024),
    }
}

/// The I/Os of fio, from its I/O log. `sizes` are the initial sizes of the files a, b and c, in KiB.
fn logged_by_fio(test: &str, options: &str, sizes: &[u64]) -> Option<Vec<String>> {
    if !fio_run::is_installed() {
        return None;
    }
    let directory = fio_run::directory(test);
    for (name, kib) in ["a", "b", "c"].iter().zip(sizes) {
        File::create(directory.join(name)).and_then(|f| f.set_len(kib << 10)).expect("a file");
    }
    // Without existing files the null engine suffices, as it makes all decisions about I/O.
    let engine = if sizes.is_empty() { "null" } else { "psync" };
    let output = fio_run::run(&directory, &format!("[a]\nioengine={engine}\nwrite_iolog=log\n{options}\n"), &[], &[]);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(directory.join("log")).expect("an I/O log");
    fs::remove_dir_all(&directory).expect("the directory is there");
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, file, action, offset, length] = fields[..] else { return None };
        // Files that fio names itself are called JOB.CLONE.NUMBER.
        let file = file.strip_prefix("a.0.").unwrap_or(file);
        let letter = if action == "datasync" { 's' } else { action.chars().next()? };
        Some(shown(file, letter, offset.parse().ok()?, length.parse().ok()?))
    };
    Some(log.lines().filter(|text| !text.starts_with("fio version")).filter_map(line).collect())
}

/// The I/Os generated here, in the same notation.
fn generated(options: &str, sizes: &[u64]) -> Vec<String> {
    let text = format!("[a]\nioengine=libaio\ndirect=1\n{options}\n");
    let job_file = JobFile::parse(&text, "jobs.fio", &Environment::empty()).unwrap_or_else(|e| panic!("{e}"));
    let process = &job_file.load.processes[0];
    let ranges = process.ranges(1 << 40).unwrap_or_default();
    // For fio, a file that does not exist ends where the job does.
    let is_own = job_file.load.files[0] == ".";
    let end = |file: usize| ranges.get(file).filter(|_| !is_own).map_or(1 << 40, |(start, bytes)| start + bytes);
    let device = |file: usize| sizes.get(process.files[file] as usize).map_or_else(|| end(file), |kib| kib << 10);
    let generator = process.generator(0, 1, device).unwrap_or_else(|e| panic!("{e}"));
    let line = |io: hoistway_load::Io| {
        let letter = match io.op {
            hoistway_blk::bio::Op::Read => 'r',
            hoistway_blk::bio::Op::Write => 'w',
            hoistway_blk::bio::Op::Discard => 't',
            _ => 's',
        };
        let name = &job_file.load.files[process.files[usize::from(io.file)] as usize];
        if !is_own {
            return shown(name, letter, io.offset_bytes, io.bytes.into());
        }
        // Files that fio names itself lie one after the other.
        let is_in = |&&(start, bytes): &&(u64, u64)| (start..start + bytes).contains(&io.offset_bytes);
        let number = ranges.iter().position(|range| is_in(&range)).unwrap_or(0);
        shown(&number.to_string(), letter, io.offset_bytes - ranges[number].0, io.bytes.into())
    };
    generator.take(20_000).map(line).collect()
}

/// Options that determine every I/O, and the sizes of the existing files.
const WITHOUT_CHANCE: &[(&str, &[u64])] = &[
    ("filename=a:b:c\nrw=read\nsize=36k", &[]),
    ("filename=a:b:c\nrw=write\nsize=40k", &[]),
    ("filename=a:b:a\nrw=read\nsize=36k", &[]),
    ("filename=a:b\nnrfiles=5\nrw=read\nsize=16k", &[]),
    ("filename=a:b\nrw=read\nsize=24k\nfile_service_type=sequential", &[]),
    ("filename=a:b\nrw=read\nsize=24k\nfile_service_type=sequential:2", &[]),
    ("filename=a:b\nrw=read\nsize=24k\nfile_service_type=roundrobin:2", &[]),
    ("filename=a:b:c\nrw=read\nsize=24k\nfilesize=16k", &[]),
    ("filename=a:b:c\nrw=read\nsize=100k\nfilesize=16k", &[]),
    ("filename=a:b:c\nrw=read\nfilesize=16k", &[]),
    ("filename=a:b\nrw=read\nfilesize=8k\nio_size=24k", &[]),
    ("filename=a\nrw=read\nfilesize=8k\nsize=16k", &[]),
    ("filename=a\nrw=read\nfilesize=8k\nsize=4k", &[]),
    ("filename=a\nrw=read\nfilesize=64k\nsize=48k\nio_size=50%", &[]),
    ("filename=a:b\nrw=write\nsize=32k\nfsync=2", &[]),
    ("filename=a:b\nrw=write\nsize=32k\nfsync=2\nfdatasync=3", &[]),
    ("filename=a:b:c\nrw=write\nsize=24k\nfsync=1", &[]),
    ("filename=a:b:c\nrw=write\nsize=24k\nfsync=2\nfile_service_type=sequential", &[]),
    ("filename=a:b\nrw=trimwrite\nsize=32k", &[]),
    ("filename=a:b\nrw=read\nsize=16k\noffset=4k", &[]),
    ("filename=a:b\nrw=read\nsize=16k\nnumber_ios=3", &[]),
    ("filename=a:b\nrw=read\nsize=16k\nloops=2", &[]),
    ("filename=a:b:c\nrw=read\nsize=36k\nio_size=48k", &[]),
    ("filename=a:b\nrw=read\nsize=16k\nio_size=24k\nfile_service_type=sequential", &[]),
    ("filename=a:b\nrw=read:4k\nsize=24k", &[12, 12]),
    ("filename=a:b\nrw=read:4k\nsize=32k", &[16, 16]),
    ("filename=a\nrw=read:4k\nsize=16k", &[16]),
    ("filename=a\nrw=read:8k\nsize=20k", &[20]),
    ("filename=a\nrw=read:4k\nsize=16k", &[64]),
    ("filename=a\nrw=read:8k\nsize=20k", &[64]),
    ("filename=a\nrw=read:8k\nsize=20k\noffset=44k", &[64]),
    ("filename=a\nrw=read:8k\nsize=20k\noffset=12k", &[64]),
    ("filename=a\nrw=read:64k\nsize=20k\noffset=12k", &[64]),
    ("filename=a\nrw=read:64k\nsize=20k\noffset=20k", &[64]),
    ("filename=a\nrw=read:48k\noffset=12k", &[64]),
    ("nrfiles=2\nrw=read:12k\nsize=40k", &[]),
    ("nrfiles=2\nrw=trimwrite\nsize=16k\nio_size=100k", &[]),
    ("nrfiles=3\nrw=trimwrite\nsize=24k\nio_size=60k\nfile_service_type=sequential", &[]),
    ("nrfiles=2\nrw=trimwrite\nsize=16k\nloops=3", &[]),
    // Not whole sectors.
    ("rw=read\nsize=12345", &[]),
    ("nrfiles=2\nrw=write\nbs=1k\nsize=23457", &[]),
    ("filename=a:b\nrw=read\nsize=9k", &[64, 64]),
    ("filename=a:b:c\nrw=read\nsize=96k\nopenfiles=2\nfile_service_type=roundrobin:2", &[]),
    ("filename=a:b:c\nrw=read\nsize=96k\nopenfiles=1\nfile_service_type=roundrobin:2", &[]),
    ("filename=a:b:c:d:e\nrw=read\nsize=60k\nopenfiles=2", &[]),
    ("nrfiles=3\nrw=read\nsize=36k", &[]),
    ("nrfiles=3\nrw=read\nsize=36k\nopenfiles=1", &[]),
    ("nrfiles=2\nrw=read\nsize=16k\nloops=2", &[]),
    ("nrfiles=2\nrw=read\nfilesize=8k", &[]),
    // Files of different sizes, as devices have them.
    ("filename=a:b:c\nrw=read", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nfile_service_type=sequential", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nio_size=80k", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nloops=3", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nopenfiles=2", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nsize=50%", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nsize=50%\nbs=1k", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read:4k", &[8, 20, 12]),
    ("filename=a:b:c\nrw=read\nsize=36k\noffset=32k", &[64, 64, 64]),
    ("filename=a:b:c\nrw=read\nsize=25%\noffset=50%", &[64, 64, 64]),
    ("filename=a:b:c\nrw=read\nsize=100%\noffset=75%", &[64, 64, 64]),
    ("filename=a:b:c\nrw=read\nio_size=25%", &[64, 64, 64]),
    ("filename=a:b:c\nrw=read\nsize=48k\nio_size=50%", &[64, 64, 64]),
    ("filename=a\nrw=read\nio_size=50%\noffset=50%", &[64]),
    ("filename=a:b:c\nrw=read\nfilesize=8k", &[64, 64, 64]),
];

#[test]
fn jobs_without_chance_are_the_same_io_for_io() {
    for (i, (options, sizes)) in WITHOUT_CHANCE.iter().enumerate() {
        let Some(fio) = logged_by_fio(&format!("files-{i}"), options, sizes) else { return };
        assert_eq!(generated(options, sizes).join(" "), fio.join(" "), "{options} on {sizes:?}");
    }
}

/// How often each I/O was done.
fn counts(ios: &[String]) -> BTreeMap<&str, u32> {
    let mut counts = BTreeMap::new();
    for io in ios {
        *counts.entry(io.as_str()).or_default() += 1;
    }
    counts
}

fn files(ios: &[String]) -> Vec<&str> {
    ios.iter().map(|io| io.split(':').next().unwrap_or_default()).collect()
}

#[test]
fn random_offsets_cover_each_file_and_the_turns_are_the_same() {
    for (i, (options, sizes)) in [
        ("filename=a:b\nrw=randread\nsize=256k", &[][..]),
        ("filename=a:b:c\nrw=randwrite\nsize=384k\nloops=2", &[]),
        ("filename=a:b\nrw=randread\nsize=128k\nfile_service_type=roundrobin:4", &[]),
        ("filename=a:b\nrw=randread\nsize=128k\nfile_service_type=sequential", &[]),
        ("filename=a:b\nrw=randtrimwrite\nsize=128k", &[]),
        ("nrfiles=4\nrw=randread\nsize=256k\nopenfiles=2", &[]),
        ("filename=a:b:c\nrw=randread\nloops=2", &[8, 20, 12]),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("files-map-{i}"), options, sizes) else { return };
        let ours = generated(options, sizes);
        assert_eq!(counts(&ours), counts(&fio), "{options}");
        assert_eq!(files(&ours), files(&fio), "{options}");
    }
}

#[test]
fn random_service_visits_all_of_every_file_in_runs_of_the_same_length() {
    for (i, options) in [
        "filename=a:b:c\nrw=read\nsize=6m\nfile_service_type=random",
        "filename=a:b:c\nrw=read\nsize=6m\nfile_service_type=random:8",
        "nrfiles=8\nrw=read\nsize=8m\nfile_service_type=random:3\nopenfiles=3",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(fio) = logged_by_fio(&format!("files-random-{i}"), options, &[]) else { return };
        let ours = generated(options, &[]);
        assert_eq!(counts(&ours), counts(&fio), "{options}");
        let changes = |ios: &[String]| files(ios).windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
        let ratio = changes(&ours) / changes(&fio);
        assert!((0.8..1.25).contains(&ratio), "{options}: {ratio}");
    }
}

#[test]
fn skewed_service_has_the_same_shares() {
    for (i, service) in [
        "zipf",
        "zipf:1.2",
        "zipf:2",
        "pareto",
        "pareto:0.1",
        "pareto:0.4",
        "normal",
        "gauss:10",
        "gauss:30",
        "gauss:80",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("nrfiles=8\nrw=randread\nnorandommap\nsize=8m\nio_size=32m\nfile_service_type={service}");
        let Some(fio) = logged_by_fio(&format!("files-skew-{i}"), &options, &[]) else { return };
        let ours = generated(&options, &[]);
        assert_eq!(ours.len(), fio.len(), "{service}");
        let shares = |ios: &[String]| {
            let files = files(ios);
            let mut shares: Vec<f64> = (0..8)
                .map(|file| files.iter().filter(|name| **name == file.to_string()).count() as f64 / ios.len() as f64)
                .collect();
            if service.starts_with('z') || service.starts_with('p') {
                // Chance decides which file is the hottest.
                shares.sort_by(f64::total_cmp);
            }
            shares
        };
        for (ours, fio) in shares(&ours).into_iter().zip(shares(&fio)) {
            assert!((ours - fio).abs() < 0.025, "{service}: {ours} against {fio}");
        }
    }
}

#[test]
fn a_time_based_job_wraps_each_file_or_all_of_them_as_fio_does() {
    for (i, rw) in ["read", "randread"].into_iter().enumerate() {
        let options = format!("filename=a:b:c\nrw={rw}\ntime_based\nruntime=100ms");
        let sizes = [8, 20, 12];
        let Some(fio) = logged_by_fio(&format!("files-time-{i}"), &options, &sizes) else { return };
        let ours = generated(&options, &sizes);
        let length = 200.min(fio.len());
        assert!(length > 20, "fio did only {length}");
        assert_eq!(files(&ours[..length]), files(&fio[..length]), "{rw}");
        if rw == "read" {
            assert_eq!(ours[..length], fio[..length]);
        }
    }
}
